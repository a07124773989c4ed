"""Run many short jobs on simulated nodes and see that the operator's memory, descriptors and tasks stay where they were.

Two replicas, a leader and a standby, run as processes against an embedded control plane that only the soak uses. Jobs come at a
steady pace, finish after a second and are deleted a little later, as a user's clean-up does it: so what the operator has to
remember stays the same, and what grows all the same is a leak.
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench import command
from bench.soak_samples import REFERENCE_SECONDS, WARM_UP_SECONDS, Course, Sample, complaints, sample_of, table
from demonstration.cluster import ROOT
from e2e.stream import JobStream
from e2e.team import Member, Team, team_of
from e2e.waiting import until
from faults.testbed import prepared
from mpiop.kube.errors import KubeError
from mpiop.kube.objects import Key, uid_of
from mpiop.kube.resources import MPIJOBS
from mpiop.kube.session import IDLE_SECONDS

CLUSTER = "soak"
LEASE_SECONDS = 60
"""A long lease: the load of the machine must not change the leader."""

SAMPLE_SECONDS = 5.0
REAP_SECONDS = 1.0
LINGER_SECONDS = 20.0
END_SECONDS = 300.0
PATIENCE = 1.1
"""How much longer than asked for jobs may come."""

IDLE_SAMPLES = 5
"""A renewal of the lease or the end of a watch may be under way at one sample; the least of some is what is there when nothing is."""


@dataclass
class Soak:
    """One soak.

    Attributes:
        team: The replicas; the first leads.
        stream: Where jobs come from.
        seconds: For how long they come.
        begun: Loop time of the first job.
        left: How many jobs there were at the last read.
        samples: Of each replica.
    """

    team: Team
    stream: JobStream
    seconds: float
    begun: float = 0.0
    left: int = 0
    samples: dict[str, list[Sample]] = field(default_factory=dict[str, list[Sample]])

    def members(self) -> Iterator[tuple[str, Member]]:
        """Yield each replica with its role."""
        yield from zip(("leader", "standby"), self.team.members, strict=True)

    async def run(self) -> list[Course]:
        """Run it and return what the replicas did."""
        loop = asyncio.get_running_loop()
        self.begun = loop.time() + IDLE_SECONDS + SAMPLE_SECONDS
        before = await self._idle()
        self.begun = loop.time()
        async with asyncio.TaskGroup() as group:
            reaping = group.create_task(self._reap())
            sampling = group.create_task(self._sample())
            with contextlib.suppress(TimeoutError):  # a machine that cannot keep the pace need not continue for hours
                async with asyncio.timeout(self.seconds * PATIENCE):
                    await self.stream.run()
            sampling.cancel()
            await until("the end and the clean-up of all jobs", self._is_over, timeout_seconds=END_SECONDS)
            reaping.cancel()
        after = await self._idle()
        return [Course(name, before[name], self.samples[name], after[name]) for name, _ in self.members()]

    async def _is_over(self) -> bool:
        return not self.left and self.stream.under_way <= 0

    async def _idle(self) -> dict[str, Sample]:
        """Return samples of the replicas when nothing is to be done and unused connections have been closed."""
        await asyncio.sleep(IDLE_SECONDS + SAMPLE_SECONDS)
        found = dict[str, Sample]()
        for _ in range(IDLE_SAMPLES):
            await asyncio.sleep(1)
            for name, member in self.members():
                sample = await self._read(member)
                found[name] = min(found.get(name, sample), sample, key=lambda each: (each.descriptors, each.tasks))
        return found

    async def _read(self, member: Member) -> Sample:
        return sample_of(asyncio.get_running_loop().time() - self.begun, await member.metrics())

    async def _sample(self) -> None:
        self.samples = {name: [] for name, _ in self.members()}
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            for name, member in self.members():
                with contextlib.suppress(KeyError):  # a scrape that was not answered in time is not a sample
                    self.samples[name].append(await self._read(member))
            if self.samples["leader"]:
                self._show_progress()

    def _show_progress(self) -> None:
        newest, stream = self.samples["leader"][-1], self.stream
        line = (
            f"{newest.at:5.0f} of {self.seconds:.0f} s: {len(stream.created)} jobs created, {len(stream.succeeded)} succeeded, "
            f"{len(stream.failed)} failed; the leader has {newest.rss_mib:.1f} MiB, {newest.descriptors} descriptors, {newest.tasks} tasks"
        )
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{line}")
        elif newest.at % 60 < SAMPLE_SECONDS:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    async def _reap(self) -> None:
        """Delete jobs a little after they have ended."""
        loop = asyncio.get_running_loop()
        while True:
            with contextlib.suppress(KubeError):  # what was not deleted is in the next round
                jobs = await self.stream.read_jobs()
                self.left = len(jobs)
                for job in jobs:
                    name, now = job["metadata"]["name"], loop.time()
                    if now - self.stream.succeeded.get(name, now) > LINGER_SECONDS:
                        await self.stream.client.delete(MPIJOBS, Key(self.stream.namespace, name), uid=uid_of(job))
            await asyncio.sleep(REAP_SECONDS)


async def soak(minutes: float, jobs: int, folder: Path) -> int:
    """Run the soak and print what came of it; return 1 when something is wrong."""
    async with (
        prepared(CLUSTER, folder, options=("--kwok", "2")) as testbed,
        team_of(testbed, "soak", 1, lease_seconds=LEASE_SECONDS) as team,
    ):
        await team.until_led()
        await team.add()
        stream = JobStream(testbed.client, team.namespace, jobs / (minutes * 60), most=jobs)
        running = Soak(team, stream, minutes * 60)
        courses = await running.run()
        wrong = [each for course in courses for each in complaints(course)]
        if stream.failed:
            wrong.append(f"{len(stream.failed)} jobs failed: {', '.join(sorted(stream.failed)[:10])}")
        exits = team.exits()
    if len(stream.created) < jobs:
        wrong.append(f"only {len(stream.created)} of {jobs} jobs came: the machine is busy with other things, or the API server is slow")
    if exits:
        wrong.append(f"processes ended with {exits}")
    print(f"\n{table(courses)}\n\n{len(stream.succeeded)} of {jobs} jobs succeeded; idle is {IDLE_SECONDS:.0f} s after the last was gone")
    print("\n".join(wrong) if wrong else "memory, descriptors and tasks stayed where they were")
    return 1 if wrong else 0


def main() -> int:
    """Read the command line, run, and leave nothing behind but the logs of a soak that failed."""
    parser = argparse.ArgumentParser(prog="soak", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=20, help="for how long jobs come (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2000, help="how many (default: %(default)s)")
    given = parser.parse_args()
    if given.minutes * 60 <= WARM_UP_SECONDS + REFERENCE_SECONDS:
        parser.error(f"--minutes {given.minutes:g}: the first {(WARM_UP_SECONDS + REFERENCE_SECONDS) / 60:g} show nothing, so make it more")
    folder = ROOT / "build" / "soak" / f"s{os.getpid()}"
    begun = time.monotonic()
    code = asyncio.run(soak(given.minutes, given.jobs, folder))
    print(f"took {time.monotonic() - begun:.0f} s" + (f"; logs: {folder.relative_to(ROOT)}" if code else ""))
    if not code:
        shutil.rmtree(folder)
    return code


if __name__ == "__main__":
    sys.exit(command.run("soak", main))
