"""A patch of a job is merged as kubectl merges one of a Pod."""

from typing import Any

import pytest

from mpiop.client.errors import InvalidError
from mpiop.client.patch import patched

WORKER = {"containers": [{"name": "worker", "image": "i", "env": [{"name": "A", "value": "1"}]}], "nodeSelector": {"a": "1"}}


def merged(pod: dict[str, Any]) -> Any:
    def job(spec: dict[str, Any]) -> dict[str, Any]:
        return {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": spec}}}}}

    result = patched(job(WORKER), job(pod))["spec"]["mpiReplicaSpecs"]["Worker"]
    assert result["replicas"] == 2
    return result["template"]["spec"]


@pytest.mark.parametrize(
    ("pod", "changed"),
    [
        ({"nodeSelector": {"b": "2"}}, {"nodeSelector": {"a": "1", "b": "2"}}),
        ({"nodeSelector": {"a": None, "b": "2"}}, {"nodeSelector": {"b": "2"}}),
        ({"nodeSelector": None}, {"nodeSelector": None}),
        ({"tolerations": [{"key": "k"}]}, {"tolerations": [{"key": "k"}]}),
        (
            {"containers": [{"name": "worker", "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "3"}]}]},
            {
                "containers": [
                    {"name": "worker", "image": "i", "env": [{"name": "A", "value": "3"}, {"name": "B", "value": "2"}]},
                ]
            },
        ),
        ({"containers": [{"name": "proxy"}]}, {"containers": [*WORKER["containers"], {"name": "proxy"}]}),
        ({"containers": [{"name": "worker", "$patch": "delete"}]}, {"containers": []}),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, {"volumes": [{"name": "v", "emptyDir": {}}]}),
    ],
)
def test_what_the_patch_has_wins_and_the_rest_stays(pod: dict[str, Any], changed: dict[str, Any]) -> None:
    assert merged(pod) == {key: value for key, value in {**WORKER, **changed}.items() if value is not None}


@pytest.mark.parametrize(
    ("patch", "sentence"),
    [
        ({"kind": "Pod"}, "kind is Pod: a patch has fields of an MPIJob"),
        ({"metadata": {"namespace": "other"}}, "use --namespace"),
        ({"metadata": "x"}, "metadata must be an object"),
        (
            {"spec": {"mpiReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"image": "i"}]}}}}}},
            r"spec.mpiReplicaSpecs.Worker.template.spec.containers\[0\] has no name",
        ),
        ({"spec": {"containers": [{"name": ["a"]}]}}, r"spec.containers\[0\] has no name"),
        ({"spec": {"containers": ["a"]}}, r"spec.containers\[0\] has no name"),
    ],
)
def test_a_patch_that_cannot_be_meant_is_refused(patch: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidError, match=sentence):
        patched({}, patch)


def test_a_patch_leaves_the_job_as_it_was() -> None:
    job = {"spec": {"containers": [{"name": "a", "env": []}]}}
    patched(job, {"spec": {"containers": [{"name": "a", "env": [{"name": "B"}]}]}})
    assert job == {"spec": {"containers": [{"name": "a", "env": []}]}}
