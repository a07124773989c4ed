"""`convert`: sizes, options and reports of Slurm scripts; test_slurm_scripts.py runs what it makes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mpiop.client.errors import InvalidError
from mpiop.kubectl.convert import Conversion, converted


def launcher(made: Conversion) -> dict[str, Any]:
    container: dict[str, Any] = made.job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    return container


def worker(made: Conversion) -> dict[str, Any]:
    container: dict[str, Any] = made.job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    return container


def is_direct(made: Conversion) -> bool:
    return launcher(made)["command"] == ["mpirun"]


def convert(script: str, library: str = "mpich", **options: Any) -> Conversion:
    return converted(script, "i", library, **options)


def sizes(script: str) -> tuple[int, int, int]:
    """Return ranks, slots and workers."""
    made = convert(script, is_script=True)
    ranks = next(int(row["value"]) for row in launcher(made)["env"] if row["name"] == "MPIOP_NTASKS")
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
    assert launcher(made)["args"] == ["-n", "8", "-prepend-pattern=[1,%r]<output>:", "./solver", "a b"]
    assert made.job["spec"]["runPolicy"]["activeDeadlineSeconds"] == 86400 + 2 * 3600 + 3 * 60 + 4
    assert worker(made)["resources"] == {
        "requests": {"cpu": "8", "memory": "16Gi"},
        "limits": {"memory": "16Gi", "nvidia.com/gpu": "2"},
    }
    assert made.job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "gpus"}
    assert {"name": "OMP_NUM_THREADS", "value": "4"} in launcher(made)["env"]
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
    assert [word for word in launcher(made)["args"][1:] if word != "-prepend-pattern=[1,%r]<output>:"] == arguments


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
        "[[ -f x ]] && exit 1\nsrun ./a",
        "# no mpirun here\nsource /opt/intel/setvars.sh\nmpirun ./a",
    ],
)
def test_any_other_script_runs_whole(line: str) -> None:
    made = convert(f"#!/bin/bash -l\n#SBATCH --nodes=2\n{line}\n")
    words = [word.replace("$$", "$") for word in launcher(made)["args"]]
    assert (launcher(made)["command"], words[3]) == (["/bin/sh", "-c"], f"#!/bin/bash -l\n#SBATCH --nodes=2\n{line}\n")
    assert words[4:] == ["/bin/bash"]


def test_what_is_not_exported_before_the_launcher_is_not_a_variable_of_its_ranks() -> None:
    made = convert("srun ./a\nexport A=1\n")
    assert "A" not in {row["name"] for row in worker(made).get("env", [])}


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
    assert sizes("#SBATCH -N 1\n./pre\nmpirun -np 6 ./a\nmpirun -np 36 ./b\n") == (36, 36, 1)


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
    resources = worker(made)["resources"]
    assert (resources["requests"], resources.get("limits", {}).get("nvidia.com/gpu")) == (requests, gpus)
    assert [line.split("  ")[0] for line in made.left] == left


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("#SBATCH --comment=\"it's me", "#SBATCH --comment=\"it's me"),
        ("#SBATCH --novel=3", "#SBATCH --novel=3"),
        ("#SBATCH --array=1-10", "#SBATCH --array=1-10"),
        ("#SBATCH --exclusive", "#SBATCH --exclusive"),
        ("#SBATCH --chdir=here", "--chdir=here"),
        ("#SBATCH --ntasks", "#SBATCH --ntasks"),
        ("#SBATCH n=4", "line 1: #SBATCH n=4"),
        ("srun --cpu-bind cores ./b", "line 1: srun --cpu-bind cores"),
        ("srun --novel=1 ./b", "line 1: srun --novel=1"),
        ("srun ./b : ./c", "line 1: srun ./b : ./c"),
        ("sbatch next.sh", "line 1: sbatch next.sh"),
    ],
)
def test_what_has_no_counterpart_is_reported(line: str, left: str) -> None:
    made = convert(f"{line}\nsrun ./a\n")
    assert [each.split("  ")[0] for each in made.left] == [left]
    assert f"# not converted: {left}" in made.as_yaml()


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
        ("#SBATCH -N 2 --gpus=3\nsrun a\n", "divided"),
        ("#SBATCH -n 1\n#SBATCH hetjob\n#SBATCH -n 2\nsrun a\n", "line 2: a heterogeneous job"),
        (f"srun a $X\n#{'x' * 131072}\n", "at most"),
    ],
)
def test_a_script_that_slurm_rejects_or_that_cannot_run_is_an_error(script: str, sentence: str) -> None:
    with pytest.raises(InvalidError) as caught:
        convert(script)
    assert sentence in str(caught.value)


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
    assert mpi("convert", str(file), "--image", "i", "--strict")[:2] == (1, "")


def test_workers_may_request_less_than_a_cpu_for_each_task(mpi: Any, tmp_path: Path) -> None:
    script = tmp_path / "job.sbatch"
    script.write_text("#SBATCH -N 2 --ntasks-per-node=4\nsrun ./a\n", encoding="utf-8")
    job = yaml.safe_load(mpi("convert", str(script), "--image", "i", "--cpu", "100m")[1])
    [container] = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "100m"}
