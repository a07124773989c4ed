"""`run --in --array`: runs the same program many times in an allocation, as many steps at a time as fit into its slots."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Final

import click

from mpiop.client.allocation import fitting
from mpiop.client.errors import ClientError, InvalidError, UnreachableError
from mpiop.client.steps import StepEnd
from mpiop.kubectl.array import INDEX
from mpiop.kubectl.output import printable
from mpiop.kubectl.session import Session
from mpiop.kubectl.step import ENDING, ShownStep, StepOptions, upload_for_step

_MOST: Final = 50
"""Each step has a kubectl of its own."""
_Running = Mapping["Future[StepEnd]", tuple[int, ShownStep]]


def step_starter(session: Session, name: str, program: Sequence[str], chosen: StepOptions) -> tuple[Callable[[int], ShownStep], int]:
    """Return the function that starts the step of an index, which its ranks find in `MPIOP_ARRAY_INDEX`, and how many fit at a time.

    Raises:
        ClientError: There is no such allocation, or it does not run.
    """
    job = session.mpi().get(name)
    if chosen.upload:
        upload_for_step(session, job, chosen.upload)

    def start(number: int) -> ShownStep:
        job.refresh()
        return ShownStep(session, job, program, replace(chosen, env=[*chosen.env, f"{INDEX}={number}"]), f"{number}: ")

    return start, min(_MOST, fitting(job.raw, chosen.ranks))


def run_step_array(start: Callable[[int], ShownStep], numbers: Sequence[int], parallel: int) -> int:
    """Run a step for each number, `parallel` at a time; return 1 if one failed, else 0.

    Each step that ends is reported, a failed one with its cause. Ctrl-C ends the ranks.

    Raises:
        InvalidError: A step was refused: others would be too.
        ClientError: The allocation does not run any more, or cannot be reached when no step runs.
    """
    waiting, running, failed = list(numbers), dict[Future[StepEnd], tuple[int, ShownStep]](), 0
    with ThreadPoolExecutor(parallel) as pool:
        try:
            while waiting or running:
                while waiting and len(running) < parallel and (step := _started(start, waiting[0], is_alone=not running)):
                    running[pool.submit(step.wait)] = (waiting.pop(0), step)
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    problem = _problem(future)
                    number, _ = running.pop(future)
                    failed += bool(problem)
                    click.echo(f"index {number}: {printable(problem or 'succeeded')}", err=True)
        except BaseException:
            _end(running)
            left = sorted([*waiting, *(number for number, _ in running.values())])
            click.echo(f"not finished: --array {','.join(map(str, left))}", err=True)
            raise
    click.echo(f"{len(numbers) - failed} of {len(numbers)} steps succeeded", err=True)
    return int(failed > 0)


def _started(start: Callable[[int], ShownStep], number: int, *, is_alone: bool) -> ShownStep | None:
    """Start a step; None if the API server cannot be reached and others run: when one of these has ended, it is asked again."""
    try:
        return start(number)
    except UnreachableError:
        if is_alone:
            raise
        return None


def _problem(future: "Future[StepEnd]") -> str:
    """Return why a step has failed; "" if it has not."""
    try:
        end = future.result()
    except InvalidError:
        raise
    except ClientError as error:
        return str(error)
    return f"step {end.number}: {end.why or f'exit code {end.code}'}" if end.code else ""


def _end(running: _Running) -> None:
    """End the ranks of all steps; a second Ctrl-C does not wait for them."""
    for _, step in running.values():
        step.step.interrupt()
    if not all(future.done() for future in running):
        click.echo(ENDING, err=True)
    try:
        wait(running)
    except KeyboardInterrupt:
        for _, step in running.values():
            step.step.kill()
