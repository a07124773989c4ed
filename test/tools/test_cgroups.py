"""Control groups: telling version 1 from 2, and what a group's folders are."""

from pathlib import Path

import pytest

from embedded.cgroups import Group, Hierarchies, group_name, parse_mounts
from embedded.errors import ClusterError

HYBRID = """\
25 1 0:5 / /dev rw,relatime - devtmpfs devtmpfs rw
30 25 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
34 30 0:30 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
UNIFIED = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


NAMED = "35 30 0:31 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"


@pytest.mark.parametrize(
    ("mountinfo", "unified", "mounts"),
    [
        pytest.param(UNIFIED, True, ("",), id="version 2 alone"),
        pytest.param(HYBRID, False, ("cpu", "memory", "pids", "unified"), id="version 1 with an empty version 2 beside it"),
        pytest.param(UNIFIED + NAMED, True, ("",), id="a named version 1 hierarchy (systemd's) does not make it version 1"),
    ],
)
def test_parse_mounts(mountinfo: str, mounts: tuple[str, ...], *, unified: bool) -> None:
    assert parse_mounts(mountinfo) == Hierarchies(unified, tuple(Path("/sys/fs/cgroup", name) for name in mounts))


@pytest.mark.parametrize(
    ("mountinfo", "missing"),
    [("25 1 0:5 / /dev rw - devtmpfs devtmpfs rw\n", "cpu, memory, pids"), (HYBRID.replace("rw,memory", "rw,net_cls"), "memory")],
    ids=["nothing is mounted", "one controller is missing"],
)
def test_a_machine_without_the_controllers_is_told_which(mountinfo: str, missing: str) -> None:
    with pytest.raises(ClusterError, match=f"no {missing} controller"):
        parse_mounts(mountinfo)


def test_two_clusters_of_one_name_in_two_state_folders_have_two_groups() -> None:
    names = {group_name(Path(folder)) for folder in ("/a/default", "/b/default", "/a/other")}
    assert len(names) == 3
    assert all(name.startswith(("mpiop-default-", "mpiop-other-")) for name in names)


@pytest.fixture
def group(tmp_path: Path) -> Group:
    """A group in what looks like two version 1 hierarchies: a cpuset with values at its root, and one without any."""
    for name in ("cpuset", "memory"):
        (tmp_path / name).mkdir()
    (tmp_path / "cpuset" / "cpuset.cpus").write_text("0-1\n")
    (tmp_path / "cpuset" / "cpuset.mems").write_text("0\n")
    made = Group(Hierarchies(unified=False, mounts=(tmp_path / "cpuset", tmp_path / "memory")), "mpiop-x-1")
    made.create()
    return made


def test_create_makes_the_group_in_every_hierarchy(group: Group, tmp_path: Path) -> None:
    assert group.folders == [tmp_path / "cpuset" / "mpiop-x-1", tmp_path / "memory" / "mpiop-x-1"]
    assert all((folder / "components").is_dir() for folder in group.folders)


def test_processes_are_those_of_all_leaves_in_all_hierarchies(group: Group, tmp_path: Path) -> None:
    (tmp_path / "cpuset" / "mpiop-x-1" / "components" / "cgroup.procs").write_text("11\n12\n")
    pod = tmp_path / "memory" / "mpiop-x-1" / "kubepods" / "pod1"
    pod.mkdir(parents=True)
    (pod / "cgroup.procs").write_text("12\n13\n")
    assert group.processes() == {11, 12, 13}


def test_remove_names_the_folder_that_stays_busy(group: Group, tmp_path: Path) -> None:
    (tmp_path / "memory" / "mpiop-x-1" / "held").write_text("")  # a file keeps rmdir(2) from working, as a process does in a real one
    with pytest.raises(ClusterError, match=r"memory/mpiop-x-1 is still busy"):
        group.remove(deadline_seconds=0)


def test_delegation_of_version_2_asks_for_known_controllers_only(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids rdma misc\n")
    inner = tmp_path / "mpiop-x-1"
    inner.mkdir()
    (inner / "cgroup.controllers").write_text("cpu memory\n")
    Group(Hierarchies(unified=True, mounts=(tmp_path,)), "mpiop-x-1").create()
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +cpuset +memory +pids +io"
    assert (inner / "cgroup.subtree_control").read_text() == "+cpu +memory"


def test_a_hierarchy_that_cannot_be_used_says_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"cgroup.controllers: No such file.*--privileged"):
        Group(Hierarchies(unified=True, mounts=(tmp_path,)), "mpiop-x-1").create()
