"""The condition Warnings."""

from dataclasses import replace
from typing import Any

import pytest

from example_children import observed
from example_jobs import PI, container, template, with_launcher, with_workers
from fakes.world import World
from mpiop.api.types import MPIJob, RunPolicy
from mpiop.controller.objects import BuildOptions
from mpiop.controller.restart.attempt import launcher_attempt
from mpiop.controller.status.status import Findings, next_status
from mpiop.controller.status.template_warnings import template_warnings
from mpiop.kube.resources import PODS
from virtual_time import EPOCH

ROOT = replace(PI, ssh_auth_mount_path="/root/.ssh")
UNKNOWN = 'Pod: unknown field "spec.containers[0].imagePullPolcy"'


def warned(job: MPIJob, *by_server: str) -> MPIJob:
    warnings = template_warnings(job, BuildOptions(), by_server)
    return replace(job, status=next_status(launcher_attempt(job, observed()), None, EPOCH, Findings(warnings=warnings)))


def message(job: MPIJob) -> str | None:
    row = job.status.condition("Warnings")
    return row.message if row is not None and row.status == "True" else None


def test_warnings_stay_though_each_create_is_answered_once() -> None:
    job = warned(PI, UNKNOWN)
    assert message(job) == UNKNOWN
    assert message(warned(job)) == UNKNOWN
    assert message(warned(job, UNKNOWN, "Job: other")) == f"{UNKNOWN}; Job: other"


def test_variables_that_only_the_operator_sets_twice_are_not_warned_of() -> None:
    def hidden(name: str) -> str:
        return f'Job: spec.template.spec.containers[0].env[9]: hides previous definition of "{name}", which may be dropped when using apply'

    job = with_launcher(PI, template(container(name="launcher", env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])))
    assert message(warned(job, hidden("PRTE_MCA_plm_ssh_args"), hidden("A"))) == hidden("A")


def test_a_resumed_job_begins_without() -> None:
    suspended = warned(replace(warned(PI, UNKNOWN), run_policy=RunPolicy(suspend=True)))
    assert message(warned(replace(suspended, run_policy=RunPolicy()))) is None


@pytest.mark.parametrize(("slots", "is_warned"), [(0, True), (1, False)])
def test_a_job_without_slots_is_warned_of(slots: int, *, is_warned: bool) -> None:
    text = message(warned(replace(PI, slots_per_worker=slots)))
    assert ("slotsPerWorker is 0" in (text or "")) == is_warned


@pytest.mark.parametrize(
    ("name", "library", "is_warned"),
    [
        ("n" * 47, "OpenMPI", False),
        ("n" * 48, "OpenMPI", True),
        ("n" * 53 + "1", "OpenMPI", False),
        ("n" * 48, "MPICH", False),
        ("n" * 48, "Intel", False),
    ],
)
def test_a_name_that_crashes_mpirun_is_warned_of(name: str, library: str, *, is_warned: bool) -> None:
    job = replace(PI, name=name, mpi_implementation=library)
    assert (message(warned(job)) is not None) == is_warned
    if is_warned:
        expected = "has 48 characters and no digit: mpirun of Open MPI 4.1 crashes if such a name has more than 47"
        assert expected in (message(warned(job)) or "")


def of_pod(security: dict[str, Any], job: MPIJob = ROOT, **fields: Any) -> MPIJob:
    """Return `job` with that securityContext of the launcher's Pod, and these fields of its container."""
    return with_launcher(job, template(container(name="launcher", **fields), securityContext=security))


OWN_SSH = {"env": [{"name": "OMPI_MCA_plm_rsh_agent", "value": "/opt/ssh"}]}
KEYS = [
    ("the image's user, root by the path of the key", of_pod({"fsGroup": 1000}), "Image", True),
    ("root", of_pod({"fsGroup": 1000, "runAsUser": 0}), "Image", True),
    ("root in the container", of_pod({"fsGroup": 0, "runAsUser": 7}, securityContext={"runAsUser": 0}), "Image", True),
    ("another user", of_pod({"fsGroup": 1000, "runAsUser": 1000}), "Image", False),
    ("not root", of_pod({"fsGroup": 1000, "runAsNonRoot": True}), "Image", False),
    ("no group", of_pod({"runAsUser": 0}), "Image", False),
    ("the key in another folder", of_pod({"fsGroup": 1000}, replace(ROOT, ssh_auth_mount_path="/keys")), "Image", False),
    ("the agent", of_pod({"fsGroup": 1000}), "Injected", False),
    ("an ssh of the user's", of_pod({"fsGroup": 1000}, **OWN_SSH), "Image", False),
    ("no workers", with_workers(of_pod({"fsGroup": 1000}), 0), "Image", False),
]


@pytest.mark.parametrize(("job", "ssh", "is_refused"), [row[1:] for row in KEYS], ids=[row[0] for row in KEYS])
def test_a_key_that_ssh_refuses_is_warned_of(job: MPIJob, ssh: str, *, is_refused: bool) -> None:
    assert any("fsGroup" in text for text in template_warnings(job, BuildOptions(ssh=ssh), ())) == is_refused


async def test_the_servers_warnings_are_shown_once() -> None:
    world = World()
    world.client.server.warnings[PODS] = ['unknown field "spec.x"']
    await world.submit()
    await world.sync_until_idle()
    row = world.condition("Warnings")
    assert row.message == 'Pod: unknown field "spec.x"', "once, for all workers"
    assert world.recorder.reported.count(("Warning", "TemplateWarnings", row.message)) == 1


def test_a_warning_that_does_not_fit_changes_nothing() -> None:
    job = warned(PI, *(f'Pod: unknown field "spec.containers[0].field{number}"' for number in range(40)))
    assert len((message(job) or "").encode()) == 1024
    later = warned(replace(job, slots_per_worker=0))
    assert later.status.condition("Warnings") == job.status.condition("Warnings")
