"""What the machine must be, what the layout is, and what the command line takes."""

import io
import json
import os
import signal
from pathlib import Path

import pytest

from embedded import interrupts
from embedded.cli import build_parser
from embedded.errors import ClusterError
from embedded.images import pause_archive
from embedded.kubeconfig import render_kubeconfig
from embedded.layout import Layout, cache_folder, cluster_names, layout_of, state_folder
from embedded.machine import CAP_SYS_RESOURCE, check_system, has_capability
from embedded.progress import Progress
from embedded.record import read_record
from embedded.status import ClusterStatus, ComponentStatus


@pytest.mark.parametrize(
    ("system", "machine", "user", "sentence"),
    [
        ("Darwin", "arm64", 0, "needs Linux and this is Darwin"),
        ("Linux", "riscv64", 0, "this machine is riscv64"),
        ("Linux", "x86_64", 1000, "needs root .* sudo"),
    ],
    ids=["not Linux", "wrong architecture", "not root"],
)
def test_what_is_missing_is_said_in_one_sentence_with_a_way_out(system: str, machine: str, user: int, sentence: str) -> None:
    with pytest.raises(ClusterError, match=sentence) as caught:
        check_system(system, machine, user)
    assert "MPIOP_CLUSTER=current" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_root_on_linux_is_enough(machine: str) -> None:
    check_system("Linux", machine, 0)


@pytest.mark.parametrize(("mask", "capable"), [("000001ffffffffff", True), ("000001fffeffffff", False), ("0000000000000000", False)])
def test_has_capability(mask: str, capable: bool) -> None:  # noqa: FBT001 - a table
    assert has_capability(f"Name:\tx\nCapPrm:\t0\nCapEff:\t{mask}\n", CAP_SYS_RESOURCE) is capable


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a b", "../x", "x" * 31])
def test_a_name_that_cannot_be_a_host_name_is_refused(name: str) -> None:
    with pytest.raises(ClusterError, match="small letters"):
        layout_of(name)


def test_folders_follow_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MPIOP_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "mpiop" / "cluster"
    monkeypatch.setenv("MPIOP_CACHE", "/elsewhere")
    assert cache_folder() == Path("/elsewhere")
    monkeypatch.setenv("MPIOP_STATE", str(tmp_path / "state"))
    assert state_folder() == tmp_path / "state"


def test_only_state_folders_count_as_clusters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MPIOP_STATE", str(tmp_path / "state"))
    assert cluster_names() == []
    for name in ("one", "two", ".removed-three-77"):
        (tmp_path / "state" / name).mkdir(parents=True)
    (tmp_path / "state" / "one.lock").touch()
    assert cluster_names() == ["one", "two"]


@pytest.mark.parametrize("text", ["", "{", "{}", '{"options": {"no such": 1}, "index": 0, "programs": {}, "ready": true}'])
def test_a_record_that_is_not_whole_counts_as_none(text: str, tmp_path: Path) -> None:
    layout = Layout("x", tmp_path)
    layout.record.write_text(text)
    assert read_record(layout) is None


WELL = ComponentStatus("etcd", 7, "well")


@pytest.mark.parametrize(
    ("status", "well"),
    [
        (ClusterStatus("x", "up", components=(WELL,), nodes={"n": "Ready"}), True),
        (ClusterStatus("x", "up", components=(WELL, ComponentStatus("kubelet", None, "ended with 1"))), False),
        (ClusterStatus("x", "up", components=(WELL,), nodes={"n": "not Ready"}), False),
        (ClusterStatus("x", "down"), False),
    ],
    ids=["all is well", "a component ended", "a node is not Ready", "down"],
)
def test_well_means_everything(status: ClusterStatus, well: bool) -> None:  # noqa: FBT001 - a table
    assert status.well is well


def test_the_table_counts_simulated_nodes_instead_of_listing_them() -> None:
    table = ClusterStatus("x", "up", "https://a", (WELL,), {"mpiop-x": "Ready", "kwok-0": "Ready", "kwok-1": "not Ready"}).table()
    assert "1 of 2 simulated nodes Ready" in table
    assert "kwok-0" not in table
    assert "mpiop-x" in table


def test_a_kubeconfig_works_on_its_own(tmp_path: Path) -> None:
    for file in ("ca.crt", "admin.crt", "admin.key"):
        (tmp_path / file).write_text(file)
    config = json.loads(render_kubeconfig(tmp_path, "admin", "https://10.128.96.2:6443", "mpiop-x"))
    assert str(tmp_path) not in json.dumps(config)
    assert config["current-context"] == config["contexts"][0]["name"] == "mpiop-x"
    assert config["clusters"][0]["cluster"]["certificate-authority-data"] == "Y2EuY3J0"


def test_the_pause_archive_is_the_same_for_the_same_program() -> None:
    assert pause_archive(b"x", "a:1", "x86_64") == pause_archive(b"x", "a:1", "x86_64")
    assert b'"architecture": "arm64"' in pause_archive(b"x", "a:1", "aarch64")


@pytest.mark.parametrize("count", ["-1", "10001", "many"])
def test_a_senseless_number_of_simulated_nodes_is_refused(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_parser().parse_args(["up", "--kwok", count])
    assert "--kwok" in capsys.readouterr().err


def test_steps_off_a_terminal_are_plain_lines() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    progress.expect(2)
    with progress.step("build", "kwok ~110 s"):
        pass
    with pytest.raises(KeyError), progress.step("node"):
        raise KeyError
    first, second, third = stream.getvalue().splitlines()
    assert first == "[1/2] build … 0 s; left: kwok ~110 s"
    assert second.startswith("[1/2] build 0.")
    assert third.startswith("[2/2] node")
    assert third.endswith("failed")


def test_steps_on_a_terminal_are_one_live_line() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    progress = Progress(stream)
    progress.expect(1)
    with progress.step("build"):
        pass
    assert stream.getvalue().startswith("\r\033[K")
    assert stream.getvalue().count("\n") == 1


def test_an_interrupt_waits_for_what_must_be_done_whole() -> None:
    before = signal.getsignal(signal.SIGINT)
    sent: list[signal.Signals] = []

    def send(number: signal.Signals) -> None:
        os.kill(os.getpid(), number)
        sent.append(number)

    with pytest.raises(KeyboardInterrupt), interrupts.deferred():
        tuple(map(send, (signal.SIGINT, signal.SIGTERM)))
    assert sent == [signal.SIGINT, signal.SIGTERM]
    assert signal.getsignal(signal.SIGINT) is before
