"""`convert`: a Slurm script becomes an MPIJob, and what has no counterpart is reported.

A script whose only work is one line with a launcher becomes `mpirun …`. Any other script runs whole in the launcher, with
programs in the place of srun and mpirun (slurm_shims.sh): a shell reads it there as under Slurm.
"""

import re
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import click

from mpiop.api.mpi_implementations import LIBRARIES, Implementation
from mpiop.client.errors import InvalidError
from mpiop.client.spec import JobSpec, escaped, manifest
from mpiop.kubectl.inputs import read_text
from mpiop.kubectl.job_options import read_mounts
from mpiop.kubectl.launch import LAUNCHERS, SLURMS, Launch, read_launch
from mpiop.kubectl.output import to_yaml
from mpiop.kubectl.sbatch import FLAGS, read_directives
from mpiop.kubectl.shell import Command, interpreter, read_commands
from mpiop.kubectl.sizes import Sizes, read_sizes

_LAUNCHER: Final = re.compile(rf"^[^#\n]*\b(?:{'|'.join(map(re.escape, LAUNCHERS))})\b", re.MULTILINE)
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_SILENT: Final = frozenset({"date", "echo", "hostname", "printf", "pwd", "set", "whoami"})
"""Commands without which a job computes the same."""
_MODULES: Final = frozenset({"module", "ml"})
_OF_THE_CLUSTER: Final = frozenset({"sacct", "salloc", "sattach", "sbatch", "sbcast", "scancel", "sinfo", "squeue", "sstat"})
_LONGEST_NAME: Final = 40
_LONGEST_ARGUMENT: Final = 128 * 1024 - 1
_JOB_UID: Final = "metadata.labels['batch.kubernetes.io/controller-uid']"
_REASONS: Final = {
    "array": "kubectl mpi run --array starts a job for each index",
    "dependency": "submit the job when the others have ended: kubectl wait",
    "error": "see kubectl mpi logs",
    "output": "see kubectl mpi logs",
    "requeue": "see mpiop.kubeflow.org/max-restarts",
    "signal": "see mpiop.kubeflow.org/checkpoint-signal",
}
_NEEDLESS: Final = frozenset({"no-requeue", "parsable", "quiet", "verbose", "get-user-env", "ignore-pbs"})


@dataclass(slots=True)
class Conversion:
    """An MPIJob, what of the script it lacks, and what a user should know."""

    job: dict[str, Any] = field(default_factory=dict[str, Any])
    left: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def as_yaml(self) -> str:
        """Return the job, below comments with what it lacks."""
        lines = [f"not converted: {line}" for line in self.left] + [f"note: {line}" for line in self.notes]
        return "".join(f"# {line}\n" for each in lines for line in each.splitlines()) + to_yaml(self.job)


@click.command("convert")
@click.argument("script", type=click.Path(path_type=Path))
@click.option("--image", required=True, help="Image with the program and its MPI library.")
@click.option(
    "--mpi", "library", type=click.Choice(list(LIBRARIES)), default="openmpi", show_default=True, help="MPI library of the image."
)
@click.option("--cpu", default="", metavar="QUANTITY", help="CPUs of each worker, such as 500m; default: one for each task, as Slurm does.")
@click.option("--mount", multiple=True, metavar="PVC:/PATH[:ro]", help="Mount a PersistentVolumeClaim. Can be repeated.")
@click.option("--workdir", default="", help="Directory where the script and the ranks start; default: --chdir of the script.")
@click.option("--script", "is_script", is_flag=True, help="Run the script whole, even if it is one line with mpirun.")
@click.option("--strict", is_flag=True, help="Fail if a part of the script cannot be converted.")
def convert_verb(script: Path, strict: bool, mount: tuple[str, ...], **options: Any) -> int:  # noqa: FBT001 - click passes it
    """Turn a Slurm script into an MPIJob on standard output, for kubectl mpi submit."""
    made = converted(read_text(str(script)), options.pop("image"), file=script.name, mounts=read_mounts(mount), **options)
    for line in made.left:
        click.echo(f"not converted: {line}", err=True)
    for line in made.notes:
        click.echo(f"note: {line}", err=True)
    if strict and made.left:
        return 1
    click.echo(made.as_yaml(), nl=False)
    return 0


def converted(
    text: str, image: str, library: str = "openmpi", *, file: str = "script", is_script: bool = False, **fields: Any
) -> Conversion:
    """Return the MPIJob of a Slurm script from a file; `fields` are further fields of `JobSpec`.

    Raises:
        InvalidError: The script starts no rank, or Slurm would reject it.
    """
    text = text.replace("\r\n", "\n")
    if not is_script and not _LAUNCHER.search(text):
        raise InvalidError("the script has no srun, mpirun or mpiexec: add --script to run it as it is in the launcher")
    directives = read_directives(text)
    options = dict(directives.options)
    made = Conversion(left=directives.problems, notes=directives.notes)
    name, exports = options.pop("job-name", ""), _exports(options.pop("export", "ALL"), made)
    commands = read_commands(text)
    found = _launches(commands or [])
    line = None if is_script else _single(commands, exports)
    if line is not None:
        options |= line.options
    else:
        _count_ranks(options, [launch for _, launch in found], made)
    sizes = read_sizes(options)
    made.left += [f"#SBATCH --{key}{'=' * bool(value)}{value}{_reason(key)}" for key, value in options.items() if key not in _NEEDLESS]
    made.left += sizes.left
    made.notes += sizes.notes
    _report(commands, found, made)
    fields = sizes.fields | {key: value for key, value in fields.items() if value}
    spec = JobSpec(
        command=[word or "" for word in line.program] if line else [name or file],
        image=image,
        mpi=library,
        ranks=sizes.ranks,
        slots=sizes.slots,
        env=exports,
        is_tagged=line is not None,
        **fields,
    )
    made.job = manifest(spec, _dns(name))
    if line is not None:
        made.notes.append("ranks have the variables of the MPI library and no SLURM_*: use --script if the program reads these")
    else:
        _run_script(made, text, spec, _variables(name or file, sizes, LIBRARIES[library]))
    return made


def _exports(value: str, made: Conversion) -> dict[str, str]:
    """Return the variables of `--export`."""
    exports: dict[str, str] = {}
    for word in value.split(","):
        if found := _ASSIGNMENT.fullmatch(word):
            exports[found[1]] = found[2]
        elif word not in {"ALL", "NONE", "NIL"}:
            made.left.append(f"#SBATCH --export={word}  (nothing of your shell is passed on: write NAME=VALUE)")
    return exports


def _single(commands: list[Command] | None, exports: dict[str, str]) -> Launch | None:
    """Return the launcher's line if the script has nothing else to run, and add what is exported before it to `exports`."""
    launch: Launch | None = None
    found: dict[str, str] = {}
    for command in commands or [Command(0, (None,), "", is_background=False, is_plain=False)]:
        words = command.words
        if not command.is_plain or words[0] is None:
            return None
        if words[0] in LAUNCHERS and launch is None:
            launch = read_launch(words)
        elif words[0] == "export" and launch is None and words[1:]:
            pairs = list(filter(None, (_ASSIGNMENT.fullmatch(word or "") for word in words[1:])))
            if len(pairs) < len(words) - 1:
                return None
            found |= {pair[1]: pair[2] for pair in pairs}
        elif None in words or words[0] not in _SILENT | _MODULES:
            return None
    if launch is None or not launch.is_simple:
        return None
    exports |= found
    return launch


def _launches(commands: list[Command]) -> list[tuple[Command, Launch]]:
    found = [(command, command.behind_prefixes(list(LAUNCHERS))) for command in commands]
    return [(command, read_launch(words)) for command, words in found if words]


def _count_ranks(options: dict[str, str], launches: list[Launch], made: Conversion) -> None:
    """Let the largest launch decide the number of ranks if the job names none."""
    numbers = [int(launch.options["ntasks"]) for launch in launches if "ntasks" in launch.options]
    nodes = options.get("nodes", "1").partition("-")[0]
    if numbers and not {"ntasks", "ntasks-per-node"} & options.keys() and nodes.isdecimal() and max(numbers) > int(nodes):
        options["ntasks"] = str(max(numbers))
        made.notes.append(f"the script names no --ntasks: the job has {max(numbers)} ranks, as many as its largest launch")


def _reason(option: str) -> str:
    return f"  ({_REASONS[option]})" if option in _REASONS else "" if option in FLAGS else "  (no counterpart)"


def _report(commands: list[Command] | None, found: list[tuple[Command, Launch]], made: Conversion) -> None:
    """Report commands that do something else than under Slurm."""
    for command, launch in found:
        made.left += [f"line {command.line}: {each}" for each in launch.left]
        if ":" in launch.program and command.words[0] in SLURMS:
            made.left.append(f"line {command.line}: {command.text}  (':' needs a heterogeneous job, which is not supported)")
        if command.is_background:
            made.notes.append(f"line {command.line}: programs that run at the same time all start on the first worker")
    for command in commands or []:
        if command.words[0] in _MODULES:
            made.left.append(f"line {command.line}: {command.text}  (the image must contain it)")
        elif command.words[0] in _OF_THE_CLUSTER:
            made.left.append(f"line {command.line}: {command.text}  (no counterpart in a job)")
    if commands is None:
        made.notes.append("the script was not understood, so it was not checked for options without a counterpart")


def _variables(name: str, sizes: Sizes, library: Implementation) -> dict[str, str]:
    """Return the `SLURM_*` variables whose values are known now, and what the shims need."""
    full, rest = divmod(sizes.ranks, sizes.slots)
    per_node = ",".join([f"{sizes.slots}(x{full})" if full > 1 else str(sizes.slots)] * bool(full) + [str(rest)] * bool(rest))
    is_open_mpi = bool(library.export_option)
    cpus = sizes.slots * max(1, sizes.cpus_per_task)
    variables = {
        "SLURM_JOB_NAME": name,
        "SLURM_NTASKS": str(sizes.ranks),
        "SLURM_NPROCS": str(sizes.ranks),
        "SLURM_NNODES": str(sizes.workers),
        "SLURM_JOB_NUM_NODES": str(sizes.workers),
        "SLURM_TASKS_PER_NODE": per_node,
        "SLURM_CPUS_ON_NODE": str(cpus),
        "SLURM_JOB_CPUS_PER_NODE": f"{cpus}(x{sizes.workers})" if sizes.workers > 1 else str(cpus),
        "SLURM_NTASKS_PER_NODE": str(sizes.per_node or ""),
        "SLURM_CPUS_PER_TASK": str(sizes.cpus_per_task or ""),
        "SLURM_GPUS_ON_NODE": str(sizes.fields.get("gpus", "")),
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_NODEID": "0",
        "MPIOP_NTASKS": str(sizes.ranks),
        "MPIOP_IS_NTASKS_GIVEN": "1" if sizes.is_ranks_given else "",
        "MPIOP_EXPORT_OPTION": library.export_option,
        "MPIOP_TAG_OPTION": library.tag_options[0],
        "MPIOP_HOST_OPTION": "--host" if is_open_mpi else "-hosts",
        "MPIOP_PER_NODE_OPTION": "-N" if is_open_mpi else "-ppn",
    }
    return {key: value for key, value in variables.items() if value or key.startswith("MPIOP")}


def _run_script(made: Conversion, text: str, spec: JobSpec, variables: dict[str, str]) -> None:
    """Let the launcher run the script instead of mpirun."""
    if "\0" in text or len(text.encode()) > _LONGEST_ARGUMENT:
        raise InvalidError(f"the script must be text of at most {_LONGEST_ARGUMENT} bytes: put it into the image")
    container = made.job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    shims = files("mpiop.kubectl").joinpath("slurm_shims.sh").read_text(encoding="utf-8")
    container["command"] = ["/bin/sh", "-c"]
    container["args"] = escaped([shims, "sh", "script", text, *interpreter(text)])
    container["env"] += [{"name": name, "value": value} for name, value in variables.items() if name not in spec.env]
    container["env"].append({"name": "MPIOP_JOB_UID", "valueFrom": {"fieldRef": {"fieldPath": _JOB_UID}}})
    if spec.workdir:
        container["workingDir"] = spec.workdir
    made.notes.append("the script runs in the launcher, which requests no CPU, memory or GPU; only ranks run on workers")
    if not spec.mounts:
        made.notes.append("the launcher and the workers share no files: use --mount if the script writes files that ranks read")


def _dns(name: str) -> str:
    """Return a name that the API server accepts; "" for none."""
    found = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return (found if not found[:1].isdigit() else f"job-{found}")[:_LONGEST_NAME].strip("-")
