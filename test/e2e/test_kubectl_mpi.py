"""`kubectl mpi` as users type it, in a pipe and on a terminal, on a real cluster."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from hashlib import md5
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from e2e.clusters import IS_CURRENT, paused
from e2e.commands import without_noise
from e2e.conftest import NAME
from e2e.jobs import PI, held, is_true, pi_job, until_true
from e2e.kubectl import Kubectl
from e2e.plugin import Tool, new_tool
from e2e.waiting import wait_until
from mpiop.client import MPI, JobFailed
from mpiop.kube.resources import CONFIG_MAPS, MPIJOBS

IMAGE = "mpiop.invalid/mpi-pi:openmpi"
RUN = ("run", "--image", IMAGE)


@pytest.fixture(scope="module")
def tool(module_namespace: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Tool:
    return new_tool(module_namespace, tmp_path_factory.mktemp("kubectl-mpi"))


class Terminal:
    """A pseudo terminal with the tool on it."""

    def __init__(self, tool: Tool, arguments: Sequence[str], columns: int = 100, **environment: str) -> None:
        self.process, self._master = _on_terminal(tool, arguments, columns, environment)
        self.seen = ""

    def until(self, words: str, timeout_seconds: float = 60) -> str:
        """Read until `words` are seen, or the tool has ended."""
        deadline = time.monotonic() + timeout_seconds
        while words not in self.seen and time.monotonic() < deadline:
            if not select.select([self._master], [], [], 0.2)[0]:
                continue
            try:
                piece = os.read(self._master, 65536)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            self.seen += piece.decode(errors="replace")
        assert words in self.seen, self.seen
        return self.seen

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> int:
        code = self.process.wait(timeout=60)
        os.close(self._master)
        return code


def _on_terminal(tool: Tool, arguments: Sequence[str], columns: int, environment: dict[str, str]) -> tuple[subprocess.Popen[bytes], int]:
    master, slave = pty.openpty()
    settings = {**tool.environment, "TERM": "xterm-256color", "COLUMNS": str(columns), **environment}
    process = subprocess.Popen(["kubectl-mpi", *arguments], env=settings, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    return process, master


def test_a_program_runs_on_ranks_in_one_line(tool: Tool) -> None:
    done = tool.attempt(*RUN, "-n", "4", "--slots", "2", "--name", "hosts", "--", "hostname")
    assert (done.returncode, sorted(done.stdout.split())) == (0, ["hosts-worker-0"] * 2 + ["hosts-worker-1"] * 2)
    assert done.stderr.splitlines()[-1] == "job hosts succeeded"
    assert tool.run("logs", "hosts", "--rank", "3") == "hosts-worker-1\n"
    assert "hosts" in tool.run("list")
    assert "RANKS" in tool.run("describe", "hosts")
    assert tool.run("why", "hosts") == "Job hosts succeeded.\n"


COUNT = 'i=0; while [ $i -lt {count} ]; do i=$((i + 1)); echo "  $OMPI_COMM_WORLD_RANK: line $i of many"; done'
"""Open MPI 4.1 cuts lines where it passes output on; these are indented, as its tags could be taken for theirs."""


def lines_of(rank: int, count: int) -> list[str]:
    return [f"  {rank}: line {number} of many" for number in range(1, count + 1)]


def of_rank(rank: int, text: str) -> list[str]:
    """Return the lines that show by themselves that the rank has printed them."""
    return [line for line in text.splitlines() if line.startswith(f"  {rank}:")]


def test_each_rank_s_lines_arrive_whole(tool: Tool) -> None:
    done = tool.attempt(*RUN, "-n", "2", "--name", "whole", "--", "sh", "-c", COUNT.format(count=20_000))
    assert done.returncode == 0, done.stderr
    pieces = re.split(
        r"\[1,(\d)\]<stdout>:",
        tool.here.run("logs", "--selector=training.kubeflow.org/job-role=launcher,job-name=whole-launcher", "--tail=-1"),
    )
    for rank in (0, 1):
        printed = of_rank(rank, done.stdout)
        assert printed == of_rank(rank, tool.run("logs", "whole", "--rank", str(rank)))
        arrived = "".join(text for number, text in zip(pieces[1::2], pieces[2::2], strict=True) if number == str(rank))
        assert printed == of_rank(rank, arrived)
        # On a busy machine mpirun of Open MPI 4.1 ends before it has passed on all that ranks have printed, maybe amid a line.
        assert printed[:1000] == lines_of(rank, 1000)
    missing = tool.attempt("logs", "whole", "--rank", "9")
    assert (missing.returncode, missing.stderr) == (1, "error: job whole has no rank 9: its ranks are 0 to 1\n")


def test_long_output_arrives_whole_or_a_warning_reports_that_its_log_may_not_be(tool: Tool) -> None:
    count = 300_000  # some 25 MB in the log: kubelets begin another file after 10 MiB
    program = f'yes "$OMPI_COMM_WORLD_RANK: a line like any other" | head -n {count} | cat -n'
    done = tool.attempt(*RUN, "-n", "2", "--name", "long-output", "--", "sh", "-c", program)
    assert done.returncode == 0, done.stderr
    expected = {rank: [f"{number:6}\t{rank}: a line like any other" for number in range(1, count + 1)] for rank in (0, 1)}
    found = {rank: [line for line in done.stdout.splitlines() if f"\t{rank}: " in line] for rank in (0, 1)}
    assert found == expected or "lines may be missing" in done.stderr, {rank: len(lines) for rank, lines in found.items()}


def test_bytes_of_a_program_stay_as_they_are(tool: Tool) -> None:
    command = ["kubectl", "mpi", *RUN, "--name", "raw", "--", "printf", r"\033[1mbold\033[0m \377\376 50%%\r100%%\n"]
    done = subprocess.run(command, env=tool.environment, capture_output=True, stdin=subprocess.DEVNULL, check=True, timeout=120)
    printed = without_noise(done.stdout.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    assert printed == b"\x1b[1mbold\x1b[0m \xff\xfe 50%\r100%\n"
    script = 'kubectl mpi logs whole | head -n 1; echo "${PIPESTATUS[0]}"'
    cut = subprocess.run(["bash", "-c", script], env=tool.environment, capture_output=True, text=True, check=True, timeout=120)
    assert (cut.stdout.splitlines()[-1], cut.stderr) == ("141", "")


@pytest.mark.parametrize("options", [(), ("-i",)], ids=["from a pipe", "-i"])
def test_standard_input_reaches_rank_0(tool: Tool, options: tuple[str, ...]) -> None:
    data = "".join(f"line {number}\n" for number in range(50_000))
    program = "echo $OMPI_COMM_WORLD_RANK $(cat | md5sum)"
    done = tool.attempt(*RUN, "-n", "2", *options, "--rm", "--", "sh", "-c", program, stdin=data)
    assert done.returncode == 0, done.stderr
    assert f"0 {md5(data.encode(), usedforsecurity=False).hexdigest()} -" in done.stdout.splitlines()
    assert "warning" not in done.stderr


def test_a_command_in_a_worker_reads_standard_input(tool: Tool) -> None:
    tool.run(*RUN, "-n", "1", "--name", "reads", "--detach", "--", "sleep", "600")
    until_true(tool.here, "reads", "Running")
    assert tool.run("exec", "reads", "-i", "--worker", "0", "--", "cat", stdin="data") == "data"
    tool.run("delete", "reads", "--yes")


def test_its_exit_code_is_the_program_s(tool: Tool) -> None:
    done = tool.attempt(*RUN, "--name", "bad", "--", "sh", "-c", "echo seen; exit 7")
    assert done.returncode == 7
    assert "seen" in done.stdout
    assert "Job bad failed: the program exited with code 7 on rank " in done.stderr
    assert "\nBackoffLimitExceeded/Error: " in done.stderr
    assert "seen" in tool.run("logs", "bad", "--attempt", "1")
    assert "exit code 7" in tool.run("why", "bad")


def test_files_travel_and_go_with_the_job(tool: Tool, tmp_path: Path) -> None:
    script = tmp_path / "bin" / "go.sh"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho $GREETING from $(pwd)\n")
    done = tool.run(*RUN, "-n", "2", "--name", "files", "--upload", str(tmp_path), "-e", "GREETING=hello", "--rm", "--", "bin/go.sh")
    assert done == "hello from /upload\n" * 2
    tool.here.until(CONFIG_MAPS, lambda maps: not [each for each in maps if each["metadata"]["name"].startswith("go-sh-files")])


def test_names_and_texts_may_be_in_any_language(tool: Tool, tmp_path: Path) -> None:
    script = tmp_path / "grüße.sh"
    script.write_text("#!/bin/sh\necho \"$NAME, $(cat 'ciò.txt'), $1\"\n", encoding="utf-8")
    (tmp_path / "ciò.txt").write_text("déjà vu", encoding="utf-8")
    environment = ("-e", "NAME=Αλίκη", "--upload", str(tmp_path))
    assert tool.run(*RUN, *environment, "--rm", "--", "./grüße.sh", "你好 世界") == "Αλίκη, déjà vu, 你好 世界\n"


def test_another_user_and_a_shell_in_a_worker(tool: Tool) -> None:
    arguments = ("--user", "1000", "--home", "/home/mpiuser", "--name", "user", "--detach", "--", "sleep", "600")
    assert tool.run(*RUN, "-n", "2", *arguments) == "user\n"
    until_true(tool.here, "user", "Running")
    assert tool.run("exec", "user", "--worker", "1", "--", "id", "-u") == "1000\n"
    shell = Terminal(tool, ("shell", "user"))
    shell.type("echo $((6 * 7))\nexit 3\n")
    shell.until("42")
    assert shell.end() == 3
    tool.here.run("exec", "user-worker-0", "--", "sh", "-c", "echo copied > /tmp/a")
    local = Path(tool.environment["KUBECONFIG"]).parent / "a"
    tool.run("cp", "user:/tmp/a", str(local), "--worker", "0")
    assert local.read_text() == "copied\n"
    tool.run("suspend", "user", "--yes")
    until_true(tool.here, "user", "Suspended")
    tool.run("resume", "user")
    until_true(tool.here, "user", "Running")
    assert tool.attempt("scale", "user", "1").returncode == 2
    tool.run("scale", "user", "1", "--yes")
    tool.here.until_one(MPIJOBS, "user", lambda job: job["status"]["summary"]["workers"] == "1/1")
    old = tool.here.read(MPIJOBS, "user")["metadata"]["uid"]
    tool.run("restart", "user", "--yes")
    assert tool.here.read(MPIJOBS, "user")["metadata"]["uid"] != old
    tool.run("delete", "user", "--yes")
    tool.here.until_gone(MPIJOBS, "user")


def test_a_waiting_job_shows_why_on_a_terminal_and_ctrl_c_asks(tool: Tool) -> None:
    screen = Terminal(tool, ("run", "--image", "localhost/no-such-image:1", "--name", "waits", "--", "true"), columns=60)
    screen.until("ImagePull")
    wait_until("the pull is drawn, once it has lasted for a second", lambda: "~~~" in tool.run("timeline", "waits"))
    assert "images could not be pulled: localhost/no-such-image:1" in tool.attempt("doctor").stdout
    screen.process.send_signal(signal.SIGINT)
    screen.until("Delete job waits?")
    screen.type("y\n")
    screen.until("job waits deleted")
    assert screen.end() == 130
    tool.here.until_gone(MPIJOBS, "waits")


def test_colour_is_for_terminals_that_want_it(tool: Tool) -> None:
    tool.run(*RUN, "--name", "colour", "--", "true")
    assert "\x1b[" not in tool.run("list")
    coloured, plain = Terminal(tool, ("list",)), Terminal(tool, ("list",), NO_COLOR="1")
    coloured.until("colour")
    coloured.until("\x1b[32mSucceeded")
    plain.until("Succeeded")
    assert "\x1b[32m" not in plain.seen
    assert (coloured.end(), plain.end()) == (0, 0)
    narrow = Terminal(tool, ("list", "-o", "wide"), columns=40)
    assert all(len(line) <= 60 for line in narrow.until("colour").splitlines())
    assert narrow.end() == 0


def test_a_timeline_is_drawn_in_each_form(tool: Tool) -> None:
    tool.run(*RUN, "-n", "2", "--name", "drawn", "--", "sleep", "2")
    assert "= running" in tool.run("timeline", "drawn")
    assert ET.fromstring(tool.run("timeline", "drawn", "-o", "svg")).tag.endswith("svg")  # noqa: S314 - our own
    assert tool.run("timeline", "drawn", "-o", "html").startswith("<!doctype html>")


@pytest.mark.skipif(IS_CURRENT, reason="the API server of the user's own cluster is not stopped")
def test_following_goes_on_when_the_api_server_is_away(tool: Tool) -> None:
    count = "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 1; done"
    screen = Terminal(tool, (*RUN, "--name", "long", "--", "sh", "-c", count))
    screen.until("line 2")
    with paused("kube-apiserver", NAME):
        assert not select.select([], [], [], 3)[0]
    screen.until("job long succeeded")
    assert screen.end() == 0
    assert re.findall(r"line (\d)", screen.seen) == list("12345678")


def test_a_job_that_is_deleted_while_it_is_followed_is_an_end(tool: Tool) -> None:
    screen = Terminal(tool, (*RUN, "--name", "taken", "--", "sh", "-c", "echo begun; sleep 600"))
    screen.until("begun")
    tool.here.run("delete", "mpijob", "taken")
    screen.until("somebody deleted it before it ended")
    assert screen.end() == 1


def test_a_job_is_terminating_while_it_is_being_deleted(tool: Tool) -> None:
    job = held(pi_job("going", workers=1))
    job["metadata"]["finalizers"] = ["example.com/held"]
    tool.here.apply(job)
    until_true(tool.here, "going", "Running")
    tool.here.run("delete", "mpijob", "going", "--wait=false")
    try:
        assert [line.split()[:2] for line in tool.run("list").splitlines() if line.startswith("going ")] == [["going", "Terminating"]]
        assert tool.run("why", "going") == "Job going is being deleted.\n"
    finally:
        tool.here.run("patch", "mpijob", "going", "--type=merge", '--patch={"metadata": {"finalizers": null}}')
    tool.here.until_gone(MPIJOBS, "going")


def test_an_array_runs_a_few_at_a_time(tool: Tool) -> None:
    done = tool.attempt(*RUN, "--name", "many", "--array", "1-4", "--parallel", "2", "--", "sh", "-c", "test $MPIOP_ARRAY_INDEX != 3")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "3 of 4 jobs succeeded"
    assert "Job many-3 failed" in done.stdout
    tool.run("cleanup", "--failed", "--yes")
    assert "many-3" not in tool.run("list", "-o", "name")


def test_a_mistake_in_a_file_has_its_line(tool: Tool, tmp_path: Path) -> None:
    good = PI.read_text(encoding="utf-8").replace("name: pi", "name: submitted", 1)
    bad = good.replace("imagePullPolicy:", "imagePullPolcy:", 1)
    (tmp_path / "bad.yaml").write_text(bad)
    line = 1 + next(number for number, text in enumerate(bad.splitlines()) if "imagePullPolcy" in text)
    done = tool.attempt("submit", str(tmp_path / "bad.yaml"))
    assert done.returncode == 2
    assert f"bad.yaml:{line}: " in done.stderr
    assert 'template.spec.containers[0].imagePullPolcy"' in done.stderr
    assert tool.run("submit", "-", stdin=good) == "job submitted created\n"
    until_true(tool.here, "submitted", "Succeeded")


def test_doctor_finds_all_well_and_strangers_are_told_what_they_lack(namespace: Kubectl, tmp_path: Path) -> None:
    tool = new_tool(namespace, tmp_path)
    assert {line.split()[0] for line in tool.run("doctor").splitlines()} == {"ok"}
    config = yaml.safe_load(Path(tool.environment["KUBECONFIG"]).read_text())
    config["users"][0]["user"] = {"token": tool.here.run("create", "token", "default").strip()}
    stranger_config = Path(tool.environment["KUBECONFIG"]).with_name("stranger")
    stranger_config.write_text(json.dumps(config))
    stranger = replace(tool, environment={**tool.environment, "KUBECONFIG": str(stranger_config)})
    done = stranger.attempt("doctor")
    assert done.returncode == 1
    assert "you may not create mpijobs" in done.stdout
    assert stranger.attempt("list").returncode == 4
    assert stranger.attempt(*RUN, "--", "true").returncode == 4


def test_no_cluster_and_no_job_are_sentences(tool: Tool, tmp_path: Path) -> None:
    nowhere = replace(tool, environment={**tool.environment, "KUBECONFIG": str(tmp_path / "nothing")})
    assert "name one with --kubeconfig or $KUBECONFIG" in nowhere.attempt("list").stderr
    done = tool.attempt("logs", "nothing")
    assert (done.returncode, "not found" in done.stderr) == (3, True)


def test_kubectl_completes_verbs_and_jobs(tool: Tool) -> None:
    tool.run(*RUN, "--name", "completed", "--", "true")
    found = subprocess.run(
        ["kubectl", "__complete", "mpi", "logs", "comp"], env=tool.environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert "completed" in found.stdout.split()


def test_a_shell_completes_the_verbs_of_the_program(tool: Tool) -> None:
    script = (
        'eval "$(mpiop-kubectl completion bash)"; COMP_WORDS=(mpiop-kubectl time) COMP_CWORD=1\n'
        '_mpiop_kubectl_completion mpiop-kubectl; echo "${COMPREPLY[*]}"'
    )
    done = subprocess.run(["bash", "-c", script], env=tool.environment, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["timeline"]


@pytest.fixture
def mpi(tool: Tool) -> MPI:
    return MPI(kubeconfig=tool.environment["KUBECONFIG"], image=IMAGE)


def test_a_python_program_submits_and_follows(mpi: MPI, tool: Tool) -> None:
    with mpi.job(["sh", "-c", "echo rank output"], ranks=2, name="python") as job:
        assert list(job.logs(follow=True)) == ["rank output"] * 2
        assert job.wait(timeout=60).has_succeeded
    tool.here.until_gone(MPIJOBS, "python")
    failing = mpi.submit(["sh", "-c", "exit 9"], name="python-fails")
    with pytest.raises(JobFailed) as caught:
        failing.wait(timeout=120)
    assert caught.value.code == 9
    assert is_true(tool.here.read(MPIJOBS, "python-fails"), "Failed")
