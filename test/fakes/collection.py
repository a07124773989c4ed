"""Lists of the fake API server: selectors, versions and pages."""

from fakes.refusals import status_error
from fakes.semantics import Json, field_predicate, label_predicate, partial
from fakes.storage import Storage
from mpiop.kube.request import Request


def selected(request: Request, objects: list[Json]) -> list[Json]:
    """Return those of `objects` that `request` selects, in its form."""
    by_label = label_predicate(request.params.get("labelSelector", ""))
    by_field = field_predicate(request.params.get("fieldSelector", ""))
    namespace = request.key.namespace
    found = [obj for obj in objects if namespace in {"", obj["metadata"].get("namespace", "")} and by_label(obj) and by_field(obj)]
    return [partial(obj) for obj in found] if request.metadata_only else found


class Pages:
    """Pages of lists; what is left of a list is kept under its continue token."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._rest: dict[str, tuple[int, list[Json]]] = {}
        self._tokens = 0

    def expire(self) -> None:
        """Forget all continue tokens."""
        self._rest.clear()

    def page(self, request: Request) -> Json:
        params = request.params
        if token := params.get("continue"):
            version, items = self._continued(request, token)
        else:
            self._check_version(request, params.get("resourceVersion", ""))
            version, items = self._storage.version, selected(request, self._storage.all(request.resource))
        # The server's cache answers a list at "0" as a whole, whatever the limit.
        limit = int(params.get("limit", "0")) if params.get("resourceVersion") != "0" else 0
        metadata: Json = {"resourceVersion": str(version)}
        if limit and len(items) > limit:
            self._tokens += 1
            metadata["continue"] = f"token-{self._tokens}"
            self._rest[metadata["continue"]] = (version, items[limit:])
            items = items[:limit]
        kind = "PartialObjectMetadata" if request.metadata_only else request.resource.kind
        return {"apiVersion": request.resource.api_version, "kind": f"{kind}List", "metadata": metadata, "items": items}

    def _continued(self, request: Request, token: str) -> tuple[int, list[Json]]:
        if token not in self._rest:
            message = "The provided continue parameter is too old to display a consistent list result."
            raise status_error(request, 410, "Expired", message)
        return self._rest[token]

    def _check_version(self, request: Request, version: str) -> None:
        current = self._storage.version
        if version and int(version) > current:
            message = f"Too large resource version: {version}, current: {current}"
            causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
            raise status_error(request, 504, "Timeout", message, causes=causes, retryAfterSeconds=1)
