"""Tests of a changed module, for each change in a process of its own: forked when all that does not change is loaded already.

Nothing is written: the process takes the changed module from memory. A test that does not end is ended by the kernel, which counts
processor time, so that a busy machine changes no result; and what tests draw at random is the same each time, so that chance changes none.
"""

import gc
import importlib
import os
import random
import resource
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import NoReturn

import hypothesis
import pytest

from reliability.copies import MODULES
from reliability.mutator import Mutant

TEST_CPU_SECONDS = 10.0
TEST_SECONDS = 300.0
"""How long one test may go on, in processor time and by the clock; the longest that there is takes a fifth."""

_MEMORY_BYTES = 2 << 30
"""What a change that makes something grow for ever may take."""

_LOADED_BEFORE = ("aiohttp", "cryptography.x509", "hypothesis.stateful", "kubernetes", "msgspec", "prometheus_client", "structlog", "yaml")
_OPTIONS = ("-x", "--quiet", "--tb=short", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov")


@dataclass(frozen=True)
class Trial:
    """Tests to run with a change.

    Attributes:
        file: The changed module, relative to src/mpiop.
        mutant: The change; None is none.
        tests: What to run, up to the first failure.
    """

    file: str
    mutant: Mutant | None
    tests: Sequence[str]

    def __str__(self) -> str:
        """Render it on one line."""
        return f"{self.file}:{self.mutant or ' unchanged'}"


def run_all(trials: Iterable[Trial], root: Path, processes: int) -> Iterator[tuple[Trial, int]]:
    """Run `trials` in the copy at `root`, so many processes at a time, and yield each with its outcome when it ends.

    The outcome is pytest's exit status, or minus the signal that ended the process. What the tests wrote is in the file `output` there.
    """
    for name in _LOADED_BEFORE:
        importlib.import_module(name)
    gc.freeze()
    running: dict[int, Trial] = {}
    try:
        for trial in trials:
            if len(running) >= processes:
                yield _ended(running)
            running[_start(trial, root)] = trial
        while running:
            yield _ended(running)
    finally:
        for pid in running:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _ended(running: dict[int, Trial]) -> tuple[Trial, int]:
    pid, status = os.wait()
    return running.pop(pid), os.waitstatus_to_exitcode(status)


def _start(trial: Trial, root: Path) -> int:
    sys.stdout.flush()
    return os.fork() or _be_the_child(trial, root)


def _be_the_child(trial: Trial, root: Path) -> NoReturn:
    status = int(pytest.ExitCode.INTERNAL_ERROR)
    try:
        os.chdir(root)
        output = os.open("output" if trial.mutant is None else os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        random.seed(0)
        hypothesis.settings.register_profile(
            "trial", derandomize=True, phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate), report_multiple_bugs=False
        )
        hypothesis.settings.load_profile("trial")
        if trial.mutant is not None:
            sys.meta_path.insert(0, _Changed(trial.file, trial.mutant.text, root))
        status = int(pytest.main([*_OPTIONS, *trial.tests], plugins=[_Patience()]))
    finally:
        os._exit(status)  # nothing of the parent's is to be cleaned up by its copy


class _Patience:
    """A plugin of pytest: each test begins with the whole time."""

    def __init__(self) -> None:
        self.pytest_runtest_logstart()

    def pytest_runtest_logstart(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, TEST_CPU_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, TEST_SECONDS)


class _Changed(MetaPathFinder):
    """Finds one module, with another text."""

    def __init__(self, file: str, text: str, root: Path) -> None:
        self._name = ".".join(["mpiop", *Path(file).with_suffix("").parts]).removesuffix(".__init__")
        self._path = root / MODULES / file
        self._text = text

    def find_spec(self, fullname: str, _path: object, _target: object = None) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        return spec_from_file_location(fullname, self._path, loader=_Loader(fullname, str(self._path), self._text))


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, text: str) -> None:
        super().__init__(fullname, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._text, self.get_filename(fullname), "exec", dont_inherit=True)
