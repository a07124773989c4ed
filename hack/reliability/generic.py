"""Small changes everywhere in a few packages: how many of them do the tests notice?"""

import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from reliability.copies import MODULES, Copy
from reliability.invariants import ROOT
from reliability.mutator import mutants_of
from reliability.survivors import EXPLAINED
from reliability.trials import Trial, run_all

WANTED_PERCENT = 90.0

TESTS: Mapping[str, Sequence[str]] = {
    "informers": tuple(
        f"test/unit/informers/test_{name}.py"
        for name in (
            *("store", "shared_informer", "reflector_list_watch", "reflector_watch_list", "reflector_counts"),
            *("factory", "compaction", "informer_model"),
        )
    ),
    "workqueue": tuple(f"test/unit/test_workqueue{part}.py" for part in ("", "_rate_limiters", "_model")),
    "leaderelection": ("test/unit/test_leaderelection.py", "test/unit/test_leaderelection_parts.py"),
}
"""By package, what to run with a change in it; models last, since they take longest."""

_NOTICED = frozenset({
    *(pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR),  # the second: it cannot be imported
    *(-signal.SIGPROF, -signal.SIGALRM),  # a test did not end
})


@dataclass(frozen=True)
class Selection:
    """Which changes to try.

    Attributes:
        packages: In which packages; none is all.
        only: Texts of which the description of a change must have one; none is all.
        sample: How many of them at random; 0 is all.
    """

    packages: Sequence[str] = ()
    only: Sequence[str] = ()
    sample: int = 0


def run(selection: Selection, processes: int) -> int:
    """Try the changes that are selected, `processes` at a time, and return the exit status.

    It is 1 when too few are noticed or a survivor is not explained, 2 when the tests fail without any change, or cannot run with one.
    """
    trials = _selected(selection)
    if not trials:
        print(f"no change in {' '.join(selection.packages or TESTS)} has {' or '.join(selection.only)} in its line")
        return 2
    begun = time.monotonic()
    survivors: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="mpiop-mutants-") as directory:
        root = Copy(Path(directory)).root
        for unchanged in {trial.file.partition("/")[0]: Trial("", None, trial.tests) for trial in trials}.values():
            for _, outcome in run_all([unchanged], root, 1):
                if outcome != pytest.ExitCode.OK:
                    print(f"the tests fail without any change ({outcome}):\n{(root / 'output').read_text(errors='replace')[-2000:]}")
                    return 2
        for number, (trial, outcome) in enumerate(run_all(trials, root, processes), start=1):
            if outcome == pytest.ExitCode.OK:
                survivors.append(trial)
                print(f"SURVIVED {trial}", flush=True)
            elif outcome not in _NOTICED:
                print(f"the tests cannot run ({outcome}): {trial}")
                return 2
            if number % 20 == 0:
                print(f"[{number}/{len(trials)} {time.monotonic() - begun:.0f} s]", flush=True)
    return _judge(len(trials), survivors)


def _selected(selection: Selection) -> list[Trial]:
    found = [trial for package in selection.packages or TESTS for trial in trials_of(package)]
    if selection.only:
        found = [trial for trial in found if any(text in str(trial) for text in selection.only)]
    return random.sample(found, min(selection.sample, len(found))) if selection.sample else found


def trials_of(package: str) -> Iterator[Trial]:
    """Yield every change in `package`, with the tests that are about the changed module first."""
    for path in sorted((ROOT / MODULES / package).glob("*.py")):
        own = [test for test in TESTS[package] if path.stem in test]
        tests = [*own, *(test for test in TESTS[package] if test not in own)]
        for mutant in mutants_of(path.read_text(encoding="utf-8")):
            yield Trial(f"{package}/{path.name}", mutant, tests)


def key_of(trial: Trial) -> tuple[str, str, str, str]:
    """Return how `EXPLAINED` names the change of `trial`: it must survive edits elsewhere, so it has no line.

    Raises:
        ValueError: There is no change.
    """
    if trial.mutant is None:
        raise ValueError("a trial without a change has no key")
    return trial.file, trial.mutant.function, trial.mutant.old, trial.mutant.new


def _judge(total: int, survivors: Sequence[Trial]) -> int:
    # One explanation is for one change: a second one of the same text in the same function may mean something else.
    counts = Counter(map(key_of, survivors))
    unexplained = [str(trial) for trial in survivors if key_of(trial) not in EXPLAINED or counts[key_of(trial)] > 1]
    noticed = total - len(survivors)
    percent = 100.0 * noticed / total
    print("\n".join(["", *unexplained]))
    print(f"{noticed} of {total} changes noticed: {percent:.1f} % (wanted {WANTED_PERCENT:g} %); {len(unexplained)} others not explained")
    return 1 if percent < WANTED_PERCENT or unexplained else 0
