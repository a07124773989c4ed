"""Builds the script that `mpirun` calls instead of ssh: on the launcher it waits for a host, then runs ssh.

The launcher starts together with its workers. Once all workers are Ready, the operator publishes their addresses in an annotation of the
launcher's pod, and the script waits for the address of its host. It does not ask a name server at first, because that would remember for up
to 30 s that the name does not exist (docs/adr/0016-start-in-band.md).
"""

from collections.abc import Mapping
from shlex import quote
from typing import Final

from mpiop.api import constants as c
from mpiop.api.names import worker_prefix
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.objects import injected_ssh
from mpiop.controller.objects import pod_template as pt
from mpiop.controller.objects.config_map import HOSTFILE_PATH
from mpiop.kube.objects import Key

MARK: Final = "mpirun calls ssh"
"""First line of the launcher's termination message once `mpirun` has called another host (docs/adr/0009-launcher-alone.md)."""
VOLUME: Final = "mpi-hosts"
AGENT_MOUNT_PATH: Final = c.AGENT_FILES_FOLDER
"""The folder of our own files on launcher and workers; `/etc/mpi` holds the same files as with the reference operator."""
AGENT: Final = "ssh"
"""Open MPI goes by the last part of the name: it passes `ssh` an option against X11 forwarding."""
SSH_CONFIG: Final = "ssh_config"
SSH_CONFIG_PATH: Final = f"{AGENT_MOUNT_PATH}/{SSH_CONFIG}"
ADDRESSES: Final = "addresses"
SSH_CONFIG_TEXT: Final = """\
ConnectionAttempts 10
Include ~/.ssh/config /etc/ssh/ssh_config
Host *
ServerAliveInterval 15
ServerAliveCountMax 8
"""
"""The first value of a keyword counts, so the user's keep-alives win (ssh_config(5)). `-F` replaces the default files, hence Include."""

_TOOLS: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DEFAULT_MESSAGE_PATH: Final = "/dev/termination-log"
_FALLBACK: Final = "FallbackToLogsOnError"

# For dash, busybox and bash, without a writable file. The options are those of ssh(1).
_COMMON: Final = r"""
# Runs one of the script's own programs. The user's PATH may lack them, and stays as it is for ssh and the user's programs.
tool() { PATH=$tools${PATH:+:$PATH} "$@"; }

read_arguments() {
    while getopts :46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:P:p:Q:R:S:W:w: option; do
        [ "$option" != F ] || config=''
    done
    shift $((OPTIND - 1))
    host=${1-}
    host=${host##*@}
    [ $# = 0 ] || shift
    command=$*
}
read_arguments "$@"
"""
_LAUNCHER_SCRIPT: Final = r"""
IFS='
'
# Into the Pod's log, because some launchers, such as Intel MPI's, show nothing of what their ssh prints. Never into a file of the user's:
# opened again, it has a position of its own, so the lines would overwrite the program's.
log=/proc/1/fd/2
report() {
    if [ -p "$log" ] || [ -c "$log" ]; then { echo "waiting for $host: $*" >>"$log"; } 2>/dev/null && return; fi
    echo "waiting for $host: $*" >&2
}

stop() {
    report "$*"
    exit 255
}

# Sets `now` to the seconds since the machine started.
read_clock() {
    now=0
    [ ! -r /proc/uptime ] || read -r now </proc/uptime
    now=${now%%.*}
}

name=${host%%.*} index=''
case ${host#"$name"} in
'' | ".$job" | ".$job.$namespace" | ".$job.$namespace.svc" | ".$job.$namespace.svc".*)
    case $name in
    "$job-launcher") exec /bin/sh -c "$command" ;;
    "WORKER"*) index=${name#"WORKER"} ;;
    esac
    ;;
esac
case $index in 0?* | *[!0-9]*) index='' ;; esac

# Not appended: several may find the file empty at the same time, and then all write the same to the same place.
[ -z "$message" ] || { [ -s "$message" ] || echo "$mark" 1<>"$message"; } 2>/dev/null

# A line "workers <count>", and one of "<index> <address>" each; "by-name" replaces all of them if they are too many.
find_address() {
    [ -s "$addresses" ] || return 1
    for line in $(tool cat "$addresses"); do
        case $line in
        "workers "*) count=${line#* } ;;
        by-name) [ -n "$by_name" ] || by_name=1 next_look=0 ;;
        "$index "*) address=${line#* } ;;
        esac
    done
    [ -n "$address" ]
}

if [ -n "$index" ]; then
    read_clock
    started=$now by_name='' count='' pause=0.2
    next_words=$((started + 10)) next_look=$((started + 60))
    for program in cat sleep; do
        tool command -v "$program" >/dev/null || stop "cannot wait, because the image has no $program"
    done
    until find_address; do
        read_clock
        # The operator may be down. A name server remembers for up to 30 s that it knew no such name.
        if [ "$now" -ge "$next_look" ]; then
            next_look=$((now + 35))
            [ -z "$count" ] || [ "$index" -lt "$count" ] || stop 'the job has no such worker any more'
            if ! tool command -v getent >/dev/null || tool getent hosts "$host" >/dev/null 2>&1; then break; fi
        fi
        if [ "$now" -ge "$next_words" ]; then
            next_words=$((now + 10))
            report "no address for $((now - started)) s; the operator publishes it once all workers are Ready"
        fi
        [ $((now - started)) -lt 5 ] || pause=1
        tool sleep "$pause" 2>/dev/null || tool sleep 1 || stop 'cannot wait, because sleep fails'
    done
    [ "$address" != ended ] || stop 'its Pod has ended and is not made again; delete the Pod to have another'
fi

[ -z "$config" ] || set -- -F "$config" "$@"
[ -z "$address" ] || set -- -o "HostName=$address" -o "HostKeyAlias=$host" "$@"
exec ssh "$@"
""".replace("WORKER", worker_prefix("$job"))
# The daemons of a tree spawn call it to start the daemons below them. All workers are Ready then, but a name server may learn their names
# later, or still cache that they do not exist.
_WORKER_SCRIPT: Final = r"""
# Not for addresses, of which getent wants to know the name, nor for what only ssh's configuration knows.
case ${host%%.*} in WORKER*[0-9]) tries=30 ;; *) tries=0 ;; esac
while [ "$tries" -gt 0 ] && tool command -v getent >/dev/null && ! tool getent hosts "$host" >/dev/null 2>&1; do
    tries=$((tries - 1))
    tool sleep 2 || break
done
[ -z "$config" ] || set -- -F "$config" "$@"
exec ssh "$@"
""".replace("WORKER", worker_prefix("*"))


def wants_script(job: MPIJob) -> bool:
    """Return whether `mpirun` of `job` should call the script.

    Not without workers; nor if the user opted out, for images without a shell, or named another program; nor if a mount of theirs would
    cover the script in launcher or workers, because daemons start others by the same path.
    """
    if job.worker is None or not job.uses_ssh_agent:
        return False
    return not pt.is_covered(job.containers, [AGENT_MOUNT_PATH]) and not names_agent(job)


def names_agent(job: MPIJob) -> bool:
    """Return whether the user names the program that `mpirun` calls for ssh, in `env` of the launcher."""
    return any(variable.get("name") in job.library.ssh_variables for variable in job.launcher.container.get("env") or ())


def leaves_mark(job: MPIJob) -> bool:
    """Return whether the script writes the mark: not with `FallbackToLogsOnError`, which needs an empty termination message."""
    return wants_script(job) and job.launcher.container.get("terminationMessagePolicy") != _FALLBACK


def without_mark(message: str) -> str:
    """Return a launcher's termination message without the mark, of which users know nothing."""
    return message.removeprefix(MARK).strip()


def apply_script(template: pt.Template, job: MPIJob, *, is_launcher: bool, injects_agent: bool) -> None:
    """Mount the script, ssh's configuration and, on the launcher, the addresses; each is shown from an annotation of the pod.

    Left out without workers, and where something of the user's would cover it, or be covered.
    """
    container = pt.first_container(template)
    if job.worker is None or pt.overlaps(container, AGENT_MOUNT_PATH):
        return
    annotations = template["metadata"]["annotations"]
    if injects_agent:
        annotations[names.ANNOTATION_SSH] = _injected_script(job, is_launcher=is_launcher)
    else:
        values, body = (_job_values(job.key) | _launcher_values(job), _LAUNCHER_SCRIPT) if is_launcher else ({}, _WORKER_SCRIPT)
        annotations[names.ANNOTATION_SSH] = _script(values, body)
    annotations.setdefault(names.ANNOTATION_SSH_CONFIG, SSH_CONFIG_TEXT)
    items = [
        pt.annotation_item(names.ANNOTATION_SSH, AGENT) | {"mode": 0o555},
        pt.annotation_item(names.ANNOTATION_SSH_CONFIG, SSH_CONFIG) | {"mode": 0o444},
    ]
    if is_launcher:
        # Set, not defaulted: a template that was copied from a pod must not contain addresses of another job.
        annotations[names.ANNOTATION_ADDRESSES] = ""
        items.append(pt.annotation_item(names.ANNOTATION_ADDRESSES, ADDRESSES))
    pt.add_volume(template["spec"], {"name": VOLUME, "downwardAPI": {"items": items}})
    pt.add_mount(container, {"name": VOLUME, "mountPath": AGENT_MOUNT_PATH})


def checkpoint_flags(job: Key) -> Mapping[str, str]:
    """Return the flags by which the agent finds the workers, before the launcher's end."""
    return _job_values(job) | {"addresses": f"{AGENT_MOUNT_PATH}/{ADDRESSES}", "hosts": HOSTFILE_PATH}


def _injected_script(job: MPIJob, *, is_launcher: bool) -> str:
    values = _job_values(job.key) | {"key": injected_ssh.KEY} | (_launcher_values(job) if is_launcher else {})
    flags = " ".join(f"--{name}={quote(value)}" for name, value in values.items())
    return f'#!/bin/sh\n# mpirun and its daemons call this instead of ssh.\nexec {injected_ssh.PROGRAM} ssh {flags} -- "$@"\n'


def _job_values(job: Key) -> dict[str, str]:
    return {"job": job.name, "namespace": job.namespace}


def _launcher_values(job: MPIJob) -> dict[str, str]:
    message_path = job.launcher.container.get("terminationMessagePath") or _DEFAULT_MESSAGE_PATH
    return {"addresses": f"{AGENT_MOUNT_PATH}/{ADDRESSES}", "message": message_path if leaves_mark(job) else "", "mark": MARK}


def _script(values: Mapping[str, str], body: str) -> str:
    settings = {**values, "config": SSH_CONFIG_PATH, "address": "", "tools": _TOOLS}
    lines = "".join(f"{name}={quote(value)}\n" for name, value in settings.items())
    return f"#!/bin/sh\n# mpirun and its daemons call this instead of ssh.\nset -fu\n{lines}{_COMMON}{body}"
