"""Turns of expensive syncs."""

from contextlib import ExitStack

from mpiop.workqueue import NotReady, Turns
from mpiop.workqueue.turns import MOST_TURNS, WAITING_SECONDS


def has_turn(turns: Turns, namespace: str) -> bool:
    """Return whether the namespace gets a turn, which it gives back at once."""
    try:
        with turns.take(namespace):
            return True
    except NotReady:
        return False


def test_a_namespace_has_one_turn_and_holds_up_no_other() -> None:
    turns = Turns()
    with turns.take("a"):
        assert not has_turn(turns, "a")
        assert has_turn(turns, "b")
    assert has_turn(turns, "a")


def test_there_are_few_turns_in_all() -> None:
    turns = Turns()
    with ExitStack() as taken:
        for number in range(MOST_TURNS):
            taken.enter_context(turns.take(f"n{number}"))
        assert not has_turn(turns, "another")


def test_a_namespace_with_many_jobs_waits_until_the_others_had_a_turn() -> None:
    turns = Turns(clock=lambda: 0.0)
    with ExitStack() as taken:
        first = taken.enter_context(ExitStack())
        first.enter_context(turns.take("crowd"))
        for number in range(1, MOST_TURNS):
            taken.enter_context(turns.take(f"n{number}"))
        assert not has_turn(turns, "one")
        assert not has_turn(turns, "crowd")
        first.close()
        assert not has_turn(turns, "crowd")
        assert has_turn(turns, "one")
        assert has_turn(turns, "crowd")


def test_a_namespace_that_asks_no_longer_loses_its_place() -> None:
    now = 0.0
    turns = Turns(clock=lambda: now)
    with ExitStack() as taken:
        for number in range(MOST_TURNS - 1):
            taken.enter_context(turns.take(f"n{number}"))
        with turns.take("last"):
            assert not has_turn(turns, "gone")
        assert not has_turn(turns, "new")
        now = WAITING_SECONDS
        assert has_turn(turns, "new")
