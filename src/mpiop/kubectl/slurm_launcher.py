"""A Slurm script in the launcher: its command line, and the variables of Slurm (slurm_shims.sh)."""

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from mpiop.api.mpi_implementations import Implementation
from mpiop.client.arguments import LONGEST_ARGUMENT
from mpiop.client.errors import InvalidError
from mpiop.client.manifest import escaped
from mpiop.client.spec import JobSpec
from mpiop.kubectl.shell import interpreter
from mpiop.kubectl.sizes import Sizes

_JOB_UID: Final = "metadata.labels['batch.kubernetes.io/controller-uid']"
_OF_THE_SHIMS: Final = frozenset(
    """EXPORT_ENV JOBID JOB_ID JOB_NODELIST NODELIST STEP_NODELIST STEP_NUM_NODES STEP_NUM_TASKS SUBMIT_DIR
    SUBMIT_HOST""".split()  # noqa: SIM905 - a table is easier to read
)
"""What slurm_shims.sh sets, without `SLURM_`."""
_HOSTNAME: Final = re.compile(r"(?:\$\(|`)\s*hostname\b|\$\{?HOSTNAME\b")
"""Where a script takes the name of the host it runs on; in most lines with `echo`, it only prints it."""
_OF_NODES: Final = frozenset({
    "SLURM_NNODES",
    "SLURM_JOB_NUM_NODES",
    "SLURM_TASKS_PER_NODE",
    "SLURM_CPUS_ON_NODE",
    "SLURM_JOB_CPUS_PER_NODE",
})


def slurm_variables(name: str, export: str, sizes: Sizes, library: Implementation) -> dict[str, str]:
    """Return the `SLURM_*` variables whose values are known now, and what the shims need.

    Args:
        name: Of the job.
        export: Value of `--export`, which srun obeys too; "" without.
        sizes: Of the job.
        library: Its row.
    """
    ranks = sizes.tasks or max(1, sizes.nodes)
    slots = -(-ranks // sizes.workers) if sizes.nodes else sizes.slots
    full, rest = divmod(ranks, slots)
    per_node = ",".join([f"{slots}(x{full})" if full > 1 else str(slots)] * bool(full) + [str(rest)] * bool(rest))
    is_open_mpi = bool(library.export_option)
    cpus = sizes.slots * max(1, sizes.cpus_per_task)
    return {
        "SLURM_JOB_NAME": name,
        "SLURM_NTASKS": str(sizes.tasks or ""),
        "SLURM_NPROCS": str(sizes.tasks or ""),
        "SLURM_NNODES": str(sizes.workers),
        "SLURM_JOB_NUM_NODES": str(sizes.workers),
        "SLURM_TASKS_PER_NODE": per_node,
        "SLURM_CPUS_ON_NODE": str(cpus),
        "SLURM_JOB_CPUS_PER_NODE": f"{cpus}(x{sizes.workers})" if sizes.workers > 1 else str(cpus),
        "SLURM_NTASKS_PER_NODE": str(sizes.per_node or ""),
        "SLURM_CPUS_PER_TASK": str(sizes.cpus_per_task or ""),
        "SLURM_GPUS_ON_NODE": str(sizes.fields.get("gpus", "")),
        "SLURM_EXPORT_ENV": export,
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_NODEID": "0",
        **sizes.variables,
        "MPIOP_NTASKS": str(ranks),
        "MPIOP_EXPORT_OPTION": library.export_option,
        "MPIOP_HOST_OPTION": "--host" if is_open_mpi else "-hosts",
        "MPIOP_PER_NODE_OPTION": "-N" if is_open_mpi else "-ppn",
    }


def unset_variables(text: str, variables: Mapping[str, str]) -> list[str]:
    """Return lines of a script with variables that Slurm sets and the launcher does not; Slurm sets those of an array in arrays only."""
    own = set(re.findall(r"\b(SLURM_\w+)=|\bunset (SLURM_\w+)", text))
    known = {*variables, "SLURMD_NODENAME", *(f"SLURM_{name}" for name in _OF_THE_SHIMS), *(name for pair in own for name in pair)}
    return [
        f"line {number}: ${name}  (not set)"
        for name, number in _used(text).items()
        if name not in known and not name.startswith("SLURM_ARRAY_")
    ]


def notes_on_hosts(text: str, variables: Mapping[str, str], sizes: Sizes) -> list[str]:
    """Return notes on a host name that is not a worker's, and on numbers of nodes that the script leaves to Slurm."""
    reason = "because without --nodes each task has its own worker; Slurm may choose fewer nodes"
    counted = {} if sizes.nodes or sizes.workers == 1 else _used(text)
    notes = [f"line {number}: ${name} is {variables[name]}, {reason}" for name, number in counted.items() if name in _OF_NODES]
    for number, line in enumerate(text.splitlines(), 1):
        if not re.match(r"\s*(#|echo\b|printf\b)", line) and _HOSTNAME.search(re.sub(r"'[^']*'", "", line)):
            notes.append(f"line {number}: hostname is the launcher's: use $SLURMD_NODENAME for the first worker's")
    return notes


def _used(text: str) -> dict[str, int]:
    """Return the variables of Slurm in a script, each with its first line; arithmetic and other languages name them without `$`."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("#"):
            for name in re.findall(r"\bSLURMD?_[A-Z]\w*", line):
                found.setdefault(name, number)
    return found


def run_script(job: dict[str, Any], text: str, spec: JobSpec, variables: Mapping[str, str]) -> None:
    """Let the launcher of a job run the script instead of mpirun.

    Raises:
        InvalidError: The script is too long for an argument.
    """
    if "\0" in text or len(text.encode()) > LONGEST_ARGUMENT:
        raise InvalidError(f"the script must be text of at most {LONGEST_ARGUMENT} bytes: put it into the image")
    container = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    shims = files("mpiop.kubectl").joinpath("slurm_shims.sh").read_text(encoding="utf-8")
    filled = {name: value for name, value in variables.items() if value or name.startswith("MPIOP")}
    container["command"] = ["/bin/sh", "-c"]
    container["args"] = escaped([shims, "sh", "script", text, *interpreter(text)])
    container["env"] += [{"name": name, "value": value} for name, value in filled.items() if name not in spec.env]
    container["env"].append({"name": "MPIOP_JOB_UID", "valueFrom": {"fieldRef": {"fieldPath": _JOB_UID}}})
    if spec.workdir:
        container["workingDir"] = spec.workdir
