"""Wrong usage is one line, and the examples of each help are right."""

import shlex
from typing import Any

import click
import pytest

from mpiop.kubectl.main import cli
from mpiop.kubectl.verbs import VERBS


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("rum", "unknown verb rum, did you mean run? See kubectl mpi --help"),
        ("frobnicate", "unknown verb frobnicate; see kubectl mpi --help"),
        ("run --imge i -- ./a", "unknown option --imge, did you mean --image? See kubectl mpi run --help"),
        ("run --bind-to core -- ./a", "unknown option --bind-to: pass options of mpirun with --mpirun-args; see kubectl mpi run --help"),
        ("list --foo", "unknown option --foo; see kubectl mpi list --help"),
        ("run --gpus", "Option '--gpus' requires an argument; see kubectl mpi run --help"),
        ("logs", "Missing argument 'JOB'; see kubectl mpi logs --help"),
        ("list --output", "Option '--output' requires an argument; see kubectl mpi list --help"),
        ("list extra", "Got unexpected extra argument (extra); see kubectl mpi list --help"),
        ("--foo", "unknown option --foo; see kubectl mpi --help"),
    ],
)
def test_wrong_usage_is_one_line(mpi: Any, words: str, sentence: str) -> None:
    assert mpi(*words.split()) == (2, "", f"error: {sentence}\n")


@pytest.mark.parametrize("verb", VERBS)
def test_each_help_ends_with_examples_that_are_right(mpi: Any, verb: str) -> None:
    shown = [line.strip() for line in mpi(verb, "--help")[1].partition("Examples:\n")[2].splitlines()]
    assert shown == [f"kubectl mpi {example}" for example in VERBS[verb].examples]
    for line in shown:
        _, _, name, *words = shlex.split(line)
        with click.Context(cli) as ctx:
            command = cli.get_command(ctx, name)
            assert command is not None
            command.make_context(name, words, parent=ctx)
