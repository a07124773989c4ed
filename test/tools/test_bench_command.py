"""How the commands of the bench end."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator

import pytest

from bench import command
from mpiop.kube.errors import TransportError


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Give the signals back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def raising(error: BaseException) -> Callable[[], int]:
    def work() -> int:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        pytest.param(ValueError("no scenario x"), 2, "bench: no scenario x\n", id="wrong input"),
        pytest.param(
            ExceptionGroup("", [RuntimeError("a job failed"), ExceptionGroup("", [TransportError("no answer")])]),
            2,
            "bench: a job failed\nbench: no answer\n",
            id="several things went wrong at the same time",
        ),
        pytest.param(KeyboardInterrupt(), 130, "", id="interrupted"),
    ],
)
def test_what_goes_wrong_is_printed_in_a_line(error: BaseException, code: int, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert command.run("bench", raising(error)) == code
    assert capfd.readouterr().err == said


def test_a_defect_is_not_hidden(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError):
        command.run("bench", raising(KeyError("oops")))

    assert not capfd.readouterr().err


def test_sigterm_interrupts_even_in_the_background_of_a_shell() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def work() -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(60)
        return 0

    assert command.run("bench", lambda: asyncio.run(work())) == 130
