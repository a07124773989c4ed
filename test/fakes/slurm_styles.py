r"""Slurm scripts in the styles of many sites, whole: modules, conda, loops, traps, steps at the same time, odd line ends.

They start the programs of `slurm_scripts`. `module` and `conda` exist on both sides and do nothing.
"""

from typing import Final

STYLES: Final = {
    "stdin and a log": """#!/bin/bash
#SBATCH --time=00:15:00
#SBATCH --partition=debug
#SBATCH --nodes=1
#SBATCH --ntasks=4
#SBATCH --mem=2G
#SBATCH --job-name=melt
#SBATCH --output=melt.log
module load gcc openmpi
echo run 100 > in.melt
srun ./solver < in.melt
""",
    "one line with mpirun": """#!/bin/bash
#SBATCH --job-name=run-gromacs
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --mem=16gb
#SBATCH --time=16:00:00
module purge
module load gromacs
mpirun ./solver mdrun -deffnm md_0_1
""",
    "serial, parallel, serial": """#!/bin/bash
#SBATCH --job-name=car
#SBATCH --time=48:00:00
#SBATCH --ntasks=6
#SBATCH --nodes=1
#SBATCH --mem-per-cpu=1G
echo 'export MODE=foam' > foam.sh
FOAM_BASH=./foam.sh
module load OpenFOAM
. ${FOAM_BASH}
./pre
./pre -overwrite
mpirun -np 6 ./solver -parallel
./post
""",
    "two steps of different size": """#!/bin/bash
#SBATCH   --partition=debug            # queue
#SBATCH   --job-name=wrftest             # name
#SBATCH   --time=7-00:00
#SBATCH   --nodes=1
#SBATCH   --ntasks=4
#SBATCH   --cpus-per-task=1
#SBATCH   --mem-per-cpu=2GB
srun -n 2 ./pre >& real.log
srun -n 4 ./solver >& wrf.log
""",
    "hydra, a launcher in a comment": """#!/bin/sh
#SBATCH -N 1
#SBATCH --ntasks-per-node=4
#SBATCH -t 96:00:00\x20
#SBATCH -J 30_3_c
#SBATCH -p debug
cd $SLURM_SUBMIT_DIR
export I_MPI_FABRICS=shm:ofi
[ -e /nowhere/setvars.sh ] && . /nowhere/setvars.sh intel64
#srun ./pre\x20
mpiexec.hydra ./solver
""",
    "one #SBATCH line, many options of mpirun": r"""#!/bin/bash
#SBATCH -N 1 -n 4 -c 2 -p debug -t 1:00:00 --mem=32G
module load python-env
set -xv
mpirun -np 4 -bind-to none -map-by slot \
    -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH \
    -mca pml ob1 -mca btl ^openib -oversubscribe \
    ./solver train.py $*
""",
    "a comment that ends in a backslash": r"""#!/bin/bash
#SBATCH --nodes=1 --ntasks=2
# old: mpirun -np 2 ./before \
mpirun -np 2 ./solver
mpirun -np 2 ./post
""",
    "a script in a here-document": """#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=2
cat > input.txt <<EOF
srun is not a command here, $SLURM_NTASKS ranks
export MODE=fast
EOF
cat > next.sh <<'EOF'
#!/bin/bash
#SBATCH --nodes=8
#SBATCH --ntasks=64
srun ./next $HOME
EOF
cat input.txt
grep -c SBATCH next.sh
srun ./solver
""",
    "variables in the place of numbers": """#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=2
srun -n $SLURM_NTASKS -c $SLURM_CPUS_PER_TASK --ntasks-per-node=$SLURM_NTASKS_PER_NODE ./solver --out=run_${SLURM_JOB_ID:+id}
""",
    "two programs with mpirun": """#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=8
mpirun -np 2 ./ocean : -np 6 ./atmos
""",
    "strict mode": """#!/bin/bash
#SBATCH --ntasks=2
set -euo pipefail
IFS=$'\\n\\t'
input="a b.nml"
srun ./solver "$input" | cat
echo "${MODE:-unset} ${SLURM_JOB_NAME}"
""",
    "strict mode that fails": """#!/bin/bash
#SBATCH --ntasks=2
set -euo pipefail
srun ./solver one
false | cat
srun ./solver never
""",
    "a trap at the end": """#!/bin/bash
#SBATCH -n 2
scratch=$PWD/scratch.$SLURM_NTASKS
mkdir "$scratch"
cleanup() { ls "$scratch" | sort; rm -rf "$scratch"; echo "cleaned $?"; }
trap cleanup EXIT
cp solver "$scratch"
cd "$scratch"
srun ./solver in-scratch | cat
cd "$SLURM_SUBMIT_DIR"
exit 4
""",
    "conda": """#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=1 --ntasks-per-node=2
module load miniconda
eval "$(conda shell.bash hook)"
conda activate torch
export OMP_NUM_THREADS=$SLURM_CPUS_ON_NODE
[ "$OMP_NUM_THREADS" -gt 0 ] && export OMP_NUM_THREADS=1
srun ./solver train.py --lr 1e-3 --tags '["a", "b"]'
""",
    "mpirun bound to cores": """#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=1
export OMP_PLACES=cores OMP_PROC_BIND=close OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
mpirun --bind-to core --map-by slot --report-bindings -np ${SLURM_NTASKS} ./solver -i in
""",
    "mpirun by node": """#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=3
NP=$(( SLURM_NNODES * SLURM_NTASKS_PER_NODE ))
mpirun -n "$NP" --map-by ppr:3:node ./solver
""",
    "loops over parameters": """#!/bin/bash
#SBATCH -n 2
for re in 100 1000; do
  for mesh in coarse fine; do
    dir=re${re}_${mesh}
    mkdir -p "$dir"
    (
      cd "$dir" || exit 1
      printf 'Re = %d\\nmesh = %s\\n' "$re" "$mesh" > input.dat
      srun ../solver -re "$re" < input.dat
    )
  done
done
""",
    "an array of cases": """#!/bin/bash
#SBATCH -n 1
cases=(alpha "beta gamma" delta)
for i in "${!cases[@]}"; do
    srun ./solver "${cases[$i]}" "$i" || exit 1
done
""",
    "a file of cases": """#!/bin/bash
#SBATCH -n 2
printf 'one 1\\ntwo 2\\n' > cases.txt
while read -r name value; do
    srun ./solver --name "$name" --value "$value" < /dev/null
done < cases.txt
""",
    "a file of cases that srun reads": """#!/bin/bash
#SBATCH -n 1
printf 'one 1\\ntwo 2\\nthree 3\\n' > cases.txt
while read -r name value; do
    srun ./solver --name "$name"
done < cases.txt
""",
    "multi-prog with offsets": """#!/bin/bash
#SBATCH -n 4
cat > multi.conf <<EOF
# task program
0      ./ocean master %t
1-2    ./atmos worker %t of %o
*      ./post
EOF
srun -l --multi-prog multi.conf
""",
    "labels": """#!/bin/bash
#SBATCH -n 3
srun -l sh -c 'echo "  indented"; echo line 2; printf "no end"'
echo
srun --label -n 1 echo one
srun -n 2 -l sh -c 'echo err >&2' 2>&1
""",
    "labels of twelve tasks": """#!/bin/bash
#SBATCH -n 12
srun -l echo x
srun -l -n 10 ./solver a
""",
    "steps at the same time": """#!/bin/bash
#SBATCH -n 4
pids=
for i in 1 2 3 4; do
    srun --exclusive -N1 -n1 ./solver case$i > log.$i 2>&1 &
    pids="$pids $!"
done
for pid in $pids; do wait $pid || exit 1; done
ls log.*
""",
    "a step that fails in the background": """#!/bin/bash
#SBATCH -n 2
srun -n 1 sh -c 'exit 3' &
first=$!
srun -n 1 ./solver ok &
wait $first
echo "first ended with $?"
wait
""",
    "tabs": "#!/bin/bash\n#SBATCH\t--ntasks=2\t--job-name=tabbed\n\tif true; then\n\t\tsrun\t./solver\t'a\tb'\n\tfi\n"
    "\tcat <<-EOF\n\t\tsrun ./pre\n\tEOF\n",
    "no newline at the end": "#!/bin/bash\n#SBATCH -n 2\nsrun ./solver last",
    "functions and arguments": """#!/bin/bash
#SBATCH -n 2
log() { echo "[log] $*"; }
step() {
    local name=$1; shift
    log "$name with $# arguments"
    srun --job-name="$name" "$@" && log "$name ok"
}
step first ./pre "a b" ''
step second ./solver -- -x
""",
    "a case": """#!/bin/bash
#SBATCH -n 2
kind=${KIND:-restart}
case "$kind" in
    new|restart*) flags="-r -n 1" ;;
    *) flags= ;;
esac
srun ./solver $flags
""",
    "until it works": """#!/bin/bash
#SBATCH -n 1
n=0
until srun sh -c "[ $n -ge 2 ]"; do
    n=$((n + 1))
done
echo "$n attempts"
srun ./solver $n
""",
    "exit codes": """#!/bin/bash
#SBATCH -n 2
srun sh -c 'exit 7'
status=$?
echo "status $status"
if ! srun -n 1 false; then echo failed; fi
srun ./solver || true
exit $status
""",
    "the program's exit code": "#!/bin/bash\n#SBATCH -n 2\nsrun ./pre\nsrun sh -c 'exit 9'\n",
    "hostnames": """#!/bin/bash
#SBATCH -N 1 -n 2
nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
echo "${#nodes[@]} nodes"
head_node=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
[ -n "$head_node" ] && export MASTER_PORT=$((10000 + 7)) MODE=$SLURM_NNODES
srun -w "$head_node" -n 2 ./solver --port $MASTER_PORT
""",
    "no number of tasks": """#!/bin/bash
#SBATCH --nodes=1
echo "${SLURM_NTASKS:-none} ${SLURM_NPROCS:-none} $SLURM_TASKS_PER_NODE"
srun ./pre
mpirun -np 1 ./post
mpirun ./solver
""",
    "--export=NONE": """#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --export=NONE
export NEW=new
srun /usr/bin/sh -c 'echo "${NEW-none}"'
export SLURM_EXPORT_ENV=ALL
srun /usr/bin/sh -c 'echo "${NEW-none}"'
""",
    "variables of a task": """#!/bin/bash
#SBATCH -N 1 -n 3 -c 2
#SBATCH --job-name=vars
export MODE=out OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
srun sh -c 'echo "$SLURM_PROCID $SLURM_LOCALID $SLURM_NTASKS $SLURM_NPROCS $SLURM_NNODES $SLURM_JOB_NAME $MODE $OMP_NUM_THREADS"'
srun -n 2 sh -c 'echo "$SLURM_PROCID of $SLURM_NTASKS, ${SLURM_STEP_NUM_TASKS}"'
echo "$SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_NTASKS $SLURM_JOB_NUM_NODES $SLURM_TASKS_PER_NODE"
""",
    "--export": """#!/bin/bash
#SBATCH -n 1
#SBATCH --export=MODE=sent,OMP_NUM_THREADS=5
export NEW=new
srun ./solver "$MODE"
srun --export=ALL,MODE=changed,OTHER=other /usr/bin/sh -c 'echo "$OTHER ${NEW-none} $MODE"'
srun --export=MODE=only /usr/bin/sh -c 'echo "${NEW-none} $MODE"'
srun --export=NEW /usr/bin/sh -c 'echo "${NEW-none} ${MODE-none}"'
srun --export=NONE /usr/bin/sh -c 'echo "${NEW-none}"'
unset SLURM_EXPORT_ENV
srun /usr/bin/sh -c 'echo "$NEW $MODE"'
""",
    "--chdir": """#!/bin/bash
#SBATCH -n 1
mkdir -p "with space/sub"
cp solver "with space/sub"
srun --chdir="with space/sub" ./solver a
srun -D "$PWD/with space" sub/solver b
pwd | sed 's,.*/,,'
""",
    "files of srun": """#!/bin/bash
#SBATCH -n 2
srun -n 1 --output=out.%j --error=err.%j sh -c 'echo out; echo err >&2'
cat out.$SLURM_JOB_ID err.$SLURM_JOB_ID
printf 'first line\\n' > in.txt
srun -i in.txt -n 1 ./solver
srun -n 1 -o both.txt sh -c 'echo a; echo b >&2'
cat both.txt
""",
    "sh with ampersands and semicolons": """#!/bin/sh
#SBATCH -n 2
cd . && mkdir -p out; srun ./solver 'a;b' "c&d" e\\ f g\\;h | cat; ls -d out
""",
    "bash with a command in a variable": """#!/bin/bash
#SBATCH -n 2
SRUN="srun --mpi=none -n ${SLURM_NTASKS}"
EXE=./solver
ARGS="-a 1 -b 'two words'"
$SRUN $EXE $ARGS
eval "$SRUN $EXE $ARGS"
""",
    "bash -c and xargs": """#!/bin/bash
#SBATCH -n 1
bash -c 'srun ./solver from-bash'
printf '%s\\n' x y | xargs -I{} -n 1 srun ./solver {}
timeout 60 srun ./post
nice srun ./post niced
""",
    "python as the script": """#!/usr/bin/python3
#SBATCH --ntasks=2
import subprocess, os
for seed in range(2):
    subprocess.run(["srun", "./solver", f"--seed={seed}"], check=True)
print(os.environ["SLURM_NTASKS"])
""",
    "a here-string and process substitution": """#!/bin/bash
#SBATCH -n 1
srun ./solver <<< "text of $SLURM_NTASKS rank"
srun cat <(echo substituted)
srun ./solver "$(tr a-z A-Z <<< quoted)"
srun bash -c 'cat' <<EOF
from a here-document
EOF
""",
    "unusual #SBATCH lines": """#!/bin/bash

#SBATCH --ntasks 2
# a comment
#SBATCH --job-name="two words" # comment
#SBATCH --comment "it # is"
:
#SBATCH --ntasks=9
srun ./solver "$SLURM_JOB_NAME"
""",
    "threads and tasks of a node": """#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=2 --cpus-per-task=3
echo "$SLURM_NTASKS $SLURM_NTASKS_PER_NODE $SLURM_CPUS_PER_TASK $SLURM_TASKS_PER_NODE $SLURM_JOB_NUM_NODES"
srun -N 1 -n 1 ./pre
srun --ntasks-per-node=1 ./post
srun ./solver
""",
    "only the shell's last command counts": "#!/bin/bash\n#SBATCH -n 1\nsrun false\nsrun ./solver fine\n",
    "set -e and a step": "#!/bin/bash\n#SBATCH -n 1\nset -e\nsrun false\nsrun ./solver never\n",
}
"""Scripts by what they show."""
