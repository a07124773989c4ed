"""The verbs, one row each: what help and completion need before the module of the verb is imported."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Verb(NamedTuple):
    """A verb.

    Attributes:
        module: What to import; its function is `<verb>_verb`.
        summary: Its line in the help of `kubectl mpi`.
        examples: At the end of its own help.
    """

    module: str
    summary: str
    examples: tuple[str, ...]


VERBS: Final[Mapping[str, Verb]] = {
    "run": Verb(
        "mpiop.kubectl.run",
        "Run a program on MPI ranks and show its output.",
        (
            "run -n 8 --slots 4 --gpus 1 --image solver:1 -- ./solver input.nml",
            "run -n 4 --image solver:1 --mpirun-args '--bind-to core' --time-limit 12h --detach -- ./solver",
            "run -n 4 --image solver:1 --dry-run=client -o yaml -- ./solver",
            "run --in dev -n 2 --array 1-20 -- ./solver",
        ),
    ),
    "alloc": Verb(
        "mpiop.kubectl.alloc",
        "Allocate workers for many steps, and open a shell there.",
        ("alloc -n 8 --slots 4 --image solver:1 --name dev", "alloc -n 8 --image solver:1 --name dev --idle 30m --no-shell"),
    ),
    "step": Verb(
        "mpiop.kubectl.step",
        "Run a program in an allocation.",
        ("step dev -- ./solver input.nml", "step dev -n 4 --hosts 0 -e OMP_NUM_THREADS=2 -- ./solver"),
    ),
    "list": Verb("mpiop.kubectl.show", "List jobs.", ("list", "list -A -o wide", "list -o json")),
    "describe": Verb("mpiop.kubectl.show", "Show the details of a job.", ("describe solver",)),
    "why": Verb("mpiop.kubectl.show", "Explain why a job waits or failed, and what to do.", ("why solver",)),
    "logs": Verb(
        "mpiop.kubectl.logs",
        "Show the output of a job, or of some of its ranks.",
        ("logs -f solver", "logs solver --rank 3", "logs solver --attempt 1", "logs -f dev --step 3"),
    ),
    "wait": Verb("mpiop.kubectl.wait", "Wait until jobs have ended, and exit with the code of the program.", ("wait solver --timeout 2h",)),
    "history": Verb("mpiop.kubectl.history", "List jobs that have ended, or the steps of an allocation.", ("history", "history dev")),
    "top": Verb("mpiop.kubectl.top", "Show the CPU and memory that each worker uses.", ("top solver",)),
    "timeline": Verb("mpiop.kubectl.timeline", "Draw a timeline of the Pods of a job.", ("timeline solver", "timeline solver -o svg")),
    "shell": Verb("mpiop.kubectl.pods", "Open a shell in the launcher or a worker.", ("shell solver --worker 1",)),
    "exec": Verb("mpiop.kubectl.pods", "Run a command in the launcher or a worker.", ("exec solver -- cat /etc/mpi/hostfile",)),
    "cp": Verb(
        "mpiop.kubectl.pods",
        "Copy files from or to the launcher or a worker.",
        ("cp input.txt solver:/tmp/ --worker 1", "cp solver:/data/result.txt ."),
    ),
    "scale": Verb("mpiop.kubectl.change", "Change the number of workers.", ("scale solver 4",)),
    "suspend": Verb("mpiop.kubectl.change", "Release the Pods and GPUs of a job until it is resumed.", ("suspend solver --yes",)),
    "resume": Verb("mpiop.kubectl.change", "Start a suspended job again.", ("resume solver",)),
    "restart": Verb("mpiop.kubectl.restart", "Run a job again from the beginning.", ("restart solver --yes",)),
    "delete": Verb("mpiop.kubectl.change", "Delete jobs.", ("delete solver", "delete solver-1 solver-2 --yes")),
    "cleanup": Verb("mpiop.kubectl.change", "Delete jobs that have ended.", ("cleanup --older-than 1d", "cleanup --failed --yes")),
    "submit": Verb(
        "mpiop.kubectl.submit",
        "Check and create jobs from files or Slurm scripts.",
        ("submit job.yaml --follow", "submit job.yaml --dry-run=server", "submit job.sbatch --image solver:1 --after prep"),
    ),
    "convert": Verb("mpiop.kubectl.convert", "Convert a Slurm script to an MPIJob.", ("convert job.sbatch --image solver:1",)),
    "nodes": Verb("mpiop.kubectl.nodes", "Show the free resources of each node.", ("nodes",)),
    "doctor": Verb("mpiop.kubectl.doctor", "Check whether jobs can run here.", ("doctor", "doctor --run", "doctor --migrate")),
    "version": Verb("mpiop.kubectl.version", "Show the versions of client, operator and cluster.", ("version",)),
    "completion": Verb("mpiop.kubectl.completion", "Print the completion script of a shell.", ("completion bash",)),
}
