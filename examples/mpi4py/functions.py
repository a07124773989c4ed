"""A function on every rank, called from this machine.

pip install '.[client]', then: python3 examples/mpi4py/functions.py
"""

from mpiop.client import MPI

INTERVALS = 1_000_000


def part_of_pi(intervals: int) -> float:
    """Return this rank's part of π."""
    from mpi4py.MPI import COMM_WORLD  # noqa: PLC0415 - on the ranks

    width = 1.0 / intervals
    return width * sum(4.0 / (1.0 + ((i + 0.5) * width) ** 2) for i in range(COMM_WORLD.rank, intervals, COMM_WORLD.size))


if __name__ == "__main__":
    parts = MPI(image="mpiop.invalid/mpi4py:openmpi").run(part_of_pi, INTERVALS, ranks=4)
    print(f"pi is approximately {sum(parts):.12f}, of {len(parts)} parts")
