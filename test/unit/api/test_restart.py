"""The annotations that give a job a budget of restarts."""

from typing import Any

import pytest

from fakes.world import mpijob
from mpiop.api.parse import ParseError, parse_mpijob
from mpiop.api.restart import NO_BUDGET, RestartPolicy

PREFIX = "mpiop.kubeflow.org/"


def annotated(**annotations: Any) -> Any:
    job = mpijob()
    job["metadata"]["annotations"] = {PREFIX + name.replace("_", "-"): value for name, value in annotations.items()}  # type: ignore[typeddict-item]  # wrong ones too
    return job


@pytest.mark.parametrize(
    ("annotations", "policy"),
    [
        ({}, NO_BUDGET),
        ({"ssh": "Image"}, NO_BUDGET),
        ({"max_restarts": "0"}, RestartPolicy(0)),
        ({"max_restarts": "3", "restart": "All", "restart_on": "Any"}, RestartPolicy(3, "All", "Any")),
        ({"max_restarts": "3", "restart_on": "ExitCodes=3,42"}, RestartPolicy(3, causes="ExitCodes", exit_codes=frozenset({3, 42}))),
        ({"max_restarts": "3", "restart_window": "1d12h"}, RestartPolicy(3, window_seconds=36 * 3600.0)),
        ({"max_restarts": "100", "avoid_failed_nodes": "true"}, RestartPolicy(100, avoids_failed_nodes=True)),
    ],
)
def test_what_annotations_ask_for(annotations: dict[str, str], policy: RestartPolicy) -> None:
    assert parse_mpijob(annotated(**annotations)).restart == policy


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({"max_restarts": "many"}, 'max-restarts]: Invalid value: "many": must be a whole number from 0 to 100'),
        ({"max_restarts": "101"}, "max-restarts]: Invalid value"),
        ({"max_restarts": "9" * 5000}, "max-restarts]: Invalid value"),
        ({"max_restarts": 3}, "max-restarts: Invalid value: 3: must be a string"),
        ({"max_restarts": "1", "restart": "Some"}, 'restart]: Unsupported value: "Some": supported values: "Failed", "All"'),
        (
            {"max_restarts": "1", "restart_on": "Errors"},
            'restart-on]: Unsupported value: "Errors": supported values: "Infrastructure", "Any", "Exi',
        ),
        ({"max_restarts": "1", "restart_on": "ExitCodes"}, 'restart-on]: Unsupported value: "ExitCodes"'),
        ({"max_restarts": "1", "restart_on": "ExitCodes=0"}, 'restart-on]: Invalid value: "ExitCodes=0": must be exit codes from 1 to 255'),
        ({"max_restarts": "1", "restart_on": "ExitCodes=3,"}, 'restart-on]: Invalid value: "ExitCodes=3,": must be exit codes'),
        ({"max_restarts": "1", "restart_on": "ExitCodes=256"}, "restart-on]: Invalid value"),
        ({"max_restarts": "1", "restart_window": "24"}, 'restart-window]: Invalid value: "24": must be a duration with its unit'),
        ({"max_restarts": "1", "restart_window": "0s"}, "restart-window]: Invalid value"),
        ({"max_restarts": "1", "avoid_failed_nodes": "yes"}, 'avoid-failed-nodes]: Unsupported value: "yes"'),
        ({"restart": "All"}, 'restart]: Invalid value: "All": has no effect without mpiop.kubeflow.org/max-restarts'),
    ],
)
def test_what_is_wrong_with_them_is_said(annotations: dict[str, Any], words: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_mpijob(annotated(**annotations))
    assert len(caught.value.errors) == 1
    assert words in caught.value.errors[0]
