"""Publishes what this operator offers, in a ConfigMap that the tools of users read (docs/adr/0039-capabilities.md)."""

import asyncio
from typing import Final, NotRequired, TypedDict

import structlog

from mpiop.api import constants as c
from mpiop.api.capabilities import NAME, Capabilities
from mpiop.kube.client import Client
from mpiop.kube.errors import CalledOffError, KubeError, StatusError
from mpiop.kube.objects import Key, Object, ObjectMeta, resource_version_of, uid_of
from mpiop.kube.resources import CONFIG_MAPS

RECHECK_SECONDS: Final = 60.0
"""Time between two checks: a ConfigMap that somebody changed or deleted is written again, and a write that failed is repeated."""
# Not the label of a job's objects, by which informers find them.
_LABELS: Final = {"app": c.OPERATOR_NAME, "app.kubernetes.io/name": c.OPERATOR_NAME}

log = structlog.get_logger(__name__)


class _Published(TypedDict):
    """The projection of the ConfigMap: another answer is a failed request."""

    metadata: ObjectMeta
    data: NotRequired[dict[str, str] | None]
    binaryData: NotRequired[dict[str, str] | None]
    immutable: NotRequired[bool | None]


class CapabilitiesPublisher:
    """Keeps the ConfigMap up to date while this replica leads. Jobs do not need it, so a failure is only logged."""

    def __init__(self, client: Client, namespace: str, capabilities: Capabilities) -> None:
        """Publish `capabilities` in `namespace` with `client`, whose fencing stops writes after the lease is lost."""
        self._client = client
        self._key = Key(namespace, NAME)
        self._data = capabilities.data()
        self._logged = ""

    async def run(self) -> None:
        """Write the ConfigMap whenever it differs, until cancelled or the lease is lost."""
        while True:
            try:
                await self._publish()
                self._logged = ""
            except CalledOffError:
                return
            except KubeError as error:
                if str(error) != self._logged:
                    log.warning("capabilities not published", config_map=str(self._key), error=str(error))
                self._logged = str(error)
            await asyncio.sleep(RECHECK_SECONDS)

    async def _publish(self) -> None:
        try:
            found = await self._client.get(CONFIG_MAPS, self._key, projection=_Published)
            if found.get("immutable"):
                await self._client.delete(CONFIG_MAPS, self._key, uid=uid_of(found))
        except StatusError as error:
            if not error.is_not_found:
                raise
            found = None
        if found is None or found.get("immutable"):
            await self._client.create(CONFIG_MAPS, self._built())
        elif found.get("data") != self._data or found.get("binaryData"):
            version = {"resourceVersion": resource_version_of(found), "uid": uid_of(found)}
            data = {**dict.fromkeys(found.get("data") or {}), **self._data}
            await self._client.patch(CONFIG_MAPS, self._key, {"metadata": version, "data": data, "binaryData": None})

    def _built(self) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self._key.name, "namespace": self._key.namespace, "labels": dict(_LABELS)},
            "data": self._data,
        }
