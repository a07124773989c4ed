"""Random MPIJobs: by the schema of the CRD, good ones with a few fields changed by it, and good ones with anything anywhere."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from demonstration.cluster import ROOT
from fuzz.annotations import OWN_ANNOTATIONS
from fuzz.values import JSON, TEXTS, Schema, values

CRD = ROOT / "manifests" / "base" / "kubeflow.org_mpijobs.yaml"
CONTAINER = {"name": "mpi", "image": "localhost/none:1", "command": ["true"]}
ROLES = tuple(("mpiReplicaSpecs", role) for role in ("Launcher", "Worker"))
STARTS: tuple[tuple[str | int, ...], ...] = (
    (),
    ("runPolicy",),
    *ROLES,
    *((*role, "template", "spec") for role in ROLES),
    *((*role, "template", "spec", "containers", 0) for role in ROLES),
)
"""Where ways begin: most fields are in the Pod templates, but those elsewhere matter as much."""
DEEPER = 5
"""Of so many steps into a schema one ends the way."""


@dataclass(frozen=True, slots=True)
class Strange:
    """A job, and how it was made."""

    how: str
    job: dict[str, Any]


def good_job(name: str) -> dict[str, Any]:
    """Return a job that can be run."""
    roles = {"Launcher": {"template": _template()}, "Worker": {"replicas": 2, "template": _template()}}
    spec = {"runPolicy": {}, "mpiReplicaSpecs": roles}
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name}, "spec": spec}


def _template() -> dict[str, Any]:
    return {"spec": {"containers": [copy.deepcopy(CONTAINER)]}}


def random_jobs(count: int, number: int) -> list[Strange]:
    """Return about `count` jobs, the same ones for the same number."""
    found: list[Strange] = []

    @seed(number)
    @settings(max_examples=count, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strange_jobs())
    def collect(strange: Strange) -> None:
        found.append(strange)

    collect()
    for index, strange in enumerate(found):
        metadata = strange.job["metadata"]
        metadata["name"] = metadata["name"].replace("#", str(index))
    return found[:count]


@st.composite
def strange_jobs(draw: st.DrawFn) -> Strange:
    """Draw a job; `#` in its name stands for what makes it different from the others."""
    schema: Schema = _schema()["properties"]["spec"]
    job = good_job("j#")
    if draw(st.booleans()):
        # Its server is then the image's sshd, or ours where ssh is injected.
        del job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["command"]
    how = draw(st.sampled_from(("by the schema", "changed", "changed", "changed", "wrong", "named")))
    match how:
        case "by the schema":
            job["spec"] = draw(values(schema))
        case "changed":
            for _ in range(draw(st.integers(1, 3))):
                _put(job["spec"], *draw(places(schema, wrong=False)))
        case "wrong":
            for _ in range(draw(st.integers(1, 2))):
                _put(job["spec"], *draw(places(schema, wrong=True)))
        case _:
            job["metadata"] = draw(metadata())
    if draw(st.booleans()):
        job["metadata"].setdefault("annotations", {}).update(draw(OWN_ANNOTATIONS))
    return Strange(how, job)


@st.composite
def metadata(draw: st.DrawFn) -> dict[str, Any]:
    """Draw names at their limits, labels and annotations."""
    length = draw(st.sampled_from((1, 30, 43, 44, 49, 50, 53, 54, 55, 63, 64, 253)))
    name = draw(st.sampled_from(("j#", "j" * length + "#", "J#", "#", "j.#", "j-#-", "j#é", "j#/x")))
    drawn: dict[str, Any] = {"name": name}
    for field in draw(st.lists(st.sampled_from(("labels", "annotations")), max_size=2)):
        drawn[field] = draw(st.dictionaries(TEXTS, TEXTS, max_size=3))
    return drawn


@st.composite
def places(draw: st.DrawFn, schema: Schema, *, wrong: bool) -> tuple[list[str | int], Any]:
    """Draw a way into an object of the schema, and a value for its end: one by the schema, unless anything will do."""
    path: list[str | int] = []
    for step in draw(st.sampled_from(STARTS)):
        path.append(step)
        schema = schema["items"] if step == 0 else schema["properties"][step]
    while True:
        if known := schema.get("properties"):
            name = draw(st.sampled_from(sorted(known)))
            path.append(name)
            schema = known[name]
        elif schema.get("type") == "array":
            path.append(0)
            schema = schema["items"]
        else:
            break
        if not draw(st.integers(0, DEEPER)):
            break
    return path, draw(JSON if wrong else values(schema))


def _put(into: Any, path: list[str | int], value: Any) -> None:
    """Put a value at the end of a path, making what is missing on the way; where something else is in the way, put it there."""
    for here, then in pairwise(path):
        empty: Any = [] if then == 0 else {}
        if isinstance(into, list):
            into[:1] = into[:1] or [empty]
            into = into[0]
        elif isinstance(into, dict):
            into = into.setdefault(here, empty)
        if not isinstance(into, list if then == 0 else dict):
            return
    if isinstance(into, list):
        into[:1] = [value]
    else:
        into[path[-1]] = value


@cache
def _schema() -> Mapping[str, Any]:
    definition = yaml.load(CRD.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    schema: Mapping[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema
