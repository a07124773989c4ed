"""What a soak measures of a process, and what it makes of it: whether memory, descriptors and tasks stay where they were."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

WARM_UP_SECONDS = 120.0
"""Caches, pools and the allocator's arenas fill in that time."""

REFERENCE_SECONDS = 60.0
"""What memory is compared with: the median of so long after the warm-up. A single sample may be a peak."""

MEMORY_TOLERANCE = 0.1

SPARE_DESCRIPTORS = 2
"""How far the least of a minute may be above that of the first: a kept-alive connection more or less, as syncs happened to meet."""

SPARE_TASKS = 2
"""The same for tasks: the scrape that counts them and a sync may be under way at every sample of a minute."""

WINDOW_SECONDS = 60.0
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Sample:
    """A process at one moment.

    Attributes:
        at: Seconds since the first job.
        rss_mib: Resident memory.
        descriptors: Open files and connections.
        tasks: Tasks of the event loop.
        cpu_seconds: Processor time since its start.
    """

    at: float
    rss_mib: float
    descriptors: int
    tasks: int
    cpu_seconds: float


def sample_of(at: float, samples: Mapping[str, float]) -> Sample:
    """Read a sample from what the process serves at /metrics.

    Raises:
        KeyError: A series is missing.
    """
    return Sample(
        at=at,
        rss_mib=samples["process_resident_memory_bytes"] / _MIB,
        descriptors=int(samples["process_open_fds"]),
        tasks=int(samples["mpi_operator_asyncio_tasks"]),
        cpu_seconds=samples["process_cpu_seconds_total"],
    )


@dataclass(frozen=True, slots=True)
class Course:
    """What one process did.

    Attributes:
        name: Which.
        idle_before: Before the first job.
        busy: While jobs came.
        idle_after: When all jobs were gone and unused connections closed.
    """

    name: str
    idle_before: Sample
    busy: Sequence[Sample]
    idle_after: Sample


def complaints(course: Course) -> list[str]:
    """Return what did not stay where it was after the warm-up; empty is healthy."""
    steady = [sample for sample in course.busy if sample.at >= WARM_UP_SECONDS]
    if not steady:
        return [f"{course.name}: no sample after the warm-up"]
    return [*_memory(course, steady), *_counts(course, steady)]


def _memory(course: Course, steady: Sequence[Sample]) -> list[str]:
    reference = median(sample.rss_mib for sample in steady if sample.at <= steady[0].at + REFERENCE_SECONDS)
    off = [sample for sample in (*steady, course.idle_after) if abs(sample.rss_mib - reference) > MEMORY_TOLERANCE * reference]
    if not off:
        return []
    worst = max(off, key=lambda sample: abs(sample.rss_mib - reference))
    memory = f"memory of {worst.rss_mib:.1f} MiB after {worst.at:.0f} s"
    return [f"{course.name}: {memory}, more than {MEMORY_TOLERANCE:.0%} off {reference:.1f} MiB ({len(off)} of {len(steady)} samples)"]


def _counts(course: Course, steady: Sequence[Sample]) -> list[str]:
    found = []
    for what, spare in (("descriptors", SPARE_DESCRIPTORS), ("tasks", SPARE_TASKS)):
        lows = [min(getattr(sample, what) for sample in window) for window in windows(steady)]
        if max(lows) > lows[0] + spare:
            found.append(f"{course.name}: {what} do not come down any more: at least {lows[0]} at first, {max(lows)} later ({lows})")
        before, after = getattr(course.idle_before, what), getattr(course.idle_after, what)
        if after != before:
            found.append(f"{course.name}: {after} {what} when idle again, {before} before")
    return found


def windows(samples: Sequence[Sample]) -> list[list[Sample]]:
    """Return the samples by the minute; a last one of less than half a minute belongs to the one before."""
    found = list[list[Sample]]()
    for sample in samples:
        if not found or sample.at >= found[-1][0].at + WINDOW_SECONDS:
            found.append([])
        found[-1].append(sample)
    if len(found) > 1 and found[-1][-1].at - found[-1][0].at < WINDOW_SECONDS / 2:
        found[-2].extend(found.pop())
    return found


def table(courses: Sequence[Course]) -> str:
    """Render the courses, a line a minute: what is least and most in it."""
    lines = [f"{'':>8} " + "".join(f"{course.name:^42}" for course in courses)]
    head = f"{'RSS MiB':>12}{'descriptors':>13}{'tasks':>9}{'CPU %':>8}"
    lines.append(f"{'minute':>8} " + head * len(courses))
    lines.append(f"{'idle':>8} " + "".join(_single(course.idle_before) for course in courses))
    rows = [[_window(window) for window in windows(course.busy)] for course in courses]
    lines += [f"{number:>8} " + "".join(cells) for number, cells in enumerate(zip(*rows, strict=False), 1)]
    lines.append(f"{'idle':>8} " + "".join(_single(course.idle_after) for course in courses))
    return "\n".join(lines)


def _window(window: Sequence[Sample]) -> str:
    seconds = window[-1].at - window[0].at
    cpu = 100 * (window[-1].cpu_seconds - window[0].cpu_seconds) / seconds if seconds > 0 else 0.0
    memory = _range([sample.rss_mib for sample in window], "{:.1f}")
    counts = [_range([getattr(sample, what) for sample in window], "{:d}") for what in ("descriptors", "tasks")]
    return f"{memory:>12}{counts[0]:>13}{counts[1]:>9}{cpu:>8.1f}"


def _single(sample: Sample) -> str:
    return f"{sample.rss_mib:>12.1f}{sample.descriptors:>13}{sample.tasks:>9}{'':>8}"


def _range(values: Sequence[float], form: str) -> str:
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low}-{high}"
