"""Options of `run` that set fields of the job, and what they become: fields of `JobSpec`."""

import shlex
from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from mpiop.client.errors import InvalidError
from mpiop.client.spec import READ_ONLY, mount_path

_Verb = Callable[..., Any]
_REPEATED: Final = (
    (("-e", "--env"), "NAME=VALUE", "Environment variable of all ranks."),
    (("--mount",), "PVC:/PATH[:ro]", "Mount a PersistentVolumeClaim."),
    (("--empty-dir",), "/PATH[:SIZE]", "Mount an empty folder, on the node's disk, in each Pod."),
    (("--mpirun-args",), "'OPTIONS'", "Options of mpirun, split as by a shell, such as '--map-by node'."),
    (("--label",), "KEY=VALUE", "Label of the job and its Pods."),
    (("--node-selector",), "KEY=VALUE", "Run on nodes with this label."),
    (("--toleration",), "KEY[=VALUE][:EFFECT]", "Tolerate a taint of nodes."),
    (("--image-pull-secret",), "SECRET", "Secret with which the image is pulled."),
)


def job_options(verb: _Verb) -> _Verb:
    """Give a verb the options that `fields_of` reads."""
    made = click.option("--patch", default="", metavar="FILE", help="YAML or JSON file with fields of the MPIJob, which win.")(verb)
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
    fields["mpirun_args"] = [word for words in fields["mpirun_args"] for word in _split(words)]
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


def _split(words: str) -> list[str]:
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
