"""What an API server does with writes, as far as the operator relies on it."""

from typing import Any, cast

import pytest

from contract_subject import CONTAINER, Subject, refused
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Object
from mpiop.kube.resources import CONFIG_MAPS, JOBS, LEASES, MPIJOBS, PODS, SECRETS, SERVICES

UNSEEN = {"observedGeneration": -1}
"""Status of a new MPIJob, by the CRD."""


async def test_create_returns_what_the_server_adds(subject: Subject) -> None:
    created = await subject.config_map("a", x="1")
    metadata = created["metadata"]
    assert created["kind"] == "ConfigMap"
    assert created["apiVersion"] == "v1"
    assert created["data"] == {"x": "1"}
    assert metadata["uid"]
    assert int(metadata["resourceVersion"]) > 0
    assert metadata["creationTimestamp"].endswith("Z")
    assert "generation" not in metadata
    assert await subject.client.get(CONFIG_MAPS, subject.key("a")) == created


async def test_create_of_a_name_that_exists_is_refused(subject: Subject) -> None:
    await subject.config_map("a")
    with pytest.raises(StatusError) as caught:
        await subject.config_map("a")
    assert caught.value.is_already_exists
    assert not caught.value.is_conflict
    assert str(caught.value) == f'create configmaps {subject.namespace}/a: 409 AlreadyExists: configmaps "a" already exists'


async def test_create_without_a_name_is_refused(subject: Subject) -> None:
    with refused("invalid"):
        await subject.client.create(CONFIG_MAPS, {"metadata": {"namespace": subject.namespace}})


async def test_create_makes_names_from_a_prefix(subject: Subject) -> None:
    body: Any = {"metadata": {"namespace": subject.namespace, "generateName": "a-"}}
    names = {(await subject.client.create(CONFIG_MAPS, body))["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("a-") and len(name) == 7 for name in names)


@pytest.mark.parametrize("resource", [CONFIG_MAPS, PODS])
async def test_of_what_was_created_metadata_alone_can_be_asked_for(subject: Subject, resource: Any) -> None:
    fields: Any = {"spec": {"schedulerName": "nobody", "containers": [CONTAINER]}} if resource is PODS else {"data": {"x": "y"}}
    created = await subject.client.create(resource, subject.body("a", **fields), metadata_only=True)
    stored = await subject.client.get(resource, subject.key("a"))
    assert set(created) == {"kind", "metadata"}
    assert created["kind"] == "PartialObjectMetadata"
    assert {"uid", "resourceVersion"} <= created["metadata"].keys()
    assert {**stored["metadata"], **created["metadata"]} == stored["metadata"]


async def test_of_what_was_patched_metadata_alone_can_be_asked_for(subject: Subject) -> None:
    await subject.mpijob("a")
    body = {"status": {"startTime": "2026-01-01T00:00:00Z"}}
    patched = await subject.client.patch(MPIJOBS, subject.key("a"), body, subresource="status", metadata_only=True)
    stored = await subject.client.get(MPIJOBS, subject.key("a"))
    assert set(patched) == {"kind", "metadata"}
    assert patched["metadata"].get("resourceVersion") == stored["metadata"].get("resourceVersion")
    assert stored.get("status") == body["status"] | UNSEEN


async def test_of_what_is_deleted_metadata_alone_comes_back(subject: Subject) -> None:
    job = await subject.mpijob("a", finalizers=["example.com/wait"])
    remains = await subject.client.delete(MPIJOBS, subject.key("a"), uid=job["metadata"]["uid"])
    assert remains is not None
    assert set(remains) == {"kind", "metadata"}
    assert remains["kind"] == "PartialObjectMetadata"


async def test_a_dry_run_stores_nothing(subject: Subject) -> None:
    created = await subject.client.create(CONFIG_MAPS, subject.body("a"), is_dry_run=True)
    assert created["metadata"]["uid"]
    assert "resourceVersion" not in created["metadata"]
    with refused("not_found"):
        await subject.client.get(CONFIG_MAPS, subject.key("a"))


async def test_a_dry_run_of_a_name_that_exists_is_refused(subject: Subject) -> None:
    await subject.config_map("a")
    with refused("already_exists"):
        await subject.client.create(CONFIG_MAPS, subject.body("a"), is_dry_run=True)


async def test_create_with_a_resource_version_is_refused(subject: Subject) -> None:
    body = subject.body("a")
    body["metadata"]["resourceVersion"] = "1"
    with pytest.raises(StatusError, match="resourceVersion should not be set") as caught:
        await subject.client.create(CONFIG_MAPS, body)
    assert caught.value.code == 500


async def test_create_ignores_the_status_where_it_is_a_subresource(subject: Subject) -> None:
    spec = {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": [CONTAINER]}}}}}
    body = subject.body("a", apiVersion=MPIJOBS.api_version, kind="MPIJob", spec=spec, status={"startTime": "2026-01-01T00:00:00Z"})
    created = await subject.client.create(MPIJOBS, body)
    assert created["status"] == UNSEEN
    assert created["metadata"]["generation"] == 1


async def test_a_new_pod_is_pending(subject: Subject) -> None:
    pod = await subject.pod("a")
    assert pod["status"]["phase"] == "Pending"
    assert pod["metadata"]["generation"] == 1


async def test_patch_merges_and_null_removes(subject: Subject) -> None:
    first = await subject.config_map("a", x="1", y="2")
    changed = await subject.client.patch(CONFIG_MAPS, subject.key("a"), {"data": {"x": None, "z": "3"}, "metadata": {"labels": {"l": "m"}}})
    assert changed["data"] == {"y": "2", "z": "3"}
    assert changed["metadata"]["labels"] == {"l": "m"}
    assert int(changed["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    assert changed["metadata"]["uid"] == first["metadata"]["uid"]


async def test_a_patch_that_changes_nothing_writes_nothing(subject: Subject) -> None:
    first = await subject.config_map("a", x="1")
    again = await subject.client.patch(CONFIG_MAPS, subject.key("a"), {"data": {"x": "1"}})
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


@pytest.mark.parametrize("x", ["3", "2"], ids=["a change", "nothing that would change"])
async def test_patch_of_an_old_version_is_a_conflict(subject: Subject, x: str) -> None:
    first = await subject.config_map("a", x="1")
    await subject.client.patch(CONFIG_MAPS, subject.key("a"), {"data": {"x": "2"}})
    version = first["metadata"]["resourceVersion"]
    with refused("conflict", "the object has been modified"):
        await subject.client.patch(CONFIG_MAPS, subject.key("a"), {"metadata": {"resourceVersion": version}, "data": {"x": x}})
    assert (await subject.client.get(CONFIG_MAPS, subject.key("a")))["data"] == {"x": "2"}


async def test_patch_of_another_uid_is_refused(subject: Subject) -> None:
    await subject.config_map("a", x="1")
    with refused("invalid", r"metadata\.uid"):
        await subject.client.patch(CONFIG_MAPS, subject.key("a"), {"metadata": {"uid": "another"}, "data": {"x": "3"}})


async def test_patch_of_a_successor_is_a_conflict(subject: Subject) -> None:
    first = await subject.config_map("a", x="1")
    await subject.client.delete(CONFIG_MAPS, subject.key("a"), uid=first["metadata"]["uid"])
    await subject.config_map("a", x="1")
    identity = {"uid": first["metadata"]["uid"], "resourceVersion": first["metadata"]["resourceVersion"]}
    with refused("conflict"):
        await subject.client.patch(CONFIG_MAPS, subject.key("a"), {"metadata": identity, "data": {"x": "3"}})


async def test_generation_counts_changes_of_the_spec_alone(subject: Subject) -> None:
    await subject.mpijob("a")
    labelled = await subject.client.patch(MPIJOBS, subject.key("a"), {"metadata": {"labels": {"l": "m"}}})
    assert labelled["metadata"]["generation"] == 1
    changed = await subject.client.patch(MPIJOBS, subject.key("a"), {"spec": {"slotsPerWorker": 2}})
    assert changed["metadata"]["generation"] == 2
    status = {"status": {"startTime": "2026-01-01T00:00:00Z"}}
    reported = await subject.client.patch(MPIJOBS, subject.key("a"), status, subresource="status")
    assert reported["metadata"]["generation"] == 2


async def test_the_status_subresource_changes_the_status_alone(subject: Subject) -> None:
    await subject.mpijob("a")
    body = {"metadata": {"labels": {"l": "m"}}, "spec": {"slotsPerWorker": 2}, "status": {"startTime": "2026-01-01T00:00:00Z"}}
    changed = await subject.client.patch(MPIJOBS, subject.key("a"), body, subresource="status")
    assert changed["status"] == {"startTime": "2026-01-01T00:00:00Z"} | UNSEEN
    assert changed["spec"].get("slotsPerWorker", 1) == 1
    assert "labels" not in changed["metadata"]


async def test_the_object_itself_does_not_change_the_status(subject: Subject) -> None:
    await subject.mpijob("a")
    started = {"status": {"startTime": "2026-01-01T00:00:00Z"}}
    await subject.client.patch(MPIJOBS, subject.key("a"), started, subresource="status")
    changed = await subject.client.patch(MPIJOBS, subject.key("a"), {"spec": {"slotsPerWorker": 2}, "status": {"startTime": None}})
    assert changed["status"] == {"startTime": "2026-01-01T00:00:00Z"} | UNSEEN
    assert changed["spec"]["slotsPerWorker"] == 2


async def test_a_status_patch_of_an_old_version_is_a_conflict(subject: Subject) -> None:
    job = await subject.mpijob("a")
    await subject.client.patch(MPIJOBS, subject.key("a"), {"spec": {"slotsPerWorker": 2}})
    body = {"metadata": {"resourceVersion": job["metadata"]["resourceVersion"]}, "status": {"startTime": "2026-01-01T00:00:00Z"}}
    with refused("conflict"):
        await subject.client.patch(MPIJOBS, subject.key("a"), body, subresource="status")


async def test_update_replaces_the_object(subject: Subject) -> None:
    lease = await subject.client.create(LEASES, subject.body("a", labels={"l": "m"}, spec={"holderIdentity": "one"}))
    body = cast("Object", {**lease, "spec": {"leaseTransitions": 1}})
    del body["metadata"]["labels"]
    updated = await subject.client.update(LEASES, body)
    assert updated["spec"] == {"leaseTransitions": 1}
    assert "labels" not in updated["metadata"]
    with refused("conflict"):
        await subject.client.update(LEASES, body)


async def test_update_of_a_custom_resource_needs_a_version(subject: Subject) -> None:
    job = await subject.mpijob("a")
    del job["metadata"]["resourceVersion"]
    with refused("invalid", "must be specified for an update"):
        await subject.client.update(MPIJOBS, job)


async def test_update_of_another_uid_is_a_conflict(subject: Subject) -> None:
    created = await subject.config_map("a", x="1")
    body = cast("Object", {**created, "metadata": {"name": "a", "namespace": subject.namespace, "uid": "another"}})
    with refused("conflict"):
        await subject.client.update(CONFIG_MAPS, body)


async def test_immutable_data_stay(subject: Subject) -> None:
    await subject.client.create(SECRETS, subject.body("a", data={"x": "eA=="}, immutable=True))
    with refused("invalid", "immutable"):
        await subject.client.patch(SECRETS, subject.key("a"), {"data": {"x": "eQ=="}})
    assert (await subject.client.patch(SECRETS, subject.key("a"), {"metadata": {"labels": {"l": "m"}}}))["metadata"]["labels"] == {"l": "m"}


@pytest.mark.parametrize("resource", [CONFIG_MAPS, SECRETS, SERVICES, LEASES], ids=lambda resource: resource.kind)
async def test_delete_of_an_object_without_finalizers_removes_it_at_once(subject: Subject, resource: Any) -> None:
    spec = {"clusterIP": "None", "selector": {"a": "b"}} if resource == SERVICES else {}
    fields: Any = {"spec": spec} if resource in {SERVICES, LEASES} else {}
    created = await subject.client.create(resource, subject.body("a", **fields))
    await subject.client.delete(resource, subject.key("a"), uid=created["metadata"]["uid"])
    assert await subject.is_gone(resource, "a")


async def test_delete_of_a_pod_without_a_node_removes_it_at_once(subject: Subject) -> None:
    pod = await subject.pod("a")
    last = await subject.client.delete(PODS, subject.key("a"), uid=pod["metadata"]["uid"])
    assert last is not None
    assert "deletionTimestamp" in last["metadata"]
    assert await subject.is_gone(PODS, "a")


async def test_delete_with_another_uid_is_a_conflict(subject: Subject) -> None:
    await subject.config_map("a")
    with refused("conflict", "does not match the UID in record"):
        await subject.client.delete(CONFIG_MAPS, subject.key("a"), uid="another")
    assert not await subject.is_gone(CONFIG_MAPS, "a")


async def test_an_object_with_finalizers_waits_for_them(subject: Subject) -> None:
    job = await subject.mpijob("a", finalizers=["example.com/wait"])
    waiting = await subject.client.delete(MPIJOBS, subject.key("a"), uid=job["metadata"]["uid"])
    assert waiting is not None
    assert "deletionTimestamp" in waiting["metadata"]
    assert waiting["metadata"]["generation"] == 2
    assert not await subject.is_gone(MPIJOBS, "a")
    await subject.client.patch(MPIJOBS, subject.key("a"), {"metadata": {"finalizers": None}})
    assert await subject.is_gone(MPIJOBS, "a")


async def test_dependents_go_with_their_owner(subject: Subject) -> None:
    job = await subject.mpijob("a")
    owner: Any = {"apiVersion": MPIJOBS.api_version, "kind": "MPIJob", "name": "a", "uid": job["metadata"]["uid"], "controller": True}
    body = subject.body("a-config")
    body["metadata"]["ownerReferences"] = [owner]
    await subject.client.create(CONFIG_MAPS, body)
    await subject.config_map("other")
    await subject.client.delete(MPIJOBS, subject.key("a"), uid=job["metadata"]["uid"])
    await subject.wait_until_collected(CONFIG_MAPS, "a-config")
    assert not await subject.is_gone(CONFIG_MAPS, "other")


async def test_what_belongs_to_a_dead_owner_is_collected(subject: Subject) -> None:
    body = subject.body("a")
    body["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "00000000-0000-4000-8000-000000000000"}
    ]
    await subject.client.create(CONFIG_MAPS, body)
    await subject.wait_until_collected(CONFIG_MAPS, "a")


async def test_a_suspended_job_keeps_its_own_generation_and_status(subject: Subject) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
    job = await subject.client.create(JOBS, subject.body("a", spec={"suspend": True, "template": template}))
    assert job["metadata"]["generation"] == 1
    resumed = await subject.client.patch(JOBS, subject.key("a"), {"spec": {"suspend": False}})
    assert resumed["metadata"]["generation"] == 2
    assert resumed["spec"]["suspend"] is False


async def test_what_is_not_there_is_not_found(subject: Subject) -> None:
    key = subject.key("none")
    with refused("not_found", rf'^get mpijobs {key}: 404 NotFound: mpijobs\.kubeflow\.org "none" not found$'):
        await subject.client.get(MPIJOBS, key)
    with refused("not_found"):
        await subject.client.patch(CONFIG_MAPS, key, {"data": {"x": "3"}})
    with refused("not_found"):
        await subject.client.delete(CONFIG_MAPS, key, uid="any")
