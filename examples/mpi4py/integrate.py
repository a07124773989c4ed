"""π by the midpoint rule, with mpi4py.

kubectl mpi run -n 4 --image mpiop.invalid/mpi4py:openmpi --upload examples/mpi4py -- python3 integrate.py
"""

import sys

from mpi4py import MPI


def main(intervals: int) -> None:
    """Let each rank add up its part, and rank 0 print the sum."""
    world = MPI.COMM_WORLD
    width = 1.0 / intervals
    part = sum(4.0 / (1.0 + ((i + 0.5) * width) ** 2) for i in range(world.rank, intervals, world.size))
    pi = world.reduce(part * width)
    print(f"rank {world.rank} of {world.size} on {MPI.Get_processor_name()}", flush=True)
    world.Barrier()
    if world.rank == 0:
        print(f"pi is approximately {pi:.12f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
