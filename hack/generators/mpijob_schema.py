"""Our own fields of the MPIJob, each with the description that `kubectl explain` shows.

Values and defaults come from `mpiop.api`, so that the CRD and the operator cannot disagree.
"""

from typing import Any

from generators.pod_template import QUANTITY, pod_template_schema
from mpiop.api import constants as c
from mpiop.api import defaults
from mpiop.api.annotations import TTL_DELETES_JOB
from mpiop.api.mpi_implementations import IMPLEMENTATIONS
from mpiop.api.names import worker_name, worker_prefix
from mpiop.api.size import most_workers
from mpiop.api.validation import (
    CLEAN_POD_POLICIES,
    DNS_1035_LABEL,
    HOST_NAME_CHARACTERS,
    LAUNCHER_CREATION_POLICIES,
    MANAGERS,
    MOUNT_PATH,
    MOUNT_PATH_ADVICE,
    RESTART_POLICIES,
)

Schema = dict[str, Any]

_RESOURCE: Schema = QUANTITY | {
    # Documents show `minResources: {requests: {cpu: "3"}}`. The type refuses that; a field that is required of objects adds what to write.
    # Strict clients get as far as that only if the fields of such an object are known.
    "properties": {"cpu": QUANTITY | {"description": "Processors."}, "memory": QUANTITY | {"description": "Bytes of memory."}},
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
        "What to run.",
        slotsPerWorker=_integer(
            "Number of MPI processes that each worker takes: its slots in the hostfile.", default=defaults.SLOTS_PER_WORKER
        ),
        runLauncherAsWorker=_boolean(
            "Whether the launcher's pod takes MPI processes as well; it is then the first host of the hostfile.",
            default=defaults.RUN_LAUNCHER_AS_WORKER,
        ),
        sshAuthMountPath=_string(
            "Directory at which the ssh key pair is mounted in the first container of every pod. Containers that do not run as root need "
            "their own user's, for example /home/mpiuser/.ssh.",
            default=defaults.SSH_AUTH_MOUNT_PATH,
            maxLength=4096,
        )
        | {"x-kubernetes-validations": [{"rule": f"self.matches(r'^{MOUNT_PATH}$')", "message": MOUNT_PATH_ADVICE}]},
        launcherCreationPolicy=_enum(
            "When the launcher is created: AtStartup together with the workers, WaitForWorkersReady once every worker pod is Ready.",
            ("", *LAUNCHER_CREATION_POLICIES),
            default=defaults.LAUNCHER_CREATION_POLICY,
        ),
        mpiImplementation=_enum(
            "MPI library in the images: it decides the form of the hostfile and the environment variables of the launcher.",
            tuple(IMPLEMENTATIONS),
            default=defaults.MPI_IMPLEMENTATION,
        ),
        runPolicy=_run_policy(),
        mpiReplicaSpecs=_object(
            "The pods of the job, by role.",
            Launcher=_replica_spec(
                "The launcher, whose first container runs `mpirun`. It becomes a batch/v1 Job of the name <job>-launcher.",
                replicas=_integer("Number of launcher pods: 1, which is also what is meant when it is left out.", minimum=1, maximum=1),
                restart_policy=defaults.LAUNCHER_RESTART_POLICY,
                container_name=defaults.LAUNCHER_CONTAINER_NAME,
            ),
            Worker=_replica_spec(
                "The workers, whose first container runs sshd (that is what the operator starts in it when it names no command). Left out: "
                "the launcher runs everything on its own.",
                replicas=_integer(
                    "Number of worker pods, at least 1. Left out: 1. It may be changed while the job runs. The host names of all must fit "
                    "into a ConfigMap of 1 MiB: some 8,000 with usual names.",
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
        "message": "managedBy is immutable: who runs a job is decided when it is created; delete the job and create it anew",
        "fieldPath": ".runPolicy.managedBy",
        "reason": "FieldValueInvalid",
    }
    return schema | {"required": ["mpiReplicaSpecs"], "x-kubernetes-validations": [rule]}


def _run_policy() -> Schema:
    return _object(
        "How the job runs and how it ends.",
        cleanPodPolicy=_enum(
            "Which worker pods are deleted when the job has ended: None keeps all, Running deletes those that still run or wait, All "
            f"deletes all of them. Left out: {defaults.CLEAN_POD_POLICY}.",
            CLEAN_POD_POLICIES,
        ),
        ttlSecondsAfterFinished=_integer(
            "Seconds after its end at which what the job has made is deleted. Left out: it is kept. The MPIJob itself is deleted too where "
            f'its annotation {TTL_DELETES_JOB.name} is "true".'
        ),
        activeDeadlineSeconds=_integer(
            "Seconds that the launcher may take, counted from its start; then the job is Failed. Left out: any time.", bits=64
        ),
        backoffLimit=_integer(
            "Number of times that a failed launcher is tried again before the job is Failed. Left out: 6, as for any batch/v1 Job."
        ),
        suspend=_boolean(
            "Whether the job is to stand still: no worker pods and no launcher pod while it is true. Queueing systems (Kueue) set it.",
            default=defaults.SUSPEND,
        ),
        managedBy=_enum(
            "The controller that runs the job. Left out: this operator, which touches no job that names another one. Immutable.",
            MANAGERS,
            maxLength=63,
        ),
        schedulingPolicy=_object(
            "What is asked of the gang scheduler; without effect unless the operator runs with --gang-scheduling.",
            minAvailable=_integer("Number of pods that must be schedulable before any of them starts. Left out: workers + 1."),
            queue=_string("Queue of the gang. Volcano only.", maxLength=253),
            minResources={
                "type": "object",
                "description": (
                    'Resources that must be free before any pod starts, by name, for example {cpu: "3", memory: 8Gi}. Left out: computed '
                    "from the pods' requests."
                ),
                "additionalProperties": _RESOURCE,
            },
            priorityClass=_string("PriorityClass of the gang. Left out: the launcher's, else the workers'. Volcano only.", maxLength=253),
            scheduleTimeoutSeconds=_integer("Seconds that the gang may wait to be scheduled. Coscheduling (scheduler-plugins) only."),
        ),
    )


def _replica_spec(description: str, *, replicas: Schema, restart_policy: str, container_name: str) -> Schema:
    schema = _object(
        description,
        replicas=replicas,
        template=pod_template_schema(container_name),
        restartPolicy=_enum(
            f"Whether a container that ended is started again: Never, or OnFailure if it failed. Left out: {restart_policy}. "
            "It takes the place of the pod template's own.",
            ("", *RESTART_POLICIES),
        ),
    )
    return schema | {"required": ["template"]}


def _status() -> Schema:
    return _object(
        "What the operator has observed of the job; it alone writes this.",
        conditions=_list_map(
            "type",
            "Where the job stands. Types: Created, Running, Suspended, Succeeded, Failed; Finished, which is True after either end; "
            "Reconciling, which says why a job waits, Stalled, which says what nothing but you can solve, and Degraded, which says what is "
            "wrong while it runs; Warnings, which says what the "
            "API server warned of; WorkersUnused, which reports that no mpirun reached a worker; UpdatePending, which says that an edit "
            "takes effect at the next start; and Restarting, which says that the operator replaces what was lost.",
            _condition(),
        ),
        observedGeneration=_integer(
            "Generation that the status describes; absent unless the job waits, -1 before any operator has seen it.", bits=64, minimum=-1
        ),
        replicaStatuses=_object("Number of pods by role.", Launcher=_replica_status("launcher"), Worker=_replica_status("worker")),
        startTime=_time("When the job was first worked on; set anew by each resume."),
        completionTime=_time("When the job succeeded or failed."),
        lastReconcileTime=_time("Deprecated: never written."),
        lastFailure=_object(
            "How a pod of the launcher failed last since the job was started; the pod itself may be gone.",
            reason=_string("Why, in one word, for example OOMKilled."),
            message=_string("Which pod on which node, container, exit code, and the container's own message."),
            log=_string("The end of the container's log, if the operator may read logs."),
            cause=_string("Why it failed, in a sentence; left out if only its exit code is known."),
        ),
        attempts=_list(
            "The last three failed attempts of the launcher, the newest last.",
            _object(
                "A failed attempt.",
                number=_integer("Counted from 1 since the job was started."),
                pod=_string("Name of its Pod."),
                node=_string("Name of the node on which it ran."),
                startTime=_time("When its container started."),
                endTime=_time("When its container ended."),
                exitCode=_integer("Of its container."),
                reason=_string("Why, in one word, for example OOMKilled."),
            ),
        ),
        lostWorker=_object(
            "The worker that was lost first while the current attempt of the launcher runs; that program cannot go on without it.",
            pod=_string("Name of its Pod."),
            node=_string("Name of its node, if that is known."),
            reason=_string("Why, in one word, for example NodeLost."),
            message=_string("Why, in a sentence for people."),
            time=_time("When the operator saw it."),
            launcherTry=_string("The attempt that it was lost to: the launcher's Pod, and how often its container was restarted."),
        ),
        restarts=_integer("How often the operator has restarted the job, because workers or the launcher were lost."),
        lastRestarts=_list(
            "The last of these restarts, the newest last.",
            _object(
                "A restart.",
                number=_integer("Counted from 1 since the job was created."),
                time=_time("When it was decided."),
                reason=_string("Why, in one word, for example NodeLost."),
                message=_string("Which Pod on which node, and why."),
                launcherPods=_list("Pods of the launcher that were stopped by it, or had failed for its cause.", _string("Name of a Pod.")),
                failedNodes=_list("Nodes that were lost, or evicted Pods for want of memory or disk.", _string("Name of a node.")),
            ),
        ),
        failedNodes=_list("Nodes on which the job is not run again, the newest last.", _string("Name of a node.")),
        summary=_object(
            "The same in words, for `kubectl get mpijobs`.",
            state=_string("Where the job stands, in one word, for example Running."),
            workers=_string("Running and desired workers, for example 3/4."),
            duration=_string("How long the job took, for example 4m10s; written when it has ended."),
            restarts=_string("How often the operator has restarted the job, because workers or the launcher were lost."),
            attempts=_string("How many attempts of the launcher have failed since the job was started."),
            message=_string("What is wrong: the message of Reconciling, Stalled or Degraded, or why the job failed."),
            node=_string("Node of the launcher, once the job runs."),
            slots=_string("MPI processes on each worker."),
        ),
    )


def _condition() -> Schema:
    schema = _object(
        "One aspect of where the job stands.",
        type=_string("What the condition is about, for example Running."),
        status=_enum("Whether it holds: True, False or Unknown.", ("True", "False", "Unknown")),
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
        active=_integer(f"Number of {role} pods that run, terminating ones too."),
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
        "message": "say in mpiReplicaSpecs what to run",
        "fieldPath": ".spec",
        "reason": "FieldValueRequired",
    }


def _name_rules() -> list[Schema]:
    """The host names of the pods must be DNS labels: judged at creation, and when there come to be more workers.

    With optionalOldSelf, so that an object stored before this rule can still be updated and deleted. The digits of the last worker's index
    are counted, since the text of a number has no bounded cost; for the same reason the message does not spell the name out.
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


def _boolean(description: str, *, default: bool) -> Schema:
    return _field("boolean", description, {"default": default})


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
