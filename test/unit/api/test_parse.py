"""Parsing: total, lenient where the contract requires it, and never changing what it reads."""

import copy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mpiop.api import constants as c
from mpiop.api.annotations import SHM, SLOTS
from mpiop.api.manager import other_manager
from mpiop.api.parse import ParseError, parse_mpijob
from mpiop.api.types import MPIJob, RunPolicy, SchedulingPolicy
from mpiop.api.validation import validate


def manifest(**spec: Any) -> Any:
    """Return a smallest job as stored, with `spec` fields put over its own."""
    replica_specs = {
        "Launcher": {"template": {"spec": {"containers": [{"name": "mpi", "image": "pi"}]}}},
        "Worker": {"template": {"spec": {"containers": [{"name": "mpi", "image": "pi"}]}}},
    }
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "pi", "namespace": "default", "uid": "u1", "generation": 3},
        "spec": {"mpiReplicaSpecs": replica_specs, **spec},
    }


def errors_of(raw: Any) -> tuple[str, ...]:
    with pytest.raises(ParseError) as caught:
        parse_mpijob(raw)
    return caught.value.errors


def test_every_default_of_the_contract_is_applied() -> None:
    job = parse_mpijob(manifest())
    assert (job.namespace, job.name, job.uid, job.generation) == ("default", "pi", "u1", 3)
    assert (job.slots_per_worker, job.run_launcher_as_worker, job.ssh_auth_mount_path) == (1, False, "/root/.ssh")
    assert (job.launcher_creation_policy, job.mpi_implementation) == ("AtStartup", "OpenMPI")
    assert job.run_policy == RunPolicy("None", None, None, None, suspend=False, managed_by=None, scheduling_policy=None)
    assert (job.launcher.replicas, job.launcher.restart_policy) == (1, "OnFailure")
    assert job.worker is not None
    assert (job.worker.replicas, job.worker.restart_policy) == (1, "Never")
    assert validate(job) == ()


def test_values_that_are_said_are_kept() -> None:
    raw = manifest(
        slotsPerWorker=2,
        runLauncherAsWorker=True,
        sshAuthMountPath="/home/mpiuser/.ssh",
        launcherCreationPolicy="WaitForWorkersReady",
        mpiImplementation="Intel",
        runPolicy={
            "cleanPodPolicy": "All",
            "ttlSecondsAfterFinished": 60,
            "activeDeadlineSeconds": 2**40,
            "backoffLimit": 0,
            "suspend": True,
            "managedBy": "kubeflow.org/mpi-operator",
            "schedulingPolicy": {
                "minAvailable": 2,
                "queue": "q",
                "minResources": {"cpu": 3, "memory": "1Gi", "nvidia.com/gpu": None},
                "priorityClass": "high",
                "scheduleTimeoutSeconds": 180,
            },
        },
    )
    raw["spec"]["mpiReplicaSpecs"]["Worker"] |= {"replicas": 4, "restartPolicy": "OnFailure"}
    job = parse_mpijob(raw)
    policy = SchedulingPolicy(2, "q", {"cpu": "3", "memory": "1Gi"}, "high", 180)
    assert job.run_policy == RunPolicy("All", 60, 2**40, 0, suspend=True, managed_by=c.MANAGED_BY_US, scheduling_policy=policy)
    assert (job.slots_per_worker, job.run_launcher_as_worker, job.ssh_auth_mount_path) == (2, True, "/home/mpiuser/.ssh")
    assert (job.launcher_creation_policy, job.mpi_implementation) == ("WaitForWorkersReady", "Intel")
    assert job.worker is not None
    assert (job.worker_replicas, job.worker.restart_policy, job.is_suspended) == (4, "OnFailure", True)
    assert str(job.key) == "default/pi"


@pytest.mark.parametrize("nothing", ["", None])
def test_empty_and_null_mean_the_default_where_the_go_operator_says_so(nothing: str | None) -> None:
    raw = manifest(sshAuthMountPath=nothing, launcherCreationPolicy=nothing)
    for replica_spec in raw["spec"]["mpiReplicaSpecs"].values():
        replica_spec["restartPolicy"] = nothing
    job = parse_mpijob(raw)
    assert job.worker is not None
    assert (job.ssh_auth_mount_path, job.launcher_creation_policy) == ("/root/.ssh", "AtStartup")
    assert (job.launcher.restart_policy, job.worker.restart_policy) == ("OnFailure", "Never")


def test_a_launcher_on_its_own_has_no_workers() -> None:
    raw = manifest()
    raw["spec"]["mpiReplicaSpecs"]["Worker"] = None
    job = parse_mpijob(raw)
    assert (job.worker, job.worker_replicas, validate(job)) == (None, 0, ())


def test_an_unnamed_container_is_named_after_its_role_and_the_stored_object_stays_as_it_was() -> None:
    raw = manifest()
    raw["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"] = {"containers": [{"image": "pi"}], "newField": [1]}
    before = copy.deepcopy(raw)
    job = parse_mpijob(raw)
    assert job.launcher.template == {"spec": {"containers": [{"name": "launcher", "image": "pi"}], "newField": [1]}}
    assert raw == before


def test_nulls_in_a_template_count_as_absent_and_unknown_fields_stay() -> None:
    raw = manifest()
    container = {"name": "mpi", "env": [{"name": "A", "value": None}], "command": None, "novel": None}
    raw["spec"]["mpiReplicaSpecs"]["Worker"]["template"] = {
        "metadata": {"creationTimestamp": None, "labels": None, "annotations": {"a": None, "b": "c"}},
        "spec": {"containers": [container], "volumes": None, "dnsConfig": None},
    }
    job = parse_mpijob(raw)
    assert job.worker is not None
    assert job.worker.template == {
        "metadata": {"creationTimestamp": None, "annotations": {"b": "c"}},
        "spec": {"containers": [{"name": "mpi", "env": [{"name": "A"}], "novel": None}]},
    }


def test_every_wrong_field_is_listed_at_once_with_what_to_do() -> None:
    raw = manifest(
        slotsPerWorker="two",
        runLauncherAsWorker="yes",
        sshAuthMountPath=7,
        mpiImplementation="LAM",
        runPolicy={
            "backoffLimit": 2.5,
            "ttlSecondsAfterFinished": 2**31,
            "suspend": 1,
            "schedulingPolicy": {"minResources": {"requests": {}}},
        },
    )
    raw["spec"]["mpiReplicaSpecs"]["Launcher"] = []
    raw["spec"]["mpiReplicaSpecs"]["Worker"] |= {
        "replicas": -1,
        "template": {"metadata": {"labels": {"a": 1}}, "spec": {"containers": [None, 3]}},
    }
    assert errors_of(raw) == (
        'spec.slotsPerWorker: Invalid value: "two": must be a whole number, without quotes',
        'spec.runLauncherAsWorker: Invalid value: "yes": must be true or false, without quotes',
        "spec.sshAuthMountPath: Invalid value: 7: must be a string; put it in quotes",
        "spec.runPolicy.ttlSecondsAfterFinished: Invalid value: 2147483648: must be at most 2147483647",
        'spec.runPolicy.backoffLimit: Invalid value: "number": must be a whole number, without quotes',
        "spec.runPolicy.suspend: Invalid value: 1: must be true or false, without quotes",
        (
            'spec.runPolicy.schedulingPolicy.minResources.requests: Invalid value: "object": must be a quantity '
            'such as 2, "500m" or "16Gi"; '
            "minResources takes resource names directly, without `requests:` or `limits:` between"
        ),
        'spec.mpiReplicaSpecs.Launcher: Invalid value: "array": must be an object: indent its fields below it',
        "spec.mpiReplicaSpecs.Worker.template.metadata.labels.a: Invalid value: 1: must be a string; put it in quotes",
        'spec.mpiReplicaSpecs.Worker.template.spec.containers[0]: Invalid value: "null": must be an object: indent its fields below it',
        "spec.mpiReplicaSpecs.Worker.template.spec.containers[1]: Invalid value: 3: must be an object: indent its fields below it",
        'spec.mpiImplementation: Unsupported value: "LAM": supported values: "OpenMPI", "Intel", "MPICH"',
        "spec.mpiReplicaSpecs.Worker.replicas: Invalid value: -1: must be at least 1; leave Worker out for a launcher on its own",
    )


TEMPLATE_MISTAKES = {
    "a number for a string": ({"hostname": 1}, "hostname: Invalid value: 1: must be a string; put it in quotes"),
    "a string for a boolean": ({"hostNetwork": "no"}, 'hostNetwork: Invalid value: "no": must be true or false, without quotes'),
    "a string for a number": ({"priority": "1"}, 'priority: Invalid value: "1": must be a whole number, without quotes'),
    "a list for an object": ({"dnsConfig": []}, 'dnsConfig: Invalid value: "array": must be an object: indent its fields below it'),
    "an object for a list": ({"volumes": {}}, 'volumes: Invalid value: "object": must be a list: begin each item with "- "'),
    "an object for a quantity": (
        {"overhead": {"cpu": {}}},
        'overhead.cpu: Invalid value: "object": must be a quantity such as 2, "500m" or "16Gi"',
    ),
    "a string for an object": ({"affinity": "x"}, 'affinity: Invalid value: "x": must be an object: indent its fields below it'),
}


@pytest.mark.parametrize(("spec", "error"), TEMPLATE_MISTAKES.values(), ids=TEMPLATE_MISTAKES.keys())
def test_wrong_types_in_a_template_are_found_where_the_operator_relies_on_them(spec: dict[str, Any], error: str) -> None:
    raw = manifest()
    raw["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"] |= spec
    assert errors_of(raw) == (f"spec.mpiReplicaSpecs.Launcher.template.spec.{error}",)


def test_what_is_missing_is_named() -> None:
    launcher = "spec.mpiReplicaSpecs.Launcher: Required value: every job has a Launcher, whose first container runs mpirun"
    name = "metadata.name: Required value: an MPIJob has a name"
    assert errors_of({"metadata": {"name": "pi"}, "spec": None}) == (launcher,)
    assert errors_of({}) == (name, launcher)
    assert errors_of([]) == (name, launcher)
    assert errors_of({"metadata": 3, "spec": 4})[:3] == (
        "metadata: Invalid value: 3: must be an object: indent its fields below it",
        name,
        "spec: Invalid value: 4: must be an object: indent its fields below it",
    )


def test_long_and_strange_values_are_cut_and_escaped_in_messages() -> None:
    raw = manifest(slotsPerWorker="\n\u202e" + "x" * 10_000)
    (error,) = errors_of(raw)
    assert error.isascii()
    assert error.isprintable()
    assert len(error) < 200


MANAGERS = {
    "nobody is named": ({}, True),
    "null": ({"managedBy": None}, True),
    "this operator": ({"managedBy": "kubeflow.org/mpi-operator"}, True),
    "MultiKueue": ({"managedBy": "kueue.x-k8s.io/multikueue"}, False),
    "a manager that nobody knows": ({"managedBy": "example.com/x"}, False),
    "the empty name": ({"managedBy": ""}, False),
    "no name at all: an error of the job, so ours to report": ({"managedBy": 3}, True),
}


@pytest.mark.parametrize(("run_policy", "ours"), MANAGERS.values(), ids=MANAGERS.keys())
def test_only_jobs_that_name_no_other_manager_are_ours(run_policy: dict[str, Any], ours: bool) -> None:  # noqa: FBT001 - a column of the table
    assert (other_manager(manifest(runPolicy=run_policy)) is None) is ours


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from([2**70, "\ud800", "pi"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["", "a", "name", "cpu"]) | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside `value`."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in items for found in paths(item, (*path, key)))]


RICH = manifest(
    runPolicy={"schedulingPolicy": {"minResources": {"cpu": "1"}, "minAvailable": 1}, "backoffLimit": 1, "managedBy": c.MANAGED_BY_US},
    slotsPerWorker=1,
)
RICH["metadata"]["annotations"] = {SLOTS.name: c.SLOTS_AUTO, SHM.name: "1Gi"}
RICH["status"] = {
    "conditions": [{"type": "Created", "status": "True", "lastUpdateTime": "2019-07-09T22:15:51Z"}],
    "replicaStatuses": {"Worker": {"active": 1}},
    "startTime": "2019-07-09T22:15:51Z",
    "summary": {"state": "Running"},
}
for _role in ("Launcher", "Worker"):
    RICH["spec"]["mpiReplicaSpecs"][_role] = {
        "replicas": 1,
        "restartPolicy": "Never",
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {
                "containers": [{"name": "m", "env": [{"name": "a", "value": "b"}], "command": ["x"], "resources": {"limits": {"cpu": 1}}}],
                "dnsConfig": {"searches": ["x"]},
                "volumes": [{"name": "v"}],
            },
        },
    }


NAMES = sorted({key for path in paths(RICH) for key in path if isinstance(key, str)})


@st.composite
def damaged_jobs(draw: st.DrawFn) -> Any:
    """A good job with up to four of its values, wherever they are, replaced by anything."""
    job = copy.deepcopy(RICH)
    for _ in range(draw(st.integers(1, 4))):
        path = draw(st.sampled_from(paths(job)[1:] or [("metadata",)]))
        parent = job
        for key in path[:-1]:
            parent = parent[key]
        parent[path[-1]] = draw(JSON)
    return job


def assert_parsed_or_refused(raw: Any) -> None:
    before = copy.deepcopy(raw)
    outcome: MPIJob | tuple[str, ...]
    try:
        outcome = parse_mpijob(raw)
    except ParseError as error:
        outcome = error.errors
    if isinstance(outcome, MPIJob):
        assert all(": " in line for line in validate(outcome))
    else:
        assert outcome
        assert all(": " in line for line in outcome)
    assert repr(raw) == repr(before)


@given(damaged_jobs())
def test_a_damaged_job_is_parsed_or_refused_and_nothing_else_happens(raw: Any) -> None:
    assert_parsed_or_refused(raw)


@given(st.dictionaries(st.sampled_from(NAMES), JSON) | JSON)
@example({"metadata": {"name": "x"}, "spec": {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": [[]]}}}}}})
def test_any_json_is_parsed_or_refused_and_nothing_else_happens(raw: Any) -> None:
    assert_parsed_or_refused(raw)


def test_a_whole_number_written_with_a_point_is_one() -> None:
    assert parse_mpijob(manifest(slotsPerWorker=2.0)).slots_per_worker == 2


def test_a_number_of_any_size_is_no_danger() -> None:
    raw = manifest(slotsPerWorker=10**5000, runPolicy={"schedulingPolicy": {"minResources": {"cpu": 10**5000}}})
    assert [error.split(": must")[0] for error in errors_of(raw)] == [
        'spec.slotsPerWorker: Invalid value: "integer"',
        'spec.runPolicy.schedulingPolicy.minResources.cpu: Invalid value: "integer"',
    ]


def test_a_value_of_any_depth_is_no_danger() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    raw = manifest(slotsPerWorker=deep)
    raw["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["unknown"] = deep
    raw["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"] = deep
    assert [error.split(":")[0] for error in errors_of(raw)] == [
        "spec.slotsPerWorker",
        "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].command[0]",
    ]
