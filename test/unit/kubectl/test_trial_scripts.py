"""Twelve scripts as users have them, each of which was once rejected or converted into something else: what each of them becomes."""

from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from mpiop.client.errors import InvalidError
from mpiop.kubectl.convert import converted

FOLDER: Final = Path(__file__).with_name("sbatch")
HETEROGENEOUS: Final = "19-hetjob"


class Made(NamedTuple):
    """A job; `mpirun` is "" if the script runs whole, `sizes` are ranks, slots and workers, and `left` is what is reported."""

    name: str
    mpirun: str
    sizes: tuple[int, int, int]
    requests: str
    gpus: str
    seconds: int | None
    left: list[str]


EXPECTED: Final = {
    "01-lammps-srun-stdin": Made(
        "melt",
        "",
        (4, 4, 1),
        "cpu=4 memory=2Gi",
        "",
        900,
        ["#SBATCH --account=proj", "#SBATCH --output=melt.log", "line 10: module load gcc openmpi"],
    ),
    "04-gromacs-mem-gb": Made(
        "run-gromacs",
        "-n 8 --tag-output gmx_mpi mdrun -deffnm md_0_1",
        (8, 8, 1),
        "cpu=8 memory=16Gi",
        "",
        57600,
        ["line 7: module purge", "line 8: module load gromacs"],
    ),
    "06-openfoam-serial-then-parallel": Made("car", "", (36, 36, 1), "cpu=36 memory=36Gi", "", 172800, ["line 7: module load OpenFOAM"]),
    "09-wrf-two-steps": Made("wrftest", "", (48, 48, 1), "cpu=48 memory=96Gi", "", 604800, ["#SBATCH --constraint=intel"]),
    "12-vasp-hydra": Made("job-30-3-c", "", (360, 40, 9), "cpu=40", "", 345600, ["line 11: mpiexec.hydra"]),
    "15-horovod-one-line": Made("", "", (4, 4, 1), "cpu=24 memory=32Gi", "4", 3600, ["--gres: type k80", "line 3: module load python-env"]),
    "20-pytorch-gres-nvme": Made(
        "",
        "-n 1 --tag-output python3 train.py",
        (1, 1, 1),
        "cpu=10 memory=32Gi",
        "1",
        3600,
        ["#SBATCH --account=project", "--gres: type v100", "--gres=nvme:500"],
    ),
    "22-commented-command": Made("", "", (2, 2, 1), "cpu=2", "", None, []),
    "23-heredoc": Made("", "", (2, 2, 1), "cpu=2", "", None, ["line 16: sbatch --dependency=afterok:$SLURM_JOB_ID next.sh"]),
    "30-mpmd": Made("", "", (8, 4, 2), "cpu=4", "", None, []),
    "33-ntasks-var-in-place": Made("", "", (8, 4, 2), "cpu=8", "", None, []),
}


def test_each_script_has_its_row() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == {*EXPECTED, HETEROGENEOUS}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_script_becomes_what_it_asks_for(name: str) -> None:
    text = (FOLDER / f"{name}.sbatch").read_text(encoding="utf-8")
    made = converted(text, "i", file=name)
    spec: dict[str, Any] = made.job["spec"]
    [launcher], [worker] = (spec["mpiReplicaSpecs"][role]["template"]["spec"]["containers"] for role in ("Launcher", "Worker"))
    is_direct = launcher["command"] == ["mpirun"]
    ranks = launcher["args"][1] if is_direct else next(row["value"] for row in launcher["env"] if row["name"] == "MPIOP_NTASKS")
    assert (
        Made(
            made.job["metadata"].get("name", ""),
            " ".join(launcher["args"]) if is_direct else "",
            (int(ranks), spec["slotsPerWorker"], spec["mpiReplicaSpecs"]["Worker"]["replicas"]),
            " ".join(f"{key}={value}" for key, value in worker["resources"]["requests"].items()),
            worker["resources"].get("limits", {}).get("nvidia.com/gpu", ""),
            spec["runPolicy"].get("activeDeadlineSeconds"),
            [line.split("  ")[0] for line in made.left],
        )
        == EXPECTED[name]
    )
    if not is_direct:
        assert text in [word.replace("$$", "$") for word in launcher["args"]]


def test_a_heterogeneous_job_is_refused_and_loses_no_ranks() -> None:
    with pytest.raises(InvalidError, match="line 4: a heterogeneous job cannot be converted"):
        converted((FOLDER / f"{HETEROGENEOUS}.sbatch").read_text(encoding="utf-8"), "i")
