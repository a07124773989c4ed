"""From a stored MPIJob, which may hold anything, to the dataclass with every default applied, or to the list of what is wrong with it.

The CRD refuses most mistakes at admission. What was stored before it did, or by a server that does not know its rules, is caught here, and
only that one job suffers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api import defaults
from mpiop.api.annotations import are_edited, fields_of
from mpiop.api.checkpoint import checkpoint_of
from mpiop.api.fields import INT64_MAX, Fields, as_mapping, required
from mpiop.api.restart import restart_policy
from mpiop.api.slots import slots_of
from mpiop.api.spec_fields import RUN_POLICY, SPEC, read_fields
from mpiop.api.status import stored_status
from mpiop.api.template import POD_TEMPLATE, conform
from mpiop.api.types import MPIJob, ReplicaSpec, RunPolicy, SchedulingPolicy
from mpiop.api.validation import validate
from mpiop.kube.objects import Object, annotations_of

_PLACEHOLDER: Final = ReplicaSpec(replicas=1, template={"spec": {"containers": [{"name": "placeholder"}]}}, restart_policy=c.NEVER)


class ParseError(ValueError):
    """An MPIJob that cannot be understood.

    Attributes:
        errors: One Kubernetes-style line a field: path, kind of error, value, what to do; never empty.
    """

    def __init__(self, errors: Iterable[str]) -> None:
        """Keep the field errors; the message is all of them on one line."""
        self.errors = tuple(errors)
        super().__init__("; ".join(self.errors))


def parse_mpijob(raw: Object) -> MPIJob:
    """Parse a stored MPIJob and apply every default; `raw` is not changed.

    The result has the right types, but is not validated yet: see `validation.validate`.

    Raises:
        ParseError: Some field cannot be parsed. It also lists the errors of `validate`, so that the user sees all of them at once.
    """
    errors: list[str] = []
    job = _job(raw, errors)
    if errors:
        paths = {line.split(": ", 1)[0] for line in errors}
        further = [line for line in validate(job) if line.split(": ", 1)[0] not in paths]
        raise ParseError((*errors, *further))
    return job


def parse_next(job: MPIJob, raw: Object) -> MPIJob | None:
    """Return the job of `raw`, a later state of that of `job`, if at most its status has changed; None when all is to be parsed.

    Equal specs have to be one and the same object, as they are in a store.
    """
    before, now = job.raw["metadata"], raw["metadata"]
    if raw.get("spec") is not job.raw.get("spec") or any(before.get(name) != now.get(name) for name in ("uid", "generation")):
        return None
    had, has = annotations_of(job.raw), annotations_of(raw)
    if had is not has and are_edited(had, has):
        return None
    return replace(job, raw=raw, status=stored_status(raw))


def _job(raw: object, errors: list[str]) -> MPIJob:
    root = Fields(as_mapping(raw) or {}, "", errors)
    metadata = root.child("metadata")
    if metadata is None or not metadata.string("name", ""):
        errors.append(required("metadata.name", "an MPIJob has a name"))
        metadata = Fields({"name": "placeholder"}, "metadata", errors)
    spec = root.child("spec")
    if spec is None:
        spec = Fields({}, SPEC, errors)
    replica_specs = spec.child("mpiReplicaSpecs") or Fields({}, spec.at("mpiReplicaSpecs"), errors)
    annotations = metadata.child("annotations") or Fields({}, metadata.at("annotations"), errors)
    job = MPIJob(
        namespace=metadata.string("namespace", ""),
        name=metadata.string("name", ""),
        uid=metadata.string("uid", ""),
        generation=metadata.integer("generation", 0, maximum=INT64_MAX),
        raw=raw,  # type: ignore[arg-type]  # anything but an object has given an error above
        **read_fields(spec),
        run_policy=_run_policy(spec.child("runPolicy") or Fields({}, RUN_POLICY, errors)),
        launcher=_launcher(replica_specs),
        worker=_worker(replica_specs),
        status=stored_status(root.values),
        restart=restart_policy(annotations),
        checkpoint=checkpoint_of(annotations),
        **fields_of(annotations),
    )
    # The annotation wins, because an absent `slotsPerWorker` is stored as its default.
    return replace(job, slots_per_worker=slots_of((job.worker or job.launcher).template)) if job.slots_mode == c.SLOTS_AUTO else job


def _run_policy(fields: Fields) -> RunPolicy:
    return RunPolicy(**read_fields(fields), scheduling_policy=_scheduling_policy(fields.child("schedulingPolicy")))


def _scheduling_policy(fields: Fields | None) -> SchedulingPolicy | None:
    return None if fields is None else SchedulingPolicy(**read_fields(fields))


def _launcher(replica_specs: Fields) -> ReplicaSpec:
    fields = replica_specs.child(c.LAUNCHER)
    if fields is None:
        if replica_specs.values.get(c.LAUNCHER) is None:
            advice = "every job has a Launcher, whose first container runs mpirun"
            replica_specs.errors.append(required(replica_specs.at(c.LAUNCHER), advice))
        return _PLACEHOLDER
    return ReplicaSpec(
        replicas=fields.integer("replicas", defaults.LAUNCHER_REPLICAS),
        template=_template(fields, defaults.LAUNCHER_CONTAINER_NAME),
        restart_policy=fields.string("restartPolicy", "") or defaults.LAUNCHER_RESTART_POLICY,
    )


def _worker(replica_specs: Fields) -> ReplicaSpec | None:
    fields = replica_specs.child(c.WORKER)
    if fields is None:
        return None
    return ReplicaSpec(
        replicas=fields.integer("replicas", defaults.WORKER_REPLICAS),
        template=_template(fields, defaults.WORKER_CONTAINER_NAME),
        restart_policy=fields.string("restartPolicy", "") or defaults.WORKER_RESTART_POLICY,
    )


def _template(fields: Fields, container_name: str) -> Mapping[str, Any]:
    """Return the pod template, its containers all named; one with an error is replaced, so that it is reported once."""
    raw = fields.values.get("template")
    errors: list[str] = []
    template: Any = {} if raw is None else conform(raw, POD_TEMPLATE, fields.at("template"), errors)
    if errors:
        fields.errors.extend(errors)
        return _PLACEHOLDER.template
    spec = template.get("spec", {})
    containers = spec.get("containers", [])
    if all(container.get("name") for container in containers):
        return template  # type: ignore[no-any-return]  # conform has just checked it
    named = [container if container.get("name") else {"name": container_name, **container} for container in containers]
    return {**template, "spec": {**spec, "containers": named}}
