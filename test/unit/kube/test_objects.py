"""The questions that every module asks of wire objects; null counts as absent."""

from typing import Any, cast

from mpiop.kube import objects
from mpiop.kube.objects import ControllerId, Key, Object


def of(**metadata: Any) -> Object:
    return cast("Object", {"metadata": metadata})


def test_keys_and_versions() -> None:
    obj = of(namespace="n", name="a", uid="u", resourceVersion="7")
    assert objects.key_of(obj) == Key("n", "a")
    assert (str(Key("n", "a")), str(Key("", "a"))) == ("n/a", "a")
    assert (objects.uid_of(obj), objects.resource_version_of(obj)) == ("u", "7")
    assert (objects.key_of(of()), objects.uid_of(of()), objects.resource_version_of(of())) == (Key("", ""), "", "")


def test_labels_and_annotations() -> None:
    assert objects.labels_of(of(labels={"a": "b"})) == {"a": "b"}
    assert objects.annotations_of(of(annotations={"a": "b"})) == {"a": "b"}
    for none in (of(), of(labels=None, annotations=None)):
        assert objects.labels_of(none) == {}
        assert objects.annotations_of(none) == {}


def test_E57_a_controller_is_known_by_namespace_group_kind_and_uid_and_not_by_name_or_version() -> None:
    owner = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "a", "uid": "u"}
    controlled = of(namespace="n", ownerReferences=[owner | {"uid": "other"}, owner | {"controller": True}])
    assert objects.controller_id(controlled) == ControllerId("n", "example.com", "Thing", "u")
    core = of(namespace="n", ownerReferences=[owner | {"apiVersion": "v1", "controller": True}])
    assert objects.controller_id(core) == ControllerId("n", "", "Thing", "u")
    for obj in (of(ownerReferences=[owner]), of(ownerReferences=None), of()):
        assert objects.controller_id(obj) is None
