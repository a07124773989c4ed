"""Our own fields of the MPIJob, each with the description that `kubectl explain` shows.

Values and defaults come from `mpiop.api`, so that the CRD and the operator cannot disagree.
"""

from typing import Any

from generators.pod_template import QUANTITY, pod_template_schema
from mpiop.api import constants as c
from mpiop.api import defaults
from mpiop.api.most_workers import most_workers
from mpiop.api.names import worker_name, worker_prefix
from mpiop.api.spec_field import Boolean, Choice, Integer, Quantities, SpecField, Text
from mpiop.api.spec_fields import RUN_POLICY, SCHEDULING_POLICY, SPEC, SPEC_FIELDS
from mpiop.api.validation import DNS_1035_LABEL, HOST_NAME_CHARACTERS, RESTART_POLICIES

Schema = dict[str, Any]

_RESOURCE: Schema = QUANTITY | {
    # Documents show `minResources: {requests: {cpu: "3"}}`. The type refuses that; a field that is required of objects adds what to write.
    # Strict clients get as far as that only if the fields of such an object are known.
    "properties": {"cpu": QUANTITY | {"description": "Number of CPUs."}, "memory": QUANTITY | {"description": "Bytes of memory."}},
    "required": ['write minResources: {cpu: "3", memory: 8Gi} instead'],
}


def mpijob_schema() -> Schema:
    """Return the OpenAPI schema of the whole MPIJob."""
    schema = _object(
        "A job of MPI processes: one launcher pod, which runs `mpirun`, and any number of worker pods, which it reaches over ssh.",
        apiVersion=_string("Version of the schema of this object, `kubeflow.org/v2beta1`."),
        kind=_string("Kind of this object, `MPIJob`."),
        metadata={"type": "object", "properties": {"name": {"type": "string"}}},
        spec=_spec(),
        # Programs that use kstatus take a new object without a status for one that is ready.
        status=_status() | {"default": {"observedGeneration": -1}},
    )
    return schema | {"x-kubernetes-validations": [_spec_rule(), *_name_rules()]}


def _spec() -> Schema:
    schema = _object(
        "The desired state of the job: its pods, and how it runs.",
        **_fields(SPEC),
        runPolicy=_run_policy(),
        mpiReplicaSpecs=_object(
            "The pods of the job, by role.",
            Launcher=_replica_spec(
                "The launcher. Its first container runs `mpirun`. It becomes a batch/v1 Job with the name <job>-launcher.",
                replicas=_integer("Number of launcher pods. Only 1 is allowed. Unset: 1.", minimum=1, maximum=1),
                restart_policy=defaults.LAUNCHER_RESTART_POLICY,
                container_name=defaults.LAUNCHER_CONTAINER_NAME,
            ),
            Worker=_replica_spec(
                "The workers. Their first container runs sshd, which the operator starts if the container has no command. Unset: the "
                "launcher runs all processes itself.",
                replicas=_integer(
                    "Number of worker pods, at least 1. Unset: 1. You can change it while the job runs. All host names must fit "
                    "into a ConfigMap of 1 MiB: about 8,000 names of usual length.",
                    minimum=1,
                    maximum=most_workers("a", "a"),
                ),
                restart_policy=defaults.WORKER_RESTART_POLICY,
                container_name=defaults.WORKER_CONTAINER_NAME,
            ),
        )
        | {"required": [c.LAUNCHER]},
    )
    # On spec, not on the field, so that adding and removing it are seen. Spelt out, since optional values have no bounded cost.
    manager = "(has({0}.runPolicy) && has({0}.runPolicy.managedBy) ? {0}.runPolicy.managedBy : '')"
    rule = {
        "rule": f"{manager.format('self')} == {manager.format('oldSelf')}",
        "message": "managedBy is immutable: who runs a job is decided when it is created; delete the job and create it again",
        "fieldPath": ".runPolicy.managedBy",
        "reason": "FieldValueInvalid",
    }
    return schema | {"required": ["mpiReplicaSpecs"], "x-kubernetes-validations": [rule]}


def _run_policy() -> Schema:
    return _object(
        "How the job runs and how it ends.",
        **_fields(RUN_POLICY),
        schedulingPolicy=_object(
            "Options for the gang scheduler; they have no effect unless the operator runs with --gang-scheduling.",
            **_fields(SCHEDULING_POLICY),
        ),
    )


def _fields(path: str) -> Schema:
    return {row.name: _field_of(row) for row in SPEC_FIELDS[path]}


def _field_of(row: SpecField) -> Schema:
    default = {} if row.default in {None, ""} or not row.is_stored else {"default": row.default}
    match row.kind:
        case Boolean():
            return _field("boolean", row.help, default)
        case Integer(maximum):
            return _integer(row.help, bits=maximum.bit_length() + 1, **default)
        case Choice(values, max_length):
            rules = {"maxLength": max_length} if max_length else {}
            return _enum(row.help, ("", *values) if row.takes_empty else values, **default, **rules)
        case Text(max_length, pattern, advice):
            rule = {"x-kubernetes-validations": [{"rule": f"self.matches(r'^{pattern}$')", "message": advice}]} if pattern else {}
            return _string(row.help, **default, maxLength=max_length, **rule)
        case Quantities():
            return {"type": "object", "description": row.help, "additionalProperties": _RESOURCE}


def _replica_spec(description: str, *, replicas: Schema, restart_policy: str, container_name: str) -> Schema:
    schema = _object(
        description,
        replicas=replicas,
        template=pod_template_schema(container_name),
        restartPolicy=_enum(
            f"Whether to start an ended container again: Never, or OnFailure (only if it failed). Unset: {restart_policy}. "
            "It replaces the restartPolicy of the pod template.",
            ("", *RESTART_POLICIES.values),
        ),
    )
    return schema | {"required": ["template"]}


def _status() -> Schema:
    return _object(
        "What the operator has observed of the job. Only the operator writes it.",
        conditions=_list_map(
            "type",
            "The state of the job. Types: Created, Running, Suspended, Succeeded, Failed; Finished: True after it has succeeded or failed; "
            "Reconciling: why it waits; Stalled: a problem that only you can solve; Degraded: a problem while it runs; Warnings: "
            "warnings of the API server; WorkersUnused: no mpirun reached a worker; UpdatePending: an edit takes effect at the next start; "
            "Restarting: the operator replaces lost pods.",
            _condition(),
        ),
        observedGeneration=_integer(
            "Generation that the status describes. It is set only while the job waits, and is -1 until an operator has seen the job.",
            bits=64,
            minimum=-1,
        ),
        replicaStatuses=_object("Number of pods by role.", Launcher=_replica_status("launcher"), Worker=_replica_status("worker")),
        startTime=_time("When the operator first processed the job. Each resume sets it again."),
        completionTime=_time("When the job succeeded or failed."),
        lastReconcileTime=_time("Deprecated: never written."),
        lastFailure=_object(
            "The last failure of a launcher pod since the job was started. The pod may no longer exist.",
            reason=_string("Why, in one word, for example OOMKilled."),
            message=_string("Pod, node, container, exit code, and the container's own message."),
            log=_string("The end of the container's log, if the operator may read logs."),
            cause=_string("Why it failed, in a sentence. Absent if only the exit code is known."),
        ),
        attempts=_list(
            "The last three failed attempts of the launcher, newest last.",
            _object(
                "A failed attempt.",
                number=_integer("Number of the attempt since the job was started. The first one is 1."),
                pod=_string("Name of its Pod."),
                node=_string("Name of the node on which it ran."),
                startTime=_time("When its container started."),
                endTime=_time("When its container ended."),
                exitCode=_integer("Exit code of its container."),
                reason=_string("Why, in one word, for example OOMKilled."),
            ),
        ),
        lostWorker=_object(
            "The first worker that the current attempt of the launcher has lost. The program cannot continue without it.",
            pod=_string("Name of its Pod."),
            node=_string("Name of its node, if known."),
            reason=_string("Why, in one word, for example NodeLost."),
            message=_string("Why, in a sentence for people."),
            time=_time("When the operator saw it."),
            launcherTry=_string("The attempt that lost it: the launcher's Pod, and the number of restarts of its container."),
        ),
        restarts=_integer("Number of times that the operator has restarted the job after losing workers or the launcher."),
        lastRestarts=_list(
            "The most recent of these restarts, newest last.",
            _object(
                "A restart.",
                number=_integer("Number of the restart since the job was created. The first one is 1."),
                time=_time("When the operator decided to restart the job."),
                reason=_string("Why, in one word, for example NodeLost."),
                message=_string("Pod, node and cause."),
                launcherPods=_list("Launcher Pods that the restart, or the loss before it, ended.", _string("Name of a Pod.")),
                failedNodes=_list("Nodes that were lost, or that evicted Pods because memory or disk ran out.", _string("Name of a node.")),
            ),
        ),
        failedNodes=_list("Nodes on which the job does not run again, newest last.", _string("Name of a node.")),
        summary=_object(
            "A summary for `kubectl get mpijobs`.",
            state=_string("State of the job in one word, for example Running."),
            workers=_string("Running and desired workers, for example 3/4."),
            duration=_string("How long the job took, for example 4m10s. Set when the job has ended."),
            restarts=_string("Number of times that the operator has restarted the job after losing workers or the launcher."),
            attempts=_string("Number of failed attempts of the launcher since the job was started."),
            message=_string("What is wrong: the message of Reconciling, Stalled or Degraded, or why the job failed."),
            node=_string("Node of the launcher, once the job runs."),
            slots=_string("MPI processes on each worker."),
        ),
    )


def _condition() -> Schema:
    schema = _object(
        "One aspect of the job's state.",
        type=_string("Name of the condition, for example Running."),
        status=_enum("Whether the condition is true: True, False or Unknown.", ("True", "False", "Unknown")),
        reason=_string("Why, in one word for programs."),
        message=_string("Why, in a sentence for people."),
        lastUpdateTime=_time("When the condition was last written."),
        lastTransitionTime=_time("When the status of the condition last changed."),
    )
    return schema | {"required": ["type", "status"]}


def _replica_status(role: str) -> Schema:
    selector = _object(
        "Deprecated: never written.",
        matchLabels={"type": "object", "description": "Labels that must be equal.", "additionalProperties": {"type": "string"}},
        matchExpressions={
            "type": "array",
            "description": "Requirements on labels.",
            "x-kubernetes-list-type": "atomic",
            "items": _object(
                "One requirement.",
                key=_string("Key of the label."),
                operator=_string("In, NotIn, Exists or DoesNotExist."),
                values={"type": "array", "description": "Values.", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}},
            )
            | {"required": ["key", "operator"]},
        },
    )
    return _object(
        f"Number of {role} pods by phase.",
        active=_integer(f"Number of running {role} pods, including terminating ones."),
        succeeded=_integer(f"Number of {role} pods that have succeeded."),
        failed=_integer(f"Number of {role} pods that have failed."),
        selector=_string("Deprecated: never written."),
        labelSelector=selector | {"x-kubernetes-map-type": "atomic"},
    )


def _spec_rule() -> Schema:
    """A job has a spec. Not `required`: the server would ask for it at every update, and a job stored without could lose no finalizer."""
    return {
        "rule": "has(self.spec) || oldSelf.hasValue() && !has(oldSelf.value().spec)",
        "optionalOldSelf": True,
        "message": "set mpiReplicaSpecs, with the launcher and workers to run",
        "fieldPath": ".spec",
        "reason": "FieldValueRequired",
    }


def _name_rules() -> list[Schema]:
    """The host names of the pods must be DNS labels: checked at creation, and when workers are added.

    With optionalOldSelf, so that an object stored before this rule can still be updated and deleted. The digits of the last worker's index
    are counted, because the text of a number has no bounded cost; for the same reason the message does not contain the name.
    """
    workers = "(has({0}.Worker) && has({0}.Worker.replicas) ? {0}.Worker.replicas : 1)"
    replicas = workers.format("self.spec.mpiReplicaSpecs")
    old = "oldSelf.value().spec"
    before = f"(has({old}) && has({old}.mpiReplicaSpecs) ? {workers.format(old + '.mpiReplicaSpecs')} : 0)"
    powers = ", ".join(str(10**exponent) for exponent in range(1, 10))
    longest = f"self.metadata.name.size() + {len(worker_name('', 0))} + [{powers}].filter(power, power < {replicas}).size()"
    return [
        {
            "rule": f"!has(self.spec) || oldSelf.hasValue() && {replicas} <= {before} || {longest} <= {HOST_NAME_CHARACTERS}",
            "optionalOldSelf": True,
            "message": (
                f"too long: the host name {worker_prefix('<metadata.name>')}<replicas - 1> may have at most "
                f"{HOST_NAME_CHARACTERS} characters; shorten the name"
            ),
            "fieldPath": ".metadata.name",
        },
        {
            "rule": f"oldSelf.hasValue() || self.metadata.name.matches('^{DNS_1035_LABEL}$')",
            "optionalOldSelf": True,
            "message": "must be lower-case letters, digits and '-', beginning with a letter: its pods and its Service are named after it",
            "fieldPath": ".metadata.name",
        },
    ]


def _object(description: str, **properties: Schema) -> Schema:
    return {"type": "object", "description": description, "properties": properties}


def _list(description: str, items: Schema) -> Schema:
    return {"type": "array", "description": description, "items": items, "x-kubernetes-list-type": "atomic"}


def _list_map(key: str, description: str, items: Schema) -> Schema:
    return {
        "type": "array",
        "description": description,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key],
        "items": items,
    }


def _string(description: str, **rules: Any) -> Schema:
    return _field("string", description, rules)


def _enum(description: str, values: tuple[str, ...], **rules: Any) -> Schema:
    return _field("string", description, {"enum": list(values), **rules})


def _time(description: str) -> Schema:
    return _field("string", description, {"format": "date-time"})


def _integer(description: str, *, bits: int = 32, minimum: int = 0, **rules: Any) -> Schema:
    return _field("integer", description, {"format": f"int{bits}", "minimum": minimum, **rules})


def _field(type_: str, description: str, rules: Schema) -> Schema:
    """Return a scalar field; `kubectl explain` does not show defaults, so the description does."""
    reported = (
        f"{description} Default: {str(rules['default']).lower() if type_ == 'boolean' else rules['default']}."
        if "default" in rules
        else description
    )
    return {"type": type_, "description": reported, **rules}
