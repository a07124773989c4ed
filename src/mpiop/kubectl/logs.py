"""`logs`: the output of the launcher, of a rank, of a worker, of a step, or of all."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from queue import Queue
from typing import Any, Final

import click

from mpiop.api.names import worker_name
from mpiop.client import logs
from mpiop.client.allocation import launcher_of
from mpiop.client.api import Api, LogOptions
from mpiop.client.errors import ClientError, InvalidError, NotFoundError
from mpiop.client.job import Job
from mpiop.client.launcher_log import container_of
from mpiop.client.past_steps import step_output
from mpiop.client.progress import is_worker
from mpiop.client.tags import RankLines, Tagged
from mpiop.kubectl.completion import complete_job
from mpiop.kubectl.inputs import seconds_of
from mpiop.kubectl.output import write_line
from mpiop.kubectl.pods import exec_command
from mpiop.kubectl.screen import console
from mpiop.kubectl.session import Session, cluster_options

_COLOURS: Final = ("cyan", "green", "yellow", "magenta", "blue", "red")


@click.command("logs")
@click.argument("name", metavar="JOB", shell_complete=complete_job)
@click.option("-f", "--follow", is_flag=True, help="Follow the log until the job, or the step, has ended.")
@click.option("--rank", type=int, help="Show only the lines of this rank.")
@click.option("--worker", type=int, help="Show the log of this worker's Pod, which is the log of its sshd.")
@click.option("--all", "everyone", is_flag=True, help="Show the logs of all Pods. Each line begins with the name of its Pod.")
@click.option("--attempt", type=int, help="Show the log of this attempt of the launcher. The first one is 1.")
@click.option("--step", type=click.IntRange(min=1), help="Show the output of this step of an allocation.")
@click.option("--since", default="", metavar="DURATION", help="Show only lines newer than this, such as 30s, 5m or 2h.")
@cluster_options()
def logs_verb(session: Session, name: str, **options: Any) -> int:
    """Show the output of a job. mpirun collects the output of all ranks in the log of the launcher."""
    job = session.mpi().get(name)
    if options["step"] is not None:
        return _step(session, job, options)
    since = seconds_of(options["since"]) if options["since"] else None
    if options["everyone"] or options["worker"] is not None:
        return _pods(session.api(), job, LogOptions(follow=options["follow"], since_seconds=since), options["worker"])
    rank = options["rank"]
    if rank is not None and not job.is_tagged:
        raise InvalidError(f"the output of job {name} does not name ranks: run it with kubectl mpi run, or with mpirun --tag-output")
    if rank is not None and job.ranks is not None and rank not in range(job.ranks):
        known = "it has rank 0 only" if job.ranks == 1 else f"its ranks are 0 to {job.ranks - 1}"
        raise ClientError(f"job {name} has no rank {rank}: {known}")
    if options["attempt"] is not None:
        lines = _attempt(session.api(), job, options["attempt"])
    else:
        lines = job.tagged_logs(follow=options["follow"], since_seconds=since)
    for line in lines:
        if rank is None or line.rank == rank:
            write_line(line.text)
    return 0


def _step(session: Session, job: Job, options: Mapping[str, Any]) -> int:
    if wrong := [f"--{option}" for option in ("worker", "everyone", "attempt", "since") if options[option] not in (None, False, "")]:
        raise InvalidError(f"{', '.join(wrong).replace('everyone', 'all')}: not possible with --step")
    number: int = options["step"]

    def dropped() -> None:
        click.echo(f"output of step {number} was dropped here: an allocation keeps only the end of it", err=True)

    kubectl = exec_command(session, job, launcher_of(job), "--stdin")
    for line in step_output(kubectl, number, job.library, dropped, follow=options["follow"]):
        if options["rank"] in {None, line.rank}:
            write_line(line.text)
    return 0


def _attempt(api: Api, job: Job, number: int) -> Iterator[Tagged]:
    """Yield the lines of a failed attempt; of the last one what was kept, if its Pod is gone.

    Raises:
        NotFoundError: There is no such attempt, or its log is gone.
    """
    attempts = {attempt.number: attempt for attempt in job.status.attempts}
    wanted = attempts.get(number)
    if wanted is None:
        known = ", ".join(map(str, attempts)) or "none"
        raise NotFoundError(f"job {job.name} has no failed attempt {number}; known are: {known}")
    pod = next((pod for pod in job.pods() if pod["metadata"]["name"] == wanted.pod), None)
    if pod is None:
        if number != max(attempts) or not job.status.log:
            raise NotFoundError(f"pod {wanted.pod} of attempt {number} is gone, and its log with it")
        yield from job.kept_log()
        return
    rows = pod["status"].get("containerStatuses")
    if not rows:
        reason = pod["status"].get("reason") or wanted.reason or "its node did not start it"
        raise NotFoundError(f"pod {wanted.pod} of attempt {number} has no log, since its container never ran: {reason}")
    is_before = rows[0].get("restartCount", 0) > 0 and not _has_ended(pod)
    lines = logs.read_lines(api, wanted.pod, container_of(pod), LogOptions(previous=is_before))
    yield from job.rank_lines().whole(line.text for line in lines)


def _has_ended(pod: Any) -> bool:
    return pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def _pods(api: Api, job: Job, options: LogOptions, worker: int | None) -> int:
    pods = [pod for pod in job.pods() if worker is None or (is_worker(pod) and pod["metadata"]["name"] == worker_name(job.name, worker))]
    if not pods:
        what = "a Pod" if worker is None else f"a Pod of worker {worker}"
        raise NotFoundError(f"job {job.name} does not have {what} (any more)")
    if worker is None:
        _merged(api, job, pods, options)
        return 0
    for line in logs.read_lines(api, pods[0]["metadata"]["name"], container_of(pods[0]), options):
        write_line(line.text)
    return 0


def _merged(api: Api, job: Job, pods: Sequence[Any], options: LogOptions) -> None:
    """Print the logs of all Pods: by time, or as they come."""
    lines: Queue[tuple[str, str, bytes] | None] = Queue()

    def read(pod: Any) -> None:
        name, stamp = pod["metadata"]["name"], ""
        ranks = RankLines(None) if is_worker(pod) else job.rank_lines()
        try:
            for line in logs.read_lines(api, name, container_of(pod), options):
                stamp = line.stamp
                for whole in ranks.add(line.text):
                    lines.put((stamp, name, whole.text))
        except ClientError as error:
            lines.put((datetime.now(UTC).isoformat(), name, f"({error})".encode()))
        for whole in ranks.rest():
            lines.put((stamp, name, whole.text))
        lines.put(None)

    for pod in pods:
        threading.Thread(target=read, args=(pod,), daemon=True).start()
    coming = _until_all_ended(lines, len(pods))
    colours = {pod["metadata"]["name"]: _COLOURS[number % len(_COLOURS)] for number, pod in enumerate(pods)}
    width = max(map(len, colours))
    screen = console()
    for _, name, text in coming if options.follow else sorted(coming):
        screen.print(f"{name:<{width}} ", style=colours[name], end="")
        write_line(text)


def _until_all_ended(lines: "Queue[tuple[str, str, bytes] | None]", readers: int) -> Any:
    while readers:
        if (line := lines.get()) is None:
            readers -= 1
        else:
            yield line
