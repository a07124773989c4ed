"""Slurm scripts of many fields of science and engineering, and odd ones: a file each in the folder `slurm_fields`.

They start `PROGRAMS`, which record how they are started (`slurm_scripts.RECORDER`). sbatch rejects the line ends of `odd-crlf`,
so it was recorded without them.
"""

from pathlib import Path
from typing import Final

FIELDS: Final = {each.stem: each.read_bytes().decode() for each in sorted(Path(__file__).with_suffix("").glob("*.sbatch"))}
"""Scripts by name."""

PROGRAMS: Final = tuple(
    """Gadget4 Rscript SU2_CFD abaqus apptainer as_run aster athena atmosx.exe blastp canu ccx cesm.exe cfx5solve cp2k.psmp decomposePar
    dos.x epoch2d flow fluent g16 gmx_mpi gridpack hvd-python icon julia ks_spectrum lmp matlab meep moose-opt mpiblast mppdyna namd2
    nrnivmodl nwchem oceanx.exe openmc orca parflow ph.x pmemd.MPI post pre pw.x python-seg python-train python3-nest raxml-ng-mpi real.exe
    reconstructPar relax render simpleFoam snappyHexMesh solver-x special torchrun vasp_std wrf.exe xios.exe xmeshfem3D
    xspecfem3D""".split()  # noqa: SIM905 - a table is easier to read
)
"""What the scripts find in PATH."""
