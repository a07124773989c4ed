"""`#SBATCH --array`: the indexes, how many run at a time, and the variables of each."""

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mpiop.client.errors import InvalidError
from mpiop.kubectl.array import indexes

_ARRAY: Final = re.compile(r"([\d,:-]+)(?:%(\d{1,9}))?")


@dataclass(frozen=True, slots=True)
class SlurmArray:
    """An array of Slurm.

    Attributes:
        numbers: The indexes.
        limit: How many run at a time; 0 for no limit.
        step: The first step that a range names, else 1.
    """

    numbers: Sequence[int]
    limit: int
    step: int

    def variables(self, number: int, name: str) -> Mapping[str, str]:
        """Return the variables of an index; jobs of the same `name` have the same `SLURM_ARRAY_JOB_ID`."""
        return {
            "SLURM_ARRAY_JOB_ID": str(zlib.crc32(name.encode())),
            "SLURM_ARRAY_TASK_ID": str(number),
            "SLURM_ARRAY_TASK_COUNT": str(len(self.numbers)),
            "SLURM_ARRAY_TASK_MIN": str(min(self.numbers)),
            "SLURM_ARRAY_TASK_MAX": str(max(self.numbers)),
            "SLURM_ARRAY_TASK_STEP": str(self.step),
        }


def read_array(value: str) -> SlurmArray | None:
    """Return the array of `--array`; None without a value.

    Raises:
        InvalidError: Slurm would reject it.
    """
    if not value:
        return None
    found = _ARRAY.fullmatch(value)
    if found is None:
        raise InvalidError(f"invalid --array={value}: indexes such as 0-9, 1,3,5 or 0-15:4%2 are expected")
    step = re.search(r":(\d{1,9})", found[1])
    return SlurmArray(indexes(found[1]), int(found[2] or 0), int(step[1]) if step else 1)
