"""π by random points, in rounds that survive a suspension.

After each round rank 0 writes the state to a volume. A job that was suspended, preempted or restarted goes on after the last round.

kubectl mpi run -n 4 --image mpiop.invalid/mpi4py:openmpi --mount CLAIM:/data \
  --upload examples/mpi4py -- python3 checkpoint.py /data/pi.json
"""

import json
import random
import sys
from pathlib import Path

from mpi4py import MPI

POINTS = 300_000
"""Of each rank, in each round."""


def hits_of(number: int, rank: int) -> int:
    """Return how many points of a round fall into the circle; always the same for the same round and rank."""
    chance = random.Random(f"{number} {rank}")
    return sum(chance.random() ** 2 + chance.random() ** 2 < 1 for _ in range(POINTS))


def write(path: Path, state: dict[str, int]) -> None:
    """Replace the file in one step: a rank that is killed while it writes leaves the old state."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(state))
    new.replace(path)


def main(path: Path, rounds: int) -> None:
    """Add up `rounds` rounds, those of earlier runs included."""
    world = MPI.COMM_WORLD
    state = {"rounds": 0, "hits": 0}
    if world.rank == 0 and path.exists():
        state = json.loads(path.read_text())
        print(f"goes on after round {state['rounds']}", flush=True)
    state = world.bcast(state)
    for number in range(state["rounds"], rounds):
        hits = world.allreduce(hits_of(number, world.rank))
        state = {"rounds": number + 1, "hits": state["hits"] + hits}
        if world.rank == 0:
            write(path, state)
            print(f"round {number + 1} of {rounds}", flush=True)
    if world.rank == 0:
        print(f"pi is approximately {4 * state['hits'] / (POINTS * world.size * rounds):.6f}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 50)
