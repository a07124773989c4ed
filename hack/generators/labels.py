"""The page docs/reference/labels.md: names, labels and annotations, as the operator's own functions make them."""

from typing import Any

from mpiop.api import annotations
from mpiop.api import constants as c
from mpiop.api.names import worker_name
from mpiop.api.parse import parse_mpijob
from mpiop.controller import names

_HEAD = """# Names, labels and annotations

<!-- Made by hack/generate from src/mpiop/api/annotations.py and src/mpiop/controller/names.py; edit those. -->

Names and labels are the same as with Kubeflow's operator, so scripts, dashboards and Kueue keep working. The job owns all
objects, and they are in its namespace.

## Names

| object | name for a job called `pi` |
|---|---|
"""
_LABELS = """
## Labels

| label | Service, ConfigMap, Secret, launcher Job | launcher Pod | worker Pod 1 |
|---|---|---|---|
"""
_LABELS_FOOT = """
With `runLauncherAsWorker`, the launcher is replica 0, and worker *i* is replica *i* + 1.
`kubectl get pods -l training.kubeflow.org/job-name=pi` lists all Pods of a job. To list one role, add
`training.kubeflow.org/job-role=launcher` or `worker`.

The Pods also get the labels of their templates. The operator reads only one label of the MPIJob itself, `{queue}`. This
is Kueue's queue, and determines the state `Queued`.
"""
_ANNOTATIONS = """
## Annotations of our own

You set the annotations that are marked "On an MPIJob". The operator sets all others, and they may change.

| annotation | object and meaning | examples of valid values |
|---|---|---|
"""
_FOOT = """
[`kubectl mpi`](../kubectl-mpi.md) sets `mpiop.kubeflow.org/output: tagged` on jobs if their `mpirun` tags each line with its rank.
[Gang scheduling](../gang-scheduling.md) lists the annotations of gang schedulers.
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
        "Service, PodGroup": job.service_name,
        "ConfigMap": job.config_map_name,
        "Secret": job.secret_name,
        "launcher Job": job.launcher_name,
        "launcher Pod": f"{job.launcher_name}-xxxxx",
        "worker Pods": ", ".join(job.worker_names),
        "host name of a worker": job.host(worker_name(job.name, 0), ""),
    }
    columns = (names.child_labels(job.name), names.pod_labels(job, c.ROLE_LAUNCHER), names.pod_labels(job, c.ROLE_WORKER, worker=1))
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
        *(_annotation(row.name, row.where, row.help, *row.examples) for row in annotations.JOB_ANNOTATIONS),
        *(_annotation(row.name, row.where, row.help) for row in names.ANNOTATIONS),
        _FOOT,
    ])


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _annotation(name: str, where: str, meaning: str, *examples: str) -> str:
    return _line(f"`{name}`", f"On {where}: {meaning}", ", ".join(f"`{text}`" for text in examples))
