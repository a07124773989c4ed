"""What one wants to see when a test on a cluster failed."""

from pathlib import Path

from e2e.kubectl import Kubectl

KINDS = "mpijobs,jobs,pods,services,configmaps,events"  # no Secrets: this may end in a CI log
SHOWN = {
    "overview.txt": ("get", "mpijobs,jobs,pods,services,configmaps", "-o", "wide"),
    "events.txt": ("get", "events", "--sort-by=.lastTimestamp"),
    "objects.yaml": ("get", KINDS, "-o", "yaml"),
    "pods.txt": ("describe", "pods"),
    "logs.txt": ("logs", "-l", "training.kubeflow.org/operator-name=mpi-operator", "--all-containers", "--prefix", "--tail=-1"),
}


def write_diagnosis(folder: Path, namespace: Kubectl) -> None:
    """Write objects, events and logs of `namespace` and of the operator into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, arguments in SHOWN.items():
        _write(folder / file, namespace, arguments)
    operator = namespace.within("mpi-operator")
    _write(folder / "operator.log", operator, ("logs", "-l", "app=mpi-operator", "--prefix", "--tail=-1"))
    _write(folder / "operator-pods.txt", operator, ("describe", "pods"))


def _write(file: Path, kubectl: Kubectl, arguments: tuple[str, ...]) -> None:
    ended = kubectl.attempt(*arguments)
    file.write_text(ended.stdout + ended.stderr, encoding="utf-8")
