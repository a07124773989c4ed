"""`convert`: sizes, options and reports of Slurm scripts; test_slurm_scripts.py runs what it makes."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.client_api import FakeApi, container
from mpiop.client.errors import InvalidError
from mpiop.kubectl.convert import Conversion, converted


def is_direct(made: Conversion) -> bool:
    return container(made.job)["command"] == ["mpirun"]


def convert(script: str, library: str = "mpich", **options: Any) -> Conversion:
    return converted(script, "i", library, **options)


def sizes(script: str) -> tuple[int, int, int]:
    """Return ranks, slots and workers."""
    made = convert(script, is_script=True)
    ranks = next(int(row["value"]) for row in container(made.job)["env"] if row["name"] == "MPIOP_NTASKS")
    return ranks, made.job["spec"]["slotsPerWorker"], made.job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]


SCRIPT = """\
#!/bin/bash
#SBATCH -J My_Job -n 8   # eight
#SBATCH --ntasks-per-node=4 --mem-per-cpu=2G
#SBATCH -t 1-02:03:04
#SBATCH -c2
#SBATCH --gres=gpu:a100:2
#SBATCH --partition gpus
#SBATCH --mail-user=me
module load openmpi
export OMP_NUM_THREADS="4"
echo "$(date)"
srun --mpi=pmix -n 8 ./solver "a b"
"""


def test_a_line_with_a_launcher_becomes_mpirun() -> None:
    made = convert(SCRIPT.replace('echo "$(date)"\n', "echo start\ndate\n"))
    assert (made.job["metadata"]["name"], made.job["spec"]["slotsPerWorker"]) == ("my-job", 4)
    assert made.job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2
    assert container(made.job)["args"] == ["-n", "8", "-prepend-pattern=[1,%r]<output>:", "./solver", "a b"]
    assert made.job["spec"]["runPolicy"]["activeDeadlineSeconds"] == 86400 + 2 * 3600 + 3 * 60 + 4
    assert container(made.job, "Worker")["resources"] == {
        "requests": {"cpu": "8", "memory": "16Gi"},
        "limits": {"memory": "16Gi", "nvidia.com/gpu": "2"},
    }
    assert made.job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "gpus"}
    assert {"name": "OMP_NUM_THREADS", "value": "4"} in container(made.job)["env"]
    assert [line.split("  ")[0] for line in made.left] == [
        "#SBATCH --mail-user=me",
        "--gres: type a100",
        "line 9: module load openmpi",
    ]


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("mpirun -np 16 ./a", ["16", "./a"]),
        ("mpirun -n=16 ./a -n 3", ["16", "./a", "-n", "3"]),
        ("mpiexec.hydra ./a", ["2", "./a"]),
        ("srun ./a\r", ["2", "./a"]),
        ("ibrun ./a", ["2", "./a"]),
        ("srun -N2 -n16 --mpi pmix -- ./a", ["16", "./a"]),
        ("mpirun \\\n -np 16 ./a", ["16", "./a"]),
        ("srun ./a '>' \\; \"&\" # it's one", ["2", "./a", ">", ";", "&"]),
        ("srun sh -c 'echo \"$WHO\"' \\$x \"it's\" ''", ["2", "sh", "-c", 'echo "$$WHO"', "$$x", "it's", ""]),
        ("set -e\nexport A=1 B='two words'\necho hi\nsrun ./a", ["2", "./a"]),
        ("srun ./a --in=x.y a,b +%F @x", ["2", "./a", "--in=x.y", "a,b", "+%F", "@x"]),
    ],
)
def test_words_that_need_no_shell_are_passed_on(line: str, arguments: list[str]) -> None:
    made = convert(f"#SBATCH --nodes=2\n{line}\n")
    assert is_direct(made)
    assert [word for word in container(made.job)["args"][1:] if word != "-prepend-pattern=[1,%r]<output>:"] == arguments


@pytest.mark.parametrize(
    "line",
    [
        "mpirun -np $N ./a",
        "mpirun --bind-to core ./a",
        "mpirun --novel ./a",
        "mpirun ./a : -n 2 ./b",
        "srun ./a > out.log 2>&1",
        "srun ./a < in",
        "srun ./a <<< text",
        "srun ./a && srun ./b",
        "srun ./a &\nwait",
        "srun ./a; srun ./b",
        "srun ./a | tee log",
        "srun ./a ~/x",
        "srun ./a *.in",
        "srun ./a {1,2}",
        "srun ./a $((1 + 1))",
        "srun ./a $INPUT",
        'srun ./a "$(hostname)"',
        "srun ./a `d`",
        "srun ./a --dir=~/x",
        'srun ./a "\\$x"',
        "srun ./a $'a\\tb'",
        "srun ./a b\\\nc",
        "mpirun -N 1 ./a",
        "mpirun -npernode 1 ./a",
        "A=1 srun ./a",
        "time mpirun ./a",
        "cd x && srun ./a",
        "cd x\nsrun ./a",
        "./before\nsrun ./a",
        "for i in 1 2; do srun ./a; done",
        "if true; then srun ./a; fi",
        "{ srun ./a; }",
        "( srun ./a )",
        "! srun ./a",
        "exec srun ./a",
        "X=5\nsrun ./a",
        "srun ./a\nexport A=1\nsrun ./b",
        "export A=$HOME\nsrun ./a",
        "echo 'open\nsrun ./a",
        "f() { srun ./a; }\nf",
        "echo x > input\nsrun ./a",
        "trap 'echo end' EXIT\nsrun ./a",
        "srun --output=log ./a",
        "srun -l ./a",
        "srun -ul ./a",
        "srun --label -n 2 ./a",
        "srun ./a $SLURM_ARRAY_TASK_ID",
        "srun sh -c './a $SLURM_PROCID'",
        "[[ -f x ]] && exit 1\nsrun ./a",
        "# no mpirun here\nsource /opt/intel/setvars.sh\nmpirun ./a",
    ],
)
def test_any_other_script_runs_whole(line: str) -> None:
    made = convert(f"#!/bin/bash -l\n#SBATCH --nodes=2\n{line}\n")
    words = [word.replace("$$", "$") for word in container(made.job)["args"]]
    assert (container(made.job)["command"], words[3]) == (["/bin/sh", "-c"], f"#!/bin/bash -l\n#SBATCH --nodes=2\n{line}\n")
    assert words[4:] == ["/bin/bash"]


def test_what_is_not_exported_before_the_launcher_is_not_a_variable_of_its_ranks() -> None:
    made = convert("srun ./a\nexport A=1\n")
    assert "A" not in {row["name"] for row in container(made.job, "Worker").get("env", [])}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("-N 2 --ntasks-per-node 3", (6, 3, 2)),
        ("-N 2 --tasks-per-node=3", (6, 3, 2)),
        ("-N 2 -n 8", (8, 4, 2)),
        ("-N 2 -n 7", (7, 4, 2)),
        ("-N 4 -n 2", (2, 1, 2)),
        ("-n 3", (3, 1, 3)),
        ("-N2-4", (2, 1, 2)),
        ("--tasks 5 --nodes 1", (5, 5, 1)),
        ("", (1, 1, 1)),
    ],
)
def test_numbers_of_ranks(options: str, expected: tuple[int, int, int]) -> None:
    assert sizes(f"#SBATCH {options}\n./run\n") == expected


def test_the_largest_launch_decides_if_the_job_names_no_number() -> None:
    script = "#SBATCH -N 1\n./pre\nmpirun -np 6 ./a\nmpirun -np 36 ./b\n"
    assert (sizes(script), container(convert(script).job, "Worker")["resources"]["requests"]["cpu"]) == ((1, 36, 1), "36")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("90", 5400),
        ("10:30", 630),
        ("01:00:00", 3600),
        ("2-12", 216000),
        ("1-2:3", 93780),
        ("0:00", None),
        ("0", None),
        ("UNLIMITED", None),
    ],
)
def test_times(value: str, seconds: int | None) -> None:
    made = convert(f"#SBATCH -t {value}\nsrun ./a\n")
    assert (made.job["spec"]["runPolicy"].get("activeDeadlineSeconds"), made.left) == (seconds, [])


@pytest.mark.parametrize(
    ("options", "requests", "gpus", "left"),
    [
        ("--nodes=2 --ntasks-per-node=4", {"cpu": "4"}, None, []),
        ("--nodes=2 --ntasks-per-node=4 -c 8 --mem-per-cpu=2G", {"cpu": "32", "memory": "64Gi"}, None, []),
        ("--mem=16gb", {"cpu": "1", "memory": "16Gi"}, None, []),
        ("--mem=16", {"cpu": "1", "memory": "16Mi"}, None, []),
        ("--mem=0", {"cpu": "1"}, None, ["--mem=0"]),
        ("--gres=gpu", {"cpu": "1"}, "1", []),
        ("--gres=gpu:4", {"cpu": "1"}, "4", []),
        ("--gres=gpu:v100:1,nvme:500", {"cpu": "1"}, "1", ["--gres: type v100", "--gres=nvme:500"]),
        ("--gres=nvme:500", {"cpu": "1"}, None, ["--gres=nvme:500"]),
        ("--gres=none", {"cpu": "1"}, None, []),
        ("-N 2 --gpus=8", {"cpu": "1"}, "4", []),
        ("-N 2 --ntasks-per-node=4 --gpus-per-task=1", {"cpu": "4"}, "4", []),
        ("--gpus-per-node=a100:2", {"cpu": "1"}, "2", ["--gpus-per-node: type a100"]),
    ],
)
def test_resources_of_a_worker(options: str, requests: dict[str, str], gpus: str | None, left: list[str]) -> None:
    made = convert(f"#SBATCH {options}\nsrun ./a\n")
    resources = container(made.job, "Worker")["resources"]
    assert (resources["requests"], resources.get("limits", {}).get("nvidia.com/gpu")) == (requests, gpus)
    assert [line.split("  ")[0] for line in made.left] == left


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("#SBATCH --comment=\"it's me", "#SBATCH --comment=\"it's me"),
        ("#SBATCH --novel=3", "#SBATCH --novel=3"),
        ("#SBATCH --exclusive", "#SBATCH --exclusive"),
        ("#SBATCH --chdir=here", "--chdir=here"),
        ("#SBATCH --ntasks", "#SBATCH --ntasks"),
        ("#SBATCH n=4", "line 1: #SBATCH n=4"),
        ("srun --cpu-bind cores ./b", "line 1: srun --cpu-bind cores"),
        ("srun --novel=1 ./b", "line 1: srun --novel=1"),
        ("srun ./b : ./c", "line 1: srun ./b : ./c"),
        ("sbatch next.sh", "line 1: sbatch next.sh"),
        ("conda activate torch", "line 1: conda activate torch"),
        ("./a $SLURM_MEM_PER_NODE ${SLURM_MEM_PER_NODE:-1}", "line 1: $SLURM_MEM_PER_NODE"),
        ("./a $((SLURM_MEM_PER_NODE / 1024))", "line 1: $SLURM_MEM_PER_NODE"),
        ("python3 -c 'os.environ[\"SLURM_JOB_PARTITION\"]'", "line 1: $SLURM_JOB_PARTITION"),
        ("#PBS -l nodes=2:ppn=8", "line 1: #PBS -l nodes=2:ppn=8"),
        ("#BSUB -J name", "line 1: #BSUB -J name"),
    ],
)
def test_what_has_no_counterpart_is_reported(line: str, left: str) -> None:
    made = convert(f"{line}\nsrun ./a\n")
    assert [each.split("  ")[0] for each in made.left] == [left]
    assert f"# not converted: {left}" in made.as_yaml()


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--mem=2G", {"PER_NODE": "2048"}),
        ("--mem-per-cpu=1500K", {"PER_CPU": "2"}),
        ("--gres=gpu:2 --mem-per-gpu=100", {"PER_GPU": "100"}),
        ("--mem=0", {}),
        ("-n 2", {}),
    ],
)
def test_the_memory_is_a_variable_in_mib(option: str, values: dict[str, str]) -> None:
    made = convert(f"#SBATCH {option}\nsrun ./a; srun ./b\n")
    assert environment(made.job, "Launcher", "SLURM_MEM_") == values


@pytest.mark.parametrize(
    ("options", "line", "number"),
    [
        ("-n 4", "./pre $SLURM_NNODES; ./pre ${SLURM_NNODES}", 1),
        ("-n 4", "./pre $((4 / SLURM_JOB_NUM_NODES))", 1),
        ("-n 4 -N 2", "./pre $SLURM_NNODES", 0),
        ("-n 1", "./pre $SLURM_NNODES", 0),
        ("-n 4", "./pre $SLURM_NTASKS", 0),
        ("-n 1", "export MASTER_ADDR=$(hostname -s)", 1),
        ("-n 1", "./pre `hostname` $HOSTNAME", 1),
        ("-n 1", "echo runs on $(hostname)", 0),
        ("-n 1", "srun sh -c './b $(hostname)'", 0),
        ("-n 1", "hostname", 0),
    ],
)
def test_what_depends_on_hosts_is_noted(options: str, line: str, number: int) -> None:
    made = convert(f"#SBATCH {options}\n{line}\nsrun ./a; srun ./b\n")
    notes = [each for each in made.notes if "without --nodes" in each or "the launcher's" in each]
    assert [each.split(":")[0] for each in notes] == ["line 2"] * number


@pytest.mark.parametrize(
    ("lines", "numbers"),
    [
        ("srun ./a &\nsrun ./b > b.log &\nwait", [2, 3]),
        ("srun ./a 2>&1 | tee a.log &\nsrun ./b 2>&1 > b.log &", [2, 3]),
        ("srun ./a\nsrun ./b; ./post &", []),
        ("srun ./a > a.log\nsrun ./b | tail &", [3]),
        ("{ srun ./a; } &\n(srun ./b) &\nfor i in 1 2; do srun ./c > $i.log; done &", [2, 3, 4]),
        ("(\n(srun ./a) &\nsrun ./b\n)", [3]),
    ],
)
def test_steps_in_the_background_are_noted(lines: str, numbers: list[int]) -> None:
    notes = [each for each in convert(f"#SBATCH -n 2\n{lines}\n").notes if "at the same time" in each]
    assert [each.split(":")[0] for each in notes] == [f"line {number}" for number in numbers]


def test_variables_that_are_set_are_not_reported() -> None:
    names = "NTASKS PROCID LOCALID NODEID JOB_ID JOB_NODELIST SUBMIT_DIR CPUS_PER_TASK ARRAY_TASK_ID STEP_NODELIST EXPORT_ENV OWN"
    lines = "".join(f"echo ${{SLURM_{name}}}\n" for name in names.split())
    assert convert(f"export SLURM_OWN=1\n{lines}# $SLURM_COMMENT\nsrun ./a\n").left == []


@pytest.mark.parametrize(("library", "count"), [("openmpi", 1), ("mpich", 0), ("intel", 0)])
@pytest.mark.parametrize("line", ["mpiexec.hydra ./a", "time /opt/intel/bin/mpiexec.hydra -n 2 ./a"])
def test_a_launcher_of_another_library_is_reported(line: str, library: str, count: int) -> None:
    left = [each for each in convert(f"{line}\n", library).left if "give --mpi mpich or intel" in each]
    assert len(left) == count


@pytest.mark.parametrize("line", [" #SBATCH -n 4", "##SBATCH -n 4", "# SBATCH -n 4", "true\n#SBATCH -n 4"])
def test_lines_that_sbatch_does_not_read_request_nothing(line: str) -> None:
    assert sizes(f"{line}\n./run\n") == (1, 1, 1)


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("echo\n", "--script"),
        ("# srun ./a\n", "--script"),
        ("#SBATCH --mem=much\nsrun a\n", "--mem=much"),
        ("#SBATCH --time=soon\nsrun a\n", "--time=soon"),
        ("#SBATCH --nodes=$N\nsrun a\n", "no variables"),
        ("#SBATCH --ntasks=${N}\nsrun a\n", "--ntasks"),
        ("#SBATCH --nta=5\nsrun a\n", "--ntasks-per-node"),
        ("#SBATCH -n 0\nsrun a\n", "--ntasks=0"),
        ("#SBATCH --gpus=three\nsrun a\n", "--gpus=three"),
        ("#SBATCH --array=5-1\nsrun a\n", "--array 5-1"),
        ("#SBATCH --array=1-5:0\nsrun a\n", "--array 1-5:0"),
        ("#SBATCH --array=1-$N\nsrun a\n", "--array=1-$N"),
        ("#SBATCH --signal=USR1@soon\nsrun a\n", "--signal=USR1@soon"),
        ("#SBATCH -N 2 --gpus=3\nsrun a\n", "divided"),
        *((f"#SBATCH --{option}={'9' * 5000}\nsrun a\n", f"--{option}=99") for option in ("ntasks", "nodes", "time", "mem", "gpus")),
        (f"#SBATCH --array={'9' * 5000}\nsrun a\n", "--array 99"),
        (f"#SBATCH --array=1%{'9' * 5000}\nsrun a\n", "--array=1%99"),
        ("#SBATCH -n 1\n#SBATCH hetjob\n#SBATCH -n 2\nsrun a\n", "line 2: a heterogeneous job"),
        (f"srun a $X\n#{'x' * 131072}\n", "at most"),
    ],
)
def test_a_script_that_slurm_rejects_or_that_cannot_run_is_an_error(script: str, sentence: str) -> None:
    with pytest.raises(InvalidError) as caught:
        convert(script)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("script", ["( " * 3000 + "srun a" + " )" * 3000, "srun $(echo " * 3000 + ")" * 3000, f"srun -n {'9' * 5000} a"])
def test_a_script_that_is_nested_deeply_or_has_a_long_number_runs_whole(script: str) -> None:
    assert not is_direct(convert(f"{script}\n"))


QUOTE = '\\"'


@pytest.mark.parametrize("line", ["echo %s", 'echo a"%s', "srun ./a '%s"])
def test_a_word_of_many_quotes_is_read_in_a_time_that_grows_with_its_length(line: str) -> None:
    def seconds(length: int) -> float:
        begun = time.process_time()
        convert(f"#!/bin/bash\n{line % (QUOTE * length)}\nsrun ./a\n")
        return time.process_time() - begun

    assert min(seconds(24_000) for _ in range(3)) < 40 * min(seconds(2_000) for _ in range(3))


def test_a_long_pipe_is_read_in_a_time_that_grows_with_its_length() -> None:
    def seconds(length: int) -> float:
        begun = time.process_time()
        assert convert(f"srun ./a{' > x | cat' * length} &\n").notes
        return time.process_time() - begun

    assert min(seconds(2_400) for _ in range(3)) < 40 * min(seconds(200) for _ in range(3))


@pytest.mark.parametrize(
    ("word", "is_expanded"),
    [("\"it's $HOME it's\"", True), ('\\"$HOME\\"', True), ("'$HOME'", False), ("\"'\"a'$b'", False)],
)
def test_quotes_inside_of_quotes_do_not_hide_what_a_shell_expands(word: str, is_expanded: bool) -> None:  # noqa: FBT001 - a table
    assert is_direct(convert(f"srun ./a {word}\n")) != is_expanded


@pytest.mark.parametrize(
    ("name", "expected"),
    [("My_Job", "my-job"), ("30_3_c", "job-30-3-c"), ("-x-", "x"), ("a" * 60, "a" * 40), ("%j", "j"), ("été", "t"), ("__", None)],
)
def test_names_that_the_api_server_accepts(name: str, expected: str | None) -> None:
    assert convert(f"#SBATCH --job-name={name}\nsrun ./a\n").job["metadata"].get("name") == expected


def test_the_verb_reports_on_stderr_and_strict_fails(mpi: Any, tmp_path: Path) -> None:
    file = tmp_path / "job.sbatch"
    file.write_text("#SBATCH --account=a\ncat > x\nsrun ./a\n", encoding="utf-8")
    code, out, err = mpi("convert", str(file), "--image", "i", "--mount", "data:/data", "--workdir", "/data")
    assert (code, "claimName: data" in out, "workingDir: /data" in out) == (0, True, True)
    assert "not converted: #SBATCH --account=a" in err
    assert mpi("convert", str(file), "--image", "i", "--strict")[:2] == (2, "")


def test_workers_may_request_less_than_a_cpu_for_each_task(mpi: Any, tmp_path: Path) -> None:
    script = tmp_path / "job.sbatch"
    script.write_text("#SBATCH -N 2 --ntasks-per-node=4\nsrun ./a\n", encoding="utf-8")
    job = yaml.safe_load(mpi("convert", str(script), "--image", "i", "--cpu", "100m")[1])
    assert container(job, "Worker")["resources"]["requests"] == {"cpu": "100m"}


OFFERED = {"/api/v1/namespaces/mpi-operator/configmaps/mpi-operator-capabilities": {"data": {"ssh-auto": "Injected"}}}
NOTE = "note: ssh is injected, because the operator of this cluster offers it"


@pytest.mark.parametrize("script", ["srun ./a\n", "date > x\nsrun ./a\n"], ids=["one line", "whole"])
@pytest.mark.parametrize(
    ("options", "annotation", "is_noted"),
    [
        ((), "Injected", True),
        (("--ssh", "injected"), "Injected", False),
        (("--ssh", "image"), "Image", False),
        (("--mount", "c:/opt"), None, False),
    ],
)
def test_the_ssh_is_what_the_operator_offers_unless_an_option_names_it(
    mpi: Any, api: FakeApi, tmp_path: Path, script: str, options: tuple[str, ...], annotation: str | None, *, is_noted: bool
) -> None:
    file = tmp_path / "job.sbatch"
    file.write_text(script, encoding="utf-8")
    api.answers = dict(OFFERED)
    code, out, err = mpi("convert", str(file), "--image", "i", *options)
    assert (code, NOTE in err) == (0, is_noted)
    assert (yaml.safe_load(out)["metadata"].get("annotations") or {}).get("mpiop.kubeflow.org/ssh") == annotation


def environment(job: dict[str, Any], role: str, prefix: str) -> dict[str, str]:
    rows = container(job, role).get("env", [])
    return {row["name"].removeprefix(prefix): row["value"] for row in rows if row["name"].startswith(prefix)}


# What Slurm 22.05 sets in the first job: COUNT, ID, MAX, MIN, STEP.
@pytest.mark.parametrize(
    ("value", "indexes", "limit", "first"),
    [
        ("2-8:3%2", [2, 5, 8], 2, "3 2 8 2 3"),
        ("1,3,7-9", [1, 3, 7, 8, 9], 0, "5 1 9 1 1"),
        ("4", [4], 0, "1 4 4 4 1"),
        ("1,5,9", [1, 5, 9], 0, "3 1 9 1 1"),
        ("0-3%0", [0, 1, 2, 3], 0, "4 0 3 0 1"),
        ("0-1,1-2", [0, 1, 2], 0, "3 0 2 0 1"),
        ("00-01", [0, 1], 0, "2 0 1 0 1"),
        ("1-3:2,9", [1, 3, 9], 0, "3 1 9 1 2"),
    ],
)
@pytest.mark.parametrize("line", ["srun ./a", "srun ./a $SLURM_ARRAY_TASK_ID"])
def test_an_array_is_a_job_for_each_index_with_the_variables_of_slurm(
    value: str, indexes: list[int], limit: int, first: str, line: str
) -> None:
    made = convert(f"#SBATCH --array={value} -J case\n{line}\n")
    assert ([job["metadata"]["name"] for job in made.jobs], made.array and made.array.limit, made.left) == (
        [f"case-{each}" for each in indexes],
        limit,
        [],
    )
    found = [environment(job, "Worker", "SLURM_ARRAY_") for job in made.jobs]
    assert [int(each["TASK_ID"]) for each in found] == indexes
    assert " ".join(found[0][f"TASK_{each}"] for each in ("COUNT", "ID", "MAX", "MIN", "STEP")) == first
    assert len({each["JOB_ID"] for each in found}) == 1
    assert len(list(yaml.safe_load_all(made.as_yaml()))) == len(indexes)


ANNOTATIONS = "mpiop.kubeflow.org/"


@pytest.mark.parametrize(
    ("options", "expected", "seconds"),
    [
        ("--signal=USR1@120 -t 10", ("Injected", "SIGUSR1", "120s"), 480),
        ("-t 10 --signal=R:sigusr2", ("Injected", "SIGUSR2", "60s"), 540),
        ("--signal=10@90", ("Injected", "SIGUSR1", "90s"), None),
        ("--signal=B:USR1@60 -t 10", (None, None, None), 600),
        ("--signal=TERM@60 -t 10", (None, None, None), 600),
        ("--signal=USR1@600 -t 10", (None, None, None), 600),
    ],
)
def test_a_signal_before_the_time_limit(options: str, expected: tuple[str | None, ...], seconds: int | None) -> None:
    made = convert(f"#SBATCH {options}\nsrun ./a\n")
    annotations = made.job["metadata"].get("annotations", {})
    assert tuple(annotations.get(ANNOTATIONS + name) for name in ("ssh", "checkpoint-signal", "checkpoint-grace")) == expected
    assert made.job["spec"]["runPolicy"].get("activeDeadlineSeconds") == seconds
    assert [each.startswith("--signal=") for each in made.left] == [True] * (expected[0] is None)
    assert any("gets" in each or "get SIGUSR" in each for each in made.notes) == (expected[0] is not None)


@pytest.mark.parametrize(
    ("value", "expected", "left"),
    [
        ("\"A='x,y',B=1\"", {"A": "'x,y'", "B": "1"}, []),
        ('ALL,A="x y",B=1', {"A": "x y", "B": "1"}, []),
        ("A=$HOME", {"A": "$$HOME"}, []),
        ("all,A=1,,B=", {"A": "1", "B": ""}, []),
        ("NIL", {}, []),
        ("MODE,A=1", {"A": "1"}, ["MODE"]),
        ("1A=b,A=2", {"A": "2"}, ["1A=b"]),
    ],
)
def test_exports_as_sbatch_reads_them(value: str, expected: dict[str, str], left: list[str]) -> None:
    made = convert(f"#SBATCH --export={value}\nsrun ./a\n")
    assert environment(made.job, "Worker", "") == expected
    assert [each.split("  ")[0] for each in made.left] == [f"#SBATCH --export={each}" for each in left]
