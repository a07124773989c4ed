"""200 Slurm scripts: 10 ways to request resources, and 20 ways to start programs.

`solver`, `pre`, `post`, `ocean` and `atmos` record how they are started (`RECORDER`).
"""

from itertools import product
from typing import Final

RECORDER: Final = r"""#!/bin/sh
first=
rank=${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID}
size=${OMPI_COMM_WORLD_SIZE:-$SLURM_STEP_NUM_TASKS}
[ "$rank" != 0 ] || [ -z "$size" ] || read -r first
( for each; do printf '<%s>' "$each"; done ) >"RECORDS/.$$.args"
args=$(cat "RECORDS/.$$.args")
echo "${0##*/} $rank/$size $args OMP=$OMP_NUM_THREADS MODE=$MODE NAME=$SLURM_JOB_NAME in=${PWD##*/} stdin=$first" >"RECORDS/$$"
rm "RECORDS/.$$.args"
"""
"""A program that writes how it was started into a file of the folder RECORDS."""

_SHEBANG: Final = "#!/bin/bash\n"
HEADERS: Final = {
    "ntasks": _SHEBANG + "#SBATCH --job-name=case\n#SBATCH --ntasks=4\n#SBATCH --time=00:10:00\n",
    "one-node": _SHEBANG + "#SBATCH -J Case_1\n#SBATCH -N 1 --ntasks-per-node=4   # four\n#SBATCH -t 10\n#SBATCH -p debug\n",
    "cpus": _SHEBANG + "#SBATCH --nodes=1\n#SBATCH --ntasks-per-node 2\n#SBATCH --cpus-per-task=2\n#SBATCH --mem=100mb\n",
    "alias": _SHEBANG + "\n# Physics group\n#SBATCH --tasks-per-node=3\n#SBATCH --nodes=1-1\n#SBATCH --mem=0\n##SBATCH --ntasks=9\n",
    "attached": "#!/bin/bash -e\n#SBATCH -n4 -c1\n#SBATCH --time=0:00\n#SBATCH -o /dev/null\n",
    "quoted": _SHEBANG + "#SBATCH --job-name=\"my case\" -n 2\n #SBATCH --ntasks=7\n#SBATCH --comment='it''s'\n",
    "abbreviated": _SHEBANG + "#SBATCH --job=30_3_c --cpus-per-t=1 -n 2 --mem-per-c=1G\n#SBATCH --time=1-0\n",
    "posix": "#!/bin/sh\n#SBATCH --ntasks=3\n#SBATCH --export=ALL,MODE=sent\n",
    "late": "#!/usr/bin/env bash\n#SBATCH -n 2\nset -u\n#SBATCH -n 8\nset +u\n",
    "comment": "#!/bin/bash\n# old: mpirun -np 2 ./pre \\\n#SBATCH --ntasks=2\n#SBATCH --mail-type=END,FAIL --mail-user=a@b.c\n",
}
BODIES: Final = {
    "srun": "srun ./solver -i in.txt\n",
    "mpirun": "module load openmpi 2>/dev/null || true\nmpirun -np $SLURM_NTASKS ./solver 'a b' \"it's\"\n",
    "mpirun-all": "echo start; date\nmpirun ./solver -n 5\necho done\n",
    "stdin": "echo first > in.dat\nsrun ./solver < in.dat\n",
    "exports": "export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}\nsrun ./solver\nexport MODE='two words'\nmpirun -n 1 ./post\n",
    "steps": "./pre serial\nsrun -n 2 ./solver one\nsrun -n 1 ./solver two\n./post\n",
    "loop": 'for x in 1 2 3; do\n    srun -n 1 ./solver --seed="$x" $((x * 10))\ndone\n',
    "heredoc": "cat > conf.txt <<EOF\nsrun ./pre not a command\nexport MODE=no\n#SBATCH -n 64\nEOF\nsrun ./solver $(wc -l < conf.txt)\n",
    "cd": "mkdir -p run && cd run && srun ../solver\ncd $SLURM_SUBMIT_DIR\nmpirun -np 1 ./post\n",
    "time": "time mpirun -np 2 ./solver\n",
    "mpmd": "mpirun -np 1 ./ocean a : -np 1 ./atmos b\n",
    "multi-prog": "printf '0 ./ocean %%t\\n* ./atmos x\\n' > multi.conf\nsrun -n 2 --multi-prog multi.conf\n",
    "function": 'run() {\n    srun "$@"\n}\nrun -n 1 ./solver ~nobody-here "$SLURM_JOB_NAME"\n',
    "glob": "touch b.in a.in\nsrun -n 1 ./solver *.in {1,2}\nrm -f a.in b.in\n",
    "continued": "# a comment that ends in \\\nsrun \\\n  --ntasks=2 \\\n  ./solver \\\n  --steps 10\n",
    "if": 'if [ "$SLURM_NTASKS" -gt 2 ]; then\n  mpiexec -n 2 ./solver big\nelse\n  mpiexec -n 1 ./solver small\nfi\n',
    "quotes": "srun -n 1 ./solver \"two\nlines\" 'x; srun ./pre'\n",
    "background": "srun -n 1 ./solver a &\nsrun -n 1 ./solver b &\nwait\n",
    "prefix": 'OMP_NUM_THREADS=3 srun -n 1 ./solver\nMPI="mpirun -np 2"\n$MPI ./post\n',
    "exit": "srun -n 1 ./solver && echo fine || exit 3\nexec srun -n 1 ./post\n",
}
SCRIPTS: Final = {f"{header}/{body}": HEADERS[header] + BODIES[body] for header, body in product(HEADERS, BODIES)}
"""Scripts by name."""
