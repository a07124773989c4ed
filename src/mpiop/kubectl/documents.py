"""Reads MPIJobs and patches from files, lets the API server check them, and locates each mistake by file and line.

The YAML is read twice: as objects, and as a tree that knows its lines. The API server's errors have the path of a field, which is found in
the tree. The definition of MPIJobs checks only the types in a Pod template, so a dry run of a Pod checks the rest.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, cast

import yaml

from mpiop.api import constants as c
from mpiop.client.api import Api, Object
from mpiop.client.arguments import check_arguments
from mpiop.client.errors import ForbiddenError, InvalidError, NotFoundError
from mpiop.kubectl.inputs import read_text
from mpiop.kubectl.yaml_text import read_yaml

_FIELD: Final = re.compile(r"(?:unknown field \\?\"|\")?(?P<path>(?:spec|metadata)(?:\.[A-Za-z0-9_]+|\[[^\]]+\])+)")
_STEP: Final = re.compile(r"\.?([A-Za-z0-9_]+)|\[(\d+)\]")


class Document(NamedTuple):
    """A document of a file, as objects and as a tree that knows its lines.

    Attributes:
        is_part: Whether the tree has only some fields of the value, as a patch has.
    """

    file: str
    value: Any
    tree: yaml.Node
    is_part: bool = False


def check(api: Api, document: Document) -> Object:
    """Let the API server check a job and its Pod templates, of which the definition of MPIJobs has the types of the fields only.

    Returns:
        The job as the API server would store it.

    Raises:
        InvalidError: With file and line of the field.
    """
    path = ""
    try:
        made = api.create_job(document.value, is_dry_run=True)
        for role, replicas in document.value["spec"]["mpiReplicaSpecs"].items():
            path = f"spec.mpiReplicaSpecs.{role}.template."
            template = replicas["template"]
            with contextlib.suppress(ForbiddenError, NotFoundError):  # a quota or a missing right does not concern fields
                api.check_pod({**template, "spec": {"restartPolicy": c.NEVER, **template["spec"]}})
    except InvalidError as error:
        raise InvalidError(located(document, str(error), path)) from error
    return made


def check_length(document: Document) -> None:
    """Check that Linux can pass on the arguments and variables of a job, which the API server does not check.

    Raises:
        InvalidError: One is too long, with file and line.
    """
    try:
        check_arguments(document.value)
    except InvalidError as error:
        raise InvalidError(located(document, str(error))) from error


def of_options(job: Object, patch: Document | None) -> Document:
    """Return a job that options describe, of which at most the fields of a patch have lines."""
    nowhere = yaml.MappingNode("", [], yaml.Mark("", 0, 0, 0, None, 0))
    return Document("", job, nowhere, is_part=True) if patch is None else patch._replace(value=job)


def read_documents(file: str, text: str) -> Iterator[Document]:
    """Yield the MPIJobs of a file with this text.

    Raises:
        InvalidError: It is not valid YAML, gives a key twice, or has something else.
    """
    for document in _read(file, text):
        where, value = f"{file}:{document.tree.start_mark.line + 1}", document.value
        if (value.get("apiVersion"), value.get("kind")) != (c.API_VERSION, c.KIND):
            raise InvalidError(f"{where}: not an {c.KIND} of {c.API_VERSION}; use kubectl apply for other objects")
        if not isinstance(value.get("metadata"), dict):
            raise InvalidError(f"{where}: metadata with a name is missing")
        yield document


def read_patch(file: str) -> Document:
    """Return a patch of an MPIJob: a file with some of its fields.

    Raises:
        InvalidError: It cannot be read, is not valid YAML, gives a key twice, or is not one object.
    """
    first, *others = _read(file, read_text(file))
    if others or not isinstance(first.tree, yaml.MappingNode):
        line = (others[0] if others else first).tree.start_mark.line + 1
        raise InvalidError(f"{file}:{line}: a patch is one object with fields of an MPIJob, such as spec: …")
    return first._replace(is_part=True)


def _read(file: str, text: str) -> Sequence[Document]:
    """Return the documents of a file; the value of one that is not an object is {}."""
    texts = read_yaml(file, text)
    if not texts:
        raise InvalidError(f"{file} is empty")
    return [Document(file, cast("dict[str, Any]", value) if isinstance(value, dict) else {}, tree) for value, tree in texts]


def located(document: Document, message: str, below: str = "") -> str:
    """Return `message` with file and line of the field that it names, which is one of the object at the path `below`."""
    found = _FIELD.search(message)
    if found is None:
        return message if document.is_part else f"{document.file}:{document.tree.start_mark.line + 1}: {message}"
    line, is_complete = _line(document.tree, below + found["path"])
    return f"{document.file}:{line + 1}: {message}" if is_complete or not document.is_part else message


def _line(tree: yaml.Node, path: str) -> tuple[int, bool]:
    """Return the line of the field, or of the last field on the way that exists; and whether it is the field itself."""
    line = tree.start_mark.line
    for name, index in _STEP.findall(path):
        if isinstance(tree, yaml.MappingNode) and name:
            pairs = {key.value: (key, value) for key, value in tree.value}
            if name not in pairs:
                return line, False
            key, tree = pairs[name]
            line = key.start_mark.line
        elif isinstance(tree, yaml.SequenceNode) and index and int(index) < len(tree.value):
            tree = tree.value[int(index)]
            line = tree.start_mark.line
        else:
            return line, False
    return line, True
