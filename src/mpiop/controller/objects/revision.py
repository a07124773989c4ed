"""Hashes of the parts of an MPIJob that a start uses: they show whether an edit is pending, and whether the launcher Job can be updated.

They are made of what the user wrote, not of what is built from it: another version of the operator sees no edit where there was none.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from mpiop.api import annotations, spec_fields
from mpiop.api.types import MPIJob, ReplicaSpec
from mpiop.controller.objects.pod_template import section
from mpiop.controller.objects.ssh_script import wants_script

DIRECTIVES: Final = ("nodeSelector", "tolerations", "schedulingGates")
"""Fields of a pod template that may change in a suspended Job; nodeAffinity, labels and annotations are the others (KEP-2926)."""

_BYTES: Final = 8
_EXPONENT: Final = re.compile(rb"\de\d+[,\]}]")
"""Matches the end of an encoded number of 1e16 and more; strings may match too."""


def launcher_revision(job: MPIJob) -> str:
    """Return the hash of the immutable part of the launcher Job: its pod template without the scheduling directives."""
    spec = section(job.launcher.template, "spec")
    affinity = {name: value for name, value in section(spec, "affinity").items() if name != "nodeAffinity"}
    fixed = {name: value for name, value in spec.items() if name not in {*DIRECTIVES, "affinity"}}
    return _hash([fixed, affinity, job.launcher.restart_policy, *_settings(job)])


def start_revision(job: MPIJob) -> str:
    """Return the hash of everything that takes effect only at a start: the templates and the launcher Job's part of the run policy.

    It leaves out what takes effect at any time: number of workers, `suspend`, `cleanPodPolicy`, `schedulingPolicy`.
    """
    policy = job.run_policy
    limits = (policy.ttl_seconds_after_finished, policy.active_deadline_seconds, policy.backoff_limit)
    return _hash([_role(job.launcher), _role(job.worker), limits, job.launcher_creation_policy, *_settings(job)])


def _settings(job: MPIJob) -> tuple[Any, ...]:
    """Return the fields outside of the templates that count in both hashes."""
    settings = (job.slots_per_worker, job.run_launcher_as_worker, job.ssh_auth_mount_path, job.mpi_implementation, wants_script(job))
    # A job without annotations and later fields has the hashes of versions that did not know them.
    counted = sorted((*annotations.counted(job), *spec_fields.counted(job)), key=lambda pair: pair[0].place)
    return (*settings, *filter(None, (hashed.text(value) for hashed, value in counted)))


def _role(spec: ReplicaSpec | None) -> tuple[Mapping[str, Any], str] | None:
    return None if spec is None else (spec.template, spec.restart_policy)


def _hash(value: Any) -> str:
    text = msgspec.json.encode(value, order="sorted")
    if _EXPONENT.search(text):
        text = msgspec.json.encode(_with_signs(value), order="sorted")
    return hashlib.blake2b(text, digest_size=_BYTES).hexdigest()


def _with_signs(value: Any) -> Any:
    """Return `value` with `1e+16` for `1e16`: so numbers were written when the first hashes were stored, and those must stay the same."""
    match value:
        case float() if "e+" in (text := repr(value)):
            return msgspec.Raw(text.encode())
        case Mapping():
            return {name: _with_signs(item) for name, item in cast("Mapping[str, Any]", value).items()}
        case list() | tuple():
            return [_with_signs(item) for item in cast("Sequence[Any]", value)]
        case _:
            return value
