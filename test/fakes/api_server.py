"""An API server in memory, below the real `Client`: `FakeClient` is a `Client` over it.

It keeps the contract that test/contract checks against a real API server too. What it leaves out on purpose: defaulting and
validation of specs, rights, namespaces as objects, grace periods of pods that run on a node.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import msgspec

from fakes.collection import Pages
from fakes.refusals import Action, Refusal, status_error
from fakes.reviews import REVIEWS, Reviews
from fakes.semantics import Json, copied, merged, partial
from fakes.storage import Storage
from fakes.stream import open_stream
from fakes.writes import Writes, is_dry_run
from mpiop.clock import Clock
from mpiop.kube.answers import Head, decode
from mpiop.kube.client import Client
from mpiop.kube.errors import KubeError
from mpiop.kube.objects import Key, Object, WatchEvent
from mpiop.kube.request import Request
from mpiop.kube.resources import CONFIG_MAPS, EVENTS, JOBS, LEASES, MPIJOBS, PODS, SECRETS, SERVICES, Resource

BUILT_IN = (MPIJOBS, PODS, SERVICES, CONFIG_MAPS, SECRETS, EVENTS, JOBS, LEASES, *REVIEWS)
WRITES = {"create", "patch", "update", "delete"}


class FakeApiServer:
    """The transport that answers from memory.

    Attributes:
        requests: Every request, in order.
        actions: Every write that was tried, in order.
        warnings: What it warns of when an object of a resource is created.
        logs: The logs of pods.
        reviews: Which tokens it knows, and whom it allows what.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.storage = Storage()
        self.requests: list[Request] = []
        self.actions: list[Action] = []
        self.served: set[Resource] = set(BUILT_IN)
        self.writes = Writes(self.storage, clock)
        self.warnings: dict[Resource, list[str]] = {}
        self.logs: dict[Key, str] = {}
        self.reviews = Reviews()
        self._pages = Pages(self.storage)
        self._refusals: list[Refusal] = []
        self._verbs: dict[str, Callable[[Request], Json]] = {
            "get": self.writes.existing,
            "list": self._pages.page,
            "log": self._log_of,
            "discover": self._discover,
            "create": self._create,
            "patch": self.writes.patch,
            "update": self.writes.update,
            "delete": self.writes.delete,
        }

    # Transport

    async def call(self, request: Request) -> dict[str, Any]:
        """Answer `request`, or fail as `refuse` asked for."""
        request.fencing()
        self.requests.append(request)
        try:
            answer = self._answer(request)
        except KubeError as error:
            self._log(request, error)
            raise
        self._log(request, None)
        for text in self.warnings.get(request.resource, ()) if request.verb == "create" else ():
            request.warn(text)
        content = answer["log"].encode() if request.verb == "log" else msgspec.json.encode(answer)
        return decode(request, Head(200, {}), content)  # as over a wire

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        self.requests.append(request)
        return open_stream(self.storage, request, lambda: self._check(request))

    def separate(self, deadline_seconds: float) -> "FakeApiServer":
        """Return this server: memory has no connections."""
        del deadline_seconds
        return self

    async def close(self) -> None:
        """Keep everything: a test may read it afterwards."""

    # What tests ask for

    def refuse(
        self,
        verb: str,
        resource: Resource | None,
        name: str,
        error: KubeError,
        *,
        times: int | None = None,
        takes_effect: bool = False,
        namespace: str = "",
    ) -> Refusal:
        """Let matching requests fail with `error`; `takes_effect` does the write first, as when only the answer is lost."""
        refusal = Refusal(verb, resource, name, error, times, takes_effect, namespace)
        self._refusals.append(refusal)
        return refusal

    def allow(self) -> None:
        self._refusals.clear()

    def put(self, resource: Resource, obj: Mapping[str, Any]) -> Object:
        """Create or replace an object with status and all, as if others did it; not in `actions`."""
        return cast("Object", copied(self.writes.put(resource, copied(obj))))

    def admit(self, resource: Resource, mutate: Callable[[Json], Json]) -> None:
        """Let a webhook or policy change each object of `resource` that is written with a request."""
        self.writes.admissions[resource] = mutate

    def terminate_namespace(self, namespace: str) -> None:
        """Refuse creations in `namespace`, as while it is being deleted."""
        self.writes.terminating_namespaces.add(namespace)

    def put_status(self, resource: Resource, key: Key, status: Mapping[str, Any]) -> Object:
        """Merge `status` into the status of a stored object, as its controller or kubelet would."""
        old = self.storage.get(resource, key)
        assert old is not None, f"no {resource.kind} {key} in the fake server"
        return cast("Object", copied(self.storage.put(resource, key, merged(old, {"status": status}))))

    def remove(self, resource: Resource, key: Key) -> None:
        """Remove an object at once, finalizers or not."""
        self.storage.remove(resource, key)

    def objects(self, resource: Resource) -> list[Object]:
        """Return copies of all objects of `resource`, by key."""
        return cast("list[Object]", copied(self.storage.all(resource)))

    def collect_garbage(self) -> list[Key]:
        """Do what the garbage collector does, until nothing is left to do; return the keys of what went."""
        return self.writes.collect_garbage()

    def compact(self) -> None:
        """Forget the history, as etcd does after five minutes: older watches and continue tokens get 410."""
        self.storage.compact()
        self._pages.expire()

    def cut_streams(self) -> None:
        """Break all open watches, as a restart does."""
        self.storage.cut_streams()

    # How it answers

    def _log(self, request: Request, error: KubeError | None) -> None:
        if request.verb in WRITES and not is_dry_run(request):
            self.actions.append(Action(request.verb, request.resource, request.key, request.body, request.subresource, error))

    def _answer(self, request: Request) -> Json:
        late = self._check(request)
        answer = self._verbs[request.verb](request)
        if late is not None:
            raise late
        is_one = request.verb in {"get", "create", "patch", "delete"} and answer.get("kind") != "Status"
        return partial(answer) if request.metadata_only and is_one else answer

    def _check(self, request: Request) -> KubeError | None:
        """Raise the failure that a test asked for, or return the one to raise after the fact."""
        refusal = next((refusal for refusal in self._refusals if refusal.applies_to(request)), None)
        if refusal is not None:
            refusal.use()
            if not refusal.takes_effect:
                raise refusal.error
        if request.resource not in self.served and request.verb != "discover":
            raise status_error(request, 404, "NotFound", "the server could not find the requested resource")
        return refusal.error if refusal is not None else None

    def _create(self, request: Request) -> Json:
        return self.reviews.create(request) if request.resource in REVIEWS else self.writes.create(request)

    def _log_of(self, request: Request) -> Json:
        if request.key not in self.logs:
            raise status_error(request, 404, "NotFound", f'pods "{request.key.name}" not found')
        return {"log": self.logs[request.key]}

    def _discover(self, request: Request) -> Json:
        group, version = request.resource.group, request.resource.version
        rows = sorted(resource.plural for resource in self.served if (resource.group, resource.version) == (group, version))
        if not rows:
            raise status_error(request, 404, "NotFound", "the server could not find the requested resource")
        return {"kind": "APIResourceList", "resources": [{"name": row} for row in rows]}


class FakeClient(Client):
    """The real client over a server in memory; `server` is that server."""

    def __init__(self, clock: Clock | None = None, server: FakeApiServer | None = None) -> None:
        self.server = server or FakeApiServer(clock)
        super().__init__(self.server)

    @property
    def actions(self) -> list[Action]:
        return self.server.actions

    def refuse(self, verb: str, resource: Resource | None, name: str, error: KubeError, **how: Any) -> Refusal:
        """Let matching requests fail (see `FakeApiServer.refuse`)."""
        return self.server.refuse(verb, resource, name, error, **how)
