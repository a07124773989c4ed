"""Converted Slurm scripts do what Slurm does: the same programs start, with the same arguments, variables and directories.

`slurm_scripts.json` is what Slurm 22.05 did with each script on one node. To record it again, see docs/adr/0040-slurm-scripts.md.
"""

import json
import re
import subprocess
import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from fakes import mpirun
from fakes.client_api import container
from fakes.programs import executable
from fakes.slurm_fields import FIELDS, PROGRAMS
from fakes.slurm_scripts import RECORDER, SCRIPTS
from fakes.slurm_styles import STYLES
from mpiop.api.mpi_implementations import LIBRARIES
from mpiop.kubectl.convert import Conversion, converted

ORACLE: Final[dict[str, Any]] = json.loads(Path(__file__).with_name("slurm_scripts.json").read_text(encoding="utf-8"))
STYLE_ORACLE: Final[dict[str, Any]] = {
    name: row
    for file in ("slurm_styles.json", "slurm_fields.json")
    for name, row in json.loads(Path(__file__).with_name(file).read_text(encoding="utf-8")).items()
}
REPORTED: Final = {
    "machine-learning-first-host": "line 6: hostname is the launcher's: use $SLURMD_NODENAME for the first worker's",
    "odd-pbs-lines": "line 2: #PBS -N from_pbs  (sbatch obeys it: write it as #SBATCH)",
    "weather-icon": "line 5: $SLURM_JOB_NUM_NODES is 3, because without --nodes each task has its own worker",
}
"""Scripts that do something else than on Slurm, and the sentence that reports it."""
HOSTFILES: Final = {"openmpi": "OMPI_MCA_orte_default_hostfile", "mpich": "HYDRA_HOST_FILE"}
pytestmark = pytest.mark.real_time


class Run(NamedTuple):
    """How a launcher ended, and what it started."""

    code: int
    records: list[str]
    output: str
    errors: str


def expanded(word: str) -> str:
    """Return a word as the kubelet passes it."""
    return re.sub(r"\$\$", "$", word)


def run(folder: Path, made: Conversion, library: str = "openmpi", *, is_started: bool = True) -> Run:
    """Run the launcher of a job on this machine."""
    records, work, programs = folder / "records", folder / "work", folder / "bin"
    for each in (records, work, programs):
        each.mkdir(parents=True)
    for name in ("solver", "pre", "post", "ocean", "atmos"):
        executable(work / name, RECORDER.replace("RECORDS", str(records)))
    for name in PROGRAMS:
        executable(programs / name, RECORDER.replace("RECORDS", str(records)))
    for name in ("module", "conda"):
        executable(programs / name, "#!/bin/sh\n")
    for name in ("mpirun", "mpiexec", "mpiexec.hydra") if is_started else ():
        executable(programs / name, f'#!/bin/sh\nexec {sys.executable} -I -S {mpirun.__file__} "$@"\n')
    workers = made.job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    (folder / "hostfile").write_text("".join(f"case-worker-{number} slots=9\n" for number in range(workers)), encoding="utf-8")
    started = container(made.job)
    env = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": "/root", "TMPDIR": str(folder), HOSTFILES[library]: str(folder / "hostfile")}
    env |= {row["name"]: expanded(row.get("value", "uid")) for row in started["env"]}
    words = [*started["command"], *map(expanded, started["args"])]
    ended = subprocess.run(words, cwd=work, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    found = sorted(each.read_text(encoding="utf-8") for each in records.iterdir())
    return Run(ended.returncode, found, ended.stdout, ended.stderr)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_as_on_slurm(tmp_path: Path, name: str) -> None:
    made = converted(SCRIPTS[name], "i", file="job")
    found = run(tmp_path, made)
    expected = ORACLE[name]["records"]
    if container(made.job)["command"] == ["mpirun"]:  # no script is left that could read SLURM_JOB_NAME
        expected = [re.sub(r"NAME=.*? in=", "NAME= in=", each) for each in expected]
    assert (found.code, found.records) == (ORACLE[name]["code"], expected), found.errors


@pytest.mark.parametrize("name", [*STYLES, *FIELDS])
def test_a_script_of_any_style_runs_as_on_slurm_and_prints_the_same(tmp_path: Path, name: str) -> None:
    made = converted({**STYLES, **FIELDS}[name], "i", file="job")
    expected = STYLE_ORACLE[name]
    if container(made.job)["command"] == ["mpirun"]:  # no script is left that could read SLURM_JOB_NAME, or print
        expected["records"] = [re.sub(r"NAME=.*? in=", "NAME= in=", each) for each in expected["records"]]
    found = [run(tmp_path / str(number), replace(made, jobs=[job])) for number, job in enumerate(made.jobs)]
    records, lines = (sorted(chain.from_iterable(each)) for each in zip(*((a.records, a.output.splitlines()) for a in found), strict=True))
    is_same = (max(each.code for each in found), records, lines) == tuple(expected.values())
    assert is_same == (name not in REPORTED), found
    assert REPORTED.get(name, "") in "".join(made.report())


def script(text: str, library: str = "openmpi") -> Conversion:
    return converted(text, "i", library, file="job", is_script=True)


def command_line(folder: Path, text: str, library: str = "openmpi") -> Run:
    """Run a script with an mpirun that only prints how it is called, without the words that pass variables on."""
    text = f"{HEADER}export PATH=$PATH:{folder}/show\n{text}\n"
    (folder / "show").mkdir()
    for name in ("mpirun", "mpiexec", "mpiexec.hydra"):
        executable(folder / "show" / name, '#!/bin/sh\nprintf "<%s>" "$@"\necho\n')
    made = script(text, library)
    found = run(folder, made, library, is_started=False)
    return found._replace(output=re.sub(r"<-x><\w+>", "", re.sub(r"<sh><-c><.*?exec \"\$@\"><srun>", "", found.output, flags=re.DOTALL)))


HEADER = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks=7\n"


@pytest.mark.parametrize(
    ("line", "library", "expected"),
    [
        ("srun ./a", "openmpi", "<-n><7><-N><4><7><WORK><./a>"),
        ("srun ./a", "mpich", "<-n><7><-ppn><4><7><WORK><./a>"),
        ("srun -N1 -n 2 ./a -n 3", "openmpi", "<-n><2><-N><2><2><WORK><./a><-n><3>"),
        ("srun -n2 ./a", "openmpi", "<-n><2><-N><1><2><WORK><./a>"),
        ("srun --ntasks=6 --tasks-per-node=3 -c2 --mpi=pmix ./a", "openmpi", "<-n><6><-N><3><6><WORK><./a>"),
        ("srun -uln1 --exclusive ./a", "openmpi", "<-n><1><-N><1><1><WORK><0><./a>"),
        ("srun -w case-worker-1 -n 1 ./a", "openmpi", "<-n><1><--host><case-worker-1><1><WORK><./a>"),
        ("srun --chdir=/ -n 1 ./a", "openmpi", "<-n><1><-N><1><1></><./a>"),
        ("srun -K1 -n 1 -- -odd", "openmpi", "<-n><1><-N><1><1><WORK><-odd>"),
        ("ibrun -np 3 ./a", "openmpi", "<-n><3><-N><2><3><WORK><./a>"),
        ("ibrun ./a", "openmpi", "<-n><7><-N><4><7><WORK><./a>"),
        ("mpirun ./a -n 3", "openmpi", "<-n><7><./a><-n><3>"),
        ("mpirun --mca btl self --bind-to none ./a", "openmpi", "<-n><7><--mca><btl><self><--bind-to><none><./a>"),
        ("mpirun --map-by ppr:1:node ./a", "openmpi", "<--map-by><ppr:1:node><./a>"),
        ("mpirun -bind-to none -map-by slot -np 4 ./a", "openmpi", "<-bind-to><none><-map-by><slot><-np><4><./a>"),
        ("mpiexec.hydra -ppn 2 ./a", "mpich", "<-n><7><-ppn><2><./a>"),
        ("mpirun -np 1 ./a : -np 2 ./b", "openmpi", "<-np><1><./a><:><-np><2><./b>"),
    ],
)
def test_options_reach_mpirun(tmp_path: Path, line: str, library: str, expected: str) -> None:
    found = command_line(tmp_path, line, library)
    assert (found.code, found.output.strip().replace(str(tmp_path / "work"), "WORK")) == (0, expected), found.errors


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("srun --novel=1 ./a", "srun: --novel is not supported here"),
        ("srun -n $UNSET ./a", "srun: -n ./a: a number is expected"),
        ("srun -n x ./a", "srun: -n x: a number is expected"),
        ("srun -N 3 ./a", "srun: -N 3: the job has 2 workers"),
        ("srun ./a : ./b", "heterogeneous"),
        ("srun", "srun: no program is given"),
        ("srun -n", "srun: -n needs a value"),
        ("srun -o out.%t ./a", "one file for each task is not supported"),
        ("ibrun -n 2 -o 4 ./a", "-o 4 is not supported"),
        ("srun --pty bash", "--pty is not supported"),
        ("sbatch next.sh", "sbatch: a job cannot submit another one"),
        ("scontrol requeue 1", "only 'scontrol show hostnames'"),
        ("srun -n 2 --multi-prog missing", "cannot read missing"),
    ],
)
def test_what_a_shim_does_not_know_stops_the_step(tmp_path: Path, line: str, sentence: str) -> None:
    found = command_line(tmp_path, line)
    assert (found.code, found.output, sentence in found.errors) == (2, "", True), found


def test_the_variables_of_slurm_are_set(tmp_path: Path) -> None:
    names = "NTASKS NNODES JOB_NUM_NODES JOB_NODELIST TASKS_PER_NODE CPUS_PER_TASK JOB_CPUS_PER_NODE JOB_NAME NTASKS_PER_NODE".split()  # noqa: SIM905
    lines = "".join(f"echo ${{SLURM_{name}-unset}}\n" for name in names)
    lines += 'scontrol show hostnames "$SLURM_JOB_NODELIST"\n[ $SLURM_JOB_ID -gt 0 ] && [ "$SLURM_SUBMIT_DIR" = "$PWD" ] && echo fine\n'
    found = run(tmp_path, script(f"{HEADER}#SBATCH -c 2\n{lines}"))
    shown = "7 2 2 case-worker-0,case-worker-1 4,3 2 8(x2) job unset case-worker-0 case-worker-1 fine"
    assert " ".join(found.output.splitlines()) == shown


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_ranks_have_their_own_numbers_and_the_variables_of_the_script(tmp_path: Path, library: str) -> None:
    text = f"{HEADER}export NEW='a;b c'\nsrun -n 2 sh -c 'echo $SLURM_PROCID $SLURM_NTASKS $NEW'\n"
    text += "mpirun -n 1 sh -c 'echo ${SLURM_PROCID-none} $NEW'\n"
    found = run(tmp_path, script(text, library), library)
    assert found.output.splitlines() == ["0 2 a;b c", "1 2 a;b c", "none a;b c"]


def test_hydra_gets_a_list_of_variables_where_srun_passes_some(tmp_path: Path) -> None:
    found = command_line(tmp_path, "export A_1=1 A_10=2 B=3\nsrun --export=A_1,SLURM_X=4 ./a", "mpich")
    [names] = re.findall("^<-genvlist><(.*?)><-n>", found.output)
    assert {name for name in names.split(",") if not name.startswith("SLURM_N")} >= {"A_1", "SLURM_X", "SLURM_JOB_ID"}
    assert not {"A_10", "B", "PATH"} & set(names.split(","))


@pytest.mark.parametrize("value", ["1A=b", "A B=c", "A=$(false),$B=c"])
def test_what_is_not_the_name_of_a_variable_is_not_exported(tmp_path: Path, value: str) -> None:
    found = command_line(tmp_path, f"srun --export='{value}' ./a")
    assert (found.code, found.output, "is not the name of a variable" in found.errors) == (2, "", True)


def test_files_of_an_array_are_named_as_on_slurm(tmp_path: Path) -> None:
    text = f"{HEADER}#SBATCH --array=7\nsrun -n 1 -o out.%A_%a echo fine\ncat out.${{SLURM_ARRAY_JOB_ID}}_7\n"
    assert run(tmp_path, script(text)).output == "fine\n"


@pytest.mark.parametrize(
    ("options", "line", "tasks"),
    [
        ("-N 2 --ntasks-per-node=4", "", 8),
        ("-N 2 --ntasks-per-node=4", "--ntasks-per-node=1", 8),
        ("-N 2 --ntasks-per-node=4", "-N 2 --ntasks-per-node=3", 8),
        ("-N 2 --ntasks-per-node=4", "-N 1 -n 2", 2),
        ("-N 2 --ntasks-per-node=4", "-n 2 --ntasks-per-node=2", 2),
        ("-N 2", "", 2),
        ("-N 2", "-N 1", 1),
        ("-N 2", "-N 1 --ntasks-per-node=1", 1),
        ("-N 2", "--ntasks-per-node=1", 2),
        ("-N 2 -n 7", "--ntasks-per-node=1", 7),
        ("-N 2 -n 7", "-N 2 --ntasks-per-node=3", 7),
        ("-N 2 -n 7", "-N 2 -n 3", 3),
        ("-N 2 -n 7", "-n 3", 3),
        ("-N 1 -n 3", "-N 1 --ntasks-per-node=1", 3),
    ],
)
def test_a_step_has_as_many_tasks_as_on_two_nodes_of_slurm(tmp_path: Path, options: str, line: str, tasks: int) -> None:
    found = run(tmp_path, script(f"#!/bin/bash\n#SBATCH {options}\nsrun {line} sh -c 'echo $SLURM_NTASKS'\n"))
    assert (found.code, found.output.split()) == (0, [str(tasks)] * tasks), found.errors


@pytest.mark.parametrize(
    ("options", "host", "expected"),
    [
        ("", "case-worker-1", "1 2 case-worker-0,case-worker-1 case-worker-1"),
        ("-N 1 -n 1", "case-worker-0", "0 1 case-worker-0 case-worker-0"),
        ("-N 1 -n 1 -w case-worker-1", "case-worker-1.case.default.svc", "0 1 case-worker-1 case-worker-1"),
        ("-n 4 -w case-worker-1", "case-worker-0", "0 2 case-worker-0,case-worker-1 case-worker-0"),
    ],
)
def test_ranks_know_their_node(tmp_path: Path, options: str, host: str, expected: str) -> None:
    text = f"{HEADER}export PATH=$PWD:$PATH\nprintf '#!/bin/sh\\necho {host}\\n' >hostname\n"
    text += f"chmod +x hostname\nsrun {options} sh -c 'echo $SLURM_NODEID $SLURM_NNODES $SLURM_STEP_NODELIST $SLURMD_NODENAME'\n"
    found = run(tmp_path, script(text))
    assert set(found.output.splitlines()) == {expected}, found


@pytest.mark.parametrize(
    ("line", "is_reported"),
    [
        ("srun -n 2 sh <<< 'echo x'", True),
        ("echo | srun -n 2 cat", True),
        ("srun -n 2 -i $0 cat", True),
        ("srun -n 1 cat < $0", False),
        ("srun -n 2 cat", False),
        ("srun -n 2 cat < /dev/null", False),
    ],
)
def test_input_of_several_ranks_is_reported(tmp_path: Path, line: str, *, is_reported: bool) -> None:
    assert ("only rank 0 reads the input" in run(tmp_path, script(f"{HEADER}{line}\n")).errors) == is_reported


def test_an_interpreter_that_is_no_shell_finds_the_launchers_too(tmp_path: Path) -> None:
    text = f"#!{sys.executable} -I\n#SBATCH -n 2\nimport os\nos.system('srun ./solver x')\n"
    assert [each.split(" OMP")[0] for each in run(tmp_path, converted(text, "i")).records] == ["solver 0/2 <x>", "solver 1/2 <x>"]


def test_output_files_of_srun(tmp_path: Path) -> None:
    text = f"{HEADER}srun -n 1 -o out.%j -e err sh -c 'echo a; echo b >&2'\ncat out.$SLURM_JOB_ID; cat err\n"
    assert run(tmp_path, script(text)).output == "a\nb\n"


def test_the_operator_does_not_take_the_shims_for_a_choice_of_cores() -> None:
    shims = container(script("true\n").job)["args"][0]
    assert not re.search("|".join(row.binding_choice for row in LIBRARIES.values() if row.binding_choice), shims)
