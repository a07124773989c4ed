"""Options of `run` that set fields of the job, and their conversion to fields of `JobSpec`."""

import shlex
from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from mpiop.client.errors import InvalidError, NoClusterError
from mpiop.client.spec import READ_ONLY, SSH_AUTO, SSH_CHOICES, SSH_OPERATOR, JobSpec, mount_path
from mpiop.client.ssh import with_ssh
from mpiop.kubectl.session import Session

_Verb = Callable[..., Any]
_REPEATED: Final = (
    (("-e", "--env"), "NAME=VALUE", "Set an environment variable of all ranks."),
    (("--mount",), "PVC:/PATH[:ro]", "Mount a PersistentVolumeClaim."),
    (("--empty-dir",), "/PATH[:SIZE]", "Mount an empty folder from the node's disk in each Pod."),
    (("--mpirun-args",), "'OPTIONS'", "Pass options to mpirun, split as by a shell, such as '--map-by node'."),
    (("--label",), "KEY=VALUE", "Add a label to the job and its Pods."),
    (("--node-selector",), "KEY=VALUE", "Run only on nodes with this label."),
    (("--toleration",), "KEY[=VALUE][:EFFECT]", "Tolerate a taint of nodes."),
    (("--image-pull-secret",), "SECRET", "Pull the image with this Secret."),
)


def ssh_option(verb: _Verb) -> _Verb:
    """Give a verb the option `--ssh`."""
    text = "Use ssh and sshd of the image, or inject mpiop-agent into any image. auto injects it if the operator offers it."
    return click.option("--ssh", type=click.Choice(SSH_CHOICES), default=SSH_AUTO, show_default=True, help=text)(verb)


def ssh_of(session: Session, spec: JobSpec) -> str:
    """Return the ssh of a job, for which the operator is asked; without a cluster, the operator decides later.

    Raises:
        InvalidError: The operator cannot do it.
    """
    try:
        return with_ssh(session.mpi().offer, spec).ssh
    except NoClusterError:
        return SSH_OPERATOR if spec.ssh == SSH_AUTO else spec.ssh


def job_options(verb: _Verb) -> _Verb:
    """Give a verb the options that `fields_of` reads."""
    file = click.Path(allow_dash=True)
    made = click.option(
        "--patch", default="", type=file, metavar="FILE", help="Override fields of the MPIJob with this YAML or JSON file."
    )(verb)
    made = click.option("--host-network", is_flag=True, help="Let the Pods use the network of their nodes.")(made)
    made = click.option("--service-account", default="", metavar="NAME", help="ServiceAccount of the Pods.")(made)
    for names, metavar, text in reversed(_REPEATED):
        made = click.option(*names, multiple=True, metavar=metavar, help=f"{text} Can be repeated.")(made)
    return made


def fields_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `JobSpec` from the options.

    Raises:
        InvalidError: An option has not the form that it needs.
    """
    fields = dict(options)
    fields["mpi"] = fields.pop("library")
    fields["env"] = _pairs(fields["env"], "--env NAME=VALUE")
    fields["mounts"] = read_mounts(fields.pop("mount"))
    fields["empty_dirs"] = _empty_dirs(fields.pop("empty_dir"))
    fields["mpirun_args"] = [word for words in fields["mpirun_args"] for word in split_words(words)]
    fields["labels"] = _pairs(fields.pop("label"), "--label KEY=VALUE")
    fields["node_selector"] = _pairs(fields["node_selector"], "--node-selector KEY=VALUE")
    fields["tolerations"] = fields.pop("toleration")
    fields["image_pull_secrets"] = fields.pop("image_pull_secret")
    return fields


def read_mounts(words: Sequence[str]) -> dict[str, str]:
    """Return claims by path, as `JobSpec` takes them.

    Raises:
        InvalidError: A word is not `PVC:/PATH` or `PVC:/PATH:ro`, or a path is used twice.
    """
    form = f"--mount PVC:/PATH[{READ_ONLY}]"
    mounts: dict[str, str] = {}
    for word in words:
        claim, rest = _pair(word, ":", form)
        path, _, mode = rest.partition(":")
        if rest not in {path, path + READ_ONLY}:
            raise InvalidError(f"{word!r} is not of the form {form}")
        path = mount_path(path)
        if path in mounts:
            raise InvalidError(f"--mount {word}: {mounts[path]} is mounted at {path} already")
        mounts[path] = claim + (READ_ONLY if mode else "")
    return mounts


def _empty_dirs(words: Sequence[str]) -> dict[str, str]:
    sizes: dict[str, str] = {}
    for word in words:
        path, _, size = word.partition(":")
        if mount_path(path) in sizes:
            raise InvalidError(f"--empty-dir {word}: another one is mounted at {mount_path(path)} already")
        sizes[mount_path(path)] = size
    return sizes


def split_words(words: str) -> list[str]:
    """Return options of `mpirun`, split as by a shell.

    Raises:
        InvalidError: A quote is not closed.
    """
    try:
        return shlex.split(words)
    except ValueError as error:
        raise InvalidError(f"--mpirun-args {words}: a quote is not closed") from error


def _pairs(words: Sequence[str], form: str) -> dict[str, str]:
    return dict(_pair(word, "=", form) for word in words)


def _pair(word: str, separator: str, form: str) -> tuple[str, str]:
    name, found, value = word.partition(separator)
    if not name or not found:
        raise InvalidError(f"{word!r} is not of the form {form}")
    return name, value
