"""What is kept of objects that others fill with what we do not read."""

from typing import Any, cast

import msgspec
import pytest

from example_children import config_map, launcher, launcher_pod, service, worker
from fakes.semantics import projected
from fakes.world import mpijob
from mpiop.api.annotations import SLOTS
from mpiop.controller.observe.projections import PROJECTIONS, trimmed, trims
from mpiop.controller.observe.specs import Specs, StoredSpec
from mpiop.kube.objects import Object, annotations_of, controller_id, labels_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SERVICES, Resource

OBJECTS = [
    pytest.param(resource, obj, id=obj.get("kind"))
    for resource, obj in [
        (MPIJOBS, mpijob()),
        (PODS, worker(0)),
        (JOBS, launcher()),
        (SERVICES, service()),
        (CONFIG_MAPS, config_map("pi-worker-0")),
    ]
]
MANY = range(10_000)


def kept(resource: Resource, obj: Object) -> Object:
    """Return what the store has of `obj`."""
    return trims(Specs()).get(resource, trimmed)(cast("Object", projected(obj, PROJECTIONS[resource])))


def size(obj: Object) -> int:
    return len(msgspec.json.encode(obj, enc_hook=lambda spec: cast("StoredSpec", spec).size))


@pytest.mark.parametrize(("resource", "obj"), OBJECTS)
def test_metadata_that_is_not_read_takes_no_memory(resource: Resource, obj: Object) -> None:
    metadata: Any = obj["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    owners = metadata.get("ownerReferences") or []
    full = {
        **metadata,
        "labels": {f"l{number}": "" for number in MANY} | labels,
        "annotations": {f"a{number}": "" for number in MANY} | annotations,
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": str(number)} for number in MANY] + owners,
        "finalizers": [f"example.com/{number}" for number in MANY],
        "managedFields": [{"manager": "a", "fieldsV1": {f"f:{number}": {} for number in MANY}}],
        "generateName": "g" * 10_000,
    }
    stored = kept(resource, cast("Object", {**obj, "metadata": full}))
    assert size(stored) <= size(kept(resource, obj)) + 500
    assert labels_of(stored) == labels
    assert annotations_of(stored) == annotations_of(kept(resource, obj))
    assert controller_id(stored) == controller_id(obj)


@pytest.mark.parametrize(("resource", "obj"), OBJECTS)
@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": None, "annotations": None, "ownerReferences": None, "finalizers": None},
        {"labels": 5, "annotations": ["a"], "ownerReferences": {"a": 1}, "finalizers": "f"},
        {"ownerReferences": ["a", None, 5, {"controller": "yes"}]},
    ],
)
def test_metadata_of_any_shape_stops_nobody(resource: Resource, obj: Object, metadata: dict[str, Any]) -> None:
    trims(Specs()).get(resource, trimmed)(cast("Object", {**obj, "metadata": {"name": "a", **metadata}}))


@pytest.mark.parametrize("binary", [{}, {"binaryData": {"b": "YQ==" * 100_000}}])
def test_of_a_config_map_digests_are_kept(binary: dict[str, Any]) -> None:
    obj = config_map("pi-worker-0")
    data = {**obj.get("data", {}), "other": "x" * 1_000_000, "hostfile": "h" * 1_000_000}
    assert size(kept(CONFIG_MAPS, cast("Object", {**obj, "data": data, **binary}))) < 1000


def test_a_selector_of_any_size_differs_from_ours_and_takes_no_memory() -> None:
    obj = service()
    stored = kept(SERVICES, cast("Object", {**obj, "spec": {**obj.get("spec", {}), "selector": {str(number): "" for number in MANY}}}))
    assert size(stored) < 1500
    assert len(stored.get("spec", {})["selector"]) > len(obj.get("spec", {})["selector"])


def test_the_finalizer_of_a_job_is_kept() -> None:
    pod = launcher_pod(metadata={"finalizers": ["batch.kubernetes.io/job-tracking"]})
    assert kept(PODS, pod)["metadata"].get("finalizers") == ["batch.kubernetes.io/job-tracking"]


def test_of_annotations_that_are_too_long_to_be_right_little_is_kept() -> None:
    long = {"metadata": {"name": "pi", "annotations": {SLOTS.name: "9" * 250_000}}}
    kept = trimmed(cast("Any", long))["metadata"]["annotations"][SLOTS.name]
    assert len(kept) < 1100
    assert kept.endswith("..."), "what is kept of it is wrong, too"
