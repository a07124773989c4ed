"""A sum in steps that goes on where it was: after each step rank 0 saves what there is to the volume."""

import json
import os
import time
from pathlib import Path

from mpi4py import MPI

STEPS = 40
SAVED = Path("/data/sum.json")


def load() -> tuple[int, int]:
    """Return the next step and the sum so far."""
    if not SAVED.exists():
        return 0, 0
    state = json.loads(SAVED.read_text())
    return state["step"], state["sum"]


def save(step: int, total: int) -> None:
    """Write a new file, and then put it in the place of the old one, so that a program that is killed here leaves a whole one."""
    new = SAVED.with_suffix(".new")
    with new.open("w") as file:
        json.dump({"step": step, "sum": total}, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(SAVED)


def main() -> None:
    """Add up the numbers of all ranks, step by step."""
    world = MPI.COMM_WORLD
    first, total = world.bcast(load() if world.rank == 0 else None)
    if world.rank == 0:
        print(f"begins at step {first} of {STEPS}", flush=True)
    for step in range(first, STEPS):
        time.sleep(0.2)
        total += world.allreduce(step * world.size + world.rank)
        if world.rank == 0:
            save(step + 1, total)
            print(f"step {step + 1}: {total}", flush=True)


if __name__ == "__main__":
    main()
