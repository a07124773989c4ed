"""Small changes everywhere in a few packages: how many of them do the tests notice?"""

import asyncio
import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from reliability.copies import MODULES, Copy
from reliability.invariants import ROOT
from reliability.mutator import Mutant, mutants_of
from reliability.survivors import EXPLAINED

TIMEOUT_SECONDS = 30.0
"""A change that makes the tests hang is noticed."""

WANTED_PERCENT = 90.0

TESTS: Mapping[str, Sequence[str]] = {
    "informers": tuple(
        f"test/unit/informers/test_{name}.py"
        for name in ("store", "shared_informer", "reflector_list_watch", "reflector_watch_list", "factory", "compaction", "informer_model")
    ),
    "workqueue": ("test/unit/test_workqueue.py", "test/unit/test_workqueue_rate_limiters.py", "test/unit/test_workqueue_model.py"),
    "leaderelection": ("test/unit/test_leaderelection.py",),
}
"""By package, what to run with a change in it; models last, since they take longest."""


async def run(packages: Sequence[str], processes: int, sample: int) -> int:
    """Try every change in `packages` (all when there are none), or `sample` of them (0: all), and return the exit status.

    It is 1 when too few are noticed or a survivor is not explained, 2 when the tests fail without any change.
    """
    pending = [place for package in packages or TESTS for place in _places(package)]
    if sample:
        pending = random.sample(pending, min(sample, len(pending)))
    total, begun = len(pending), time.monotonic()
    survivors: list[tuple[str, Mutant]] = []
    pending.reverse()

    async def work(copy: Copy) -> None:
        while pending:
            file, mutant = pending.pop()
            copy.write(file, mutant.text)
            status, _ = await copy.test(TESTS[file.partition("/")[0]], TIMEOUT_SECONDS)
            copy.restore(file)
            if status == 0:
                survivors.append((file, mutant))
                print(f"SURVIVED {file}:{mutant}", flush=True)
            if len(pending) % 20 == 0:
                print(f"[{total - len(pending)}/{total} {time.monotonic() - begun:.0f} s]", flush=True)

    with tempfile.TemporaryDirectory(prefix="mpiop-mutants-") as directory:
        copies = [Copy(Path(directory, str(number))) for number in range(processes)]
        for package in packages or TESTS:
            status, output = await copies[0].test(TESTS[package], 10 * TIMEOUT_SECONDS)
            if status != 0:
                print(f"the tests fail without any change (status {status}):\n{output[-2000:]}")
                return 2
        await asyncio.gather(*map(work, copies))
    return _judge(total, survivors)


def _places(package: str) -> Iterator[tuple[str, Mutant]]:
    for path in sorted((ROOT / MODULES / package).glob("*.py")):
        for mutant in mutants_of(path.read_text(encoding="utf-8")):
            yield f"{package}/{path.name}", mutant


def _judge(total: int, survivors: Sequence[tuple[str, Mutant]]) -> int:
    unexplained = [f"{file}:{mutant}" for file, mutant in survivors if (file, mutant.old, mutant.new) not in EXPLAINED]
    percent = 100.0 * (total - len(survivors)) / total if total else 0.0
    print("\n".join(["", *unexplained]))
    noticed = total - len(survivors)
    print(f"{noticed} of {total} changes noticed: {percent:.1f} % (wanted {WANTED_PERCENT:g} %); {len(unexplained)} others not explained")
    return 1 if percent < WANTED_PERCENT or unexplained else 0
