"""What a Slurm script becomes."""

import re
from dataclasses import dataclass, field
from typing import Any, Final

from mpiop.kubectl.output import to_yaml
from mpiop.kubectl.slurm_array import SlurmArray

_TYPES: Final = re.compile(r"(?:^|[,?])([a-z]+)")
"""Slurm's types of dependencies, as in `afterok:350:351,afterany:352`."""


@dataclass(slots=True)
class Conversion:
    """The MPIJobs of a script, what of the script they lack, and what a user should know.

    Attributes:
        jobs: One, or one for each index of an array.
        array: What `--array` requests; None without.
        left: Parts of the script that were not converted, each with the reason.
        notes: What differs from Slurm.
    """

    jobs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    array: SlurmArray | None = None
    left: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    @property
    def job(self) -> dict[str, Any]:
        """Return the only job, or that of the first index."""
        return self.jobs[0]

    def require(self, dependency: str, *, is_replaced: bool) -> None:
        """Report `--dependency`, if any, whose numbers mean nothing outside of Slurm; `--after` replaces it, as sbatch's options do."""
        option = f"#SBATCH --dependency={dependency}"
        if dependency and is_replaced:
            self.notes.append(f"{option}: --after takes its place")
        elif dependency:
            is_after_ok = set(_TYPES.findall(dependency)) == {"afterok"}
            remedy = "kubectl mpi submit --after JOB FILE does" if is_after_ok else "use kubectl mpi wait JOB in a shell"
            self.left.append(f"{option}  (nothing in the cluster waits for another job: {remedy})")

    def report(self) -> list[str]:
        """Return the sentences about what was not converted, and what differs."""
        return [f"not converted: {line}" for line in self.left] + [f"note: {line}" for line in self.notes]

    def as_yaml(self) -> str:
        """Return the jobs, below comments with what they lack."""
        return "".join(f"# {line}\n" for each in self.report() for line in each.splitlines()) + "---\n".join(map(to_yaml, self.jobs))
