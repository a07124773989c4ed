"""Which edits of an MPIJob a launcher Job can follow, and which come too late for a start."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from example_jobs import MPIRUN, PI, SSHD, with_annotations, with_launcher, with_worker, with_workers
from mpiop.api import constants as c
from mpiop.api.restart import RestartPolicy
from mpiop.api.types import MPIJob, RunPolicy
from mpiop.controller.objects.revision import _hash, launcher_revision, start_revision

Edit = Callable[[MPIJob], MPIJob]


def template(of: Any, metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a pod template with `spec` besides what it had."""
    return {"metadata": metadata or {}, "spec": {**of["spec"], **spec}}


def launcher(metadata: dict[str, Any] | None = None, **spec: Any) -> Edit:
    return lambda job: with_launcher(job, template(MPIRUN, metadata, **spec))


def worker(**spec: Any) -> Edit:
    return lambda job: with_worker(job, template(SSHD, **spec))


def policy(**changes: Any) -> Edit:
    return lambda job: replace(job, run_policy=RunPolicy(**changes))


NODES = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
EDITS: list[tuple[str, Edit, bool, bool]] = [
    ("nothing", lambda job: job, False, False),
    ("suspend", policy(suspend=True), False, False),
    ("cleanPodPolicy", policy(clean_pod_policy=c.CLEAN_ALL), False, False),
    ("number of workers", lambda job: with_workers(job, 5), False, False),
    ("the status", lambda job: replace(job, generation=7), False, False),
    ("launcher's nodeSelector", launcher(nodeSelector={"a": "b"}), False, True),
    ("launcher's tolerations", launcher(tolerations=[{"operator": "Exists"}]), False, True),
    ("launcher's schedulingGates", launcher(schedulingGates=[{"name": "example.com/gate"}]), False, True),
    ("launcher's nodeAffinity", launcher(affinity={"nodeAffinity": NODES}), False, True),
    ("launcher's labels", launcher({"labels": {"a": "b"}}), False, True),
    ("launcher's annotations", launcher({"annotations": {"a": "b"}}), False, True),
    ("launcher's podAffinity", launcher(affinity={"podAffinity": {}}), True, True),
    ("launcher's containers", launcher(containers=[{"name": "launcher", "image": "example.com/other"}]), True, True),
    ("launcher's restartPolicy", lambda job: replace(job, launcher=replace(job.launcher, restart_policy=c.NEVER)), True, True),
    ("worker's nodeSelector", worker(nodeSelector={"a": "b"}), False, True),
    ("worker's containers", worker(containers=[{"name": "worker", "image": "example.com/other"}]), False, True),
    ("slots", lambda job: replace(job, slots_per_worker=2), True, True),
    ("runLauncherAsWorker", lambda job: replace(job, run_launcher_as_worker=True), True, True),
    ("sshAuthMountPath", lambda job: replace(job, ssh_auth_mount_path="/home/me/.ssh"), True, True),
    ("mpiImplementation", lambda job: replace(job, mpi_implementation="MPICH"), True, True),
    ("no ssh agent", lambda job: with_annotations(job, {"mpiop.kubeflow.org/ssh-agent": "false"}), True, True),
    ("injected ssh", lambda job: replace(job, ssh=c.SSH_INJECTED), True, True),
    ("the image's ssh, said", lambda job: replace(job, ssh=c.SSH_IMAGE), False, False),
    ("shared memory", lambda job: replace(job, shm="8Gi"), True, True),
    ("backoffLimit", policy(backoff_limit=1), False, True),
    ("activeDeadlineSeconds", policy(active_deadline_seconds=1), False, True),
    ("ttlSecondsAfterFinished", policy(ttl_seconds_after_finished=1), False, True),
]


@pytest.mark.parametrize(("edit", "of_launcher", "of_start"), [row[1:] for row in EDITS], ids=[row[0] for row in EDITS])
def test_what_changes_a_revision(edit: Edit, *, of_launcher: bool, of_start: bool) -> None:
    edited = edit(PI)
    assert (launcher_revision(edited) != launcher_revision(PI), start_revision(edited) != start_revision(PI)) == (of_launcher, of_start)


def test_the_order_of_keys_is_no_edit() -> None:
    turned = {"spec": dict(reversed(template(MPIRUN, nodeSelector={"a": "b"})["spec"].items()))}
    straight = {"spec": template(MPIRUN, nodeSelector={"a": "b"})["spec"]}
    assert start_revision(with_launcher(PI, turned)) == start_revision(with_launcher(PI, straight))


NESTED = [{"b": {"d": [1, {"z": None, "a": True}], "c": "x"}, "a": []}, {}, "Never", 1, False, "/root/.ssh", "OpenMPI", True]
SMALL = {"a": 0.1, "b": 1.0, "e": 1.5e-7, "f": -0.0, "g": 123456789.125, "h": 1e-5, "j": 5e-324, "k": 0.0001, "l": 0.00001, "m": 1e15}
LARGE = {"c": 1e16, "d": 1e22, "i": 1e300, "n": 1e17, "o": 123456789012345680.0}
TEXT = ["é", "Ω🚀", "\u2028\u2029", "\x00\x1f\x7f", '"\\/', "\b\f\n\r\t", "<>&", {"Ω": 1, "z": 2, "é": 3, "🚀": 4, "\uffff": 5}]
DIGESTS: list[tuple[Any, str]] = [
    (NESTED, "e1fbcb531374740f"),
    ([SMALL | LARGE], "e543f27dbac48145"),
    (TEXT, "6affdd246e3b880e"),
    ([(1, 2, None), (("x", "y"),)], "a39a3d9e5a89a34b"),
    ([2**63 - 1, -(2**63), 2**64 - 1, 0], "dea3855d8d70a309"),
    (["1e16", [1e16], {"sha256:1e16": "2e17]"}], "081e5c0d9d4a8436"),
]


@pytest.mark.parametrize(("value", "digest"), DIGESTS, ids=["nested", "floats", "text", "tuples", "integers", "text like numbers"])
def test_hashes_that_earlier_versions_stored_are_the_same_today(value: Any, digest: str) -> None:
    assert _hash(value) == digest


SETTINGS: list[tuple[str, dict[str, Any], tuple[str, str]]] = [
    ("none", {}, ("3db9238daedbcd46", "4d3d5d78a5241f9c")),
    ("injected ssh", {"ssh": "Injected"}, ("b91149944b08d650", "17cf4b86634e4863")),
    ("shared memory", {"shm": "8Gi"}, ("99ecefeebce6e24f", "ab5c40ea40edd4df")),
    ("restarts", {"restart": RestartPolicy(3)}, ("82d614d668555c55", "4826083a54eed3f8")),
    ("all", {"ssh": "Injected", "shm": "8Gi", "restart": RestartPolicy(0)}, ("8da7db3b56879190", "7ab984f4786c3bc9")),
]


@pytest.mark.parametrize(("settings", "stored"), [row[1:] for row in SETTINGS], ids=[row[0] for row in SETTINGS])
def test_revisions_of_jobs_with_annotations_are_those_that_are_stored(settings: dict[str, Any], stored: tuple[str, str]) -> None:
    job = replace(PI, **settings)
    assert (launcher_revision(job), start_revision(job)) == stored
