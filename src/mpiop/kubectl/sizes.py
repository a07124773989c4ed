"""Converts the sizes of `#SBATCH` into fields of a job: ranks, slots, CPUs, memory, GPUs and time.

Slurm has nodes and tasks, a job has workers with slots: with `--nodes`, the slots are the tasks divided by the nodes, rounded up. Options
are read in the order of `_READERS`, because some need what others have found. Invalid values are errors, never defaults.
"""

import re
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from mpiop.api.annotations import CHECKPOINT_GRACE, CHECKPOINT_SIGNAL, SSH
from mpiop.api.constants import CHECKPOINT_SIGNALS, SSH_INJECTED
from mpiop.client.errors import InvalidError
from mpiop.kube.text import whole_number

_TIME: Final = re.compile(r"(?:(?P<days>\d{1,9})-)?(?P<clock>\d{1,9}(?::\d{1,9}){0,2})")
_UNLIMITED: Final = frozenset({"UNLIMITED", "INFINITE", "-1"})
_MEMORY: Final = re.compile(r"(\d{1,15})([KMGT]?)B?", re.IGNORECASE)
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_GPU: Final = re.compile(r"gpu(?::(?P<type>[A-Za-z_][\w.-]*))?(?::(?P<number>\d{1,9}))?(?:\(.*\))?")
_GPUS: Final = re.compile(r"(?:(?P<type>[A-Za-z_][\w.-]*):)?(?P<number>\d{1,9})")
_SIGNAL: Final = re.compile(r"(?:(?P<flags>[RB]{1,2}):)?(?P<name>\w+)(?:@(?P<seconds>\d{1,5}))?", re.IGNORECASE)
_SIGNALS: Final = {"USR1": "SIGUSR1", "10": "SIGUSR1", "USR2": "SIGUSR2", "12": "SIGUSR2"}
_KIB: Final = {"": 1024, "K": 1, "M": 1024, "G": 1024**2, "T": 1024**3}
_UNITS: Final = {"": "Mi", "K": "Ki", "M": "Mi", "G": "Gi", "T": "Ti"}


@dataclass(slots=True)
class Sizes:
    """How large a job is.

    Attributes:
        nodes: Workers that the script names; 0 if it leaves them to Slurm.
        ranks: MPI processes.
        slots: Processes on each worker.
        tasks: What `--ntasks` or `--ntasks-per-node` make `SLURM_NTASKS`; 0 without, as Slurm then leaves it out.
        per_node: `--ntasks-per-node`; 0 without.
        cpus_per_task: `--cpus-per-task`; 0 without.
        fields: Further fields of `JobSpec`.
        variables: `SLURM_MEM_PER_NODE` and the like, in MiB.
        left: Options without a counterpart, each with the reason.
        notes: What a user should know of the choice.
    """

    nodes: int
    ranks: int
    slots: int
    tasks: int
    per_node: int
    cpus_per_task: int
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    variables: dict[str, str] = field(default_factory=dict[str, str])
    left: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    @property
    def workers(self) -> int:
        """Return the number of workers."""
        return -(-self.ranks // self.slots)


def read_sizes(options: MutableMapping[str, str], largest: int = 0) -> Sizes:
    """Take from `options` what decides the sizes, and return these.

    Args:
        options: Values by long option.
        largest: Ranks of the largest launch of the script, which count if the options name no number.

    Raises:
        InvalidError: A value is not valid in Slurm.
    """
    notes: list[str] = []
    nodes = _nodes(options.pop("nodes", ""), notes)
    per_node = _number("ntasks-per-node", options.pop("ntasks-per-node", ""))
    tasks = _number("ntasks", options.pop("ntasks", ""))
    cpus = _number("cpus-per-task", options.pop("cpus-per-task", ""))
    tasks = tasks or max(1, nodes) * per_node
    ranks = tasks or max(1, nodes)
    if largest > ranks and not tasks:
        ranks = largest
        notes.append(f"the script names no --ntasks: the job has {largest} ranks, as many as its largest launch")
    # As Slurm does, at most one node for each task.
    slots = -(-ranks // min(nodes, ranks)) if nodes else min(per_node, ranks) or 1
    sizes = Sizes(nodes, ranks, slots, tasks, per_node, cpus, notes=notes)
    sizes.fields["cpu"] = str(slots * max(1, cpus))
    for option in [each for each in _READERS if each in options]:
        _READERS[option](options.pop(option), sizes)
    return sizes


def _nodes(value: str, notes: list[str]) -> int:
    if not value:
        return 0
    found = _RANGE.fullmatch(value)
    if found is None or not int(found[1]):
        raise _invalid("nodes", value, "a number such as 2, or a range such as 2-4")
    if found[2] and found[2] != found[1]:
        notes.append(f"--nodes={value}: the job has {found[1]} workers, because a job has a fixed number")
    return int(found[1])


def _number(option: str, value: str) -> int:
    if not value:
        return 0
    if not (number := whole_number(value)):
        raise _invalid(option, value, "a number of at least 1")
    return number


def _invalid(option: str, value: str, expected: str) -> InvalidError:
    hint = "; sbatch expands no variables in #SBATCH lines" if "$" in value else ""
    return InvalidError(f"invalid --{option}={value}: {expected} is expected{hint}")


def _time(value: str, sizes: Sizes) -> None:
    """Take `[days-]hours:minutes:seconds`, `minutes:seconds` or minutes; zero means unlimited, as in Slurm."""
    if value.upper() in _UNLIMITED:
        return
    found = _TIME.fullmatch(value)
    if found is None:
        raise _invalid("time", value, "minutes, hours:minutes:seconds, days-hours:minutes:seconds or UNLIMITED")
    parts = [int(part) for part in found["clock"].split(":")]
    if found["days"]:
        hours, minutes, seconds = [*parts, 0, 0][:3]
    else:
        hours, minutes, seconds = ([0, *parts, 0] if len(parts) == 1 else [0, *parts])[-3:]
    if limit := int(found["days"] or 0) * 86400 + hours * 3600 + minutes * 60 + seconds:
        sizes.fields["time_limit"] = limit


def _memory(option: str, times: Callable[[Sizes], int]) -> Callable[[str, Sizes], None]:
    """Return a reader of a number of bytes of which each worker needs some."""

    def read(value: str, sizes: Sizes) -> None:
        found = _MEMORY.fullmatch(value)
        if found is None:
            raise _invalid(option, value, "a number with K, M, G or T")
        if not int(found[1]):
            sizes.left.append(f"--{option}={value}  (all memory of a node: give workers a request that fills one)")
            return
        name = "SLURM_MEM_PER_NODE" if option == "mem" else f"SLURM_{option.replace('-', '_').upper()}"
        sizes.variables[name] = str(-(-int(found[1]) * _KIB[found[2].upper()] // 1024))
        sizes.fields["memory"] = f"{int(found[1]) * times(sizes)}{_UNITS[found[2].upper()]}"
        if option == "mem" and not sizes.nodes and not sizes.per_node and sizes.workers > 1:
            sizes.notes.append(f"--mem={value}: each of the {sizes.workers} workers requests it; add --nodes for fewer workers")

    return read


def _gres(value: str, sizes: Sizes) -> None:
    for each in value.removeprefix("none").split(","):
        found = _GPU.fullmatch(each.removeprefix("gres:"))
        if found is None and each:
            sizes.left.append(f"--gres={each}  (add the resource to the worker's template)")
        elif found is not None:
            _add_gpus("gres", found["type"], int(found["number"] or 1), sizes)


def _gpus(option: str, number: Callable[[int, Sizes], int]) -> Callable[[str, Sizes], None]:
    """Return a reader of a number of GPUs, of which `number` makes that of a worker; 0 if it cannot."""

    def read(value: str, sizes: Sizes) -> None:
        total = 0
        for each in value.split(","):
            found = _GPUS.fullmatch(each)
            if found is None:
                raise _invalid(option, value, "a number such as 2 or a100:2")
            total += int(found["number"])
            _add_gpus(option, found["type"], 0, sizes)
        share = number(total, sizes) if total else 0
        if total and not share:
            raise InvalidError(f"--{option}={value} cannot be divided by {sizes.workers} workers: give --gpus-per-node instead")
        _add_gpus(option, None, share, sizes)

    return read


def _add_gpus(option: str, kind: str | None, number: int, sizes: Sizes) -> None:
    if kind:
        sizes.left.append(f"--{option}: type {kind}  (choose nodes with such GPUs by a nodeSelector)")
    if number:
        sizes.fields["gpus"] = sizes.fields.get("gpus", 0) + number


def _share(total: int, sizes: Sizes) -> int:
    return 0 if total % sizes.workers else total // sizes.workers


def _queue(value: str, sizes: Sizes) -> None:
    name = re.sub(r"[^a-z0-9]+", "-", value.partition(",")[0].lower()).strip("-")
    if name != value:
        sizes.notes.append(f"--partition={value}: the queue is {name or 'left out'}")
    sizes.fields["queue"] = name


def _chdir(value: str, sizes: Sizes) -> None:
    if value.startswith("/"):
        sizes.fields["workdir"] = value
    else:
        sizes.left.append(f"--chdir={value}  (give an absolute path by --workdir)")


def _signal(value: str, sizes: Sizes) -> None:
    """Take `[R:|B:]signal[@seconds]`; the operator signals ranks at the time limit, which is therefore earlier."""
    found = _SIGNAL.fullmatch(value)
    if found is None:
        raise _invalid("signal", value, "a signal such as USR1@60")
    name, seconds = _SIGNALS.get(found["name"].upper().removeprefix("SIG")), int(found["seconds"] or 60)
    limit = sizes.fields.get("time_limit")
    if found["flags"] and "B" in found["flags"].upper():
        sizes.left.append(f"--signal={value}  (the operator signals ranks, and not the script)")
    elif name is None:
        sizes.left.append(f"--signal={value}  (the operator sends {' or '.join(CHECKPOINT_SIGNALS)} only)")
    elif not seconds or (limit is not None and limit <= seconds):
        sizes.left.append(f"--signal={value}  (its time must be between 0 and the time limit)")
    else:
        values = {SSH.name: SSH_INJECTED, CHECKPOINT_SIGNAL.name: name, CHECKPOINT_GRACE.name: f"{seconds}s"}
        sizes.fields["patch"] = {"metadata": {"annotations": values}}
        if limit is not None:
            sizes.fields["time_limit"] = limit - seconds
        when = f"{seconds} s before the time limit, and " if limit is not None else ""
        sizes.notes.append(
            f"--signal={value}: ranks with a handler get {name} {when}when the job is suspended or deleted; "
            f"they have {seconds} s to save their work, and a job that reaches its limit has failed; its ssh is injected"
        )


_READERS: Final[Mapping[str, Callable[[str, Sizes], None]]] = {
    "time": _time,
    "mem": _memory("mem", lambda _: 1),
    "mem-per-cpu": _memory("mem-per-cpu", lambda sizes: sizes.slots * max(1, sizes.cpus_per_task)),
    "gres": _gres,
    "gpus-per-node": _gpus("gpus-per-node", lambda number, _: number),
    "gpus-per-task": _gpus("gpus-per-task", lambda number, sizes: number * sizes.slots),
    "gpus": _gpus("gpus", _share),
    "mem-per-gpu": _memory("mem-per-gpu", lambda sizes: sizes.fields.get("gpus", 1)),
    "signal": _signal,
    "partition": _queue,
    "chdir": _chdir,
}
"""What takes an option, in an order in which each finds what it needs."""
