"""Reads YAML that somebody wrote, and refuses what a reader would understand differently or cannot hold in memory."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import yaml

from mpiop.client.errors import InvalidError

MOST_CHARACTERS: Final = 3 * 1024 * 1024
"""Of a document whose aliases are expanded: an API server reads no larger object."""
_NULL: Final = "tag:yaml.org,2002:null"
_KEYS: Final = frozenset({"tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"})


class Text(NamedTuple):
    """A document, as a value and as a tree that knows its lines."""

    value: Any
    tree: yaml.Node


def read_yaml(file: str, text: str) -> Sequence[Text]:
    """Return the documents of a file with this text, except empty ones.

    Raises:
        InvalidError: It is not valid YAML, gives a key twice, is nested too deeply, or its aliases make it too large.
    """
    try:
        trees = [tree for tree in yaml.compose_all(text, Loader=yaml.SafeLoader) if tree.tag != _NULL]
        for tree in trees:
            if _characters(file, tree, {}) > max(MOST_CHARACTERS, 2 * len(text)):
                line = tree.start_mark.line + 1
                raise InvalidError(f"{file}:{line}: its aliases (*name) make it larger than 3 MiB, which no API server accepts")
        values = [value for value in yaml.safe_load_all(text) if value is not None]
    except yaml.YAMLError as error:
        raise InvalidError(f"{file}: invalid YAML: {' '.join(str(error).split())}") from error
    except (ValueError, OverflowError, LookupError, AttributeError) as error:  # PyYAML: 2026-13-45, 5,000 digits, !!bool maybe
        raise InvalidError(f"{file}: invalid YAML: a value is not what it looks like ({error}); put it in quotes") from error
    except RecursionError as error:
        raise InvalidError(f"{file}: its objects and lists are nested too deeply") from error
    return [Text(value, tree) for value, tree in zip(values, trees, strict=True)]


def _characters(file: str, tree: yaml.Node, known: dict[int, int]) -> int:
    """Return about how long a tree is whose aliases are expanded; 0 in `known` marks the nodes around it.

    Raises:
        InvalidError: An object has a key that is not a string, or has one twice, of which YAML would silently drop the first, or a node
            contains itself.
    """
    if id(tree) in known:
        if known[id(tree)] == 0:
            raise InvalidError(f"{file}:{tree.start_mark.line + 1}: this part contains itself by an alias (*name)")
        return known[id(tree)]
    known[id(tree)] = 0
    characters = 1 if isinstance(tree, yaml.CollectionNode) else 1 + len(tree.value)
    lines: dict[str, int] = {}
    for item in tree.value if isinstance(tree, yaml.CollectionNode) else ():
        key, value = item if isinstance(tree, yaml.MappingNode) else (None, item)
        if isinstance(key, yaml.ScalarNode):
            line = key.start_mark.line + 1
            if key.tag not in _KEYS:
                raise InvalidError(f"{file}:{line}: the key {key.value!r} is not a string: put it in quotes")
            if key.value in lines:
                raise InvalidError(f"{file}:{line}: {key.value} is given twice, first in line {lines[key.value]}: remove one of them")
            lines[key.value] = line
        characters += _characters(file, value, known) + (0 if key is None else _characters(file, key, known))
    known[id(tree)] = characters
    return characters
