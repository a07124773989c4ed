"""Random MPIJobs against a real API server and the operator as a process, a namespace for each hundred of them."""

import asyncio
import contextlib
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

import msgspec

from conformance.control_plane import ControlPlane, control_plane
from embedded.progress import Step
from faults.state import objects
from faults.testbed import delete_namespace, make_namespace
from fuzz.jobs import Strange, good_job, random_jobs
from fuzz.verdicts import Verdict, verdict
from mpiop.kube.errors import KubeError, StatusError, TransportError
from mpiop.kube.objects import Key, Object, uid_of
from mpiop.kube.resources import JOBS, MPIJOBS, PODS, Selection

BATCH = 100
PARALLEL = 5
CREATES = 8
"""At a time."""
PATIENCE_SECONDS = 120.0
HEALTHY_SECONDS = 30.0
"""All of a good job is made by then, whatever is next to it; alone it takes a second, and the machine may be busy."""
LOOK_SECONDS = 0.5
MOST_MIB = 300
"""Of memory: the operator has some 60 at rest."""
NESTING = 60_000
"""Calls on the stack, as the operator allows them, to read deep jobs."""
JOB_NAME = "training.kubeflow.org/job-name"


@dataclass(slots=True)
class Report:
    """What came of it.

    Attributes:
        verdicts: How many jobs ended how, by the way they were made and the verdict.
        problems: What should not have happened, a line each.
        slowest_seconds: The longest that a good job took to have its workers and its launcher Job.
        peak_mib: The most memory that the operator had.
    """

    verdicts: Counter[tuple[str, Verdict]] = field(default_factory=Counter[tuple[str, Verdict]])
    problems: list[str] = field(default_factory=list[str])
    slowest_seconds: float = 0.0
    peak_mib: float = 0.0

    def __str__(self) -> str:
        """Render it for people."""
        totals = Counter[str]()
        for (_, outcome), number in self.verdicts.items():
            totals[outcome] += number
        lines = [f"{number:>6} {outcome}" for outcome, number in totals.most_common()]
        lines.append(f"all of a good job among them was made after at most {self.slowest_seconds:.1f} s")
        lines.append(f"the operator had at most {self.peak_mib:.0f} MiB")
        return "\n".join([*lines, *self.problems, "", f"{totals.total()} jobs, {len(self.problems)} problems"])


async def run_campaign(count: int, number: int, folder: Path, step: Step, cluster: str = "fuzz") -> Report:
    """Try `count` jobs, the same ones for the same number; logs and the jobs that made problems go to `folder`."""
    sys.setrecursionlimit(NESTING)
    report, left = Report(), count
    async with control_plane(folder, cluster) as here:
        async with here.operator("operator") as process:
            places = asyncio.Semaphore(PARALLEL)

            async def run(batch: int) -> None:
                nonlocal left
                async with places:
                    jobs = await asyncio.to_thread(random_jobs, min(BATCH, count - batch * BATCH), number * 1_000_000 + batch)
                    await _Batch(here, f"fuzz-{batch}", report, folder).run(jobs)
                left -= len(jobs)
                step.now_left(f"{left} jobs")

            async with process.alive():
                await asyncio.gather(*(run(batch) for batch in range(-(-count // BATCH))))
            report.peak_mib = process.peak_mib()
        report.problems += _complaints(folder / "operator.log")
        if report.peak_mib > MOST_MIB:
            report.problems.append(f"the operator had {report.peak_mib:.0f} MiB")
    return report


@dataclass(slots=True)
class _Batch:
    """A namespace of random jobs, and good ones among them."""

    here: ControlPlane
    namespace: str
    report: Report
    folder: Path
    _born: dict[str, float] = field(default_factory=dict[str, float])
    _made: dict[str, Strange] = field(default_factory=dict[str, Strange])

    async def run(self, jobs: list[Strange]) -> None:
        await make_namespace(self.here.client, self.namespace)
        turns, middle = asyncio.Semaphore(CREATES), len(jobs) // 2
        good = [Strange("good", good_job(f"good-{index}")) for index in range(2)]

        async def create(strange: Strange) -> None:
            async with turns:
                await self._create(strange)

        await asyncio.gather(*(create(each) for each in (*jobs[:middle], good[0], *jobs[middle:], good[1])))
        try:
            await self._read()
            await self._judge()
            left = await self._read() - set(self._made)
        except KubeError as error:  # of all, because of one
            self.report.problems.append(f"the MPIJobs in {self.namespace} cannot be read: {error}")
        else:
            self.report.problems += [f"{name} in {self.namespace} is still there after its deletion" for name in left]
        with contextlib.suppress(StatusError):
            await delete_namespace(self.here.client, self.namespace)

    async def _create(self, strange: Strange) -> None:
        strange.job["metadata"]["namespace"] = self.namespace
        name = strange.job["metadata"]["name"]
        try:
            await self.here.client.create(MPIJOBS, cast("Object", strange.job), metadata_only=True)
        except StatusError as error:
            if not _is_refusal(error):
                self._complain(strange, f"the API server said {error}")
            self.report.verdicts[strange.how, Verdict.REFUSED] += 1
            return
        except TransportError as error:
            self._complain(strange, str(error))
            return
        self._born[name] = time.monotonic()
        self._made[name] = strange

    async def _read(self) -> set[str]:
        """Return the names of all jobs once the API server's watches have caught up with etcd, which takes seconds on a busy machine."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return await self._read_once()
            except StatusError as error:
                if not error.is_too_large_resource_version or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(LOOK_SECONDS)

    async def _read_once(self) -> set[str]:
        """Return the names of all jobs, from etcd, after a watch has brought them too."""
        selection, client = Selection(MPIJOBS, self.namespace), self.here.client
        async with client.watch(selection, resource_version="", timeout_seconds=60, send_initial_events=True) as events:
            async for event in events:
                if event["type"] == "ERROR":
                    raise StatusError("watch", cast("Any", event["object"]))
                if event["type"] == "BOOKMARK":  # all are there
                    break
        page = await client.list_page(selection, resource_version="")
        return {each["metadata"]["name"] for each in page["items"]}

    async def _judge(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._made and time.monotonic() < deadline:
            jobs, pods = await self._stored()
            judged = list[Object | None]()
            for name in list(self._made):
                outcome = verdict(jobs[name], pods[name]) if name in jobs else self._verdict_of_absent(name)
                if outcome is not None:
                    self._note(name, outcome)
                    judged.append(jobs.get(name))
            # What waits for a node would be asked for its events again and again.
            await asyncio.gather(*map(self._delete, judged))
            await asyncio.sleep(LOOK_SECONDS)
        for name, strange in self._made.items():
            self._complain(strange, f"nothing came of {name} in {PATIENCE_SECONDS:.0f} s")

    async def _delete(self, job: Object | None) -> None:
        if job is not None:
            with contextlib.suppress(StatusError):
                await self.here.client.delete(MPIJOBS, Key(self.namespace, job["metadata"]["name"]), uid=uid_of(job))

    def _verdict_of_absent(self, name: str) -> Verdict | None:
        """A job that may be deleted after its end was: it had failed, since nothing runs here that could succeed."""
        asks = self._made[name].job["metadata"].get("annotations", {}).get("mpiop.kubeflow.org/ttl-deletes-job") == "true"
        return Verdict.FAILED if asks else None

    def _note(self, name: str, outcome: Verdict) -> None:
        strange = self._made.pop(name)
        self.report.verdicts[strange.how, outcome] += 1
        if strange.how != "good":
            return
        last = ((PODS, f"{name}-worker-1"), (JOBS, f"{name}-launcher"))
        seen = [self.here.follower.first_seen(resource, self.namespace, made) for resource, made in last]
        seconds = max(time.monotonic() if at is None else at for at in seen) - self._born[name]
        self.report.slowest_seconds = max(self.report.slowest_seconds, seconds)
        if outcome is not Verdict.SERVED or seconds > HEALTHY_SECONDS:
            self._complain(strange, f"the good job {name} was {outcome} after {seconds:.1f} s")

    async def _stored(self) -> tuple[Mapping[str, Object], Mapping[str, list[Object]]]:
        jobs = {each["metadata"]["name"]: each for each in await objects(self.here.client, MPIJOBS, self.namespace, newest=False)}
        pods = defaultdict[str, list[Object]](list)
        for pod in await objects(self.here.client, PODS, self.namespace, newest=False):
            pods[pod["metadata"].get("labels", {}).get(JOB_NAME, "")].append(pod)
        return jobs, pods

    def _complain(self, strange: Strange, what: str) -> None:
        file = self.folder / f"{self.namespace}-{len(self.report.problems)}.json"
        file.write_bytes(msgspec.json.encode(strange.job))
        self.report.problems.append(f"{what}; the job ({strange.how}): {file}")


def _complaints(log: Path) -> list[str]:
    """Return what an operator should not report whatever it is given: errors, and lines that it did not log."""
    found = []
    for line in log.read_text(encoding="utf-8").splitlines():
        try:
            said: Any = json.loads(line)
        except ValueError:
            found.append(f"in the log: {line}")
            continue
        if said.get("level") in {"error", "critical"}:
            found.append(f"in the log: {line}")
    return found


def _is_refusal(error: StatusError) -> bool:
    """Return whether the API server rejects an object and gives a reason; etcd's limit of 1.5 MiB comes as code 500."""
    is_too_large = "etcdserver: request is too large" in error.status_message
    return is_too_large or (HTTPStatus.BAD_REQUEST <= error.code < HTTPStatus.INTERNAL_SERVER_ERROR and bool(error.status_message))
