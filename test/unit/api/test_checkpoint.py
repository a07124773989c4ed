"""The annotations by which ranks are asked to save their work."""

from typing import Any

import pytest

from fakes.world import mpijob
from mpiop.api.checkpoint import Checkpoint
from mpiop.api.parse import ParseError, parse_mpijob

PREFIX = "mpiop.kubeflow.org/"
INJECTED = {"ssh": "Injected"}


def annotated(annotations: dict[str, Any]) -> Any:
    job = mpijob()
    job["metadata"]["annotations"] = {PREFIX + name: value for name, value in annotations.items()}
    return job


@pytest.mark.parametrize(
    ("annotations", "checkpoint"),
    [
        (INJECTED, None),
        (INJECTED | {"checkpoint-signal": "SIGUSR1"}, Checkpoint("SIGUSR1", 60)),
        (INJECTED | {"checkpoint-signal": "SIGUSR2", "checkpoint-grace": "1m30s"}, Checkpoint("SIGUSR2", 90)),
        (INJECTED | {"checkpoint-signal": "SIGUSR2", "checkpoint-grace": "365d"}, Checkpoint("SIGUSR2", 31_536_000)),
    ],
)
def test_what_annotations_ask_for(annotations: dict[str, str], checkpoint: Checkpoint | None) -> None:
    assert parse_mpijob(annotated(annotations)).checkpoint == checkpoint


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        (
            INJECTED | {"checkpoint-signal": "SIGKILL"},
            'checkpoint-signal]: Unsupported value: "SIGKILL": supported values: "SIGUSR1", "SIGUSR2"',
        ),
        (INJECTED | {"checkpoint-signal": 10}, "checkpoint-signal: Invalid value: 10: must be a string"),
        (
            INJECTED | {"checkpoint-signal": "SIGUSR1", "checkpoint-grace": "60"},
            'checkpoint-grace]: Invalid value: "60": must be a duration',
        ),
        (
            INJECTED | {"checkpoint-signal": "SIGUSR1", "checkpoint-grace": "200000d"},
            'checkpoint-grace]: Invalid value: "200000d": must be a duration with its unit, such as 90m, 24h or 7d, and at most 365d',
        ),
        (
            INJECTED | {"checkpoint-grace": "60s"},
            'checkpoint-grace]: Invalid value: "60s": has no effect without mpiop.kubeflow.org/checkpoint-signal',
        ),
        (
            {"checkpoint-signal": "SIGUSR1"},
            'checkpoint-signal]: Invalid value: "SIGUSR1": needs mpiop.kubeflow.org/ssh to be Injected: mpiop-agent sends the signal',
        ),
    ],
)
def test_what_is_wrong_with_them_is_said(annotations: dict[str, Any], words: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_mpijob(annotated(annotations))
    assert len(caught.value.errors) == 1
    assert words in caught.value.errors[0]
