"""`convert`: the line that starts the program is read as a shell and its launcher read it, and what is left out is reported."""

from typing import Any

import pytest

from mpiop.kubectl.convert import converted


def as_kubernetes_does(value: str) -> str:
    """Return a value as the container gets it."""
    return value.replace("$$", "$")


def launcher_of(job: Any) -> Any:
    return job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]


def read(script: str) -> tuple[list[str], int, list[str]]:
    """Return the words after `mpirun -n`, the slots, and what was left out, without the reasons."""
    job, left = converted(script, "i", "mpich")
    words = [as_kubernetes_does(word) for word in launcher_of(job)["args"] if word != "-prepend-rank"]
    return words[1:], job["spec"]["slotsPerWorker"], [line.split("  ")[0] for line in left]


@pytest.mark.parametrize(
    ("line", "ranks", "slots"),
    [
        ("mpirun -np 16 ./a", "16", 8),
        ("mpirun -n 16 ./a", "16", 8),
        ("mpiexec -ppn 3 ./a", "6", 3),
        ("srun -n16 ./a", "16", 8),
        ("srun --ntasks=16 ./a", "16", 8),
        ("srun -N 4 -n 16 ./a", "16", 4),
        ('mpirun -np "${SLURM_NTASKS}" ./a', "2", 1),
        ("mpirun \\\n -np 16 ./a", "16", 8),
    ],
)
def test_the_numbers_of_the_launcher_count(line: str, ranks: str, slots: int) -> None:
    assert read(f"#SBATCH --nodes=2\n{line}\n") == ([ranks, "./a"], slots, [])


@pytest.mark.parametrize(
    ("line", "program", "left"),
    [
        ("srun --cpu-bind cores ./a", ["./a"], ["srun --cpu-bind cores"]),
        ("srun --cpu-bind=cores --mpi pmix ./a", ["./a"], ["srun --cpu-bind=cores"]),
        ("mpirun --mca btl tcp,self ./a", ["./a"], ["mpirun --mca btl tcp,self"]),
        ("mpirun -x SET -x UNSET --bind-to core ./a -x", ["./a", "-x"], ["mpirun -x UNSET", "mpirun --bind-to core"]),
        ("mpirun -np $N ./a", ["./a"], ["mpirun -np $N"]),
        ("mpirun --novel ./a", ["./a"], ["mpirun --novel"]),
        ("srun -- ./a", ["./a"], []),
        ("srun ./a > out.log 2>&1", ["./a"], ["> out.log 2>&1"]),
        ("srun ./a 2> err", ["./a"], ["2> err"]),
        ("srun ./a 2 | tee log", ["./a", "2"], ["| tee log"]),
        ("srun ./a && srun ./b", ["./a"], ["&& srun ./b"]),
        ("srun ./a '>' \\; \"&\" # it's one", ["./a", ">", ";", "&"], []),
        ('srun ./a $INPUT "${B} c" `d`', ["./a", "$INPUT", "${B} c", "`d`"], ["$INPUT", '"${B} c"', "`d`"]),
        ("srun sh -c 'echo \"$WHO\"' \\$x \"it's\" ''", ["sh", "-c", 'echo "$WHO"', "$x", "it's", ""], []),
    ],
)
def test_what_the_launcher_or_a_shell_would_do_is_said(line: str, program: list[str], left: list[str]) -> None:
    words, _, found = read(f"export SET=1\n{line}\n")
    assert (words, found) == (["1", *program], left)


@pytest.mark.parametrize(
    ("line", "env", "left"),
    [
        ("export A=1 B='two words'", {"A": "1", "B": "two words"}, []),
        ("export A='$HOME'", {"A": "$HOME"}, []),
        ("export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK", {}, ["export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK"]),
        ("export A=`hostname`", {}, ["export A=`hostname`"]),
        ('export A="it is\nfine"', {}, ['export A="it is', 'fine"']),
        ("#SBATCH --comment=\"it's me", {}, ["#SBATCH --comment=\"it's me"]),
    ],
)
def test_only_variables_that_need_no_shell_are_exported(line: str, env: dict[str, str], left: list[str]) -> None:
    job, found = converted(f"{line}\nsrun ./a\n", "i", "mpich")
    assert {row["name"]: as_kubernetes_does(row["value"]) for row in launcher_of(job)["env"]} == env
    assert [each.split("  ")[0] for each in found] == left


def test_memory_per_cpu_counts_the_cpus_of_each_task() -> None:
    job, _ = converted("#SBATCH --nodes=2 --ntasks-per-node=4 --cpus-per-task=8 --mem-per-cpu=2G\nsrun ./a\n", "i", "mpich")
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert worker["resources"] == {"requests": {"cpu": "32", "memory": "64Gi"}, "limits": {"memory": "64Gi"}}
