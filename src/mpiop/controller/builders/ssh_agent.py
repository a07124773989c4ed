"""What `mpirun` calls in the place of ssh: a script that leaves a mark, then is ssh (docs/adr/0009-launcher-alone.md).

The mark goes to the container's termination message, the one file of a container that the kubelet shows to others. A launcher that ended
well without it has started nothing on any worker.
"""

from collections.abc import Mapping
from shlex import quote
from typing import Any, Final

from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.builders import pod_template as pt
from mpiop.controller.builders.wait_for_workers import wants_gate
from mpiop.controller.implementations import CONFIG_MOUNT_PATH, implementation_of

MARK: Final = "mpirun calls ssh"
"""First line of the launcher's termination message, once `mpirun` has reached out for another host."""

_FILE: Final = "ssh"
"""Open MPI goes by the last part of the name: to `ssh` it says that no X11 is to be forwarded."""
_DEFAULT_MESSAGE_PATH: Final = "/dev/termination-log"
_SCRIPT: Final = """#!/bin/sh
# mpirun calls this in the place of ssh, so that a launcher that leaves its workers alone is found out.
{body}exec ssh "$@"
"""
# Where sshd does not run: a launcher that is a host of its own list. Intel MPI does not know itself there and would reach itself by ssh.
_HERE: Final = """run_here() {{
    while getopts :46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:P:p:Q:R:S:W:w: option; do :; done
    shift $((OPTIND - 1))
    case ${{1-}} in {name} | {name}.*) shift ;; *) return 0 ;; esac
    exec /bin/sh -c "$*"
}}
run_here "$@"
"""


def wants_agent(job: MPIJob) -> bool:
    """Tell whether the pods of `job` get the script.

    Not where there is nobody to reach, or maybe no shell; nor where the user has named a program; nor where a mount of theirs would
    cover it on either side, for daemons start others by the same name; nor where a message that is not empty would keep the end of a failed
    launcher's log out of its status.
    """
    if job.worker is None or not wants_gate(job):
        return False
    launcher, worker = (spec.template["spec"]["containers"][0] for spec in (job.launcher, job.worker))
    is_covered = any(pt.overlaps(container, CONFIG_MOUNT_PATH) for container in (launcher, worker))
    is_named = any(variable.get("name") in implementation_of(job).agents for variable in launcher.get("env") or ())
    return not is_covered and not is_named and launcher.get("terminationMessagePolicy") != "FallbackToLogsOnError"


def agent_environment(job: MPIJob) -> Mapping[str, str]:
    """Return the variables by which `mpirun` calls the script."""
    implementation = implementation_of(job)
    program = f"{CONFIG_MOUNT_PATH}/{_FILE}{implementation.agent_fallback}"
    return dict.fromkeys(implementation.agents, program) if wants_agent(job) else {}


def agent_items(template: pt.Template, job: MPIJob, *, is_launcher: bool) -> list[dict[str, Any]]:
    """Return the items of a downward API volume that hold the script, whose text becomes an annotation of the pod.

    Args:
        template: Of a launcher or worker of `job`.
        job: Decides whether there is a script at all.
        is_launcher: Whether the script leaves the mark; those of workers only have to be there.
    """
    if not wants_agent(job):
        return []
    body = ""
    if is_launcher:
        path = quote(pt.first_container(template).get("terminationMessagePath") or _DEFAULT_MESSAGE_PATH)
        here = _HERE.format(name=names.launcher_name(job)) if job.run_launcher_as_worker else ""
        # Not appended: several may find the file empty at the same time, and then all write the same to the same place.
        body = f"{here}{{ [ -s {path} ] || echo {MARK} 1<>{path}; }} 2>/dev/null\n"
    template["metadata"]["annotations"][names.ANNOTATION_SSH_AGENT] = _SCRIPT.format(body=body)
    return [pt.annotation_item(names.ANNOTATION_SSH_AGENT, _FILE) | {"mode": 0o555}]
