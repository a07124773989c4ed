"""Each rule that makes an MPIJob valid, with the message its user sees."""

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from fakes.world import mpijob
from mpiop.api.parse import parse_mpijob
from mpiop.api.types import ReplicaSpec, RunPolicy, SchedulingPolicy
from mpiop.api.validation import validate

TEMPLATE = {"spec": {"containers": [{"name": "mpi", "image": "pi"}]}}
LAUNCHER = ReplicaSpec(1, TEMPLATE, "OnFailure")
WORKER = ReplicaSpec(2, TEMPLATE, "Never")
JOB = replace(parse_mpijob(mpijob()), launcher=LAUNCHER, worker=WORKER)
FOUND = "spec.mpiReplicaSpecs"
LONG = (
    'metadata.name: Invalid value: "{name}": too long by 1: the host name {name}-worker-{index} of a worker may have at most 63 characters'
)
STRANGE = (
    "metadata.name: Invalid value: \"{name}\": must be lower-case letters, digits and '-', beginning with a letter: "
    "its pods and its Service are named after it"
)

NO_MOUNT_PATH = "spec.sshAuthMountPath: Invalid value: \"{path}\": must be an absolute path, without ':' and '..'"
TOO_MANY = (
    "spec.mpiReplicaSpecs.Worker.replicas: Invalid value: {count}: must be at most 15982: the host names of more workers do not fit into a "
    "ConfigMap; shorter names leave room for more"
)


def mounting(*paths: str) -> dict[str, Any]:
    mounts = [{"name": "own", "mountPath": path} for path in paths]
    return {"spec": {"containers": [{"name": "mpi", "image": "pi", "volumeMounts": mounts}]}}


COVERED = (
    'metadata.annotations[mpiop.kubeflow.org/ssh]: Invalid value: "Injected": needs /opt/mpiop for the operator\'s ssh, '
    "where spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].volumeMounts[1] mounts /opt"
)


class Case(NamedTuple):
    id: str
    change: dict[str, Any]
    errors: tuple[str, ...] = ()


CASES = [
    Case("as it should be", {}),
    Case("a launcher on its own", {"worker": None}),
    Case("slots 0", {"slots_per_worker": 0}),
    Case("slots negative", {"slots_per_worker": -1}, ("spec.slotsPerWorker: Invalid value: -1: must be 0 or more",)),
    *(
        Case(f"the mount path {path}", {"ssh_auth_mount_path": path}, (NO_MOUNT_PATH.format(path=path),))
        for path in ("/a:b", "/home/../../etc", "home/.ssh")
    ),
    *(Case(f"the mount path {path}", {"ssh_auth_mount_path": path}) for path in ("/", "/home/.ssh", "/.x/..y/...", "/a/./b/", "//a")),
    Case(
        "an unknown creation policy",
        {"launcher_creation_policy": "Later"},
        ('spec.launcherCreationPolicy: Unsupported value: "Later": supported values: "AtStartup", "WaitForWorkersReady"',),
    ),
    Case(
        "an empty MPI implementation",
        {"mpi_implementation": ""},
        ('spec.mpiImplementation: Unsupported value: "": supported values: "OpenMPI", "Intel", "MPICH"',),
    ),
    Case(
        "an unknown clean-up policy",
        {"run_policy": RunPolicy(clean_pod_policy="Some")},
        ('spec.runPolicy.cleanPodPolicy: Unsupported value: "Some": supported values: "None", "Running", "All"',),
    ),
    Case(
        "negative numbers of the run policy",
        {"run_policy": RunPolicy("None", -1, -2, -3, scheduling_policy=SchedulingPolicy(min_available=-4, schedule_timeout_seconds=-5))},
        (
            "spec.runPolicy.ttlSecondsAfterFinished: Invalid value: -1: must be 0 or more",
            "spec.runPolicy.activeDeadlineSeconds: Invalid value: -2: must be 0 or more",
            "spec.runPolicy.backoffLimit: Invalid value: -3: must be 0 or more",
            "spec.runPolicy.schedulingPolicy.minAvailable: Invalid value: -4: must be 0 or more",
            "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds: Invalid value: -5: must be 0 or more",
        ),
    ),
    Case("the image's ssh", {"ssh": "Image", "worker": replace(WORKER, template=mounting("/opt/mpiop"))}),
    Case("injected ssh", {"ssh": "Injected", "worker": replace(WORKER, template=mounting("/opt/mpi"))}),
    Case(
        "a mount in the place of injected ssh",
        {"ssh": "Injected", "launcher": replace(LAUNCHER, template=mounting("/data", "opt/"))},
        (COVERED,),
    ),
    Case("zeros", {"run_policy": RunPolicy("All", 0, 0, 0, scheduling_policy=SchedulingPolicy(0, schedule_timeout_seconds=0))}),
    Case("managed by MultiKueue", {"run_policy": RunPolicy(managed_by="kueue.x-k8s.io/multikueue")}),
    Case(
        "managed by nobody we know",
        {"run_policy": RunPolicy(managed_by="x")},
        ('spec.runPolicy.managedBy: Unsupported value: "x": supported values: "kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue"',),
    ),
    Case(
        "two launchers",
        {"launcher": replace(LAUNCHER, replicas=2)},
        (f"{FOUND}.Launcher.replicas: Invalid value: 2: must be 1: a job has one launcher; set the number of pods at Worker.replicas",),
    ),
    Case(
        "no worker in Worker",
        {"worker": replace(WORKER, replicas=0)},
        (f"{FOUND}.Worker.replicas: Invalid value: 0: must be at least 1; leave Worker out for a launcher on its own",),
    ),
    Case(
        "restartPolicy Always",
        {"worker": replace(WORKER, restart_policy="Always")},
        (f'{FOUND}.Worker.restartPolicy: Unsupported value: "Always": supported values: "Never", "OnFailure"',),
    ),
    Case(
        "no containers",
        {"launcher": replace(LAUNCHER, template={}), "worker": replace(WORKER, template={"spec": {"containers": []}})},
        (
            f"{FOUND}.Launcher.template.spec.containers: Required value: must have at least one container, whose first one runs mpirun",
            f"{FOUND}.Worker.template.spec.containers: Required value: must have at least one container, whose first one runs sshd",
        ),
    ),
    Case(
        "two containers of one name",
        {"worker": replace(WORKER, template={"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}})},
        (f'{FOUND}.Worker.template.spec.containers[2].name: Duplicate value: "a"',),
    ),
    Case("the longest name for 10 workers", {"name": "a" * 54, "worker": replace(WORKER, replicas=10)}),
    Case(
        "one worker too many for the name",
        {"name": "a" * 54, "worker": replace(WORKER, replicas=11)},
        (LONG.format(name="a" * 54, index=10),),
    ),
    Case("as many workers as a ConfigMap has room for", {"worker": replace(WORKER, replicas=15982)}),
    *(
        Case(
            f"{count} workers",
            {"worker": replace(WORKER, replicas=count)},
            (TOO_MANY.format(count=count),),
        )
        for count in (15983, 2**31 - 1)
    ),
    Case("the longest name without workers", {"name": "a" * 54, "worker": None}),
    Case(
        "a name one too long without workers",
        {"name": "a" * 55, "worker": None},
        (LONG.format(name="a" * 55, index=0),),
    ),
    *(
        Case(
            f"a name such as {name!r}",
            {"name": name},
            (STRANGE.format(name=name),),
        )
        for name in ("1pi", "pi.2", "Pi", "-pi")
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_validation(case: Case) -> None:
    assert validate(replace(JOB, **case.change)) == case.errors
