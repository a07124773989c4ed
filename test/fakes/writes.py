"""Writes of the fake API server: create, patch, update, delete and the garbage collector's part."""

import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from fakes.managed_fields import managed
from fakes.refusals import status_error
from fakes.semantics import SERVER_METADATA, WITH_GENERATION, WITH_STATUS, Json, copied, desired, merged, same_but_version
from fakes.storage import Storage
from mpiop.clock import Clock, format_time
from mpiop.kube.objects import Key, key_of
from mpiop.kube.request import Request
from mpiop.kube.resources import MPIJOBS, PODS, Resource
from virtual_time import EPOCH, VirtualClock

FOREGROUND = "foregroundDeletion"
_STATUSES: Mapping[Resource, Json] = {PODS: {"phase": "Pending"}, MPIJOBS: {"observedGeneration": -1}}
"""What the API server, or the CRD, gives to new objects."""
KUBELET = "example.com/kubelet"
"""Represents the grace period of a pod, which its kubelet ends."""


class Writes:
    """What changes the storage, as the API server would."""

    def __init__(self, storage: Storage, clock: Clock | None) -> None:
        self.storage = storage
        self._clock = clock
        self.terminating_namespaces: set[str] = set()
        self.admissions: dict[Resource, Callable[[Json], Json]] = {}
        self._names = 0

    def _now(self) -> datetime:
        """Return the time of the clock given, else of the running loop, else a fixed one: stamps are all that it is for."""
        if self._clock is not None:
            return self._clock.now()
        try:
            return VirtualClock().now()
        except RuntimeError:
            return EPOCH

    def put(self, resource: Resource, obj: Json) -> Json:
        """Create or replace an object, status and all, as controllers and kubelets together would."""
        request = Request("create", resource, key_of(obj))  # type: ignore[arg-type] # an object as a plain dict
        old = self.storage.get(resource, request.key)
        if old is None:
            return self.storage.put(resource, request.key, merged(self._fresh(request), obj))
        kept = {name: value for name, value in old["metadata"].items() if name in SERVER_METADATA}
        new = {"apiVersion": old["apiVersion"], "kind": old["kind"], **obj, "metadata": {**kept, **obj["metadata"]}}
        if resource in WITH_GENERATION and desired(old) != desired(new):
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1
        return self.storage.put(resource, request.key, new)

    def create(self, request: Request) -> Json:
        if request.key.namespace in self.terminating_namespaces:
            message = f"unable to create new content in namespace {request.key.namespace} because it is being terminated"
            raise status_error(request, 403, "Forbidden", message, causes=[{"reason": "NamespaceTerminating"}])
        body = copied(request.body)
        metadata = body["metadata"]
        if metadata.get("resourceVersion"):
            raise status_error(request, 500, "", "resourceVersion should not be set on objects to be created")
        if not metadata.get("name") and metadata.get("generateName"):
            self._names += 1
            metadata["name"] = f"{metadata['generateName']}{self._names:05x}"
        if not metadata.get("name"):
            raise status_error(
                request,
                422,
                "Invalid",
                f"{request.resource.kind} is invalid: metadata.name: Required value: name or generateName is required",
            )
        key = key_of(body)
        if self.storage.get(request.resource, key) is not None:
            raise status_error(request, 409, "AlreadyExists", f'{qualified(request.resource)} "{key.name}" already exists')
        if request.resource in WITH_STATUS:
            body.pop("status", None)
        for name in ("uid", "creationTimestamp", "deletionTimestamp", "generation"):
            metadata.pop(name, None)
        created = self._managed(request, {}, merged(body, self._fresh(request)))
        return created if is_dry_run(request) else self.storage.put(request.resource, key, created)

    def _fresh(self, request: Request) -> Json:
        """Return what the server gives to a new object."""
        metadata: Json = {
            "uid": str(uuid.uuid5(uuid.NAMESPACE_OID, str(self.storage.version))),
            "creationTimestamp": format_time(self._now()),
        }
        if request.resource in WITH_GENERATION:
            metadata["generation"] = 1
        fresh: Json = {"apiVersion": request.resource.api_version, "kind": request.resource.kind, "metadata": metadata}
        return fresh | {"status": _STATUSES[request.resource]} if request.resource in _STATUSES else fresh

    def patch(self, request: Request) -> Json:
        return self._change(request, merged(self.existing(request), request.body))

    def update(self, request: Request) -> Json:
        body = copied(request.body)
        if request.resource == MPIJOBS and not body["metadata"].get("resourceVersion"):
            message = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
            raise status_error(request, 422, "Invalid", message)
        return self._change(request, body)

    def _change(self, request: Request, new: Json) -> Json:
        """Store `new` in place of what is there, as far as `request` may."""
        old = self.existing(request)
        self._check_identity(request, old, new)
        if request.subresource == "status":
            new = {**old, "status": new.get("status")} if new.get("status") is not None else {k: v for k, v in old.items() if k != "status"}
        else:
            if request.resource in WITH_STATUS:
                new = {**{k: v for k, v in new.items() if k != "status"}, **({"status": old["status"]} if "status" in old else {})}
            if old.get("immutable") and any(new.get(name) != old.get(name) for name in ("data", "immutable")):
                message = (
                    f'{request.resource.kind} "{request.key.name}" is invalid: data: Forbidden: field is immutable when `immutable` is set'
                )
                raise status_error(request, 422, "Invalid", message)
            new = {"apiVersion": old["apiVersion"], "kind": old["kind"], **new, "metadata": self._kept_metadata(old, new)}
            if request.resource in WITH_GENERATION and desired(old) != desired(new):
                new["metadata"]["generation"] = old["metadata"]["generation"] + 1
        if same_but_version(copied(old), copied(new)):
            return old
        changed = self.storage.put(request.resource, request.key, self._managed(request, old, new))
        if "deletionTimestamp" in changed["metadata"] and not changed["metadata"].get("finalizers"):
            self.storage.remove(request.resource, request.key)
        return changed

    def _managed(self, request: Request, old: Json, new: Json) -> Json:
        """Return `new` with its managedFields, if the writer has a name, and then with what admission makes of it."""
        if manager := request.params.get("fieldManager"):
            new = {**new, "metadata": {**new["metadata"], "managedFields": managed(old, new, manager, format_time(self._now()))}}
        return self.admissions.get(request.resource, copied)(new)

    def _check_identity(self, request: Request, old: Json, new: Json) -> None:
        subject = f'Operation cannot be fulfilled on {qualified(request.resource)} "{request.key.name}"'
        uid, version = new["metadata"].get("uid"), new["metadata"].get("resourceVersion")
        is_other = bool(uid) and uid != old["metadata"]["uid"]
        if is_other and request.verb == "update":
            message = f"{subject}: Precondition failed: UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
            raise status_error(request, 409, "Conflict", message)
        if version and version != old["metadata"]["resourceVersion"]:
            message = f"{subject}: the object has been modified; please apply your changes to the latest version and try again"
            raise status_error(request, 409, "Conflict", message)
        if is_other:
            message = f'{request.resource.kind} "{request.key.name}" is invalid: metadata.uid: Invalid value: "{uid}": field is immutable'
            raise status_error(request, 422, "Invalid", message)

    @staticmethod
    def _kept_metadata(old: Json, new: Json) -> Json:
        """Return the metadata of `new` with what only the server changes taken from `old`."""
        kept = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
        metadata = {name: value for name, value in new["metadata"].items() if name not in kept}
        return metadata | {name: old["metadata"][name] for name in kept if name in old["metadata"]}

    def delete(self, request: Request) -> Json:
        old = self.existing(request)
        options = request.body or {}
        uid = (options.get("preconditions") or {}).get("uid")
        if uid and uid != old["metadata"]["uid"]:
            message = (
                f'Operation cannot be fulfilled on {qualified(request.resource)} "{request.key.name}": the UID in the precondition '
                f"({uid}) does not match the UID in record ({old['metadata']['uid']}). The object might have been deleted and recreated"
            )
            raise status_error(request, 409, "Conflict", message)
        policy = options.get("propagationPolicy")
        if policy == "Orphan":
            self._orphan_dependents(old["metadata"]["uid"])
        if policy == "Foreground":
            finalizers = [*(old["metadata"].get("finalizers") or ()), FOREGROUND]
            old = self.storage.put(request.resource, request.key, merged(old, {"metadata": {"finalizers": finalizers}}))
        if options.get("gracePeriodSeconds") == 0:  # the pod's kubelet is not waited for
            finalizers = [name for name in old["metadata"].get("finalizers") or () if name != KUBELET]
            old = self.storage.put(request.resource, request.key, merged(old, {"metadata": {"finalizers": finalizers}}))
        left = self.remove_or_mark(request.resource, request.key)
        if left is None and request.resource != PODS:
            return {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Success",
                "details": {"name": request.key.name, "uid": old["metadata"]["uid"]},
            }
        return left or self._terminating(request.resource, old)

    def remove_or_mark(self, resource: Resource, key: Key) -> Json | None:
        """Remove the object, or mark it as terminating while it has finalizers."""
        old = self.storage.get(resource, key)
        assert old is not None
        if not old["metadata"].get("finalizers"):
            self.storage.remove(resource, key)
            return None
        if "deletionTimestamp" in old["metadata"]:
            return old
        return self.storage.put(resource, key, self._terminating(resource, old))

    def _terminating(self, resource: Resource, old: Json) -> Json:
        mark: Json = {"deletionTimestamp": format_time(self._now()), "deletionGracePeriodSeconds": 0}
        if resource in WITH_GENERATION:
            mark["generation"] = old["metadata"]["generation"] + 1
        marked: Json = merged(old, {"metadata": mark})
        return marked

    def existing(self, request: Request) -> Json:
        obj = self.storage.get(request.resource, request.key)
        if obj is None:
            raise status_error(request, 404, "NotFound", f'{qualified(request.resource)} "{request.key.name}" not found')
        return obj

    def collect_garbage(self) -> list[Key]:
        """Delete what lost its owners, and let owners go that waited for it, until nothing is left to do; return what went."""
        gone: list[Key] = []
        while found := [*self._orphans(), *self._released()]:
            for resource, key in found:
                self.remove_or_mark(resource, key)
                gone.append(key)
        return gone

    def _orphans(self) -> Iterable[tuple[Resource, Key]]:
        """Yield the objects none of whose owners exists, or will for long."""
        everything = self.storage.everything()
        uids = {obj["metadata"]["uid"] for _, _, obj in everything if not _waits_for_dependents(obj)}
        for resource, key, obj in everything:
            owners = _owners(obj)
            if owners and not owners & uids and "deletionTimestamp" not in obj["metadata"]:
                yield resource, key

    def _released(self) -> Iterable[tuple[Resource, Key]]:
        """Yield the objects that waited for dependents of which none is left, without that finalizer."""
        everything = self.storage.everything()
        owners = {uid for _, _, obj in everything for uid in _owners(obj)}
        for resource, key, obj in everything:
            if _waits_for_dependents(obj) and obj["metadata"]["uid"] not in owners:
                rest = [finalizer for finalizer in obj["metadata"]["finalizers"] if finalizer != FOREGROUND]
                self.storage.put(resource, key, merged(obj, {"metadata": {"finalizers": rest or None}}))
                yield resource, key

    def _orphan_dependents(self, uid: str) -> None:
        for resource, key, obj in self.storage.everything():
            owners = obj["metadata"].get("ownerReferences") or []
            rest = [owner for owner in owners if owner["uid"] != uid]
            if len(rest) != len(owners):
                self.storage.put(resource, key, {**obj, "metadata": {**obj["metadata"], "ownerReferences": rest}})


def is_dry_run(request: Request) -> bool:
    """Return whether nothing is to be stored."""
    return request.params.get("dryRun") == "All"


def _owners(obj: Json) -> set[str]:
    return {owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()}


def _waits_for_dependents(obj: Json) -> bool:
    return "deletionTimestamp" in obj["metadata"] and FOREGROUND in (obj["metadata"].get("finalizers") or ())


def qualified(resource: Resource) -> str:
    """Return `plural.group`, as messages name it."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural
