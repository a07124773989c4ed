"""The gate's script, run for real: in every shell that images have, with an ssh that answers by a script of its own, and no network."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mpiop.controller.builders.wait_for_workers import SCRIPT

SHELLS = {"dash": ["dash"], "bash": ["bash"], "busybox": ["busybox", "sh"]}
HERE = [name for name in SHELLS if shutil.which(name)]

# Answers the n-th try by line n of $STATE/HOST (`<exit code> <text on stderr>`), by a line `always <text>` every time from there on,
# and lets everybody in after the last line.
FAKE_SSH = """#!/bin/sh
while [ $# -gt 2 ]; do
    printf '%s\\n' "$1" >>"$STATE/arguments"
    shift
done
echo "$*" >>"$STATE/calls"
host=$1 try=1
while [ -e "$STATE/$host.$try" ]; do try=$((try + 1)); done
: >"$STATE/$host.$try"
number=0
while read -r code text; do
    number=$((number + 1))
    [ "$number" = "$try" ] || [ "$code" = always ] || continue
    printf 'Warning: Permanently added a key.\\r\\n%s\\r\\n' "$text" >&2
    [ "$code" != always ] || exit 255
    exit "$code"
done <"$STATE/$host"
exit 0
"""
OWN_HOST = "pi-launcher.pi.default.svc"
UNRESOLVED = "255 ssh: Could not resolve hostname w: Name or service not known"
SLEEP = shutil.which("sleep")
REFUSED = "255 ssh: connect to host w port 22: Connection refused"


@dataclass
class Gate:
    """A place where the script runs: its files, its ssh, its shell."""

    path: Path
    shell: list[str]
    question: str = "true"
    environment: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.path / "bin").mkdir()
        (self.path / "hostfile").touch()
        self.says_ready("2")
        (self.path / "bin" / "sh").symlink_to(shutil.which("sh") or "")
        self.program("ssh", FAKE_SSH)
        self.program("sleep", f'#!/bin/sh\necho >>"$STATE/pauses"\nexec {SLEEP} 0.02\n')

    def program(self, name: str, text: str) -> None:
        (self.path / "bin" / name).write_text(text)
        (self.path / "bin" / name).chmod(0o755)

    def hosts(self, answers: dict[str, list[str]], line: str = "{host} slots=1") -> None:
        for host, lines in answers.items():
            (self.path / host).write_text("".join(f"{text}\n" for text in lines))
        new = self.path / "hostfile.new"
        new.write_text("".join(f"{line.format(host=host)}\n" for host in answers))
        new.replace(self.path / "hostfile")  # at once, as the kubelet does it

    def says_ready(self, text: str) -> None:
        (self.path / "workers-ready").write_text(text)

    def start(self, *, patience: int = 30, unasked: int = 30) -> subprocess.Popen[str]:
        files = [str(self.path / "hostfile"), str(self.path / "workers-ready")]
        limits = [str(patience), str(unasked)]
        arguments = ["wait-for-workers", OWN_HOST, *files, *limits, str(self.path / "last-words"), self.question]
        process = subprocess.Popen(
            [shutil.which(self.shell[0]) or "", *self.shell[1:], "-c", SCRIPT, *arguments],
            env={"PATH": str(self.path / "bin"), "STATE": str(self.path), **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        """End what a failed test left, with its children."""
        for process in self.started:
            with process:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def run(self, *, patience: int = 30, unasked: int = 30) -> list[str]:
        """Return the lines that the script printed before it ended well."""
        process = self.start(patience=patience, unasked=unasked)
        output, _ = process.communicate(timeout=20)
        assert process.returncode == 0, output
        return [line.removeprefix("wait-for-workers: ") for line in output.splitlines()]

    def calls(self) -> list[str]:
        return self._lines("calls")

    def look_around(self) -> None:
        """Wait until the script has been through its loop some more times."""
        before = len(self._lines("pauses"))
        eventually(lambda: len(self._lines("pauses")) > before + 5)

    def _lines(self, name: str) -> list[str]:
        file = self.path / name
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture(params=HERE)
def gate(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Gate]:
    gate = Gate(tmp_path, SHELLS[request.param])
    yield gate
    gate.end()


def eventually(is_so: object, seconds: float = 10) -> None:
    assert callable(is_so)
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"not so after {seconds} s"
        time.sleep(0.02)


def test_every_shell_that_images_have_is_here_to_be_tried() -> None:
    if missing := " ".join(name for name in SHELLS if name not in HERE):
        pytest.skip(f"the gate was not tried in every shell; to do so: apt-get install {missing}")


def test_hosts_that_answer_at_once_cost_one_line_and_one_probe_each(gate: Gate) -> None:
    gate.hosts({"w0": [], "w1": []})
    (said,) = gate.run()
    assert re.fullmatch(r"all 2 hosts answer after \d s", said)
    assert sorted(gate.calls()) == ["w0 true", "w1 true"]


def test_a_host_is_asked_until_it_answers_and_not_again(gate: Gate) -> None:
    gate.hosts({"w0": [UNRESOLVED, REFUSED], "w1": [], "w2": [REFUSED]})
    said = gate.run()
    assert sorted(gate.calls()) == ["w0 true"] * 3 + ["w1 true"] + ["w2 true"] * 2
    assert said[0] == "waiting for 2 hosts, among them:"
    assert said[1] == "w0: ssh: connect to host w port 22: Connection refused", "ssh's last line, without its carriage return"
    assert said[-1].startswith("all 3 hosts answer after")


@pytest.mark.parametrize(
    "answer",
    [
        "255 root@w: Permission denied (publickey).",
        "255 Host key verification failed.",
        "255 Received disconnect from w: 2: Too many authentication failures",
        "255 Unable to negotiate with w port 22: no matching host key type found. Their offer: ssh-rsa",
        "1 This account is currently not available.",
    ],
)
def test_a_refusal_that_no_waiting_cures_is_an_answer(gate: Gate, answer: str) -> None:
    gate.hosts({"w0": [answer]})
    assert len(gate.run()) == 1
    assert gate.calls() == ["w0 true"]


@pytest.mark.parametrize(
    "answer",
    [
        "255 ssh: connect to host w port 22: Connection timed out",
        "255 kex_exchange_identification: read: Connection reset by peer",
        "255 Connection closed by 10.0.0.1 port 22",
        "255 ssh: connect to host w port 22: No route to host",
        "255",
    ],
)
def test_whatever_waiting_may_cure_is_tried_again(gate: Gate, answer: str) -> None:
    gate.hosts({"w0": [answer]})
    gate.run()
    assert gate.calls() == ["w0 true"] * 2


def test_both_forms_of_the_hostfile_are_read_and_the_launcher_itself_is_left_out(gate: Gate) -> None:
    gate.hosts({"pi-launcher.pi.default.svc": [], "w0": []}, line="{host}:4")
    gate.run()
    assert gate.calls() == ["w0 true"]


def test_a_comment_or_an_empty_line_is_no_host(gate: Gate) -> None:
    gate.hosts({"w0": []})
    (gate.path / "hostfile").write_text("# hosts\n\nw0 slots=1\n")
    gate.run()
    assert gate.calls() == ["w0 true"]


def test_more_hosts_than_are_asked_at_a_time_are_all_asked(gate: Gate) -> None:
    names = [f"w{number}" for number in range(40)]
    gate.hosts({name: [] for name in names})
    said = gate.run()
    assert sorted(gate.calls()) == sorted(f"{name} true" for name in names)
    assert said[-1].startswith("all 40 hosts answer")


def test_at_most_five_hosts_are_named_at_a_time(gate: Gate) -> None:
    gate.hosts({f"w{number}": [REFUSED, REFUSED] for number in range(9)})
    said = gate.run()
    assert said[0] == "waiting for 9 hosts, among them:"
    assert len(said) == 7


def test_no_name_is_asked_for_before_the_operator_says_ready(gate: Gate) -> None:
    gate.hosts({"w0": []})
    gate.says_ready("0")
    process = gate.start()
    assert process.stdout is not None
    assert process.stdout.readline() == "wait-for-workers: waiting until the operator has seen every worker Ready\n"
    gate.look_around()
    assert gate.calls() == []
    gate.says_ready("1")
    output, _ = process.communicate(timeout=10)
    assert "all 1 hosts answer" in output
    assert gate.calls() == ["w0 true"]


def test_a_missing_file_is_a_closed_gate(gate: Gate) -> None:
    gate.hosts({"w0": []})
    (gate.path / "workers-ready").unlink()
    process = gate.start()
    assert process.stdout is not None
    assert "waiting until the operator" in process.stdout.readline()
    gate.says_ready("1\n")
    output, _ = process.communicate(timeout=10)
    assert "all 1 hosts answer" in output


def test_without_a_word_of_the_operator_all_hosts_answering_is_enough(gate: Gate) -> None:
    gate.hosts({"w0": [], "w1": []})
    gate.says_ready("0")
    said = gate.run(unasked=0)
    assert said[0] == "waiting until the operator has seen every worker Ready"
    assert said[-1].startswith("all 2 hosts answer")


def test_without_a_word_of_the_operator_one_host_missing_keeps_the_gate_closed(gate: Gate) -> None:
    hosts = {f"w{number}": [f"always {REFUSED}"] for number in range(20)}
    gate.hosts(hosts)
    gate.says_ready("")
    process = gate.start(unasked=0, patience=0)
    eventually(lambda: len(gate.calls()) == 16)
    gate.look_around()
    assert process.poll() is None
    assert len(gate.calls()) == 16, "after a batch without an answer, the others are not asked for"
    process.terminate()
    process.communicate(timeout=5)


def test_hosts_that_never_answer_are_left_to_mpirun(gate: Gate) -> None:
    gate.hosts({"w0": [], "w1": [f"always {REFUSED}"]})
    said = gate.run(patience=1)
    assert said[-1] == "1 hosts have not answered for 1 s; leaving the rest to mpirun: w1"
    told = (gate.path / "last-words").read_text()
    assert told.startswith("1 workers have not answered for 1 s. w1: ")
    hint = "does sshd of their image listen on the port that ssh asks for?"
    assert told.endswith(f"ssh: connect to host w port 22: Connection refused: {hint}\n"), "ssh's last line, without its carriage return"


def test_a_host_that_does_not_know_the_launcher_is_asked_until_it_does(gate: Gate) -> None:
    gate.question = f"getent hosts {OWN_HOST}"
    gate.hosts({"w0": [REFUSED, "2", "2"], "w1": ["127 sh: getent: not found"]})
    said = gate.run()
    assert sorted(gate.calls()) == [f"w0 {gate.question}"] * 4 + [f"w1 {gate.question}"]
    assert said[-1].startswith("all 2 hosts answer after")


def test_a_host_that_never_knows_the_launcher_is_left_to_mpirun(gate: Gate) -> None:
    gate.question = f"getent hosts {OWN_HOST}"
    gate.hosts({"w0": ["2"] * 100})
    assert gate.run(patience=1)[-1] == "1 hosts have not answered for 1 s; leaving the rest to mpirun: w0"
    told = (gate.path / "last-words").read_text()
    assert told.endswith(f"w0: does not know {OWN_HOST}: does it ask the name server of the cluster?\n")


def test_a_two_is_an_answer_where_no_name_was_asked_for(gate: Gate) -> None:
    gate.hosts({"w0": ["2"]})
    gate.run()
    assert gate.calls() == ["w0 true"]


def test_last_words_that_cannot_be_written_stop_nothing(gate: Gate) -> None:
    gate.hosts({"w0": [f"always {REFUSED}"]})
    (gate.path / "last-words").mkdir()
    assert gate.run(patience=1)[-1].startswith("1 hosts have not answered")


def test_hosts_added_meanwhile_are_waited_for_and_removed_ones_forgotten(gate: Gate) -> None:
    gate.hosts({"w0": [], "w1": [f"always {REFUSED}"]})
    process = gate.start()
    eventually(lambda: gate.calls().count("w1 true") >= 2)
    gate.hosts({"w0": [], "w2": [REFUSED]})
    output, _ = process.communicate(timeout=10)
    assert "all 2 hosts answer" in output
    assert gate.calls().count("w0 true") == 1
    assert gate.calls().count("w2 true") == 2


def test_an_image_without_ssh_waits_for_the_operator_only(gate: Gate) -> None:
    gate.hosts({"w0": [REFUSED]})
    (gate.path / "bin" / "ssh").unlink()
    assert gate.run() == ["there is no ssh in this image: not looking whether the workers answer"]


def test_without_a_hostfile_there_is_nothing_to_wait_for(gate: Gate) -> None:
    (gate.path / "hostfile").unlink()
    assert gate.run() == [f"there is no {gate.path}/hostfile to wait for"]


def test_a_sleep_without_fractions_will_do(gate: Gate) -> None:
    gate.program("sleep", '#!/bin/sh\necho "$1" >>"$STATE/slept"\ncase $1 in *.*) echo "invalid number" >&2; exit 1 ;; esac\n')
    gate.hosts({"w0": [REFUSED]})
    said = gate.run()
    assert said[-1].startswith("all 1 hosts answer")
    assert not any("invalid" in line for line in said)
    assert (gate.path / "slept").read_text().split() == ["0.2", "1"]


def test_the_pause_between_rounds_grows_to_two_seconds(gate: Gate) -> None:
    gate.program("sleep", '#!/bin/sh\necho "$1" >>"$STATE/slept"\n')
    gate.hosts({"w0": [REFUSED] * 7})
    gate.run()
    assert (gate.path / "slept").read_text().split() == ["0.2", "0.3", "0.5", "0.8", "1.2", "2", "2"]


def test_the_probe_goes_the_way_of_mpirun(gate: Gate) -> None:
    gate.hosts({"w0": []})
    gate.environment |= {"OMPI_MCA_plm_rsh_args": "-p 2222", "PRTE_MCA_plm_ssh_args": "-F /etc/mpi/ssh_config *"}
    gate.run()
    assert " ".join((gate.path / "arguments").read_text().splitlines()) == (
        "-n -o BatchMode=yes -o ConnectTimeout=5 -o ConnectionAttempts=1 -p 2222 -F /etc/mpi/ssh_config *"
    )


@pytest.mark.parametrize("phase", ["gate", "probe", "pause"])
def test_sigterm_ends_it_at_once(gate: Gate, phase: str) -> None:
    gate.hosts({"w0": [f"always {REFUSED}"]})
    gate.program("sleep", f'#!/bin/sh\necho "$1" >>"$STATE/slept"\nexec {SLEEP} 60\n')
    if phase == "gate":
        gate.says_ready("0")
    if phase == "probe":
        gate.program("ssh", f'#!/bin/sh\necho "$*" >>"$STATE/calls"\nexec {SLEEP} 60\n')
    process = gate.start()
    if phase == "gate":
        assert process.stdout is not None
        process.stdout.readline()
    else:
        eventually((gate.path / "slept").exists if phase == "pause" else lambda: bool(gate.calls()))
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 143
    assert process.stdout is not None
    process.stdout.close()


def test_as_process_1_it_ends_on_sigterm(gate: Gate) -> None:
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("making a process namespace needs root and unshare")
    gate.hosts({"w0": []})
    gate.says_ready("0")
    gate.shell = ["unshare", "--pid", "--fork", "--kill-child=KILL", shutil.which(gate.shell[0]) or "", *gate.shell[1:]]
    process = gate.start()
    assert process.stdout is not None
    process.stdout.readline()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    first = int(children.read_text().split()[0])
    os.kill(first, signal.SIGTERM)
    assert process.wait(timeout=2) == 143
    process.stdout.close()


def test_the_kubelet_finds_no_reference_to_expand_in_the_script() -> None:
    assert "$$" not in SCRIPT
    for reference in re.findall(r"\$\(([^)]*)\)", SCRIPT):
        assert re.search(r"[^A-Za-z0-9_.-]", reference), f"an environment variable could be called {reference}"
