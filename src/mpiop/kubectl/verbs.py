"""The verbs, one row each: what is shown of them before the module that does the work is imported."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Verb(NamedTuple):
    """A verb.

    Attributes:
        module: What to import; its function is `<verb>_verb`.
        summary: Its line in the help of `kubectl mpi`.
        examples: At the end of its own help.
        is_of_job: Whether its first argument is the name of a job, which shells complete.
    """

    module: str
    summary: str
    examples: tuple[str, ...]
    is_of_job: bool = True


VERBS: Final[Mapping[str, Verb]] = {
    "run": Verb(
        "mpiop.kubectl.run",
        "Run a program on MPI ranks and show its output.",
        (
            "run -n 8 --slots 4 --gpus 1 --image solver:1 -- ./solver input.nml",
            "run -n 4 --image solver:1 --mpirun-args '--bind-to core' --time-limit 12h --detach -- ./solver",
            "run -n 4 --image solver:1 --dry-run=client -o yaml -- ./solver",
        ),
        is_of_job=False,
    ),
    "list": Verb("mpiop.kubectl.show", "List jobs.", ("list", "list -A -o wide", "list -o json"), is_of_job=False),
    "describe": Verb("mpiop.kubectl.show", "Show all about a job.", ("describe solver",)),
    "why": Verb("mpiop.kubectl.show", "Say why a job waits or failed, and what helps.", ("why solver",)),
    "logs": Verb(
        "mpiop.kubectl.logs",
        "Show the output of a job, or of some of its ranks.",
        ("logs -f solver", "logs solver --rank 3", "logs solver --attempt 1"),
    ),
    "wait": Verb(
        "mpiop.kubectl.wait", "Wait until jobs have ended, and return the exit code of the program.", ("wait solver --timeout 2h",)
    ),
    "history": Verb("mpiop.kubectl.history", "List jobs that have ended.", ("history",), is_of_job=False),
    "top": Verb("mpiop.kubectl.top", "Show what each worker uses.", ("top solver",)),
    "timeline": Verb("mpiop.kubectl.timeline", "Draw the life of a job.", ("timeline solver", "timeline solver -o svg")),
    "shell": Verb("mpiop.kubectl.pods", "Open a shell in the launcher or a worker.", ("shell solver --worker 1",)),
    "exec": Verb("mpiop.kubectl.pods", "Run a command in the launcher or a worker.", ("exec solver -- cat /etc/mpi/hostfile",)),
    "cp": Verb(
        "mpiop.kubectl.pods",
        "Copy files from or to the launcher or a worker.",
        ("cp input.txt solver:/tmp/ --worker 1", "cp solver:/data/result.txt ."),
    ),
    "scale": Verb("mpiop.kubectl.change", "Change the number of workers.", ("scale solver 4",)),
    "suspend": Verb("mpiop.kubectl.change", "Free what a job holds, until it is resumed.", ("suspend solver --yes",)),
    "resume": Verb("mpiop.kubectl.change", "Start a suspended job again.", ("resume solver",)),
    "restart": Verb("mpiop.kubectl.restart", "Run a job once more, from its beginning.", ("restart solver --yes",)),
    "delete": Verb("mpiop.kubectl.change", "Delete jobs.", ("delete solver", "delete solver-1 solver-2 --yes")),
    "cleanup": Verb(
        "mpiop.kubectl.change", "Delete old jobs that have ended.", ("cleanup --older-than 1d", "cleanup --failed --yes"), is_of_job=False
    ),
    "submit": Verb(
        "mpiop.kubectl.submit",
        "Create jobs from files, checked before they are sent.",
        ("submit job.yaml --follow", "submit job.yaml --dry-run=server"),
        is_of_job=False,
    ),
    "convert": Verb("mpiop.kubectl.convert", "Turn a Slurm script into a job.", ("convert job.sbatch --image solver:1",), is_of_job=False),
    "nodes": Verb("mpiop.kubectl.nodes", "Show what is free on each node.", ("nodes",), is_of_job=False),
    "doctor": Verb("mpiop.kubectl.doctor", "Check whether jobs can run here.", ("doctor", "doctor --run"), is_of_job=False),
    "version": Verb("mpiop.kubectl.version", "Show the versions of client, operator and cluster.", ("version",), is_of_job=False),
    "completion": Verb("mpiop.kubectl.completion", "Print the completion script of a shell.", ("completion bash",), is_of_job=False),
}
