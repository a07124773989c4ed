"""The network between two ranks, measured.

kubectl mpi run -n 2 --image mpiop.invalid/mpi4py:openmpi --upload examples/mpi4py -- python3 pingpong.py
"""

from time import perf_counter

from mpi4py import MPI

SMALL, LARGE = 8, 4 << 20
ATTEMPTS = 5


def seconds(size: int, rounds: int) -> float:
    """Return how long a message of `size` bytes takes one way, the mean of `rounds`."""
    world, buffer = MPI.COMM_WORLD, bytearray(size)
    world.Barrier()
    start = perf_counter()
    for _ in range(rounds):
        if world.rank == 0:
            world.Send(buffer, 1)
            world.Recv(buffer, 1)
        else:
            world.Recv(buffer, 0)
            world.Send(buffer, 0)
    return (perf_counter() - start) / rounds / 2


def main() -> None:
    """Let rank 0 print the time of a small message and the rate of large ones: the best, for others on the machine only slow it down."""
    if MPI.COMM_WORLD.size != 2:
        raise SystemExit("it needs two ranks: start it with -n 2")
    small = min(seconds(SMALL, 1000) for _ in range(ATTEMPTS))
    large = min(seconds(LARGE, 20) for _ in range(ATTEMPTS))
    if MPI.COMM_WORLD.rank == 0:
        print(f"{small * 1e6:.1f} us, {LARGE / large / 1e9:.2f} GB/s")


if __name__ == "__main__":
    main()
