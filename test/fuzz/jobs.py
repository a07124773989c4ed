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
from fuzz.annotations import OWN_ANNOTATIONS, hostile_annotations
from fuzz.sizes import deep, long_text, wide_list, wide_map
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
UNKNOWN = "novel"
FREE: tuple[tuple[str | int, ...], ...] = (
    (UNKNOWN,),
    ("metadata", UNKNOWN),
    ("metadata", "annotations", UNKNOWN),
    ("status", UNKNOWN),
    *(("spec", *start, UNKNOWN) for start in STARTS),
    *(("spec", *role, "template", "metadata", UNKNOWN) for role in ROLES),
    *(("spec", *role, "template", "metadata", "annotations", UNKNOWN) for role in ROLES),
    *(("spec", *role, "template", "spec", "containers", 0, "args", 0) for role in ROLES),
    ("spec", "runPolicy", "schedulingPolicy", "minResources", UNKNOWN),
)
"""Where a schema may let anything pass, or any text."""
LONG = ("x", "é", "🥧", "$(A)")
HUGE = (*["deep"] * 5, *["wide"] * 3, *["long"] * 2)
"""Long ones are few, because etcd keeps each several times."""
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
    """Draw a job; `#` in its name represents what makes it different from the others."""
    schema: Schema = _schema()["properties"]["spec"]
    job = good_job("j#")
    if draw(st.booleans()):
        # Its server is then the image's sshd, or ours where ssh is injected.
        del job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["command"]
    how = draw(st.sampled_from(("by the schema", "changed", "changed", "changed", "wrong", "named", "huge")))
    match how:
        case "huge":
            how = draw(st.sampled_from(HUGE))
            _put(job, *draw(huge_places(schema, how)))
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
    if not draw(st.integers(0, 9)):  # the operator reads those of Pods, too
        _put(job["spec"], [*draw(st.sampled_from(ROLES)), "template", "metadata", "annotations"], draw(hostile_annotations()))
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
def huge_places(draw: st.DrawFn, schema: Schema, how: str) -> tuple[list[str | int], Any]:
    """Draw a way into a job, and a value for its end that is deep, wide or long."""
    path: list[str | int] = [*draw(st.sampled_from(FREE))]
    end: Schema = {}
    if draw(st.booleans()):
        path, end = draw(ways(schema))
        path = ["spec", *path]
    match how:
        case "deep":
            value = deep()
        case "long":
            value = long_text(LONG)
        case _ if path[-1] == 0:
            path.pop()
            value = wide_list(values(end))
        case _:
            value = wide_map(TEXTS) if draw(st.booleans()) else wide_list(TEXTS)
    return path, draw(value)


@st.composite
def places(draw: st.DrawFn, schema: Schema, *, wrong: bool) -> tuple[list[str | int], Any]:
    """Draw a way into an object of the schema, and a value for its end: one by the schema, unless anything will do."""
    path, end = draw(ways(schema))
    return path, draw(JSON if wrong else values(end))


@st.composite
def ways(draw: st.DrawFn, schema: Schema) -> tuple[list[str | int], Schema]:
    """Draw a way into an object of the schema, and return the schema of its end too."""
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
    return path, schema


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
