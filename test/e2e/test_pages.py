"""The transcripts of the pages for users of jobs: each command as its readers type it, and what it prints.

first-job.md is in test_first_job.py; top and `doctor --migrate` need more than a cluster: test_top.py, test_migration.py.
"""

import json
import sys
from pathlib import Path

import pytest

from e2e.clusters import ROOT
from e2e.jobs import LAUNCHER, PI, until_true
from e2e.kubectl import Kubectl
from e2e.plugin import new_tool
from e2e.shell import Shell, blocks_below
from e2e.test_examples import DEBIANS_PYTHON
from mpiop.kube.resources import MPIJOBS, PODS

TOOL = "docs/kubectl-mpi.md"
ALLOCATIONS = "docs/allocations.md"
SLURM = "docs/slurm.md"
PYTHON = "docs/python-client.md"
IMAGES = ("agent", "mpi4py", "devel")
FAILS = "sh -c 'test $OMPI_COMM_WORLD_RANK = 0 || exec sleep 600; echo no input file; exit 2'"
FAILS_ONCE = "sh -c 'test -e /tmp/once && exec sleep 600; sleep 1; touch /tmp/once; exit 2'"
ON_A_TERMINAL = {
    "kubectl mpi shell solver --worker 1": "{ echo hostname; echo exit; } | script -qec 'kubectl mpi shell solver --worker 1' /dev/null",
    "root@": "…root@",
    "# exit\nexit\n": "# exit\nexit\n…\n",
}
"""A terminal for a script, which also shows what is typed, and control characters."""
PREPARE = "#!/bin/bash\n#SBATCH --job-name=prep\nsrun sleep 5\n"
SOLVE = "#!/bin/bash\n#SBATCH --job-name=solve --dependency=afterok:350\nsrun hostname\n"
CASES = "#!/bin/bash\n#SBATCH --job-name=cases --array=1-2\nsrun hostname\n"


@pytest.fixture
def shell(namespace: Kubectl, images: None, tmp_path: Path) -> Shell:
    """The shell of a user, in a folder that has the project's examples, with an image that needs not be named."""
    assert images is None
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "examples").symlink_to(ROOT / "examples")
    return Shell({**new_tool(namespace, tmp_path).environment, "MPIOP_IMAGE": "mpiop.invalid/mpi-pi:openmpi"}, folder)


@pytest.fixture
def node(cluster: Kubectl) -> str:
    return cluster.run("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")


def start(shell: Shell, name: str, program: str, *options: str) -> None:
    """Start a job of two workers with two ranks each."""
    shell.run(f"kubectl mpi run --detach --name {name} -n 4 --slots 2 {' '.join(options)} -- {program}")


# kubectl mpi


def test_a_command_runs(shell: Shell) -> None:
    shell.replay(TOOL, "kubectl mpi")
    shell.replay(TOOL, "Install")
    shell.replay(TOOL, "Hold workers for many runs")
    shell.run("kubectl mpi delete dev --yes")


def test_what_a_job_waits_for_and_why_it_failed_is_shown(shell: Shell, namespace: Kubectl, node: str) -> None:
    start(shell, "bad", FAILS)
    start(shell, "hosts", "hostname")
    shell.run("kubectl mpi run --detach --name waits -n 4 --slots 2 --image registry.example.com/solver:1 -- ./solver")
    until_true(namespace, "bad", "Failed")
    until_true(namespace, "hosts", "Succeeded")
    namespace.run("wait", "mpijob/waits", "--for=jsonpath={.status.summary.state}=ImagePull", "--timeout=60s")
    shell.replay(TOOL, "Why a job waits or failed", {"mpiop-demo": node})


def test_pods_output_files_and_shells_of_a_job(shell: Shell, namespace: Kubectl, node: str) -> None:
    start(shell, "solver", "sleep 600")
    start(shell, "hello", "sh -c 'echo rank $OMPI_COMM_WORLD_RANK on $(hostname)'")
    until_true(namespace, "hello", "Succeeded")
    until_true(namespace, "solver", "Running")
    own = {"team/solver": f"{namespace.namespace}/solver", "mpiop-demo": node}
    shell.replay(TOOL, "Pods and output", own)
    (shell.folder / "input.txt").write_text("a b\n", encoding="utf-8")
    shell.replay(TOOL, "Open a shell or copy files", {"solver.team.svc": f"solver.{namespace.namespace}.svc", **ON_A_TERMINAL})


def test_a_script_waits_for_jobs(shell: Shell, node: str) -> None:
    start(shell, "solver", "sleep 1")
    start(shell, "bad", FAILS)
    shell.replay(TOOL, "Wait in a script", {"mpiop-demo": node})


def test_a_timeline_shows_the_attempts(shell: Shell, namespace: Kubectl, node: str) -> None:
    start(shell, "pi", FAILS_ONCE, "--retries 1")
    namespace.until(PODS, lambda pods: len(pods) == 2, labels=f"{LAUNCHER},training.kubeflow.org/job-name=pi")
    shell.replay(TOOL, "Timeline", {"team/pi": f"{namespace.namespace}/pi", "mpiop-demo": node})


def test_jobs_are_scaled_suspended_resumed_restarted_and_deleted(shell: Shell, namespace: Kubectl) -> None:
    start(shell, "solver", "sleep 600")
    start(shell, "bad", FAILS)
    until_true(namespace, "solver", "Running")
    until_true(namespace, "bad", "Failed")
    shell.replay(TOOL, "Manage jobs")


def test_a_manifest_with_a_mistake_is_refused_and_a_script_is_converted(shell: Shell, namespace: Kubectl) -> None:
    wrong = PI.read_text(encoding="utf-8").replace("imagePullPolicy:", "imagePullPolcy:", 1)
    (shell.folder / "job.yaml").write_text(wrong, encoding="utf-8")
    shell.replay(TOOL, "Submit manifests and scripts", {"default/pi": f"{namespace.namespace}/pi"})
    script = "#!/bin/bash\n#SBATCH --job-name=pi --ntasks=4 --ntasks-per-node=2 --time=10\nsrun ./pi\n"
    (shell.folder / "job.sbatch").write_text(script, encoding="utf-8")
    shell.replay(TOOL, "Convert a Slurm script")


def test_doctor_and_version_report_on_the_cluster(shell: Shell, namespace: Kubectl) -> None:
    leader = {"mpi-operator-7b69f74b74-jhhwk_c6f3af23-6179-4c54-82e2-06036494a8c1": "…"}
    own = {"namespace default": f"namespace {namespace.namespace}", "there are 3": "there are 0", **leader}
    shell.replay(TOOL, "Check your cluster", own)
    shell.replay(TOOL, "Versions")


# Allocations


def test_an_allocation_runs_steps(shell: Shell) -> None:
    shell.replay(ALLOCATIONS, "Allocate workers")
    shell.replay(ALLOCATIONS, "Run steps")
    shell.replay(ALLOCATIONS, "Edit, build and run")
    shell.replay(ALLOCATIONS, "Steps that have run")
    shell.replay(ALLOCATIONS, "Run an array", {"step 5: ": "step …: "})


# Slurm


def test_jobs_run_after_others(shell: Shell, namespace: Kubectl, node: str) -> None:
    for name, script in {"prep": PREPARE, "solve": SOLVE, "cases": CASES, "sum": SOLVE}.items():
        (shell.folder / f"{name}.sbatch").write_text(script, encoding="utf-8")
    prep = shell.run("kubectl mpi submit --cpu 100m prep.sbatch -o name").strip().rpartition("/")[2]
    shell.run("kubectl mpi run --detach --name bad --cpu 100m false")
    shell.replay(SLURM, "Dependencies", {"prep-132755": prep, "mpiop-demo": node})
    shell.follow(SLURM, "Dependencies", {"submit $": "submit --cpu 100m $", "submit cases": "submit --cpu 100m cases"})
    assert len(namespace.read_all(MPIJOBS)) == 6


def test_a_session_of_a_slurm_user(shell: Shell, namespace: Kubectl, node: str) -> None:
    (shell.folder / "job.sbatch").write_text(blocks_below(SLURM, "bash")["A session"], encoding="utf-8")
    (shell.folder / "in.txt").write_text("run 100\n", encoding="utf-8")
    shown = {
        "   1.8/2   23.2Gi/23.4Gi   498/500": "   …",
        "mpiop-demo": node,
        "team/melt": f"{namespace.namespace}/melt",
        "kubectl mpi list": "kubectl wait --for=condition=Running --timeout=60s mpijob/melt-dc01ef >/dev/null; kubectl mpi list",
        # Nobody presses Ctrl-C.
        "kubectl mpi logs -f melt-dc01ef": "head -n 5 < <(kubectl mpi logs -f melt-dc01ef 2>/dev/null)",
        "^C\n": "",
    }
    shell.replay(SLURM, "A session", shown)


# Python


PROGRAMS = {
    "hosts.py": (PYTHON, "Run a program"),
    "fails.py": (PYTHON, "A job that fails"),
    "function.py": (PYTHON, "A function on every rank"),
    "calls.py": (PYTHON, "Many functions in one allocation"),
}


@pytest.mark.skipif(sys.version_info[:2] != DEBIANS_PYTHON, reason="functions travel to the same version of Python only")
@pytest.mark.parametrize("file", PROGRAMS)
def test_the_programs_of_the_python_client_run(shell: Shell, node: str, file: str) -> None:
    page, heading = PROGRAMS[file]
    (shell.folder / file).write_text(blocks_below(page, "python")[heading], encoding="utf-8")
    shell.replay(page, heading, {"mpiop-demo": node} if file == "fails.py" else None)


# Commands of other pages


def test_the_commands_for_editors_write_the_same_schema(shell: Shell) -> None:
    (shell.folder / "manifests").symlink_to(ROOT / "manifests")
    (shell.folder / "job.yaml").write_text(PI.read_text(encoding="utf-8"), encoding="utf-8")
    kept = {">mpijob.schema.json\nkubectl label": ">first.json\nkubectl label"}
    shell.follow("docs/editors.md", "Editors", kept)
    first, second = (json.loads((shell.folder / name).read_text(encoding="utf-8")) for name in ("first.json", "mpijob.schema.json"))
    assert first == second
    assert "spec" in first["properties"]


def test_kubectl_waits_for_a_job(shell: Shell) -> None:
    start(shell, "pi", "sleep 2")
    assert shell.follow("docs/gitops.md", "kubectl wait") == "mpijob.kubeflow.org/pi condition met\n" * 2


def test_the_crd_alone_is_upgraded(shell: Shell) -> None:
    (shell.folder / "manifests").symlink_to(ROOT / "manifests")
    only_tried = {"--server-side": "--server-side --dry-run=server"}
    assert "serverside-applied" in shell.follow("docs/install.md", "Upgrade the CRD", only_tried)
