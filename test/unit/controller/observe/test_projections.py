"""What is kept of objects that others fill with what we do not read."""

from typing import Any, cast

import msgspec
import pytest

from example_children import config_map, launcher, launcher_pod, service, worker
from fakes.semantics import projected
from fakes.world import mpijob
from mpiop.api.annotations import SLOTS
from mpiop.controller import names
from mpiop.controller.gang.pod_group import PARTS
from mpiop.controller.observe.projections import PROJECTIONS, trimmed, trims
from mpiop.controller.observe.stored_specs import Specs, StoredSpec
from mpiop.kube.objects import Object, annotations_of, controller_id, labels_of
from mpiop.kube.resources import CONFIG_MAPS, COSCHEDULING_POD_GROUPS, JOBS, MPIJOBS, PODS, SERVICES, VOLCANO_POD_GROUPS, Resource

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
LONG = "\U0001f600" + "x" * 1_000_000
"""Python takes 4 MB for it."""
OWNER = {"apiVersion": "v1", "kind": "Nothing", "name": "a", "uid": "b", "controller": True}
POD_GROUPS = [VOLCANO_POD_GROUPS, COSCHEDULING_POD_GROUPS]


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


@pytest.mark.parametrize(("resource", "obj"), OBJECTS)
@pytest.mark.parametrize("field", ["apiVersion", "kind", "name", "uid"])
def test_an_owner_with_a_long_field_takes_no_memory_and_is_still_another(resource: Resource, obj: Object, field: str) -> None:
    owned: Any = {**obj, "metadata": {**obj["metadata"], "ownerReferences": [{**OWNER, field: OWNER[field] + LONG}]}}
    stored = kept(resource, owned)
    assert size(stored) <= size(kept(resource, obj)) + 1500
    assert controller_id(stored) not in {None, controller_id(obj)}


def test_the_count_of_restarts_takes_no_memory_however_long_it_is() -> None:
    template = {"metadata": {"annotations": {names.ANNOTATION_RESTART_COUNT: LONG}}}
    stored = kept(JOBS, cast("Object", {**launcher(), "spec": {"template": template}}))
    assert size(stored) <= size(kept(JOBS, launcher())) + 1500


@pytest.mark.parametrize("addresses", [LONG, "workers 1\n0 10.0.0.1\n" * 5000])
def test_addresses_are_kept_whole_if_we_can_have_written_them(addresses: str) -> None:
    pod = launcher_pod(metadata={"annotations": {names.ANNOTATION_ADDRESSES: addresses}})
    stored = annotations_of(kept(PODS, pod))[names.ANNOTATION_ADDRESSES]
    assert stored == addresses if addresses.isascii() else len(stored) < 1100


@pytest.mark.parametrize("resource", POD_GROUPS)
def test_a_pod_group_of_any_size_takes_no_memory(resource: Resource) -> None:
    resources = {f"example.com/{number}": LONG[:100_000] for number in MANY[:100]}
    spec = {"minMember": 3, "minResources": resources, "queue": LONG, "minTaskMember": {str(number): 1 for number in MANY}}
    group: Any = {"metadata": {"name": "pi", "namespace": "default"}, "spec": spec, "status": {"conditions": [{"message": LONG}]}}
    stored = kept(resource, group)
    assert len(repr(stored)) < 80_000
    assert stored.get("spec", {})["minMember"] == 3


@pytest.mark.parametrize("resource", POD_GROUPS)
def test_of_a_pod_group_all_is_kept_that_follows_the_job(resource: Resource) -> None:
    part = PARTS[resource]
    spec = dict.fromkeys((*part.ours, *part.shared), 1) | {"minResources": {"cpu": "1"}, "priorityClassName": "a", "queue": "b"}
    group: Any = {"metadata": {"name": "pi", "namespace": "default"}, "spec": spec}
    assert {*part.ours, *part.shared} <= kept(resource, group).get("spec", {}).keys()
