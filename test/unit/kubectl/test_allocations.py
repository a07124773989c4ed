"""`alloc` and `step` against an API server in memory."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fakes.client_api import FakeApi, allocation, container, pod, raises, stored
from fakes.programs import executable
from mpiop.api.annotations import ALLOCATION
from mpiop.client.allocation import allocation_manifest, fitting, launcher_of, workers_of
from mpiop.client.errors import UnreachableError
from mpiop.client.job import Job
from mpiop.client.spec import JobSpec
from mpiop.kubectl.main import run

pytestmark = pytest.mark.real_time


def test_an_allocation_is_a_job_whose_launcher_holds_it() -> None:
    spec = JobSpec(command=("alloc",), image="i", ranks=5, slots=2, env={"A": "$b"}, mpirun_args=["--map-by", "a b"], time_limit=60)
    job = allocation_manifest(spec, "dev", idle=90)
    assert job["metadata"] == {"name": "dev", "annotations": {ALLOCATION.name: "true"}}
    assert "activeDeadlineSeconds" not in job["spec"]["runPolicy"]
    assert job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 3
    holder = container(job)
    assert (holder["command"], holder["args"][1]) == (["/bin/sh", "-c"], "mpiop")
    assert holder["args"][3:] == ["-x A --map-by 'a b'", "--tag-output"]
    assert holder["args"][2].startswith("#!/bin/sh\n")
    assert '"$$1"' in holder["args"][0], "Kubernetes would take $(NAME) for a variable"
    expected = {"A": "$$b", "MPIOP_RANKS": "5", "MPIOP_IDLE": "90", "MPIOP_TIME_LIMIT": "60", "MPIOP_EXPORT_OPTION": "-x"}
    assert expected.items() <= {variable["name"]: variable["value"] for variable in holder["env"]}.items()


def test_alloc_creates_it_and_prints_its_name_when_it_runs(mpi: Any, api: FakeApi) -> None:
    api.ends("Running")
    code, out, err = mpi("alloc", "-n", "4", "--slots", "2", "--image", "i", "--name", "dev", "--idle", "30m", "--no-shell")
    assert (code, out) == (0, "dev\n")
    assert err.splitlines()[0] == "allocation dev"
    [sent] = [request[1] for request in api.requests if request[0] == "create"]
    assert {"name": "MPIOP_IDLE", "value": "1800"} in container(sent)["env"]
    api.ends("Failed")
    code, out, err = mpi("alloc", "--image", "i", "--name", "bad", "--no-shell")
    assert (code, out) == (1, "")
    assert "error: job bad failed" in err


REFUSED = [
    (("step", "pi", "--", "a"), 2, "error: job pi is not an allocation: kubectl mpi alloc makes one"),
    (("step", "over", "--", "a"), 1, "error: allocation over has ended (Succeeded): idle: nobody"),
    (("step", "waits", "--", "a"), 1, "error: allocation waits does not run now: created: no operator has seen it"),
    (("step", "none", "--", "a"), 3, "error: job team/none:"),
    (("step", "dev", "-n", "4"), 2, "error: there is no program to run: put it at the end, after --"),
    (("step", "dev", "--hosts", "a", "--", "a"), 2, "error: --hosts a: write numbers with commas, such as 0,1"),
    (("step", "dev", "-e", "A", "--", "a"), 2, "error: 'A' is not of the form --env NAME=VALUE"),
    (
        ("run", "--in", "dev", "--image", "i", "--rm", "-n", "2", "--", "a"),
        2,
        "error: --image, --rm: not possible with --in, because allocation dev exists already",
    ),
    (("run", "--in", "pi", "--", "a"), 2, "error: job pi is not an allocation: kubectl mpi alloc makes one"),
    (("step", "dev", "--build", "make", "--", "a"), 2, "error: --build needs --upload: it runs in the uploaded folder"),
    (("step", "dev", "--mpirun-args", "'", "--", "a"), 2, "error: --mpirun-args ': a quote is not closed"),
]


@pytest.mark.parametrize(("words", "code", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_a_step_that_cannot_run_reports_why(mpi: Any, api: FakeApi, words: tuple[str, ...], code: int, message: str) -> None:
    over = allocation("over", state="Succeeded")
    over["status"].setdefault("summary", {})["message"] = "idle: nobody"
    api.stored = {"pi": stored("pi", state="Running"), "dev": allocation(state="Running"), "waits": allocation("waits"), "over": over}
    found, out, err = mpi(*words)
    assert (found, out) == (code, "")
    assert err.startswith(message)


@pytest.fixture
def kubectl(api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Let the allocation `dev` run, and a script stand in for kubectl; return the file with the words that it got."""
    api.stored = {"dev": allocation(state="Running")}
    api.all_pods = [pod("dev-launcher-x", role="launcher"), pod("dev-worker-0"), pod("dev-worker-1")]
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def call(body: str) -> Path:
        words = tmp_path / "words"
        executable(tmp_path / "kubectl", f'#!/bin/sh\necho "$*" >>{words}\n{body}')
        return words

    return call


MARK = 'while [ "$1" != client ]; do shift; done; mark=$2;'
STEP = 'while [ "$1" != --token ]; do shift; done; report="mpiop:$2:"; echo "${report}runs 3 0:1" >&2; '


@pytest.mark.parametrize(
    ("words", "copied"),
    [
        (("dev:/data/a.txt", "here.txt"), "dev-launcher-x:/data/a.txt here.txt"),
        (("dev:/data/a.txt", "."), "dev-launcher-x:/data/a.txt a.txt"),
        (("dev:/data/", "there/"), "dev-launcher-x:/data/ there/data"),
        (("dev:/", "there"), "dev-launcher-x:/ there"),
        (("a.txt", "dev:/tmp/"), "a.txt dev-launcher-x:/tmp/"),
        (("there", "dev:/tmp/", "--worker", "1"), "there dev-worker-1:/tmp/"),
    ],
)
def test_what_is_copied_into_a_directory_keeps_its_name(
    mpi: Any, kubectl: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Sequence[str], copied: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    called = kubectl("exit 0")
    assert mpi("cp", *words)[0] == 0
    assert called.read_text().strip().endswith(f" {copied}")


def test_run_in_an_allocation_is_a_step(mpi: Any, kubectl: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPIOP_IMAGE", "image")
    words = kubectl(f'{STEP} echo from rank 0; echo "${{report}}ended 7 " >&2')
    options = ("-e", "A=b c", "--mpirun-args", "--map-by node", "--no-stdin", "--no-tag")
    assert mpi("run", "--in", "dev", *options, "-n", "2", "--", "./a", "-n") == (7, "from rank 0\n", "")
    assert mpi("run", "--in", "dev", "--no-stdin", "./a")[0] == 7
    first, second = words.read_text().splitlines()
    assert "exec --stdin --namespace=team dev-launcher-x --container=launcher -- /bin/sh /tmp/mpiop/bin/mpiop step --token" in first
    assert first.endswith(" -n 2 --env A=b c --mpirun-args --map-by node -- ./a -n")
    assert second.endswith(" --tag -- ./a")


MEMBER = f"{STEP} for each; do case $each in MPIOP_ARRAY_INDEX=*) index=${{each#*=}} ;; esac; done; cd ${{0%/*}};"


def test_an_array_in_an_allocation_is_a_step_for_each_index(mpi: Any, kubectl: Callable[[str], Path]) -> None:
    words = kubectl(f'{MEMBER} echo "index $index"; echo log >&2; code=$((index == 3 ? 4 : 0)); echo "${{report}}ended $code " >&2')
    code, out, err = mpi("run", "--in", "dev", "-n", "2", "--array", "1,3", "-e", "A=b", "--", "./a")
    assert (code, out.splitlines()) == (1, ["1: index 1", "3: index 3"])
    expected = ["1: log", "index 1: succeeded", "3: log", "index 3: step 3: exit code 4", "1 of 2 steps succeeded"]
    assert err.splitlines() == expected
    assert [line.partition(" -n ")[2] for line in words.read_text().splitlines()] == [
        f"2 --env A=b --env MPIOP_ARRAY_INDEX={index} --tag -- ./a" for index in (1, 3)
    ]


def test_as_many_steps_of_an_array_run_at_a_time_as_fit(mpi: Any, kubectl: Callable[[str], Path], tmp_path: Path) -> None:
    both = "echo >begun-$index; until [ -e begun-1 ] && [ -e begun-2 ]; do sleep 0.01; done;"
    ended = 'echo begun >>log; sleep 0.01; echo ended >>log; echo "${report}ended 0 " >&2'
    kubectl(f"{MEMBER} {both} {ended}")
    assert mpi("run", "--in", "dev", "-n", "1", "--array", "1-2", "./a")[0] == 0
    (tmp_path / "log").unlink()
    for options in (("--parallel", "1", "-n", "1"), ("-n", "2")):
        assert mpi("run", "--in", "dev", "--array", "1-3", *options, "./a")[0] == 0
    assert (tmp_path / "log").read_text() == "begun\nended\n" * 6


@pytest.mark.parametrize(
    ("ranks", "fits"), [(1, 7), (2, 3), (4, 1), (9, 1), (None, 2)], ids=["one", "two", "more than half", "too many", "the allocation's own"]
)
def test_steps_fit_into_the_slots(ranks: int | None, fits: int) -> None:
    job = allocation_manifest(JobSpec(command=("alloc",), image="i", ranks=3), "dev")
    job["spec"] |= {"slotsPerWorker": 1, "runLauncherAsWorker": True}
    job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 6
    assert fitting(job, ranks) == fits


def test_ctrl_c_ends_the_steps_of_an_array_and_prints_which_are_left(mpi: Any, api: FakeApi, kubectl: Callable[[str], Path]) -> None:
    kubectl(f'{MEMBER} while read -r order; do [ -z "$order" ] || break; done; echo "${{report}}ended 130 $order" >&2')
    api.steps = [lambda: None, lambda: None, raises(KeyboardInterrupt())]
    code, out, err = mpi("run", "--in", "dev", "-n", "1", "--array", "1-3", "./a")
    assert (code, out) == (130, "")
    assert err == "ends the ranks; Ctrl-C again does not wait for them\nnot finished: --array 1,2,3\n\nstopped\n"


def test_steps_of_an_array_continue_while_the_api_server_does_not_answer(mpi: Any, api: FakeApi, kubectl: Callable[[str], Path]) -> None:
    kubectl(f'{MEMBER} echo "${{report}}ended 0 " >&2')
    gone = raises(UnreachableError("no answer"))
    api.steps = [lambda: None, lambda: None, gone]
    code, _, err = mpi("run", "--in", "dev", "-n", "1", "--array", "1-2", "./a")
    assert (code, err.splitlines()) == (0, ["index 1: succeeded", "index 2: succeeded", "2 of 2 steps succeeded"])
    api.steps = [lambda: None, gone]
    assert mpi("run", "--in", "dev", "-n", "1", "--array", "1-2", "./a")[2] == "not finished: --array 1,2\nerror: no answer\n"


def test_an_array_ends_if_no_step_of_it_can_run(mpi: Any, api: FakeApi, kubectl: Callable[[str], Path]) -> None:
    array = ("run", "--in", "dev", "--array", "7-9", "-n", "2")
    kubectl(f'{MEMBER} echo "${{report}}refused no slots" >&2')
    assert mpi(*array, "./a")[::2] == (2, "not finished: --array 7,8,9\nerror: the step was refused: no slots\n")
    assert mpi(*array, "-i", "./a")[::2] == (2, "error: -i: standard input cannot be passed on: leave out --array\n")
    assert mpi("run", "--in", "dev", "--array", "x", "./a")[0] == 2
    kubectl(f"{MEMBER} exit 1")
    assert mpi(*array, "./a")[2].splitlines()[0].startswith("index 7: the connection to step 3 was lost")
    api.stored["dev"] = allocation(state="Succeeded")
    assert mpi(*array, "./a")[::2] == (1, "not finished: --array 7,8,9\nerror: allocation dev has ended (Succeeded)\n")


def test_a_step_that_loses_a_worker_fails_also_if_mpirun_reports_success(mpi: Any, kubectl: Callable[[str], Path]) -> None:
    daemons = "  HNP daemon   : [prterun-x@0,0] on node dev-launcher\n  Remote daemon: [prterun-x@0,1] on node dev-worker-0"
    lost = f"PRTE has lost communication with a remote daemon.\n\n{daemons}\n"
    kubectl(f"{STEP} printf '%s' '{lost}' >&2; echo \"${{report}}ended 0 \" >&2")
    code, _, err = mpi("step", "dev", "--no-stdin", "--", "./a")
    assert (code, err) == (1, f"{lost}error: step 3: mpirun lost its connection to dev-worker-0\n")


def test_history_lists_the_steps_of_an_allocation(mpi: Any, kubectl: Callable[[str], Path]) -> None:
    words = kubectl(f"{MARK} printf '1\\t0\\t100\\t165\\t3\\t0:2 1:1\\t./a\\tb\\n2\\t\\t200\\t\\t1\\t1:1\\t./b\\n\\n%s end\\n' $mark")
    code, out, _ = mpi("history", "dev")
    head, first, second = (line.split() for line in out.splitlines())
    assert (code, head) == (0, ["STEP", "EXIT", "RANKS", "HOSTS", "STARTED", "DURATION", "COMMAND"])
    assert (first[:4], first[-3:]) == (["1", "0", "3", "0,1"], ["1m5s", "./a", "b"])
    assert (second[:3], second[-1]) == (["2", "1", "1"], "./b")
    assert re.search(r"-- /bin/sh /tmp/mpiop/bin/mpiop client \w{16} history\n$", words.read_text())
    assert mpi("history", "dev", "-A")[0] == 2
    kubectl("echo gone")
    assert mpi("history", "dev") == (1, "", "error: the launcher does not answer (kubectl: exit code 0): \n")


def test_logs_shows_what_was_kept_of_a_step(mpi: Any, kubectl: Callable[[str], Path]) -> None:
    words = kubectl(f"{MARK} printf '1\\n\\n%s dropped\\n[1,0]<stdout>:zero\\n[1,1]<stderr>:one\\nmpirun\\n%s end\\n' $mark $mark")
    dropped = "output of step 3 was dropped here: an allocation keeps only the end of it\n"
    assert mpi("logs", "dev", "--step", "3") == (0, "zero\none\nmpirun\n", dropped)
    assert mpi("logs", "dev", "--step", "3", "--rank", "1") == (0, "one\n", dropped)
    assert words.read_text().endswith(" output 3\n")
    assert mpi("logs", "-f", "dev", "--step", "3", "--rank", "1") == (0, "one\n", dropped)
    assert words.read_text().endswith(" output 3 follow\n")
    assert mpi("logs", "dev", "--step", "3", "--attempt", "1", "--all") == (2, "", "error: --all, --attempt: not possible with --step\n")
    kubectl("echo 'there is no step 4, or it is too old' >&2; exit 3")
    assert mpi("logs", "dev", "--step", "4") == (3, "", "error: there is no step 4, or it is too old\n")


def test_a_step_begins_only_when_its_files_have_arrived(mpi: Any, kubectl: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_text("a")
    command = ("step", "dev", "--no-stdin", "--upload", str(folder), "--build", "make -j", "--", "./a")
    received = "case $* in *receive) echo end; cat >/dev/null; {end};; *) {step};; esac"
    step = f'{STEP} echo "${{report}}ended 0 " >&2'
    words = kubectl(received.format(end="echo done", step=step))
    assert mpi(*command) == (0, "", "")
    assert words.read_text().splitlines()[-1].endswith(" --build make -j --tag --upload -- ./a")
    kubectl(received.format(end="echo no space >&2", step=step))
    assert mpi(*command) == (1, "", f"error: {folder} was not uploaded (kubectl: exit code 0): no space\n")
    kubectl(received.format(end="true", step=step).replace("echo end; cat >/dev/null", "echo refused >&2; exit 1"))
    assert mpi(*command) == (1, "", f"error: {folder} was not uploaded (kubectl: exit code 1): refused\n")
    (folder / "a\\b").write_text("a")
    assert mpi(*command)[::2] == (2, "error: 'upload/a\\\\b' cannot be uploaded: its name has a backslash or a control character\n")


def test_the_hosts_of_steps_are_the_lines_of_the_hostfile(api: FakeApi) -> None:
    job = allocation(state="Running")
    api.all_pods = [pod("dev-launcher-x", role="launcher"), pod("dev-worker-1"), pod("dev-worker-0")]
    found = launcher_of(Job(api, job))
    assert found.pod == "dev-launcher-x"
    assert {host: state.name for host, state in found.workers.items()} == {0: "dev-worker-0", 1: "dev-worker-1"}
    job["spec"]["runLauncherAsWorker"] = True
    assert sorted(workers_of(Job(api, job), api.all_pods)) == [1, 2]


def test_the_words_of_a_program_are_not_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["step", "--help"]) == 0
    assert "[--] PROGRAM" in capsys.readouterr().out
