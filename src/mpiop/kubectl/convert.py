"""`convert`: a Slurm script becomes an MPIJob, and what has no counterpart is reported.

A script whose only work is one line with a launcher becomes `mpirun …`. Any other script runs whole in the launcher, where
a shell reads it as under Slurm; srun and mpirun are replaced (slurm_shims.sh).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from mpiop.api.mpi_implementations import LIBRARIES, OPEN_MPI
from mpiop.client.errors import InvalidError
from mpiop.client.manifest import generated_name, manifest
from mpiop.client.spec import SSH_IMAGE, SSH_OPERATOR, JobSpec
from mpiop.kubectl.conversion import Conversion
from mpiop.kubectl.inputs import read_text
from mpiop.kubectl.job_options import read_mounts, ssh_of, ssh_option
from mpiop.kubectl.launch import LAUNCHERS, SLURMS, Launch, read_launch
from mpiop.kubectl.output import counted
from mpiop.kubectl.sbatch import FLAGS, read_directives
from mpiop.kubectl.session import Session, cluster_options
from mpiop.kubectl.shell import Command, read_commands
from mpiop.kubectl.sizes import Sizes, read_sizes
from mpiop.kubectl.slurm_array import SlurmArray, read_array
from mpiop.kubectl.slurm_launcher import notes_on_hosts, run_script, slurm_variables, unset_variables

_LAUNCHER: Final = re.compile(rf"^[^#\n]*\b(?:{'|'.join(map(re.escape, LAUNCHERS))})\b", re.MULTILINE)
_EXPORTS: Final = re.compile(r"""(?:'[^']*'|"[^"]*"|[^,])+""")
"""What commas separate that no quotes enclose; sbatch keeps the quotes."""
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_SILENT: Final = frozenset({"date", "echo", "hostname", "printf", "pwd", "set", "whoami"})
"""Commands without which a job computes the same."""
_MODULES: Final = frozenset({"module", "ml"})
_OF_THE_IMAGE: Final = _MODULES | {"conda", "mamba", "micromamba", "spack"}
_OF_THE_CLUSTER: Final = frozenset({"sacct", "salloc", "sattach", "sbatch", "sbcast", "scancel", "sinfo", "squeue", "sstat"})
_LONGEST_NAME: Final = 40
_REASONS: Final = {
    "error": "see kubectl mpi logs",
    "output": "see kubectl mpi logs",
    "requeue": "see mpiop.kubeflow.org/max-restarts",
}
_NEEDLESS: Final = frozenset({"no-requeue", "parsable", "quiet", "verbose", "get-user-env", "ignore-pbs"})


def script_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options that `converted` takes."""
    for option in (
        click.option("--strict", is_flag=True, help="Fail if a part of the script cannot be converted."),
        click.option("--script", "is_script", is_flag=True, help="Run the whole script, even if it contains only one line with mpirun."),
        click.option("--workdir", default="", help="Working directory of the script and the ranks. Default: --chdir of the script."),
        click.option("--mount", multiple=True, metavar="PVC:/PATH[:ro]", help="Mount a PersistentVolumeClaim. Can be repeated."),
        click.option(
            "--cpu", default="", metavar="QUANTITY", help="CPUs of each worker, such as 500m. Default: one for each task, as in Slurm."
        ),
        click.option(
            "--mpi", "library", type=click.Choice(list(LIBRARIES)), default="openmpi", show_default=True, help="MPI library of the image."
        ),
        ssh_option,
        click.option(
            "--image",
            default="",
            envvar="MPIOP_IMAGE",
            show_envvar=True,
            help="Image with an MPI library and the program of the Slurm script.",
        ),
    ):
        verb = option(verb)
    return verb


@click.command("convert")
@click.argument("script", type=click.Path(path_type=Path))
@script_options
@cluster_options()
def convert_verb(session: Session, script: Path, **options: Any) -> int:
    """Convert a Slurm script to an MPIJob on standard output, which kubectl mpi submit reads."""
    made = read_script(session, str(script), read_text(str(script)), options)
    click.echo(made.as_yaml(), nl=False)
    return 0


def read_script(session: Session, file: str, text: str, options: Mapping[str, Any], suffix: str = "") -> Conversion:
    """Return the jobs of a script by the options of a verb, and report on standard error what differs.

    Raises:
        InvalidError: The script cannot be converted, or --strict is given and a part cannot.
    """
    fields = dict(options)
    is_strict, image, mounts = fields.pop("strict"), fields.pop("image"), read_mounts(fields.pop("mount"))
    if not image:
        raise InvalidError(f"{file} is a Slurm script: give the image of its program with --image")
    ssh = fields.pop("ssh")
    chosen = ssh_of(session, JobSpec(command=[file], image=image, mounts=mounts, ssh=ssh))
    try:
        script = "sbatch" if file == "-" else Path(file).name
        made = converted(text, image, file=script, mounts=mounts, suffix=suffix, ssh=chosen, **fields)
    except InvalidError as error:
        raise InvalidError(f"{file}: {error}") from error
    if chosen not in {SSH_OPERATOR, ssh}:
        made.notes.append(f"ssh is {chosen}, because the operator of this cluster offers it: use --ssh image for the sshd of the image")
    for line in made.report():
        click.echo(line, err=True)
    if is_strict and made.left:
        raise InvalidError(
            f"{file}: {counted(len(made.left), 'part')} of the script cannot be converted: leave --strict out, or change them"
        )
    return made


def converted(
    text: str, image: str, library: str = "openmpi", *, file: str = "script", is_script: bool = False, **fields: Any
) -> Conversion:
    """Return the MPIJobs of a Slurm script.

    Args:
        text: The script.
        image: Of launcher and workers.
        library: One of `LIBRARIES`.
        file: Name of the script, which is that of a job without another.
        is_script: Whether the script runs whole in any case.
        fields: `suffix`, which ends the names of the jobs, `is_after` if --after is given, and further fields of `JobSpec`.

    Raises:
        InvalidError: The script starts no rank, or Slurm would reject it.
    """
    text = text.replace("\r\n", "\n")
    if not is_script and not _LAUNCHER.search(text):
        raise InvalidError("the script has no srun, mpirun or mpiexec: add --script to run it as it is in the launcher")
    directives = read_directives(text)
    options = dict(directives.options)
    made = Conversion(left=directives.problems, notes=directives.notes)
    name, export = options.pop("job-name", ""), options.pop("export", "")
    made.require(options.pop("dependency", ""), is_replaced=fields.pop("is_after", False))
    made.array, exports = read_array(options.pop("array", "")), _exports(export or "ALL", made)
    commands = read_commands(text)
    found = _launches(commands or [])
    line = None if is_script else _single(commands, exports)
    if line is not None:
        options |= line.options
    sizes = read_sizes(options, 0 if line else max((int(each.options.get("ntasks", 0)) for _, each in found), default=0))
    made.left += [f"#SBATCH --{key}{'=' * bool(value)}{value}{_reason(key)}" for key, value in options.items() if key not in _NEEDLESS]
    made.left += sizes.left
    variables = slurm_variables(name or file, export, sizes, LIBRARIES[library])
    made.notes += sizes.notes + ([] if line else notes_on_hosts(text, variables, sizes))
    if "patch" in sizes.fields and fields.get("ssh") == SSH_IMAGE:
        raise InvalidError("--signal needs injected ssh: leave --ssh image out, or remove --signal from the script")
    _report(commands, found, made)
    if LIBRARIES[library].name == OPEN_MPI.name:
        hydra = [each for each in commands or [] if each.behind_prefixes(["mpiexec.hydra"])]
        made.left += [f"line {each.line}: mpiexec.hydra  (not part of Open MPI: give --mpi mpich or intel)" for each in hydra]
    _note_files(made, is_whole=line is None, has_mounts=bool(fields.get("mounts")))
    program = [word or "" for word in line.program] if line else []
    made.left += [] if program else unset_variables(text, variables)
    made.jobs = _Plan(text, name or file, _dns(name), exports, sizes, made.array, program, variables).jobs(
        image=image, mpi=library, **fields
    )
    return made


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a script asks for; `program` is empty if the script runs whole."""

    text: str
    title: str
    name: str
    exports: Mapping[str, str]
    sizes: Sizes
    array: SlurmArray | None
    program: list[str]
    variables: Mapping[str, str]

    def jobs(self, *, suffix: str = "", **fields: Any) -> list[dict[str, Any]]:
        """Return a job for each index, or the only one."""
        command, sizes = self.program or [self.title], self.sizes
        name = self.name or (generated_name(command) if suffix or self.array else "")
        name = f"{name}-{suffix}" if suffix else name
        settings: dict[str, Any] = {"command": command, "ranks": sizes.ranks, "slots": sizes.slots, "is_tagged": bool(self.program)}
        settings |= sizes.fields | {key: value for key, value in fields.items() if value}
        if self.array is None:
            return [self._job(JobSpec(env=self.exports, **settings), name)]
        return [
            self._job(JobSpec(env={**self.exports, **self.array.variables(number, name)}, **settings), f"{name}-{number}")
            for number in self.array.numbers
        ]

    def _job(self, spec: JobSpec, name: str) -> dict[str, Any]:
        job = manifest(spec, name)
        if not self.program:
            run_script(job, self.text, spec, self.variables)
        return job


def _note_files(made: Conversion, *, is_whole: bool, has_mounts: bool) -> None:
    if not is_whole:
        made.notes.append("ranks have the variables of the MPI library and no SLURM_*: use --script if the program reads these")
        return
    made.notes.append("the script runs in the launcher, which requests no CPU, memory or GPU; only ranks run on workers")
    if not has_mounts:
        made.notes.append("the launcher and the workers share no files: use --mount if the script writes files that ranks read")


def _exports(value: str, made: Conversion) -> dict[str, str]:
    """Return the variables of `--export`."""
    exports: dict[str, str] = {}
    for word in _EXPORTS.findall(value):
        if found := _ASSIGNMENT.fullmatch(word):
            exports[found[1]] = found[2]
        elif word.upper() not in {"ALL", "NONE", "NIL"}:
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
    if launch is None or not launch.is_simple or any("SLURM_" in (word or "") for word in launch.program):
        return None
    exports |= found
    return launch


def _launches(commands: list[Command]) -> list[tuple[Command, Launch]]:
    found = [(command, command.behind_prefixes(list(LAUNCHERS))) for command in commands]
    return [(command, read_launch(words)) for command, words in found if words]


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
        if command.words[0] in _OF_THE_IMAGE:
            made.left.append(f"line {command.line}: {command.text}  (the image must contain it)")
        elif command.words[0] in _OF_THE_CLUSTER:
            made.left.append(f"line {command.line}: {command.text}  (no counterpart in a job)")
    if commands is None:
        made.notes.append("the script was not understood, so it was not checked for options without a counterpart")


def _dns(name: str) -> str:
    """Return a name that the API server accepts; "" for none."""
    found = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return (found if not found[:1].isdigit() else f"job-{found}")[:_LONGEST_NAME].strip("-")
