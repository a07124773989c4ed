"""Options of `run` and `alloc`: how many ranks, where they run, and with what."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from mpiop.api.mpi_implementations import LIBRARIES
from mpiop.kubectl.completion import complete_queue
from mpiop.kubectl.inputs import seconds_option
from mpiop.kubectl.job_options import job_options, ssh_option

_Verb = Callable[..., Any]
_OPTIONS: Final[tuple[Callable[[_Verb], _Verb], ...]] = (
    click.option("-n", "-np", "--ranks", default=1, show_default=True, help="Number of MPI processes."),
    click.option("--slots", default=1, show_default=True, help="MPI processes on each worker. The job has ⌈ranks / slots⌉ workers."),
    click.option("--image", default="", envvar="MPIOP_IMAGE", show_envvar=True, help="Image of launcher and workers."),
    click.option(
        "--mpi", "library", type=click.Choice(list(LIBRARIES)), default="openmpi", show_default=True, help="MPI library of the image."
    ),
    ssh_option,
    click.option("--name", default="", help="Name of the job. Default: the program's name and a random ending."),
    click.option("--gpus", default="0", metavar="N", help="GPUs of each worker, such as 2, or amd.com/gpu=2 for another vendor."),
    click.option("--cpu", default="", metavar="QUANTITY", help="CPUs of each worker, such as 2 or 500m."),
    click.option("--memory", default="", metavar="QUANTITY", help="Memory of each worker, such as 4Gi."),
    click.option("--shm", default="", metavar="QUANTITY", help="Size of /dev/shm, such as 8Gi."),
    job_options,
    click.option("--upload", type=click.Path(path_type=Path), help="Copy a file or folder of at most 1 MiB into /upload on each host."),
    click.option("--workdir", default="", help="Working directory of the ranks. Default with --upload: /upload."),
    click.option("--user", type=int, help="Run the containers as this user ID. sshd then reads HOME/.sshd_config."),
    click.option("--home", default="/root", show_default=True, help="Home directory of that user, which contains its SSH keys."),
    click.option(
        "--queue",
        default="",
        envvar="MPIOP_QUEUE",
        show_envvar=True,
        shell_complete=complete_queue,
        help="Submit the job to this queue of Kueue.",
    ),
    click.option("--priority", default="", help="PriorityClass of the Pods."),
    click.option("--retries", type=click.IntRange(min=0), default=0, help="Start a failed program again, at most this many times."),
    seconds_option("--ttl", "Delete the job's Pods this long after it ends, such as 1h."),
    seconds_option("--time-limit", "End the job if it runs longer than this, such as 1h."),
)


def program_options(verb: _Verb) -> _Verb:
    """Give a verb these options; `fields_of` makes fields of a job from them."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb
