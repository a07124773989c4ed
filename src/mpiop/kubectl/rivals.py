"""`doctor --migrate`: the Deployments of other operators that serve MPIJobs, and the flags that they have."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mpiop.client.api import Api, Object
from mpiop.kubectl.finding import NOTE, OK, PROBLEM, Finding

_TRAINING, _MPI = "training-operator", "mpi-operator"
_OTHER_KINDS: Final = ("tfjob", "pytorchjob", "xgboostjob")
_MANIFESTS: Final[Mapping[str, str]] = {
    "mpi-operator": "kubectl apply -f deploy/v2beta1/mpi-operator.yaml",
    "kubeflow": "kubectl apply -k manifests/overlays/kubeflow",
}
"""How to replace a Deployment of the name `mpi-operator`, by its namespace."""

DIFFERENT_FLAGS: Final[Mapping[str, tuple[str, str]]] = {
    "kube-api-qps": ("also limits mpiop, which has no limit by default", "Omit it."),
    "kube-api-burst": ("also limits mpiop, which has no limit by default", "Omit it."),
    "threadiness": ("is not needed: mpiop processes 16 MPIJobs at the same time by default", "Omit it."),
    "kubeConfig": ("has priority over $KUBECONFIG in mpiop", "Set only one of them."),
    "vmodule": ("has no effect in mpiop", "Use --log-level=debug."),
    "stderrthreshold": ("has no effect in mpiop", "Use --log-level."),
    "log_dir": ("has no effect in mpiop, which logs to stderr", "Read its log with kubectl logs."),
    "log_file": ("has no effect in mpiop, which logs to stderr", "Read its log with kubectl logs."),
}
"""Flags of Kubeflow's MPI operator that mean something else to mpiop: what differs, and what to do."""
_OURS_TOO: Final = {"lock-namespace", "alsologtostderr", "logtostderr", "monitoring-port"}
"""Flags that mpiop's manifest has as well, or that make no difference."""
_TRAINING_FLAGS: Final[Mapping[str, str]] = {"gang-scheduler-name": "gang-scheduling", "namespace": "namespace"}
"""Flags of the Training Operator that jobs depend on, and how mpiop calls them."""


def other_operators(api: Api) -> Iterator[Finding]:
    """Yield the operators that serve MPIJobs and are not mpiop."""
    found = False
    for deployment in api.get("/apis/apps/v1/deployments")["items"]:
        if deployment["spec"].get("replicas", 1) == 0:
            continue
        if _is_of(deployment, _TRAINING):
            found = True
            yield from _training_operator(deployment)
        elif _is_of(deployment, _MPI) and not _is_ours(deployment):
            found = True
            yield from _mpi_operator(deployment)
    if not found:
        yield Finding(OK, "no other operator serves MPIJobs")


def _container(deployment: Object) -> Mapping[str, Any]:
    container: Mapping[str, Any] = deployment["spec"]["template"]["spec"]["containers"][0]
    return container


def _is_of(deployment: Object, operator: str) -> bool:
    """Return whether a Deployment has the name or the image of an operator."""
    image = _container(deployment).get("image", "").rpartition("/")[2].partition("@")[0].partition(":")[0]
    return operator in {deployment["metadata"]["name"], image}


def _is_ours(deployment: Object) -> bool:
    """Return whether it has a probe that only mpiop serves."""
    return bool(_container(deployment).get("readinessProbe", {}).get("httpGet", {}).get("path") == "/readyz")


def _training_operator(deployment: Object) -> Iterator[Finding]:
    name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
    flags = flags_of(_container(deployment))
    schemes = [value.lower() for flag, value in flags if flag == "enable-scheme"]
    if schemes and "mpijob" not in schemes:
        yield Finding(OK, f"Deployment {name} in namespace {namespace}, a Training Operator, does not watch MPIJobs")
    else:
        advice = f"Add --enable-scheme for each other kind to its args: {', '.join(f'--enable-scheme={kind}' for kind in _OTHER_KINDS)}"
        yield Finding(PROBLEM, f"Deployment {name} in namespace {namespace}, a Training Operator, watches MPIJobs", advice)
    for flag, value in flags:
        if flag in _TRAINING_FLAGS:
            ours = f"--{_TRAINING_FLAGS[flag]}={value}"
            yield Finding(NOTE, f"Deployment {name} in namespace {namespace} has the flag --{flag}={value}", f"Set it for mpiop: {ours}")


def _mpi_operator(deployment: Object) -> Iterator[Finding]:
    name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
    text = f"Deployment {name} in namespace {namespace} is Kubeflow's MPI operator"
    if name == _MPI and namespace in _MANIFESTS:
        yield Finding(NOTE, f"{text}, which mpiop's manifest replaces", f"Replace it: {_MANIFESTS[namespace]}")
    else:
        advice = f"Delete it before you install mpiop: kubectl --namespace {namespace} delete deployment {name}"
        yield Finding(PROBLEM, f"{text}, which no manifest of mpiop replaces", advice)
    kept: list[str] = []
    for flag, value in flags_of(_container(deployment)):
        written = f"--{flag}={value}" if value else f"--{flag}"
        if flag in DIFFERENT_FLAGS:
            difference, advice = DIFFERENT_FLAGS[flag]
            yield Finding(NOTE, f"its flag {written} {difference}", advice)
        elif flag not in _OURS_TOO:
            kept.append(written)
    if kept:
        yield Finding(
            NOTE,
            f"mpiop's manifest does not have its flags {' '.join(kept)}",
            "Set them in args of your overlay, or in flags of the chart.",
        )


def flags_of(container: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Return the flags of a container with their values, as Go reads them, except that a boolean never has a separate value."""
    arguments: Sequence[str] = [*(container.get("command") or ()), *(container.get("args") or ())]
    flags: list[tuple[str, str]] = []
    for argument in arguments:
        if argument.startswith("-"):
            name, _, value = argument.lstrip("-").partition("=")
            flags.append((name, value))
        elif flags and not flags[-1][1]:
            flags[-1] = (flags[-1][0], argument)
    return flags
