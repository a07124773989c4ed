"""π by Dask on MPI ranks: rank 0 is the scheduler, rank 1 runs this script, the others are workers.

kubectl mpi run -n 4 --slots 2 --image mpiop.invalid/dask:openmpi --ssh injected --upload examples/applications/dask -- python3 pi.py
"""

import socket

import dask_mpi
from distributed import Client

PARTS, STEPS = 20, 400_000


def area(part: int) -> float:
    """Return one of PARTS pieces of the area below 4/(1+x²) between 0 and 1, by the midpoint rule."""
    width = 1 / (PARTS * STEPS)
    first = part * STEPS
    return sum(4 * width / (1 + ((first + step + 0.5) * width) ** 2) for step in range(STEPS))


def main() -> None:
    """Wait for all workers, share the parts among them and print the sum."""
    with Client() as client:
        client.wait_for_workers(2)
        for host in sorted(client.run(socket.gethostname).values()):
            print(f"a Dask worker is on {host}")
        futures = client.map(area, range(PARTS))
        print(f"pi is approximately {client.submit(sum, futures).result():.9f}, of {PARTS} parts")


# Only rank 1 returns from it.
dask_mpi.initialize(dashboard=False, nthreads=1)
main()
