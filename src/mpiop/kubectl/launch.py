"""A line of a Slurm script that starts a program: its words, and the options of `srun` or `mpirun`."""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

_OPERATORS: Final = "<>|&;()"
_WORD: Final = re.compile(rf"""(?:[^\s'"\\{_OPERATORS}]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+|[{_OPERATORS}]+""")
_PART: Final = re.compile(r"""'[^']*'|\\.|"(?:[^"\\]|\\.)*"|[^'"\\]+""")
_ATTACHED: Final = re.compile(r"([A-Za-z])(\d+)")

_MPIRUN_NUMBERS: Final = {
    "n": "ntasks",
    "np": "ntasks",
    "c": "ntasks",
    "N": "ntasks-per-node",
    "npernode": "ntasks-per-node",
    "ppn": "ntasks-per-node",
    "perhost": "ntasks-per-node",
}
_SRUN_NUMBERS: Final = {
    "n": "ntasks",
    "ntasks": "ntasks",
    "N": "nodes",
    "nodes": "nodes",
    "c": "cpus-per-task",
    "cpus-per-task": "cpus-per-task",
    "ntasks-per-node": "ntasks-per-node",
}
LAUNCHERS: Final[Mapping[str, Mapping[str, str]]] = {"srun": _SRUN_NUMBERS, "mpirun": _MPIRUN_NUMBERS, "mpiexec": _MPIRUN_NUMBERS}
"""The options that are numbers of the job, by launcher, each with the option of `#SBATCH` that it overrides."""
_VARIABLES: Final = {
    "SLURM_NTASKS": "ntasks",
    "SLURM_NPROCS": "ntasks",
    "SLURM_NNODES": "nodes",
    "SLURM_JOB_NUM_NODES": "nodes",
    "SLURM_CPUS_PER_TASK": "cpus-per-task",
    "SLURM_NTASKS_PER_NODE": "ntasks-per-node",
}
"""Variables that repeat an option of `#SBATCH`."""
_FLAGS: Final = """allow-run-as-root exclusive kill-on-bad-exit label nooversubscribe overlap oversubscribe prepend-rank quiet
report-bindings tag-output unbuffered use-hwthread-cpus verbose K Q l q u v""".split()  # noqa: SIM905 - a table is easier to read
_WITH_VALUE: Final = """account am bind-to bootstrap chdir constraint cpu-bind cpu_bind display distribution envlist error exclude export f
genvlist gpu-bind gpus gpus-per-node gpus-per-task gres hint host hostfile hosts iface input job-name launcher machinefile map-by mem
mem-bind mem-per-cpu mpi nodelist output output-filename partition path prefix qos rank-by time timeout tune wd wdir
A C D G H J e i m o p t w x""".split()  # noqa: SIM905
_WORDS: Final[Mapping[str, int]] = dict.fromkeys(_FLAGS, 0) | dict.fromkeys(_WITH_VALUE, 1) | dict.fromkeys(["mca", "genv", "env"], 2)
"""How many words follow an option."""
_NEEDLESS: Final = frozenset({"mpi", "allow-run-as-root", "tag-output", "prepend-rank", "label", "l"})
"""Options whose effect each job has."""


@dataclass(slots=True)
class Launch:
    """What a launcher was told.

    Attributes:
        options: Options of `#SBATCH` that it overrides.
        program: The words of the program, as they are written.
        left: Options that have no counterpart.
    """

    options: dict[str, str] = field(default_factory=dict[str, str])
    program: list[str] = field(default_factory=list[str])
    left: list[str] = field(default_factory=list[str])


def read_words(line: str) -> tuple[list[str], str]:
    """Return the words of a command as they are written, and the rest of the line from a redirection or another command on.

    Raises:
        ValueError: A quote is not closed.
    """
    words: list[str] = []
    end = 0
    for found in _WORD.finditer(line):
        word, start = found[0], found.start()
        if line[end:start].strip():
            raise ValueError(line)
        if word.startswith("#"):
            return words, ""
        if word[0] in _OPERATORS:
            if words and words[-1].isdigit() and end == start and word[0] in "<>":  # 2>&1
                start -= len(words.pop())
            return words, line[start:]
        words.append(word)
        end = found.end()
    if line[end:].strip():
        raise ValueError(line)
    return words, ""


def has_expansion(word: str) -> bool:
    """Return whether a shell would put something else in the place of a variable or a command in this word."""
    return any(sign in part for part in _PART.findall(word) if part[0] not in "'\\" for sign in "$`")


def read_launch(words: Sequence[str], env: Container[str]) -> Launch:
    """Return what a launcher is told by the words of its line; variables in `env` are passed on anyway."""
    launcher, *rest = words
    launch, numbers = Launch(), LAUNCHERS[launcher]
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            break
        name, found, value = word.lstrip("-").partition("=")
        if (attached := _ATTACHED.fullmatch(name)) and attached[1] in numbers:
            name, found, value = attached[1], "=", attached[2]
        count = 0 if found else 1 if name in numbers else _WORDS.get(name, 0)
        following, rest = rest[:count], rest[count:]
        if name in numbers and _has_number(launch, numbers[name], value or "".join(following)):
            continue
        if name in _NEEDLESS or (name == "x" and following and following[0] in env):
            continue
        doubt = "" if name in numbers or name in _WORDS else "  (unknown: if a word after it is its value, correct the job's command)"
        launch.left.append(" ".join([launcher, word, *following]) + doubt)
    launch.program = rest
    return launch


def _has_number(launch: Launch, option: str, value: str) -> bool:
    """Take a number, and return whether it is one, or what `#SBATCH` says anyway."""
    if value.isdigit():
        launch.options[option] = value
        return True
    return _VARIABLES.get(value.strip('"${}')) == option
