"""`convert`: a Slurm script becomes an MPIJob, and what could not be carried over is said."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from mpiop.api.mpi_implementations import LIBRARIES
from mpiop.client.errors import InvalidError
from mpiop.client.spec import JobSpec, manifest
from mpiop.kubectl.inputs import read_text
from mpiop.kubectl.launch import LAUNCHERS, has_expansion, read_launch, read_words
from mpiop.kubectl.output import to_yaml

_SHORT: Final[Mapping[str, str]] = {
    "J": "job-name",
    "n": "ntasks",
    "N": "nodes",
    "c": "cpus-per-task",
    "t": "time",
    "p": "partition",
    "G": "gpus",
}
_EXPORT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_TIME: Final = re.compile(r"(\d+-)?\d+(:\d+){0,2}")
_UNLIMITED: Final = frozenset({"UNLIMITED", "INFINITE", "0"})
_NO_SHELL: Final = "no shell reads this line: write the value into the job, or let the ranks run a script"
_ELSEWHERE: Final = "put it into the image, or into a script that the ranks run"
_GIGA: Final = {"": "Mi", "K": "Ki", "M": "Mi", "G": "Gi", "T": "Ti"}


@dataclass(slots=True)
class Script:
    """What a Slurm script asks for.

    Attributes:
        options: Of `#SBATCH` lines, by their long names.
        env: Exported variables.
        command: The program after `srun` or `mpirun`.
        left: Lines that have no counterpart, each with the reason.
    """

    options: dict[str, str] = field(default_factory=dict[str, str])
    env: dict[str, str] = field(default_factory=dict[str, str])
    command: list[str] = field(default_factory=list[str])
    left: list[str] = field(default_factory=list[str])


@click.command("convert")
@click.argument("script", type=click.Path(path_type=Path))
@click.option("--image", required=True, help="Image with the program and its MPI library.")
@click.option(
    "--mpi", "library", type=click.Choice(list(LIBRARIES)), default="openmpi", show_default=True, help="MPI library of the image."
)
def convert_verb(script: Path, image: str, library: str) -> None:
    """Turn a Slurm script into an MPIJob on standard output, for kubectl mpi submit."""
    job, left = converted(read_text(str(script)), image, library)
    click.echo(to_yaml(job), nl=False)
    for line in left:
        click.echo(f"not carried over: {line}", err=True)


def converted(text: str, image: str, library: str) -> tuple[dict[str, Any], list[str]]:
    """Return the MPIJob of a Slurm script, and what has no counterpart.

    Raises:
        InvalidError: It has no line with `srun` or `mpirun`.
    """
    script = read_script(text)
    if not script.command:
        raise InvalidError("the script has no line that begins with srun, mpirun or mpiexec, so there is nothing to run")
    options, left = script.options, script.left
    nodes = _number(options.pop("nodes", ""), 0)
    slots = _number(options.pop("ntasks-per-node", ""), 0)
    ranks = _number(options.pop("ntasks", ""), 0) or max(1, nodes) * max(1, slots)
    slots = slots or -(-ranks // max(1, nodes)) if nodes or slots else 1
    cpus = slots * _number(options.get("cpus-per-task", ""), 1)
    name = options.pop("job-name", "")
    fields: dict[str, Any] = {"ranks": ranks, "slots": slots, "env": script.env}
    for option, value in list(options.items()):
        if (convert := _OPTIONS.get(option)) is not None:
            fields |= convert(value, cpus)
        else:
            left.append(f"#SBATCH --{option}={value}")
    return manifest(JobSpec(command=script.command, image=image, mpi=library, **fields), _dns(name)), left


def read_script(text: str) -> Script:
    """Return what a script says, line by line."""
    script = Script()
    for raw in text.replace("\\\n", " ").splitlines():
        line = raw.strip()
        if line.startswith("#SBATCH"):
            _read_options(line, script)
        elif line and not line.startswith("#"):
            _read_line(line, script)
    return script


def _read_options(line: str, script: Script) -> None:
    try:
        words = shlex.split(line.removeprefix("#SBATCH"), comments=True)
    except ValueError:
        script.left.append(f"{line}  (a quote is not closed)")
        return
    while words:
        name, found, value = words.pop(0).lstrip("-").partition("=")
        if not found and words and not words[0].startswith("-"):
            value = words.pop(0)
        elif not found and len(name) > 1 and name[0] in _SHORT and name[1:].isdigit():
            name, value = name[0], name[1:]
        script.options[_SHORT.get(name, name)] = value


def _read_line(line: str, script: Script) -> None:
    try:
        words, rest = read_words(line)
    except ValueError:
        words, rest = [], ""
    if words and words[0] == "export" and not rest and _read_exports(words[1:], script):
        return
    if not words or words[0] not in LAUNCHERS or script.command:
        script.left.append(f"{line}  ({_ELSEWHERE})")
        return
    launch = read_launch(words, script.env)
    script.options |= launch.options
    script.command = list(map(_plain, launch.program))
    script.left += launch.left
    script.left += [f"{word}  ({_NO_SHELL})" for word in [*filter(has_expansion, launch.program), *filter(None, [rest])]]


def _read_exports(words: Sequence[str], script: Script) -> bool:
    """Take variables whose values need no shell; return whether all are such."""
    found = [_EXPORT.fullmatch(word) for word in words]
    if not all(found) or any(map(has_expansion, words)):
        return False
    script.env.update({each[1]: _plain(each[2]) for each in found if each})
    return True


def _plain(word: str) -> str:
    """Return a word without its quotes."""
    return "".join(shlex.split(word))


def _seconds(value: str, _cpus: int) -> dict[str, Any]:
    """Convert `[days-]hours:minutes:seconds`, `minutes:seconds` or minutes."""
    if value.upper() in _UNLIMITED:
        return {}
    if _TIME.fullmatch(value) is None:
        raise InvalidError(f"--time={value}: minutes, hours:minutes:seconds, days-hours:minutes:seconds or UNLIMITED is expected")
    days, dash, clock = value.rpartition("-")
    parts = [int(part) for part in clock.split(":")]
    if dash:
        hours, minutes, seconds = [*parts, 0, 0][:3]
    else:
        hours, minutes, seconds = ([0, *parts, 0] if len(parts) == 1 else [0, *parts] if len(parts) == 2 else parts)[:3]  # noqa: PLR2004
    return {"time_limit": int(days or 0) * 86400 + hours * 3600 + minutes * 60 + seconds}


def _memory(value: str, times: int) -> dict[str, Any]:
    found = re.fullmatch(r"(\d+)([KMGT]?)B?", value)
    if found is None:
        raise InvalidError(f"--mem={value}: a number with K, M, G or T is expected")
    return {"memory": f"{int(found[1]) * times}{_GIGA[found[2]]}"}


def _gpus(value: str, _cpus: int) -> dict[str, Any]:
    return {"gpus": _number(value.rpartition(":")[2], 1)}


_OPTIONS: Final[Mapping[str, Callable[[str, int], dict[str, Any]]]] = {
    "time": _seconds,
    "mem": lambda value, _cpus: _memory(value, 1),
    "mem-per-cpu": _memory,
    "cpus-per-task": lambda _value, cpus: {"cpu": str(cpus)},
    "gres": _gpus,
    "gpus-per-node": _gpus,
    "partition": lambda value, _cpus: {"queue": value},
}
"""Fields of `JobSpec` by option, from its value and the number of CPUs of a worker."""


def _number(text: str, default: int) -> int:
    return int(text) if text.isdigit() else default


def _dns(name: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")[:40]
