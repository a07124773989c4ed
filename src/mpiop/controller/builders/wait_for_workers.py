"""The launcher's gate: an init container that ends when every host of the hostfile lets us in, and knows the launcher where it has to.

Source: docs/adr/0004-launcher-gate.md.
"""

from collections.abc import Mapping
from typing import Any, Final

from mpiop.api.types import MPIJob
from mpiop.controller import names, pods
from mpiop.controller.builders import BuildOptions
from mpiop.controller.builders import pod_template as pt
from mpiop.controller.implementations import HOSTFILE_PATH, implementation_of
from mpiop.kube.objects import Object, annotations_of

CONTAINER: Final = "wait-for-workers"
VOLUME: Final = "mpi-job-gate"
MOUNT_PATH: Final = "/etc/mpi-gate"

_FILE: Final = "workers-ready"
_PATIENCE_SECONDS: Final = 120
"""How long no further host may answer, once all are Ready, before mpirun has its try; a name server remembers a refusal for 30 s."""
_UNASKED_SECONDS: Final = 120
"""How long to wait for the operator's word before looking without it (it may be down, or replaced by one that knows no gate)."""
_MESSAGE_PATH: Final = "/dev/termination-log"
_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_COPIED: Final = ("image", "imagePullPolicy", "env", "envFrom", "securityContext", "volumeMounts")

# For dash, busybox and bash, without a writable file. The kubelet expands $(NAME) and $$ in arguments: neither may occur here.
SCRIPT: Final = r"""
set -fu
self=$1 hostfile=$2 gate=$3 patience=$4 unasked=$5 last_words=$6 question=$7
newline='
'
return=$(printf '\r')
# What mpirun will hand to ssh, for there may be a port in it. Only the variables of one library are set.
arguments="${OMPI_MCA_plm_rsh_args-} ${PRTE_MCA_plm_ssh_args-} ${I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS-} ${HYDRA_LAUNCHER_EXTRA_ARGS-}"
known='' answered=' ' missing='' jobs='' pids='' running=0 now=0

# Process 1 ignores every signal that it does not catch; the wait builtin, unlike a foreground command, is interrupted by it.
trap 'kill $pids 2>/dev/null; exit 143' TERM INT

say() { printf 'wait-for-workers: %s\n' "$*"; }

look_at_clock() {
    [ ! -r /proc/uptime ] || read -r now rest </proc/uptime
    now=${now%%.*}
}

pause() {
    { sleep "$1" || sleep 1; } >/dev/null 2>&1 &
    pids=$!
    wait "$pids"
    pids=''
}

is_open() {
    ready=''
    [ ! -r "$gate" ] || read -r ready <"$gate"
    [ "${ready:-0}" != 0 ]
}

# probe HOST VERBOSE: succeeds when sshd answers, even with a refusal that no waiting will cure: mpirun tells more about that.
# Not when the question is for a name that is not known there, of which getent(1) says 2.
probe() {
    error=$(ssh -n -o BatchMode=yes -o ConnectTimeout=5 -o ConnectionAttempts=1 $arguments "$1" "$question" 2>&1 >/dev/null)
    case "$?:$error" in
    2:*)
        [ "$question" != true ] || return 0
        error="does not know $self" hint='does it ask the name server of the cluster?'
        ;;
    255:*'Permission denied'* | 255:*'Host key verification failed'* | 255:*'Too many authentication failures'*) return 0 ;;
    255:*'no matching '* | 255:*'o supported authentication'*) return 0 ;;
    255:*) hint='does sshd of their image listen on the port that ssh asks for?' ;;
    *) return 0 ;;
    esac
    error=${error%"$return"}
    [ "$2" = 0 ] || say "$1: ${error##*"$newline"}"
    return 1
}

collect() {
    for job in $jobs; do
        if wait "${job%%:*}"; then answered="$answered${job#*:} "; else left="$left ${job#*:}"; fi
    done
    jobs='' pids='' running=0
}

# probe_missing VERBOSE STOP: probes what is missing, 16 at a time; with STOP=1 only until one of them does not answer.
probe_missing() {
    left='' shown=0
    for host in $missing; do
        if [ "$2" = 1 ] && [ -n "$left" ]; then
            left="$left $host"
            continue
        fi
        verbose=0
        if [ "$1" = 1 ] && [ "$shown" -lt 5 ]; then verbose=1; fi
        shown=$((shown + 1))
        probe "$host" "$verbose" &
        pids="$pids $!" jobs="$jobs $!:$host" running=$((running + 1))
        [ "$running" -lt 16 ] || collect
    done
    collect
    missing=$left
}

# The hosts change when the job is scaled.
read_hosts() {
    hosts=''
    while read -r host rest; do
        host=${host%%:*}
        case $host in '' | '#'* | "$self") ;; *) hosts="$hosts $host" ;; esac
    done <"$hostfile"
    [ "$hosts" != "$known" ] || return 0
    known=$hosts missing=''
    for host in $hosts; do
        case $answered in *" $host "*) ;; *) missing="$missing $host" ;; esac
    done
}

count() { number=$#; }

[ -r "$hostfile" ] || { say "there is no $hostfile to wait for"; exit 0; }
has_ssh=1
command -v ssh >/dev/null 2>&1 || has_ssh=0
look_at_clock
started=$now next=$((now + unasked))

if ! is_open; then
    say 'waiting until the operator has seen every worker Ready'
    until is_open; do
        pause 0.5
        look_at_clock
        if [ "$has_ssh" = 1 ] && [ "$now" -ge "$next" ]; then
            next=$((now + 60))
            read_hosts
            probe_missing 0 1
            [ -n "$missing" ] || break
        fi
    done
fi
[ "$has_ssh" = 1 ] || { say 'there is no ssh in this image: not looking whether the workers answer'; exit 0; }

look_at_clock
progress=$now next=$now step=0.2 reported='' verbose_round=0
while :; do
    read_hosts
    before=$missing
    probe_missing "$verbose_round" 0
    [ -n "$missing" ] || break
    look_at_clock
    [ "$missing" = "$before" ] || progress=$now
    if [ $((now - progress)) -ge "$patience" ]; then
        count $missing
        for host in $missing; do break; done
        ! probe "$host" 0 || continue
        say "$number hosts have not answered for $patience s; leaving the rest to mpirun:$missing"
        { echo "$number workers have not answered for $patience s. ${host%%.*}: ${error##*"$newline"}: $hint" >"$last_words"; } 2>/dev/null
        exit 0
    fi
    pause "$step"
    case $step in 0.2) step=0.3 ;; 0.3) step=0.5 ;; 0.5) step=0.8 ;; 0.8) step=1.2 ;; *) step=2 ;; esac
    verbose_round=0
    if [ "$missing" != "$reported" ] && [ "$now" -ge "$next" ]; then
        verbose_round=1 reported=$missing next=$((now + 5))
        count $missing
        say "waiting for $number hosts, among them:"
    fi
done
look_at_clock
count $known
say "all $number hosts answer after $((now - started)) s"
"""


def wants_gate(job: MPIJob) -> bool:
    """Tell whether the launcher of `job` waits for its workers: not without workers, nor when the user opted out."""
    choice = annotations_of(job.raw).get(names.ANNOTATION_WAIT_FOR_WORKERS, "true")
    return job.worker_replicas > 0 and choice.strip().lower() != "false"


def last_words(pod: Object) -> str:
    """Return why the gate of a launcher pod gave up; "" while it waits, and when all answered."""
    gate = next((status for status in pods.container_statuses(pod) if status.get("name") == CONTAINER), dict[str, Any]())
    return (pods.terminated(gate).get("message") or "").strip()


def apply_gate(template: pt.Template, job: MPIJob, options: BuildOptions) -> None:
    """Append the gate to the init containers of a finished launcher template.

    Left out where the user has a container or a volume of its name.
    """
    spec = template["spec"]
    init_containers = list(spec.get("initContainers") or ())
    taken = any(container.get("name") == CONTAINER for container in (*init_containers, *spec["containers"]))
    if not wants_gate(job) or taken or pt.has_volume(spec, VOLUME):
        return
    # Set, not defaulted: a template that was copied from a pod must not open the gate.
    template["metadata"]["annotations"][names.ANNOTATION_WORKERS_READY] = names.GATE_CLOSED
    items = [pt.annotation_item(names.ANNOTATION_WORKERS_READY, _FILE)]
    pt.add_volume(spec, {"name": VOLUME, "downwardAPI": {"items": items}})
    own_host = names.host(job, names.launcher_name(job), options.cluster_domain)
    gate = _gate(pt.first_container(template), own_host, is_called_back=implementation_of(job).calls_back)
    spec["initContainers"] = [*init_containers, gate]


def _gate(launcher: dict[str, Any], own_host: str, *, is_called_back: bool) -> dict[str, Any]:
    """Return the init container, which sees and may do what the launcher sees and may do, and takes no more of the node."""
    copied = pt.copied({name: launcher[name] for name in _COPIED if name in launcher})
    container: dict[str, Any] = {
        "name": CONTAINER,
        **copied,
        "command": ["/bin/sh", "-c", SCRIPT],
        "args": [
            CONTAINER,
            own_host,
            HOSTFILE_PATH,
            f"{MOUNT_PATH}/{_FILE}",
            str(_PATIENCE_SECONDS),
            str(_UNASKED_SECONDS),
            _MESSAGE_PATH,
            f"getent hosts {own_host}" if is_called_back else "true",
        ],
    }
    if resources := _resources(pt.section(launcher, "resources")):
        container["resources"] = resources
    pt.override_environment(container, pt.NO_GPU)
    pt.add_mount(container, {"name": VOLUME, "mountPath": MOUNT_PATH})
    return container


def _resources(of_launcher: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what quotas ask for: as much as the launcher, so that the pod's request stays as it is, but no device and no claim."""
    resources: dict[str, dict[str, Any]] = {}
    for kind in ("requests", "limits"):
        if amounts := {name: amount for name, amount in pt.section(of_launcher, kind).items() if name in _RESOURCES}:
            resources[kind] = amounts
    return resources
