"""Reads the options of `srun`, `mpirun` and the like: the number of ranks, and those without a counterpart."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mpiop.kube.text import whole_number

_ATTACHED: Final = re.compile(r"([A-Za-z])(\d+)")
_MPIRUN: Final[Mapping[str, str]] = {"n": "ntasks", "np": "ntasks", "c": "ntasks", "ppn": "ntasks-per-node", "perhost": "ntasks-per-node"}
_SRUN: Final[Mapping[str, str]] = {
    "n": "ntasks",
    "np": "ntasks",
    "ntasks": "ntasks",
    "N": "nodes",
    "nodes": "nodes",
    "c": "cpus-per-task",
    "cpus-per-task": "cpus-per-task",
    "ntasks-per-node": "ntasks-per-node",
    "tasks-per-node": "ntasks-per-node",
}
LAUNCHERS: Final[Mapping[str, Mapping[str, str]]] = {
    **dict.fromkeys(("srun", "ibrun"), _SRUN),
    **dict.fromkeys(("mpirun", "mpiexec", "mpiexec.hydra", "orterun"), _MPIRUN),
}
"""The options that are numbers, by launcher, each with the option of `#SBATCH` that it overrides."""
SLURMS: Final = frozenset({"srun", "ibrun"})
_NEEDLESS: Final = frozenset(
    """allow-run-as-root exact exclusive kill-on-bad-exit overlap prepend-rank quiet tag-output unbuffered verbose
    K Q q u v""".split()  # noqa: SIM905 - a table is easier to read
)
"""Flags whose effect each job has, or that change no result."""
_OF_THE_SHIM: Final = frozenset("chdir error export input job-name label multi-prog nodelist output D J e i l o w".split())  # noqa: SIM905
"""Options of srun that only the shim knows."""
_IGNORED: Final = frozenset(
    """account accel-bind comment constraint contiguous cpu-bind cpu-freq cpu_bind distribution gpu-bind gpus gpus-per-node
    gpus-per-socket gpus-per-task gres hint mem mem-bind mem-per-cpu mem-per-gpu mem_bind network no-kill ntasks-per-core
    ntasks-per-socket overcommit oversubscribe partition preserve-env profile propagate qos reservation signal spread-job threads-per-core
    time wait A C G O W k m p s t""".split()  # noqa: SIM905
)
"""Options of srun that the shim ignores, after a report."""
_FLAGS: Final = frozenset("contiguous label multi-prog no-kill overcommit oversubscribe preserve-env spread-job O k l s".split())  # noqa: SIM905


@dataclass(slots=True)
class Launch:
    """What a launcher is given.

    Attributes:
        options: Options of `#SBATCH` that it overrides.
        program: The words of the program.
        left: Options that have no counterpart, each with the reason.
        is_simple: Whether `mpirun -n N program` does the same.
    """

    options: dict[str, str] = field(default_factory=dict[str, str])
    program: list[str | None] = field(default_factory=list[str | None])
    left: list[str] = field(default_factory=list[str])
    is_simple: bool = True


def read_launch(words: Sequence[str | None]) -> Launch:
    """Return what the words of a launcher's command ask for; None is a word that only a shell knows."""
    launcher, *rest = words
    launch, numbers = Launch(), LAUNCHERS[launcher or ""]
    while rest and (rest[0] is None or rest[0].startswith("-")):
        word = rest.pop(0)
        if word is None:
            launch.is_simple = False
            return launch
        if word == "--":
            break
        name, is_attached, value = word.lstrip("-").partition("=")
        if (attached := _ATTACHED.fullmatch(name)) and attached[1] in numbers:
            name, is_attached, value = attached[1], "=", attached[2]
        if name in numbers:
            number = value if is_attached else rest.pop(0) if rest else None
            if number is None or whole_number(number) is None:
                launch.is_simple = False
            else:
                launch.options[numbers[name]] = number
        elif launcher in SLURMS:
            _read_srun_option(word, rest, launch)
        elif name not in _NEEDLESS:
            launch.is_simple = False  # the shim passes it to mpirun
            return launch
    launch.program = rest
    launch.is_simple &= bool(rest) and None not in rest and ":" not in rest
    return launch


def _read_srun_option(word: str, rest: list[str | None], launch: Launch) -> None:
    name, is_attached, _ = word.lstrip("-").partition("=")
    key = name if word.startswith("--") else "l" if "l" in name and not set(name) - _NEEDLESS - {"l"} else name[:1]
    if key in _NEEDLESS:
        return
    if not is_attached and key not in _FLAGS and len(key) == len(name) and rest:
        word = f"{word} {rest.pop(0) or '…'}"
    if key == "mpi":
        return
    launch.is_simple = False
    if key in _IGNORED:
        launch.left.append(f"srun {word}  (ignored)")
    elif key not in _OF_THE_SHIM:
        launch.left.append(f"srun {word}  (not supported: the script gets an error there)")
