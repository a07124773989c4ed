"""The demo: which cluster and image it takes, what it shows of a job, and how it fails."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from demonstration import cluster, following, operator_images, story
from demonstration.cluster import Cluster, current_cluster
from demonstration.loading import Loader
from demonstration.screen import DemoError, Screen

Install = Callable[[str, str], Path]
JOB_LINES = r"""
Created|True|MPIJob default/pi is created.
Created|True|MPIJob default/pi is created.
Running|True|MPIJob default/pi is running.
Created|True|MPIJob default/pi is created.
"""


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in operator_images.SETTINGS:
        monkeypatch.delenv(name, raising=False)


def cluster_of(ending: str, install: Install) -> Cluster:
    """Return a cluster whose kubectl prints a job as a watch does."""
    lines = "".join(f"printf 'condition|{line}\\n'; " for line in [*JOB_LINES.split("\n"), ending] if line)
    install("kubectl", f'case "$*" in *mpijob*) {lines};; *) printf "Pod|pi-worker-0|Running|\\n";; esac\nexec /bin/sleep 60')
    return Cluster(is_current=False, environment=dict(os.environ))


@pytest.mark.parametrize("ending", ["Succeeded", "Failed"])
def test_a_job_is_shown_until_its_end_each_change_once(ending: str, install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    assert following.follow(cluster_of(rf"{ending}|True|the end", install), Screen(steps=1), "pi") == ending
    shown = [line.split(" s  ")[1].split() for line in capsys.readouterr().out.splitlines() if "condition" in line]
    assert [words[1] for words in shown] == ["Created", "Running", ending]


def test_a_job_without_end_is_given_up_with_a_hint(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "WAIT_SECONDS", 0.2)
    with pytest.raises(DemoError, match="kubectl describe mpijob pi"):
        following.follow(cluster_of(r"Succeeded|False|not yet", install), Screen(steps=1), "pi")


def test_the_users_cluster_is_never_taken_by_accident(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/somewhere")
    monkeypatch.delenv("MPIOP_CLUSTER", raising=False)
    assert cluster.is_current_desired() is False
    monkeypatch.setenv("MPIOP_CLUSTER", "current")
    assert cluster.is_current_desired() is True


def test_an_unknown_cluster_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MPIOP_CLUSTER", "mine")
    assert story.main([]) == 1
    assert capsys.readouterr().err.strip().splitlines() == [
        "demo: MPIOP_CLUSTER=mine: leave it out for an embedded cluster, or say current for the current kubeconfig context"
    ]


def test_unknown_arguments_show_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert story.main(["up"]) == 2
    assert capsys.readouterr().err == "usage: hack/demo [down]\n"


@pytest.mark.parametrize(
    ("name", "version", "desired"),
    [
        pytest.param("", "", "{repository}:{version}", id="what the manifest names"),
        pytest.param("registry.example.com/op", "", "registry.example.com/op:{version}", id="another repository"),
        pytest.param("registry.example.com:5000/op", "dev", "registry.example.com:5000/op:dev", id="another repository and tag"),
    ],
)
def test_the_image_for_the_users_cluster(name: str, version: str, desired: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGE_NAME", name)
    monkeypatch.setenv("RELEASE_VERSION", version)
    repository, _, tag = operator_images.named_image().rpartition(":")
    assert operator_images.desired_image() == desired.format(repository=repository, version=tag)


def test_a_kubectl_that_fails_is_quoted(install: Install) -> None:
    install("kubectl", "echo no such thing >&2\nexit 1")
    with pytest.raises(DemoError, match="kubectl get this failed: no such thing"):
        Cluster(is_current=False, environment=dict(os.environ)).kubectl("get", "this")


KIND, K3D = (
    f"""case "$*" in
"{listing}") printf '{clusters}';;
"{load} team-dev "*) printf '%s\\n' "$4" "$5" >>"$CALLS"
    [ "${{5##*/}}" != broken.tar ] || {{ echo no space left >&2; exit 1; }};;
*) exit 2;;
esac"""
    for listing, clusters, load in (
        ("get clusters", r"other\nteam-dev\n", "load image-archive --name"),
        ("cluster list --no-headers", r"other 1/1 0/0 true\nteam-dev   1/1   0/0   true\n", "image import --cluster"),
    )
)
"""Stand in for the programs: two clusters, and the command lines that load an archive into one of them."""


def of_context(context: str, install: Install) -> Cluster:
    """Return the user's cluster in a context."""
    install("kubectl", f'case "$*" in "config current-context") echo {context};; "get --raw /readyz") echo ok;; *) exit 1;; esac')
    return current_cluster(Screen(steps=1))


@pytest.mark.parametrize(("program", "script"), [("kind", KIND), ("k3d", K3D)])
def test_a_cluster_of_kind_or_k3d_gets_the_images_loaded(
    program: str, script: str, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = install(program, script)
    found = of_context(f"{program}-team-dev", install)
    assert operator_images.are_loaded(found)
    assert found.loader == Loader(program, "team-dev")
    found.loader.load(["/a/operator.tar", "/a/pi.tar"])
    assert loaded.read_text("utf-8").split() == ["team-dev", "/a/operator.tar", "team-dev", "/a/pi.tar"]
    with pytest.raises(DemoError, match=f"{program} could not load broken.tar into the cluster team-dev: no space left"):
        found.loader.load(["/a/broken.tar"])
    monkeypatch.setenv("IMAGE_NAME", "registry.example.com/op")
    assert not operator_images.are_loaded(found)


@pytest.mark.parametrize(
    ("context", "installed"),
    [
        pytest.param("production", ("kind", "k3d"), id="of another program"),
        pytest.param("kind-elsewhere", ("kind", "k3d"), id="a cluster that kind does not know"),
        pytest.param("k3d-elsewhere", ("kind", "k3d"), id="a cluster that k3d does not know"),
        pytest.param("kind-team-dev", ("k3d",), id="kind is not installed"),
        pytest.param("kind", ("kind", "k3d"), id="no name"),
    ],
)
def test_nothing_is_loaded_into_other_clusters(context: str, installed: tuple[str, ...], install: Install) -> None:
    for program in installed:
        install(program, {"kind": KIND, "k3d": K3D}[program])
    found = of_context(context, install)
    assert found.loader is None
    assert not operator_images.are_loaded(found)
