"""The script that stands in for ssh, run for real, in virtual time."""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from example_children import build_worker_pod
from example_jobs import MPIRUN, PI, with_launcher
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.launcher_job import build_launcher_template
from mpiop.controller.objects.ssh_script import MARK

MOUNT = "/etc/mpi-hosts"
HOST = "pi-worker-0.pi.default.svc"
WAITING = f"waiting for {HOST}: no address for {{}} s; the operator publishes it once all workers are Ready\n"
BEGUN = 1000
"""What the clock shows when the script starts."""

# Prints its arguments, one call a line.
SSH = """
printf '[%s]' "$@"
echo
"""
# Moves the clock on; when it is due, in tenths of a second, the next file of addresses takes the place of the present one.
SLEEP = """
read -r now rest <clock
case $1 in
*.*) tenths=${1#*.} ;;
*) tenths=${1}0 ;;
esac
now=$((${now%.*}${now#*.} + tenths))
echo "$((now / 10)).$((now % 10)) 0.00" >clock
[ -e next ] || exit 0
read -r due <due
[ "$now" -lt "$due" ] || /bin/mv next mounted/addresses
"""
# Knows a name from a time on.
GETENT = """
read -r now rest <clock
read -r known <known
echo "$((${now%.*} - begun)) $2" >>lookups
[ "${now%.*}" -ge "$known" ]
"""


def shells() -> list[list[str]]:
    """Return the commands that run a script by a POSIX shell of this machine; one for each shell."""
    found: dict[tuple[Path | str, ...], list[str]] = {}
    for name, *flags in (["dash"], ["bash", "--posix"], ["busybox", "sh"], ["sh"]):
        if path := shutil.which(name):
            found.setdefault((Path(path).resolve(), *flags), [path, *flags])
    return list(found.values())


@dataclass(frozen=True)
class Run:
    """What a run of the script did.

    Attributes:
        calls: Arguments of each call of ssh.
        seconds: How long it took.
        lookups: Seconds after its start when it asked for a name.
        words: What it reported in the log of the pod.
    """

    returncode: int
    stdout: str
    stderr: str
    seconds: float
    lookups: list[int]
    words: list[str]

    @property
    def calls(self) -> list[list[str]]:
        return [line[1:-1].split("][") for line in self.stdout.splitlines()]

    @property
    def call(self) -> list[str]:
        """The arguments of the only call."""
        [call] = self.calls
        return call


@dataclass(frozen=True)
class Pod:
    """A directory that represents the file system of a pod; PATH leads to its programs and to nothing else."""

    root: Path
    shell: list[str]

    @property
    def message(self) -> Path:
        return self.root / "termination log"

    def install(self, program: str, body: str) -> None:
        path = self.root / "bin" / program
        path.write_text(f"#!/bin/sh\ncd {self.root}\nbegun={BEGUN}\n{body}")
        path.chmod(0o755)

    def publish(self, addresses: str, *, after_seconds: float = 0) -> None:
        """Put the addresses into the file, now or, as the kubelet does it, while the script waits."""
        (self.root / "due").write_text(f"{round((BEGUN + after_seconds) * 10)}\n")
        (self.root / ("next" if after_seconds else "mounted/addresses")).write_text(addresses)

    def know_names(self, *, after_seconds: int) -> None:
        (self.root / "known").write_text(f"{BEGUN + after_seconds}\n")

    def reset(self) -> tuple[Path, Path]:
        """Let the time begin again; return the files of the clock and of the lookups."""
        clock, lookups = self.root / "clock", self.root / "lookups"
        clock.write_text(f"{BEGUN}.0 0.00\n")
        lookups.write_text("")
        return clock, lookups

    def redirect_log(self, file: Path) -> None:
        """Let the launcher's standard error be that file."""
        (self.root / "log").rename(self.root / "pipe")
        (self.root / "log").symlink_to(file)

    def run(self, *arguments: str, stdin: str = "", path: str = "") -> Run:
        clock, lookups = self.reset()
        with self.reading_log() as read_log:
            done = subprocess.run(
                [*self.shell, "script", *arguments],
                cwd=self.root,
                env={"PATH": path} if path else self.environment,
                input=stdin,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            words = read_log()
        return Run(
            returncode=done.returncode,
            stdout=done.stdout.replace(str(self.root / "mounted"), MOUNT),
            stderr=done.stderr,
            seconds=round(float(clock.read_text().split()[0]) - BEGUN, 1),
            lookups=[int(line.split()[0]) for line in lookups.read_text().splitlines()],
            words=words,
        )

    @contextlib.contextmanager
    def reading_log(self) -> Iterator[Callable[[], list[str]]]:
        """Read the log of the pod, which is a pipe to the container's runtime."""
        log = os.open(self.root / "log", os.O_RDWR | os.O_NONBLOCK)

        def read() -> list[str]:
            with contextlib.suppress(BlockingIOError):
                return os.read(log, 65536).decode().splitlines()
            return []

        try:
            yield read
        finally:
            os.close(log)

    @property
    def environment(self) -> Mapping[str, str]:
        return {"PATH": str(self.root / "bin")}


def make_pod(root: Path, shell: list[str], script: str) -> Pod:
    (root / "bin").mkdir()
    (root / "mounted").mkdir()
    (root / "bin" / "cat").symlink_to("/bin/cat")
    script = script.replace(MOUNT, str(root / "mounted")).replace("/proc/uptime", str(root / "clock"))
    script = script.replace("log=/proc/1/fd/2", f"log='{root}/log'")
    script = re.sub(r"\bsleep (?=[\"0-9])", f"{root}/bin/sleep ", script)  # some shells have one of their own
    script = re.sub(r"^tools=.*", f"tools={root}/bin", script, flags=re.MULTILINE)
    (root / "script").write_text(script)
    os.mkfifo(root / "log")
    pod = Pod(root, shell)
    pod.install("ssh", SSH)
    pod.install("sleep", SLEEP)
    pod.install("getent", GETENT)
    pod.publish("")
    pod.know_names(after_seconds=300)  # so that a script that waits in vain ends, too
    pod.message.touch()  # as the kubelet makes it
    return pod


def with_message_at(path: Path, **fields: Any) -> dict[str, Any]:
    """Return the launcher's template with its termination message there."""
    [container] = MPIRUN["spec"]["containers"]
    return {"spec": {"containers": [{**container, "terminationMessagePath": str(path), **fields}]}}


def launcher_script(message: Path, **fields: Any) -> str:
    template = build_launcher_template(with_launcher(PI, with_message_at(message, **fields)), BuildOptions())
    script: str = template["metadata"]["annotations"]["mpiop.kubeflow.org/ssh"]
    return script


@pytest.fixture(params=shells(), ids=" ".join)
def shell(request: pytest.FixtureRequest) -> list[str]:
    """The shell that runs the script."""
    found: list[str] = request.param
    return found


@pytest.fixture
def launcher(tmp_path: Path, shell: list[str]) -> Pod:
    """A launcher whose addresses are not published yet, and whose names are not known for 300 s."""
    return make_pod(tmp_path, shell, launcher_script(tmp_path / "termination log"))


@pytest.fixture
def worker(tmp_path: Path, shell: list[str]) -> Pod:
    """A worker; names are not known for 300 s."""
    annotations = build_worker_pod(PI, 0, BuildOptions())["metadata"].get("annotations", {})
    return make_pod(tmp_path, shell, annotations["mpiop.kubeflow.org/ssh"])


def reached(address: str, host: str) -> list[str]:
    """Return the options by which ssh goes to the address and means the host."""
    return ["-o", f"HostName={address}", "-o", f"HostKeyAlias={host}"]


OURS = ["-F", f"{MOUNT}/ssh_config"]


@pytest.mark.parametrize(
    "host",
    [
        "pi-worker-1",
        "pi-worker-1.pi",
        "pi-worker-1.pi.default",
        "pi-worker-1.pi.default.svc",
        "pi-worker-1.pi.default.svc.cluster.local",
        "pi-worker-1.pi.default.svc.cluster.local.",
    ],
)
@pytest.mark.parametrize("user", ["", "mpiuser@"])
def test_all_names_of_a_worker_are_one_host(launcher: Pod, user: str, host: str) -> None:
    launcher.publish("0 10.0.0.1\n1 10.0.0.2\n11 10.0.0.12\n")
    run = launcher.run(f"{user}{host}", "true")
    assert run.call == [*reached("10.0.0.2", host), *OURS, f"{user}{host}", "true"]
    assert (run.seconds, run.lookups, run.words, run.stderr, run.returncode) == (0, [], [], "", 0)


def test_an_address_of_version_6(launcher: Pod) -> None:
    launcher.publish("0 fd00::a:1\n")
    assert launcher.run(HOST, "true").call == [*reached("fd00::a:1", HOST), *OURS, HOST, "true"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["-x", "-o", "ConnectionAttempts=10", HOST, "orted", "-mca", "ess", "env"],  # Open MPI 4
        ["-x", HOST, "/usr/bin/hydra_pmi_proxy", "--upstream-host", "10.0.0.9"],  # MPICH
        ["-q", "-x", HOST, "hydra_bstrap_proxy"],  # Intel MPI
        ["-oConnectionAttempts=10", "-p", "2222", "-l", "pi-worker-1", HOST, "true"],
        ["-xqp2222", HOST, "a  b;", "'c' \"$d\""],
        [HOST],
    ],
)
def test_the_host_is_found_behind_options_and_all_arguments_stay(launcher: Pod, arguments: list[str]) -> None:
    launcher.publish("0 10.0.0.1\n1 10.0.0.2\n")
    assert launcher.run(*arguments).call == [*reached("10.0.0.1", HOST), *OURS, *arguments]


@pytest.mark.parametrize("option", [["-F", "/my/config"], ["-F/my/config"], ["-xF", "/my/config"], ["-x", "-F", f"{MOUNT}/ssh_config"]])
def test_a_configuration_that_is_given_counts(launcher: Pod, option: list[str]) -> None:
    launcher.publish("0 10.0.0.1\n")
    assert launcher.run(*option, HOST, "prted").call == [*reached("10.0.0.1", HOST), *option, HOST, "prted"]
    assert launcher.run(*option, "elsewhere", "prted").call == [*option, "elsewhere", "prted"]


@pytest.mark.parametrize(
    "host",
    [
        "elsewhere.example.com",
        "10.0.0.7",
        "fd00::7",
        "pi-worker-0.other",
        "pi-worker-0.pi.other.svc",
        "pi-worker-0.pi.default.example.com",
        "pi-worker-x",
        "pi-worker-",
        "pi-worker-01",
        "pi-worker-0-launcher",
        "spi-worker-0",
        "pi-launcher-2",
        "pi-launcher.other",
    ],
)
def test_a_foreign_host_is_not_waited_for(launcher: Pod, host: str) -> None:
    run = launcher.run("-x", host, "true")
    assert run.call == [*OURS, "-x", host, "true"]
    assert (run.seconds, run.lookups, run.stderr) == (0, [], "")


@pytest.mark.parametrize("host", ["pi-launcher", "pi-launcher.pi.default.svc", "root@pi-launcher.pi"])
def test_the_launcher_reaches_itself_without_ssh(launcher: Pod, host: str) -> None:
    run = launcher.run("-x", "-o", "ConnectionAttempts=10", host, "echo", "a  b;", "echo $((1 + 1)); exit 4")
    assert (run.stdout, run.returncode) == ("a b\n2\n", 4)
    assert launcher.message.read_text() == "", "no worker was reached"


def test_input_output_and_exit_code_are_those_of_ssh(launcher: Pod) -> None:
    launcher.publish("0 10.0.0.1\n", after_seconds=2)
    launcher.install("ssh", "cat\nexit 3\n")
    run = launcher.run(HOST, "cat", stdin="for the program\n")
    assert (run.stdout, run.returncode) == ("for the program\n", 3)


def test_it_waits_for_the_address_and_says_so(launcher: Pod) -> None:
    launcher.publish("0 10.0.0.1\n1 10.0.0.2\n", after_seconds=42)
    run = launcher.run(HOST, "true")
    assert run.call == [*reached("10.0.0.1", HOST), *OURS, HOST, "true"]
    assert (run.seconds, run.lookups) == (42, [])
    assert [f"{line}\n" for line in run.words] == [WAITING.format(seconds) for seconds in (10, 20, 30, 40)]
    assert run.stderr == ""


def test_an_address_that_comes_soon_is_met_soon_and_without_words(launcher: Pod) -> None:
    launcher.publish("0 10.0.0.1\n", after_seconds=0.6)
    run = launcher.run(HOST, "true")
    assert (run.seconds, run.words) == (0.6, [])


def test_a_line_that_was_withdrawn_is_waited_for(launcher: Pod) -> None:
    launcher.publish("0 10.0.0.1\n1 10.0.0.2\n")
    assert launcher.run(HOST, "true").seconds == 0
    launcher.publish("1 10.0.0.2\n")
    launcher.publish("0 10.0.0.3\n1 10.0.0.2\n", after_seconds=15)
    run = launcher.run(HOST, "true")
    assert run.call == [*reached("10.0.0.3", HOST), *OURS, HOST, "true"]
    assert run.seconds == 15


def test_a_file_that_is_missing_is_waited_for(launcher: Pod) -> None:
    (launcher.root / "mounted" / "addresses").unlink()
    launcher.publish("0 10.0.0.1\n", after_seconds=3)
    assert launcher.run(HOST, "true").call[:2] == ["-o", "HostName=10.0.0.1"]


def test_without_an_address_the_name_is_looked_up_now_and_then(launcher: Pod) -> None:
    launcher.know_names(after_seconds=100)
    run = launcher.run("-x", HOST, "true")
    assert run.lookups == [60, 95, 130], "name servers remember for 30 s that a name was unknown"
    assert run.call == [*OURS, "-x", HOST, "true"]


def test_an_address_that_comes_between_two_lookups_counts(launcher: Pod) -> None:
    launcher.publish("0 10.0.0.1\n", after_seconds=70)
    run = launcher.run(HOST, "true")
    assert (run.lookups, run.seconds) == ([60], 70)
    assert run.call[:2] == ["-o", "HostName=10.0.0.1"]


def test_without_getent_ssh_has_to_try_it(launcher: Pod) -> None:
    (launcher.root / "bin" / "getent").unlink()
    run = launcher.run(HOST, "true")
    assert run.call == [*OURS, HOST, "true"]
    assert run.seconds == 60


@pytest.mark.parametrize(("known_after", "lookups"), [(0, [0]), (20, [0, 35])])
def test_too_many_workers_to_publish_are_found_by_name(launcher: Pod, known_after: int, lookups: list[int]) -> None:
    launcher.publish("by-name\n")
    launcher.know_names(after_seconds=known_after)
    run = launcher.run(HOST, "true")
    assert run.call == [*OURS, HOST, "true"]
    assert run.lookups == lookups


def test_by_name_is_heard_while_it_waits(launcher: Pod) -> None:
    launcher.publish("by-name\n", after_seconds=20)
    launcher.know_names(after_seconds=10)
    assert launcher.run(HOST, "true").lookups == [20]


@pytest.mark.parametrize("after_seconds", [0, 12])
def test_a_worker_that_has_ended_is_not_waited_for(launcher: Pod, after_seconds: int) -> None:
    launcher.publish("0 ended\n1 10.0.0.2\n", after_seconds=after_seconds)
    run = launcher.run(HOST, "true")
    assert (run.calls, run.returncode, run.seconds) == ([], 255, after_seconds)
    assert HOST in run.words[-1]
    assert "ended" in run.words[-1]


def test_a_worker_that_was_scaled_away_is_not_waited_for(launcher: Pod) -> None:
    launcher.publish("workers 2\n1 10.0.0.2\n")
    other = HOST.replace("worker-0", "worker-2")
    run = launcher.run(other, "true")
    assert (run.calls, run.returncode, run.seconds) == ([], 255, 60)
    assert run.words[-1] == f"waiting for {other}: the job has no such worker any more"
    launcher.publish("workers 2\n0 10.0.0.1\n", after_seconds=70)
    assert launcher.run(HOST, "true").seconds == 70, "one of the two that is replaced is waited for"


def test_it_leaves_its_mark_once(launcher: Pod) -> None:
    launcher.publish("0 10.0.0.1\n")
    for host in (HOST, HOST, "elsewhere"):
        launcher.run(host, "true")
    assert launcher.message.read_text() == f"{MARK}\n"


def test_several_at_once_leave_one_mark(launcher: Pod) -> None:
    launcher.publish("0 10.0.0.1\n")
    stop = 'exec 3>&1; echo() { printf "stopped\\n" >&3; read go; printf "%s\\n" "$*"; }; . ./script'
    command = [*launcher.shell, "-c", stop, "script", HOST]
    with contextlib.ExitStack() as stack:
        callers = [
            stack.enter_context(
                subprocess.Popen(command, cwd=launcher.root, env=launcher.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            for _ in range(3)
        ]
        for caller in callers:
            assert caller.stdout is not None
            assert caller.stdout.readline() == b"stopped\n", "it found no mark yet"
        for caller in callers:
            assert caller.stdin is not None
            caller.stdin.close()  # lets it go
    assert launcher.message.read_text() == f"{MARK}\n"


def test_a_message_of_the_program_stays(launcher: Pod) -> None:
    launcher.publish("0 10.0.0.1\n")
    launcher.message.write_text("my own")
    launcher.run(HOST, "true")
    assert launcher.message.read_text() == "my own"


def test_a_message_that_cannot_be_written_stops_nothing(tmp_path: Path, shell: list[str]) -> None:
    launcher = make_pod(tmp_path, shell, launcher_script(tmp_path / "termination log" / "nowhere"))
    launcher.publish("0 10.0.0.1\n")
    run = launcher.run(HOST, "true")
    assert len(run.calls) == 1
    assert run.stderr == ""


def test_it_leaves_no_mark_where_the_end_of_the_log_is_to_be_the_message(tmp_path: Path, shell: list[str]) -> None:
    script = launcher_script(tmp_path / "termination log", terminationMessagePolicy="FallbackToLogsOnError")
    launcher = make_pod(tmp_path, shell, script)
    launcher.publish("0 10.0.0.1\n")
    assert launcher.run(HOST, "true").call[:2] == ["-o", "HostName=10.0.0.1"]
    assert launcher.message.read_text() == ""


def test_on_a_worker_it_waits_for_the_name_alone(worker: Pod) -> None:
    worker.know_names(after_seconds=7)
    run = worker.run("-x", HOST, "orted")
    assert run.call == [*OURS, "-x", HOST, "orted"]
    assert run.seconds == 8
    assert worker.message.read_text() == ""


def test_on_a_worker_it_waits_for_a_minute_at_most(worker: Pod) -> None:
    run = worker.run("-F", "/my/config", "user@pi-worker-3", "prted")
    assert run.call == ["-F", "/my/config", "user@pi-worker-3", "prted"]
    assert run.seconds == 60


@pytest.mark.parametrize("host", ["10.0.0.1", "fd00::1", "fd00::a", "elsewhere.example.com", "pi-launcher.pi.default.svc"])
def test_on_a_worker_it_does_not_wait_for_others(worker: Pod, host: str) -> None:
    run = worker.run(host, "true")
    assert run.call == [*OURS, host, "true"]
    assert run.seconds == 0


@pytest.mark.parametrize(("program", "lookups"), [("getent", []), ("sleep", [0])])
def test_on_a_worker_without_a_program_that_it_needs_ssh_has_to_try_it(worker: Pod, program: str, lookups: list[int]) -> None:
    (worker.root / "bin" / program).unlink()
    run = worker.run(HOST, "true")
    assert (run.call, run.seconds, run.lookups) == ([*OURS, HOST, "true"], 0, lookups)


def test_where_it_cannot_write_into_the_log_of_the_pod_it_speaks_on_stderr(launcher: Pod) -> None:
    script = launcher.root / "script"
    script.write_text(script.read_text().replace(str(launcher.root / "log"), str(launcher.root / "nowhere" / "log")))
    launcher.publish("0 10.0.0.1\n1 10.0.0.2\n", after_seconds=15)
    run = launcher.run(HOST, "true")
    assert run.stderr == WAITING.format(10)


def test_it_never_opens_a_file_of_the_users_again(launcher: Pod) -> None:
    """`mpirun >run.log 2>&1`: opened again, the file has a second position, where lines overwrite those of the program."""
    launcher.publish("0 10.0.0.1\n", after_seconds=25)
    launcher.install("ssh", "echo the program runs\n")
    log = launcher.root / "run.log"
    launcher.redirect_log(log)
    launcher.reset()
    with log.open("w") as output:
        print("run 4711 begins", file=output, flush=True)
        subprocess.run(
            [*launcher.shell, "script", HOST], cwd=launcher.root, env=launcher.environment, stdout=output, stderr=output, check=True
        )
        print("run 4711 ends", file=output)
    waits = "".join(WAITING.format(seconds) for seconds in (10, 20))
    assert log.read_text() == f"run 4711 begins\n{waits}the program runs\nrun 4711 ends\n"


def test_a_file_that_the_launcher_alone_writes_to_stays_as_it_is(launcher: Pod) -> None:
    launcher.publish("0 10.0.0.1\n", after_seconds=15)
    file = launcher.root / "metrics"
    launcher.redirect_log(file)
    file.write_text("loss=0.1\n")
    assert launcher.run(HOST, "true").stderr == WAITING.format(10)
    assert file.read_text() == "loss=0.1\n"


def test_it_finds_its_own_programs_though_the_users_PATH_lacks_them(launcher: Pod) -> None:
    """As in an image whose /bin is not a link to /usr/bin, with `PATH=/opt/mpi/bin:/usr/bin`."""
    launcher.publish("0 10.0.0.1\n", after_seconds=3)
    (launcher.root / "usr-bin").mkdir()
    launcher.install("ssh", 'echo "[$PATH]"\n')
    (launcher.root / "bin" / "ssh").rename(launcher.root / "usr-bin" / "ssh")
    path = str(launcher.root / "usr-bin")
    run = launcher.run(HOST, "true", path=path)
    assert run.calls == [[path]], "ssh and the user's program have the PATH that the user gave them"
    assert (run.seconds, run.words, run.stderr) == (3, [], "")


@pytest.mark.parametrize("program", ["sleep", "cat"])
def test_without_a_program_that_it_needs_it_stops_with_its_name(launcher: Pod, program: str) -> None:
    (launcher.root / "bin" / program).unlink()
    run = launcher.run(HOST, "true")
    [message] = run.words
    assert f"the image has no {program}" in message
    assert (run.calls, run.returncode, run.seconds) == ([], 255, 0)


def test_a_sleep_that_fails_stops_it(launcher: Pod) -> None:
    launcher.install("sleep", "exit 1\n")
    run = launcher.run(HOST, "true")
    assert run.words == [f"waiting for {HOST}: cannot wait, because sleep fails"]
    assert (run.calls, run.returncode) == ([], 255)
