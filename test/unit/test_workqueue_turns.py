"""Turns of expensive syncs."""

from contextlib import ExitStack

import pytest

from mpiop.workqueue import NotReady, Turns
from mpiop.workqueue.turns import MOST_TURNS


def test_a_namespace_has_one_turn_and_holds_up_no_other() -> None:
    turns = Turns()
    with turns.take("a"):
        with pytest.raises(NotReady), turns.take("a"):
            pass
        with turns.take("b"):
            pass
    with turns.take("a"):
        pass


def test_there_are_few_turns_in_all() -> None:
    turns = Turns()
    with ExitStack() as taken:
        for number in range(MOST_TURNS):
            taken.enter_context(turns.take(f"n{number}"))
        with pytest.raises(NotReady), turns.take("another"):
            pass
