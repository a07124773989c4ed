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
from mpiop.api.fields import INT64_MAX, Fields, as_mapping, invalid, required
from mpiop.api.restart import restart_policy
from mpiop.api.slots import slots_of
from mpiop.api.status import stored_status
from mpiop.api.template import POD_TEMPLATE, conform
from mpiop.api.types import MPIJob, ReplicaSpec, RunPolicy, SchedulingPolicy
from mpiop.api.validation import validate
from mpiop.kube.objects import Object, annotations_of

_PLACEHOLDER: Final = ReplicaSpec(replicas=1, template={"spec": {"containers": [{"name": "placeholder"}]}}, restart_policy=c.NEVER)
_QUANTITY_ADVICE: Final = (
    'must be a quantity such as 2, "500m" or "16Gi"; minResources takes resource names directly, without `requests:` or `limits:` between'
)


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

    The result is well-typed but not yet valid: see `validation.validate`.

    Raises:
        ParseError: Some field cannot be understood; it lists what `validate` has to say too, so that the user sees everything at once.
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
        spec = Fields({}, "spec", errors)
    replica_specs = spec.child("mpiReplicaSpecs") or Fields({}, spec.at("mpiReplicaSpecs"), errors)
    annotations = metadata.child("annotations") or Fields({}, metadata.at("annotations"), errors)
    job = MPIJob(
        namespace=metadata.string("namespace", ""),
        name=metadata.string("name", ""),
        uid=metadata.string("uid", ""),
        generation=metadata.integer("generation", 0, maximum=INT64_MAX),
        raw=raw,  # type: ignore[arg-type]  # what is no object at all has given an error above
        slots_per_worker=spec.integer("slotsPerWorker", defaults.SLOTS_PER_WORKER),
        run_launcher_as_worker=spec.boolean("runLauncherAsWorker", defaults.RUN_LAUNCHER_AS_WORKER),
        ssh_auth_mount_path=spec.string("sshAuthMountPath", "") or defaults.SSH_AUTH_MOUNT_PATH,
        launcher_creation_policy=spec.string("launcherCreationPolicy", "") or defaults.LAUNCHER_CREATION_POLICY,
        mpi_implementation=spec.string("mpiImplementation", defaults.MPI_IMPLEMENTATION),
        run_policy=_run_policy(spec.child("runPolicy")),
        launcher=_launcher(replica_specs),
        worker=_worker(replica_specs),
        status=stored_status(root.values),
        restart=restart_policy(annotations),
        checkpoint=checkpoint_of(annotations),
        **fields_of(annotations),
    )
    # The annotation wins, because an absent `slotsPerWorker` is stored as its default.
    return replace(job, slots_per_worker=slots_of((job.worker or job.launcher).template)) if job.slots_mode == c.SLOTS_AUTO else job


def _run_policy(fields: Fields | None) -> RunPolicy:
    if fields is None:
        return RunPolicy()
    return RunPolicy(
        clean_pod_policy=fields.string("cleanPodPolicy", defaults.CLEAN_POD_POLICY),
        ttl_seconds_after_finished=fields.integer("ttlSecondsAfterFinished", None),
        active_deadline_seconds=fields.integer("activeDeadlineSeconds", None, maximum=INT64_MAX),
        backoff_limit=fields.integer("backoffLimit", None),
        suspend=fields.boolean("suspend", defaults.SUSPEND),
        managed_by=fields.string("managedBy", None),
        scheduling_policy=_scheduling_policy(fields.child("schedulingPolicy")),
    )


def _scheduling_policy(fields: Fields | None) -> SchedulingPolicy | None:
    if fields is None:
        return None
    return SchedulingPolicy(
        min_available=fields.integer("minAvailable", None),
        queue=fields.string("queue", ""),
        min_resources=_quantities(fields.child("minResources")),
        priority_class=fields.string("priorityClass", ""),
        schedule_timeout_seconds=fields.integer("scheduleTimeoutSeconds", None),
    )


def _quantities(fields: Fields | None) -> Mapping[str, str] | None:
    """Return the quantities as strings, as the server writes them; a number is its decimal text."""
    if fields is None:
        return None
    quantities: dict[str, str] = {}
    for name, value in fields.values.items():
        if isinstance(value, str):
            quantities[name] = value
        elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= INT64_MAX:
            quantities[name] = repr(value)
        elif value is not None:
            fields.errors.append(invalid(fields.at(name), value, _QUANTITY_ADVICE))
    return quantities


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
        return template  # type: ignore[no-any-return]  # conform has just said so
    named = [container if container.get("name") else {"name": container_name, **container} for container in containers]
    return {**template, "spec": {**spec, "containers": named}}
