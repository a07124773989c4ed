"""Building the parts into the cache: each once, by two workers, safe next to other builds."""

import os
import platform
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from embedded.errors import ClusterError
from embedded.layout import cache_folder
from embedded.locks import locked
from embedded.parts import PARTS, Part, fingerprint
from embedded.progress import Progress
from embedded.toolchain import build_environment, find_go
from pacing.pace import in_words, measured_pace
from pacing.shared_work import SharedWork, record_pace, recorded_pace

BYTES_A_SECOND = 10_000_000
"""Modules, object files and results, by the seconds that their part takes to build, with some air: 7.7 GB in 866 s were measured."""

# Linking alone uses one core, so a second build next to it is free; a third would only take memory.
WORKERS = 2
OVERLAP = 0.65
"""The parts of a cluster take 741 s one by one, and 480 s together: they share packages, and one compiles while another is linked."""
PACE_FILE = "pace"
SYMPTOMS = (
    ("no space left on device", "the disk is full; free some or set MPIOP_CACHE"),
    ("dial tcp", "the Go module proxy cannot be reached; check the network and GOPROXY"),
    ("proxyconnect", "the Go module proxy cannot be reached; check the network and HTTPS_PROXY"),
    ("i/o timeout", "the Go module proxy does not answer; check the network and GOPROXY"),
    ("TLS handshake", "the Go module proxy cannot be reached; check the network and GOPROXY"),
    ("signal: killed", "the machine ran out of memory; 4 GB are needed"),
)


def part_folder(part: Part) -> Path:
    """Return where the programs of `part` are, or will be."""
    return cache_folder() / f"{part.name}-{fingerprint(part, platform.machine())}"


def programs_of(names: tuple[str, ...]) -> dict[str, str]:
    """Return the path of each program of the parts `names`."""
    return {name: str(part_folder(PARTS[part]) / name) for part in names for program in PARTS[part].programs for name in program.names}


def explain(part: str, output: str) -> str:
    """Return one sentence for what made `go build` fail."""
    lines = [line for line in output.strip().splitlines() if not line.startswith(("go: downloading", "#"))] or ["no output"]
    for symptom, meaning in SYMPTOMS:
        if any(symptom in line for line in lines):
            return f"building {part}: {meaning} ({lines[-1].strip()[:200]})"
    return f"building {part}: {lines[-1].strip()[:300]}"


def build(names: tuple[str, ...], progress: Progress) -> None:
    """Build those of the parts `names` that the cache lacks.

    Raises:
        ClusterError: A build failed; the others were ended and nothing half-made is left.
    """
    missing = missing_parts(names)
    if not missing:
        return
    _check_disk(missing)
    go = find_go(progress)
    missing.sort(key=lambda part: -part.seconds)
    progress.say(f"Building from source, this once, into {cache_folder()}")
    progress.expect(1)
    work = SharedWork({part.name: part.seconds for part in missing}, _pace(), time.monotonic)
    builders = [_Builder(part, go, progress, work) for part in missing]
    with progress.step("build", lambda: _left(work, missing)) as step, ThreadPoolExecutor(WORKERS) as pool:
        futures = {pool.submit(builder.run): part for builder, part in zip(builders, missing, strict=True)}
        try:
            for future in as_completed(futures):
                future.result()
                work.done(futures[future].name)
                missing.remove(futures[future])
                step.now_left(lambda: _left(work, missing))
            record_pace(cache_folder() / PACE_FILE, work.pace)
        except BaseException:
            for future in futures:
                future.cancel()
            for builder in builders:
                builder.stop()
            raise


def missing_parts(names: tuple[str, ...]) -> list[Part]:
    """Return those of the parts `names` that the cache lacks."""
    return [PARTS[name] for name in names if not part_folder(PARTS[name]).exists()]


def estimated_seconds(missing: Sequence[Part]) -> float:
    """Return how long it takes here to build parts."""
    return _pace() * sum(part.seconds for part in missing)


def _pace() -> float:
    """Return the pace of the last build here, else what this machine's processor lets expect."""
    return recorded_pace(cache_folder() / PACE_FILE) or measured_pace() * OVERLAP


def _left(work: SharedWork, missing: list[Part]) -> str:
    return f"{in_words(work.left_seconds())}, {', '.join(part.name for part in missing)}" if missing else ""


def _check_disk(missing: list[Part]) -> None:
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    needed = BYTES_A_SECOND * sum(part.seconds for part in missing)
    free = shutil.disk_usage(cache).free
    if free < needed:
        room = f"{free / 1e9:.1f} GB free and building needs {needed / 1e9:.1f}"
        raise ClusterError(f"the disk of {cache} has {room}; free some or set MPIOP_CACHE")


class _Builder:
    """One part being built; `stop` may come from another thread."""

    def __init__(self, part: Part, go: str, progress: Progress, work: SharedWork) -> None:
        self._part = part
        self._work = work
        self._go = go
        self._progress = progress
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def run(self) -> None:
        target = part_folder(self._part)
        lock = target.parent / f"{self._part.name}.lock"
        with locked(lock, lambda: self._progress.say(f"Waiting for another build of {self._part.name}")):
            for leftover in target.parent.glob(f".tmp-{self._part.name}-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            if target.exists() or self._stopped:
                return
            unfinished = target.parent / f".tmp-{target.name}"
            unfinished.mkdir()
            try:
                self._compile(unfinished)
                unfinished.rename(target)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)

    def stop(self) -> None:
        self._stopped = True
        if self._process and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def _compile(self, folder: Path) -> None:
        part = self._part
        self._work.begin(part.name)
        for program in part.programs:
            file, *links = program.names
            flags = ["-trimpath", "-ldflags", part.linker_flags, *(["-tags", part.tags] if part.tags else [])]
            # Killed itself, this command takes the compiler along.
            command = ["setpriv", "--pdeathsig=KILL", self._go, "build", *flags, "-o", str(folder / file), program.package]
            self._process = subprocess.Popen(
                command,
                cwd=part.folder,
                env=build_environment(self._go),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            _, output = self._process.communicate()
            if self._process.returncode != 0:
                raise ClusterError(explain(part.name, output))
            for link in links:
                os.link(folder / file, folder / link)
