"""Elastic Horovod raises no alarm: its example, as its page describes, a worker that is deleted and replaced, and plain runs.

Its image is compiled for a quarter of an hour, so `make e2e` leaves this out. MPIOP_E2E_RUNS repeats the plain runs.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
import yaml

from e2e.alarms import alarms_until_the_end
from e2e.clusters import ROOT
from e2e.jobs import EXAMPLES, RUNS, condition, launcher_container, launcher_pod
from e2e.kubectl import Kubectl, Obj
from e2e.shell import open_shell
from mpiop.api.annotations import SSH
from mpiop.kube.resources import MPIJOBS

pytestmark = pytest.mark.usefixtures("images")
IMAGES: Final = ("agent", "horovod")
EXAMPLE: Final = EXAMPLES / "horovod"
WITH_SSH: Final = {"name": "PATH", "value": "/etc/mpi-hosts:/usr/local/bin:/usr/bin:/bin"}
"""As the guide advises for images without ssh."""
SECONDS: Final = 300
"""For each number of ranks: a kubelet brings the new discover_hosts.sh after one or two minutes."""

Step = Callable[[], object]


def nothing() -> None:
    """Do nothing to the job."""


def alarms_of(here: Kubectl, name: str, steps: Sequence[tuple[int, Step]]) -> list[str]:
    """Take each step as soon as the job has trained with that many ranks, and return the alarms about it."""
    with ThreadPoolExecutor(1) as pool:
        alarms = pool.submit(alarms_until_the_end, here, name, timeout_seconds=SECONDS * (len(steps) + 1))
        launcher = launcher_pod(here, name, timeout_seconds=SECONDS)
        with here.following(launcher, timeout_seconds=SECONDS * len(steps)) as lines:
            for ranks, step in steps:
                assert any(f"trained with {ranks}," in line for line in lines), f"the job did not train with {ranks} ranks"
                step()
        return alarms.result()


def elastic_job(name: str, *sizes: str) -> Obj:
    """Return the example's job under `name`; it ends when it has trained with each of the `sizes`."""
    job: Obj = yaml.safe_load((EXAMPLE / "elastic.yaml").read_text(encoding="utf-8"))
    job["metadata"]["name"] = name
    arguments = launcher_container(job)["args"]
    arguments[arguments.index("/program/train.py") + 1 :] = sizes
    return job


@pytest.fixture
def here(namespace: Kubectl) -> Kubectl:
    """A namespace that has the example's program."""
    namespace.run("create", "configmap", "elastic", f"--from-file={EXAMPLE / 'train.py'}")
    return namespace


def test_the_example_grows_and_shrinks(namespace: Kubectl, tmp_path: Path) -> None:
    shell = open_shell(namespace, ROOT, tmp_path / "kubeconfig")
    shell.follow("examples/v2beta1/horovod/README.md", "Start")
    steps = (
        (2, lambda: shell.follow("examples/v2beta1/horovod/README.md", "Grow")),
        (3, lambda: shell.follow("examples/v2beta1/horovod/README.md", "Shrink")),
        (1, nothing),
    )
    assert alarms_of(namespace, "elastic", steps) == []


@pytest.mark.parametrize("ssh", ["Image", "Injected"])
def test_a_deleted_worker_is_replaced_and_trains_again(ssh: str, here: Kubectl) -> None:
    job = elastic_job("elastic", "2", "1", "2")
    job["metadata"]["annotations"] = {SSH.name: ssh}
    if ssh == "Injected":
        launcher_container(job)["env"] = [WITH_SSH]
    here.apply(job)
    steps = ((2, lambda: here.run("delete", "pod", "elastic-worker-1", "--wait=false")), (1, nothing), (2, nothing))
    alarms = alarms_of(here, "elastic", steps)
    # True, and withdrawn: the job has a worker less, until the new one runs.
    assert not [alarm for alarm in alarms if alarm != "Degraded was True" and not alarm.startswith("event WorkerDeleted: ")]
    assert condition(here.read(MPIJOBS, "elastic"), "Degraded").get("status", "False") == "False"


@pytest.mark.parametrize("run", range(1, RUNS + 1))
def test_a_plain_run_raises_no_alarm(run: int, here: Kubectl) -> None:
    here.apply(elastic_job(f"plain-{run}", "2"))
    assert alarms_of(here, f"plain-{run}", ((2, nothing),)) == []
