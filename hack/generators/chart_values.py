"""The values of the Helm chart as values.yaml explains them: a comment above each is its documentation."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from generators.manifests import GenerateError


@dataclass(frozen=True)
class Value:
    """A value of the chart.

    Attributes:
        path: Its name, with dots.
        default: What values.yaml has.
        text: Of the comment.
    """

    path: str
    default: Any
    text: str


def values_of(text: str) -> list[Value]:
    """Return the values that `text`, a values.yaml, explains, in its order.

    Raises:
        GenerateError: One has no comment, nor has anything below it.
    """
    tree: Any = yaml.safe_load(text)
    comments = dict(_comments(text))
    found = [Value(path, _at(tree, path), comment) for path, comment in comments.items()]
    bare = [name for name in tree if not any(path.partition(".")[0] == name for path in comments)]
    if bare:
        raise GenerateError(f"charts/mpiop/values.yaml: {bare[0]} has no comment above it")
    return found


def table_of(text: str) -> str:
    """Return the rows of a Markdown table of the values that `text`, a values.yaml, explains."""
    rows = [f"| `{value.path}` | `{json.dumps(value.default, ensure_ascii=False)}` | {_cell(value.text)} |" for value in values_of(text)]
    return "\n".join(rows) + "\n"


def _comments(text: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each key with a comment directly above it, and the comment; two spaces are one level."""
    parents: list[str] = []
    comment: list[str] = []
    for line in text.splitlines():
        content = line.strip()
        if content.startswith("# "):
            comment.append(content.removeprefix("# "))
            continue
        key, colon, _ = content.partition(":")
        if colon and not content.startswith("- "):
            parents = [*parents[: (len(line) - len(line.lstrip())) // 2], key]
            if comment:
                yield ".".join(parents), " ".join(comment)
        comment = []


def _at(tree: Any, path: str) -> Any:
    for name in path.split("."):
        tree = tree[name]
    return tree


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
