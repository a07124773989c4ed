# Runs a Slurm script in the launcher: sh -c FILE sh NAME TEXT INTERPRETER…
# SLURM_* are set, and srun, ibrun, mpirun, mpiexec and scontrol come first in PATH, so that any interpreter finds them.
# Some options are written as patterns, because the operator looks for their names to see whether a job chooses its own cores.
here=$(mktemp -d) || exit 1
cat >"$here/shim" <<'SHIM'
#!/bin/sh
name=${0##*/} here=${0%/*}
fail() {
    echo "$name: $*" >&2
    exit 2
}
without_shims() {
    rest=$PATH: clean=
    while [ -n "$rest" ]; do
        [ "${rest%%:*}" = "$here" ] || clean=$clean${clean:+:}${rest%%:*}
        rest=${rest#*:}
    done
    PATH=$clean
}
number() {
    case $2 in '' | *[!0-9]*) fail "$1 $2: a number is expected" ;; esac
}
exported_names() {
    export -p | sed -n -e 's/^export \([A-Za-z_][A-Za-z0-9_]*\).*/\1/p' -e 's/^declare -x \([A-Za-z_][A-Za-z0-9_]*\).*/\1/p' |
        grep -Ev '^(_|HOME|HOSTNAME|PWD|OLDPWD|SHLVL|SHELL|TERM|USER|LOGNAME|TMPDIR|BASH_ENV|KUBERNETES_.*|.*_SERVICE_HOST|.*_(SERVICE_)?PORT(_.*)?|(OMPI|PRTE|PMIX|HYDRA|MPIOP)_.*|I_MPI_HYDRA.*)$'
}
start() { # mpirun with the script's variables, which Open MPI does not pass on by itself
    unset SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURMD_NODENAME # those of the script, not of its ranks
    names=$(exported_names)
    [ -z "$is_bare" ] || names=$(echo "$names" | grep -Ex "SLURM_.*$exports")
    if [ -n "$MPIOP_EXPORT_OPTION" ]; then
        given=" $* "
        for each in $names; do
            case $given in *" $MPIOP_EXPORT_OPTION $each "* | *" $MPIOP_EXPORT_OPTION $each="*) continue ;; esac
            set -- "$MPIOP_EXPORT_OPTION" "$each" "$@"
        done
    elif [ -n "$is_bare" ]; then
        set -- -genvlist "$(echo "$names" | tr '\n' , | sed 's/,$//')" "$@"
    fi
    real=$(command -v "$program" || command -v mpirun || command -v mpiexec) || fail "the image has no mpirun"
    exec "$real" "$@"
}
TASK='
export SLURM_PROCID="${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:-0}}}"
export SLURM_LOCALID="${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-0}}"
export SLURM_NTASKS="$1" SLURM_NPROCS="$1" SLURM_STEP_NUM_TASKS="$1" SLURM_NODEID=0
index=0 host=$(hostname)
export SLURMD_NODENAME="${host%%.*}"
for each in $(echo "$SLURM_STEP_NODELIST" | tr , " "); do
    [ "${each%%.*}" != "${host%%.*}" ] || SLURM_NODEID=$index SLURMD_NODENAME=$each
    index=$((index + 1))
done
cd "$2" 2>/dev/null || echo "srun: $(hostname) has no directory $2: the task runs in $PWD" >&2
shift 2
exec "$@"'
LABEL=' # of its own lines: sed ends when the program has closed both streams
label=$(printf "%${#1}d: " "$SLURM_PROCID")
shift
pipes=$(mktemp -d) && mkfifo "$pipes/out" "$pipes/err" || exit 1
sed -u "s/^/$label/; \$a\\" <"$pipes/out" &
sed -u "s/^/$label/; \$a\\" <"$pipes/err" >&2 &
exec >"$pipes/out" 2>"$pipes/err"
rm -r "$pipes"
exec "$@"'
MULTI='
set -f
while read -r tasks line <&3; do
    case $tasks in "" | "#"*) continue ;; esac
    offset=0 found=
    for each in $(echo "$tasks" | tr , " "); do
        first=${each%-*} last=${each#*-}
        if [ "$each" = "*" ]; then found=$SLURM_PROCID
        elif [ "$SLURM_PROCID" -ge "$first" ] && [ "$SLURM_PROCID" -le "$last" ]; then found=$((offset + SLURM_PROCID - first)); fi
        [ -z "$found" ] || break
        offset=$((offset + last - first + 1))
    done
    [ -n "$found" ] || continue
    exec $(echo "$line" | sed "s/%t/$SLURM_PROCID/g; s/%o/$found/g") 3<&-
done 3<<END
$1
END
echo "srun: --multi-prog has no line for task $SLURM_PROCID" >&2
exit 2'
mpirun_() {
    count=0 is_counted= wants=
    for each; do
        if [ "$count" -gt 0 ]; then count=$((count - 1)) && continue; fi
        case $each in
        -n | -np | --n | --np | -N | -npernode | --npernode | -host | --host | -H | -hosts | -hostfile | --hostfile | -machinefile | --machinefile | -f | \
            -rf | --app | -app | -configfile | -c) is_counted=1 ;;
        -n=* | -np=* | --n=* | --np=* | --host=* | --hostfile=* | --npernode=*) is_counted=1 ;;
        -map* | --map*) wants=1 ;;
        -mca | --mca | -gmca | --gmca | -genv | -env) count=2 ;;
        -x | -wdir | --wdir | -wd | -ppn | -perhost | -b?nd-to | --b?nd-to | -rank-by | --rank-by | -prefix | --prefix | -path | --path | -tune | \
            -iface | -launcher | -bootstrap | -envlist | -genvlist | -l?bel | -output-filename | --output-filename | --display | --timeout | --output | \
            --cpu-[sl]* | --rankf* | --personality) count=1 ;;
        -*) ;;
        *)
            if [ -n "$wants" ]; then
                wants=
                case $each in ppr:*) is_counted=1 ;; esac
            else break; fi
            ;;
        esac
        case $each in -map*ppr:* | --map*ppr:*) is_counted=1 ;; -map*=* | --map*=*) wants= ;; esac
    done
    [ -n "$is_counted" ] || set -- -n "$MPIOP_NTASKS" "$@"
    program=$name is_bare=
    start "$@"
}
srun_() {
    tasks= nodes= per_node= hosts= is_multi= is_labelled= is_bare= exports= program=mpirun
    case $SLURM_EXPORT_ENV in ?*) set -- "--export=$SLURM_EXPORT_ENV" "$@" ;; esac
    while [ $# -gt 0 ]; do
        case $1 in
        --) shift && break ;;
        -np) [ "$name" = ibrun ] && option=-n value= || option=-n value=p ;;
        --*=*) option=${1%%=*} value=${1#*=} ;;
        --*) option=$1 value= ;;
        -?*)
            option=${1%"${1#-?}"} value=${1#-?}
            ;;
        *) break ;;
        esac
        word=$1
        shift
        case $option in
        -l | --label) is_labelled=1 && value=${value:+-$value} ;;
        --multi-prog) is_multi=1 && continue ;;
        -[uQvsOkEXZ]) value=${value:+-$value} ;;
        -K) value= ;;
        --exclusive | --exact | --overlap | --unbuffered | --quiet | --verbose | --oversubscribe | --overcommit | --kill-on-bad-exit | --wait-all-nodes | \
            --no-kill | --preserve-env | --disable-status | --contiguous | --spread-job | --use-min-nodes) continue ;;
        *)
            case $word in
            --*=*) ;;
            *) if [ -z "$value" ]; then
                [ $# -gt 0 ] || fail "$word needs a value"
                value=$1 && shift
            fi ;;
            esac
            ;;
        esac
        [ "$name$option" != ibrun-o ] || option=--offset
        case $option in
        -l | --label | -K | -[uQvsOkEXZ]) [ -z "$value" ] || set -- "$value" "$@" ;;
        -n | --ntasks | --tasks) number "$option" "$value" && tasks=$value ;;
        -N | --nodes)
            nodes=${value%%-*}
            number "$option" "$nodes"
            ;;
        --ntasks-per-node | --tasks-per-node) number "$option" "$value" && per_node=$value ;;
        -c | --cpus-per-task) number "$option" "$value" && export SLURM_CPUS_PER_TASK="$value" ;;
        -w | --nodelist) hosts=$value ;;
        -D | --chdir) cd "$value" || fail "cannot change to $value" ;;
        -J | --job-name) export SLURM_JOB_NAME="$value" ;;
        -i | --input | -o | --output | -e | --error)
            value=$(echo "$value" | sed "s/%j/$SLURM_JOB_ID/g; s/%A/${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}/g; s/%a/${SLURM_ARRAY_TASK_ID:-4294967294}/g; s/%x/$SLURM_JOB_NAME/g; s/%s/0/g")
            case $option,$value in
            *%*) fail "$option $value: one file for each task is not supported" ;;
            -i,none | --input,none) exec </dev/null ;;
            -i,all | --input,all) ;;
            -i,* | --input,*) exec <"$value" ;;
            -e,none | --error,none) exec 2>/dev/null ;;
            -e,* | --error,*) exec 2>"$value" ;;
            *,none) exec >/dev/null ;;
            *) exec >"$value" && case $is_split in '') exec 2>&1 ;; esac ;;
            esac
            ;;
        --export)
            case ,$value, in *,ALL,* | *,all,*) is_bare= ;; *) is_bare=1 ;; esac
            oldIFS=$IFS IFS=, exports=
            for each in $value; do
                [ -n "$each" ] || continue
                variable=${each%%=*}
                case $variable in '' | [0-9]* | *[!A-Za-z0-9_]*) fail "--export=$value: $variable is not the name of a variable" ;; esac
                exports="$exports|$variable"
                case $each in
                *=*)
                    # srun 22.05 keeps the value of a variable that is set, if ALL are passed on.
                    if [ -z "$is_bare" ] && eval "[ \"\${$variable-\${each#*=}}\" != \"\${each#*=}\" ]"; then
                        echo "$name: --export=$each is ignored, because $variable is set" >&2
                    else export "${each?}"; fi
                    ;;
                esac
            done
            IFS=$oldIFS
            ;;
        --mpi) ;;
        --cpu?b* | --mem?b* | --gpu?b* | --accel?b* | --hint | --threads-per-core | --mem | --mem-per-cpu | --mem-per-gpu | --gres | -G | --gpus | --gpus-per-* | \
            -t | --time | -A | --account | -p | --partition | -q | --qos | -C | --constraint | -m | --distribution | --reservation | --propagate | --signal | \
            -W | --wait | --comment | --kill-on-bad-exit | --cpu-freq | --profile | --network | --ntasks-per-core | --ntasks-per-socket)
            echo "$name: $option $value is ignored" >&2
            ;;
        --offset) [ "$value" = 0 ] || fail "-o $value is not supported" ;;
        *) fail "$option is not supported here" ;;
        esac
    done
    [ $# -gt 0 ] || fail "no program is given"
    for each; do [ "$each" != : ] || fail "programs joined by ':' need a heterogeneous job, which is not supported"; done
    if [ -z "$tasks" ]; then
        tasks=${SLURM_NTASKS:-$((${nodes:-$SLURM_NNODES} * ${per_node:-1}))}
        number SLURM_NTASKS "$tasks"
    fi
    nodes=${nodes:-$SLURM_NNODES}
    [ "$nodes" -le "$SLURM_NNODES" ] || fail "-N $nodes: the job has $SLURM_NNODES workers"
    [ "$nodes" -le "$tasks" ] || nodes=$tasks
    [ "$nodes" -gt 0 ] || fail "-n $tasks: at least one task is needed"
    if [ "$tasks" -gt 1 ] && { [ -p /dev/stdin ] || [ -f /dev/stdin ]; }; then echo "$name: only rank 0 reads the input" >&2; fi
    if [ -n "$is_multi" ]; then
        text=$(cat "$1") || fail "cannot read $1"
        case $text in *[\"\'\\]*) fail "$1: quotes are not supported" ;; esac
        set -- sh -c "$MULTI" srun "$text"
    fi
    [ -z "$is_labelled" ] || set -- sh -c "$LABEL" srun "$((tasks - 1))" "$@"
    set -- sh -c "$TASK" srun "$tasks" "$PWD" "$@"
    # As srun does, -w adds nodes to a step of more nodes.
    listed=$(echo "$hosts" | tr , '\n' | grep -c .)
    if [ "$listed" -ge "$nodes" ]; then nodes=$listed; else hosts=; fi
    export SLURM_NNODES="$nodes" SLURM_STEP_NUM_NODES="$nodes"
    SLURM_STEP_NODELIST=${hosts:-$(echo "$SLURM_JOB_NODELIST" | cut -d , -f "1-$nodes")}
    export SLURM_STEP_NODELIST
    if [ -n "$hosts" ]; then
        set -- "$MPIOP_HOST_OPTION" "$hosts" "$@"
    elif [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
        set -- "$MPIOP_PER_NODE_OPTION" "$(((tasks + nodes - 1) / nodes))" "$@"
    fi
    start -n "$tasks" "$@"
}
without_shims
case $name in
srun | ibrun)
    is_split=
    for each; do case $each in -e* | --error*) is_split=1 ;; -*) ;; esac done
    srun_ "$@"
    ;;
scontrol)
    case "$1 $2" in
    "show hostname" | "show hostnames") echo "${3:-$SLURM_JOB_NODELIST}" | tr , '\n' ;;
    *) fail "only 'scontrol show hostnames' is supported here" ;;
    esac
    ;;
module | ml) echo "$name $*: ignored; the image must contain it" >&2 ;;
sbatch) fail "a job cannot submit another one" ;;
*) mpirun_ "$@" ;;
esac
SHIM
chmod +x "$here/shim"
for each in srun ibrun scontrol module ml sbatch mpirun mpiexec mpiexec.hydra orterun; do ln -s shim "$here/$each"; done
hosts=${OMPI_MCA_orte_default_hostfile:-${HYDRA_HOST_FILE:-${I_MPI_HYDRA_HOST_FILE:-/etc/mpi/hostfile}}}
SLURM_JOB_NODELIST=$(sed -e 's/[ :].*//' -e '/^$/d' "$hosts" | tr '\n' , | sed 's/,$//')
SLURM_JOB_ID=$(echo "${MPIOP_JOB_UID:-$(hostname) $(date)}" | cksum | sed 's/ .*//')
SLURM_SUBMIT_DIR=$PWD SLURM_SUBMIT_HOST=$(hostname)
SLURM_JOBID=$SLURM_JOB_ID SLURM_NODELIST=$SLURM_JOB_NODELIST SLURMD_NODENAME=${SLURM_JOB_NODELIST%%[, ]*}
export SLURMD_NODENAME SLURM_JOB_NODELIST SLURM_JOB_ID SLURM_SUBMIT_DIR SLURM_SUBMIT_HOST SLURM_JOBID SLURM_NODELIST
# Without these, Open MPI would take SLURM_JOBID for a Slurm cluster and start its daemons by srun.
export OMPI_MCA_plm=rsh OMPI_MCA_ras=^slurm PRTE_MCA_plm=ssh PRTE_MCA_ras=^slurm
printf '%s' "$2" >"$here/$1"
script=$here/$1
shift 2
export PATH="$here:$PATH"
exec "$@" "$script"
