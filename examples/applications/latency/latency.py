"""Latency and bandwidth between two ranks, by message size.

kubectl mpi run -n 2 --image mpiop.invalid/mpi4py:openmpi --ssh injected --upload examples/applications/latency -- python3 latency.py
"""

from time import perf_counter

from mpi4py import MPI

SIZES = [4**power for power in range(12)]
WINDOW = 32
ATTEMPTS = 3


def seconds_one_way(buffer: memoryview, rounds: int) -> float:
    """Return how long a message takes one way: half of a round trip, the mean of `rounds`."""
    world = MPI.COMM_WORLD
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


def bytes_per_second(buffer: memoryview, rounds: int) -> float:
    """Return the rate from rank 0 to rank 1 with WINDOW messages under way at once; rank 1 answers each window."""
    world, answer = MPI.COMM_WORLD, bytearray(1)
    world.Barrier()
    start = perf_counter()
    for _ in range(rounds):
        if world.rank == 0:
            MPI.Request.Waitall([world.Isend(buffer, 1) for _ in range(WINDOW)])
            world.Recv(answer, 1)
        else:
            MPI.Request.Waitall([world.Irecv(buffer, 0) for _ in range(WINDOW)])
            world.Send(answer, 0)
    return len(buffer) * WINDOW * rounds / (perf_counter() - start)


def main() -> None:
    """Let rank 0 print a line for each size: the best of ATTEMPTS, because other work on the machine only slows messages down."""
    world = MPI.COMM_WORLD
    if world.size != 2:
        raise SystemExit("latency.py needs two ranks: start it with -n 2")
    if world.rank == 0:
        print(f"{'bytes':>8}{'latency (us)':>15}{'bandwidth (MB/s)':>19}", flush=True)
    for size in SIZES:
        buffer = memoryview(bytearray(size))
        rounds = 200 if size < 1 << 16 else 10
        latency = min(seconds_one_way(buffer, rounds) for _ in range(ATTEMPTS))
        rate = max(bytes_per_second(buffer, max(1, rounds // 10)) for _ in range(ATTEMPTS))
        if world.rank == 0:
            print(f"{size:8}{latency * 1e6:15.2f}{rate / 1e6:19.2f}", flush=True)


if __name__ == "__main__":
    main()
