"""The page docs/reference/labels.md: names, labels and annotations, as the operator's own functions make them."""

from collections.abc import Iterable
from typing import Any

from mpiop.api import annotations
from mpiop.api import constants as c
from mpiop.api.names import worker_name
from mpiop.api.parse import parse_mpijob
from mpiop.controller import names

_HEAD = """# Names, labels and annotations

<!-- Made by hack/generate from src/mpiop/api/annotations.py and src/mpiop/controller/names.py; edit those. -->

They are those of Kubeflow's operator, so scripts, dashboards and Kueue find what they look for. All objects are in the namespace of the job
and owned by it.

## Names

| object | of a job called `pi` |
|---|---|
"""
_LABELS = """
## Labels

| label | Service, ConfigMap, Secret, launcher Job | launcher Pod | worker Pod 1 |
|---|---|---|---|
"""
_LABELS_FOOT = """
With `runLauncherAsWorker` the launcher is replica 0, and worker *i* is replica *i* + 1. All Pods of a job:
`kubectl get pods -l training.kubeflow.org/job-name=pi`; with `training.kubeflow.org/job-role=launcher` or `worker` those of one role.

Labels of the templates reach the Pods as well. Of an MPIJob itself the operator reads one: `{queue}`, Kueue's queue, for
the state `Queued`.
"""
_ANNOTATIONS = """
## Annotations of our own

You set those on an MPIJob; the others are for the operator and may change.

| annotation | where, and what for | valid values, for example |
|---|---|---|
"""
_FOOT = """
[`kubectl mpi`](../kubectl-mpi.md) sets `mpiop.kubeflow.org/output: tagged` on its jobs, whose `mpirun` names the rank of each line.
Annotations of gang schedulers are in [gang-scheduling.md](../gang-scheduling.md).
"""


def labels_page() -> str:
    """Return the text of the page."""
    pod: dict[str, Any] = {"template": {"spec": {"containers": [{"image": "pi"}]}}}
    job = parse_mpijob({
        "apiVersion": c.API_VERSION,
        "kind": c.KIND,
        "metadata": {"name": "pi", "namespace": "default", "uid": "1"},
        "spec": {"mpiReplicaSpecs": {c.LAUNCHER: pod, c.WORKER: {"replicas": 2, **pod}}},
    })
    named = {
        "Service, PodGroup": names.service_name(job),
        "ConfigMap": names.config_map_name(job),
        "Secret": names.secret_name(job),
        "launcher Job": names.launcher_name(job),
        "launcher Pod": f"{names.launcher_name(job)}-xxxxx",
        "worker Pods": ", ".join(names.worker_names(job)),
        "host name of a worker": names.host(job, worker_name(job.name, 0), ""),
    }
    columns = (names.child_labels(job), names.pod_labels(job, c.ROLE_LAUNCHER), names.pod_labels(job, c.ROLE_WORKER, worker=1))
    labels = list(dict.fromkeys(label for column in columns for label in column))
    return "".join([
        _HEAD,
        *(_line(kind, f"`{name}`") for kind, name in named.items()),
        _LABELS,
        *(
            f"| `{label}` | " + " | ".join(f"`{column[label]}`" if label in column else "" for column in columns) + " |\n"
            for label in labels
        ),
        _LABELS_FOOT.format(queue=c.LABEL_QUEUE),
        _ANNOTATIONS,
        *(_line(f"`{row.name}`", f"On {row.where}: {row.help}", _texts(row.examples)) for row in annotations.JOB_ANNOTATIONS),
        *(_line(f"`{row.name}`", f"On {row.where}: {row.help}", "") for row in names.ANNOTATIONS),
        _FOOT,
    ])


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _texts(examples: Iterable[str]) -> str:
    return ", ".join(f"`{text}`" for text in examples)
