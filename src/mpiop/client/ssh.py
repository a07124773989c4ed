"""Whose ssh a job uses: what the user asks for, or what the operator offers (docs/adr/0039-capabilities.md)."""

import math
import os
import threading
import time
from dataclasses import replace
from typing import Final

from mpiop.api import constants as c
from mpiop.api.capabilities import NAME, Capabilities
from mpiop.api.parse import ParseError, parse_mpijob
from mpiop.api.validation import validate
from mpiop.client.api import Api, Object
from mpiop.client.errors import ClientError, ForbiddenError, InvalidError, NotFoundError, UnauthenticatedError
from mpiop.client.manifest import manifest
from mpiop.client.spec import SSH_AUTO, SSH_INJECTED, SSH_OPERATOR, JobSpec
from mpiop.kube.resources import CONFIG_MAPS

OPERATOR_NAMESPACE: Final = "MPIOP_OPERATOR_NAMESPACE"
"""Variable with the namespace of the operator that serves all namespaces."""
_NAMESPACES: Final = ("mpi-operator", "kubeflow")
"""Where the manifests install that operator."""
_SECONDS: Final = 60.0
"""So long an answer counts."""


class Offer:
    """What the operator of a namespace offers. Threads may share it.

    An answer counts for a minute, as often as the operator writes it, so that many jobs ask once; no answer does not count.
    """

    def __init__(self, api: Api) -> None:
        """Read it by `api`, in whose namespace an operator for one namespace publishes it; one for all does so in its own."""
        self._api, self._lock = api, threading.Lock()
        self._found: Capabilities | None = None
        self._until = -math.inf

    def read(self) -> Capabilities | None:
        """Return what it offers; None if that cannot be read, or no operator has published it."""
        with self._lock:
            if time.monotonic() >= self._until:
                try:
                    self._found = self._ask()
                except ClientError:
                    return None
                self._until = time.monotonic() + _SECONDS
            return self._found

    def _ask(self) -> Capabilities | None:
        named = os.environ.get(OPERATOR_NAMESPACE, "")
        for namespace in (self._api.namespace, *((named,) if named else _NAMESPACES)):
            try:
                return Capabilities.parse(self._api.get(CONFIG_MAPS.path(namespace, NAME)))
            except UnauthenticatedError:
                raise  # any other request would fail too, after another log-in
            except (ForbiddenError, NotFoundError):
                continue
        return None


def with_ssh(offer: Offer, spec: JobSpec) -> JobSpec:
    """Return `spec` with a choice instead of `auto`.

    `auto` is `injected` if the operator recommends that and nothing of the job is in its way, such as a command of its workers; else the
    operator decides. A choice of the user is kept.

    Raises:
        InvalidError: The operator cannot do it.
    """
    if spec.ssh not in {SSH_AUTO, SSH_INJECTED}:
        return spec
    offered = offer.read()
    if spec.ssh == SSH_INJECTED:
        if offered is not None and c.SSH_INJECTED not in offered.ssh_modes:
            raise InvalidError(
                "ssh is injected: the operator has no agent image; use --ssh image and an image with sshd, or ask an administrator "
                "to set --agent-image"
            )
        return spec
    injected = replace(spec, ssh=SSH_INJECTED)
    is_injected = offered is not None and offered.ssh_auto == c.SSH_INJECTED and _has_room(manifest(injected, "job"))
    return injected if is_injected else replace(spec, ssh=SSH_OPERATOR)


def _has_room(job: Object) -> bool:
    """Return whether nothing of a job is in the way of injected ssh: a patch may set any field."""
    try:
        parsed = parse_mpijob(job)  # type: ignore[arg-type]  # anything
    except ParseError:
        return False
    if parsed.ssh != c.SSH_INJECTED or parsed.worker is None or validate(parsed):
        return False
    container = parsed.worker.template["spec"]["containers"][0]
    return not (container.get("command") or container.get("args"))
