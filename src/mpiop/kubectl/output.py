"""Prints tables and objects, for people and for programs."""

import json
import re
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import click
import yaml

from mpiop.api import constants as c
from mpiop.api.durations import format_duration
from mpiop.client.status import PENDING

_GAP = 3
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
COLOURS = {
    c.CONDITION_SUCCEEDED: "green",
    c.CONDITION_RUNNING: "cyan",
    c.CONDITION_FAILED: "red",
    **dict.fromkeys((c.STARTING, PENDING, c.QUEUED), "yellow"),
}


def output_option(*formats: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option `-o`."""
    return click.option("-o", "--output", type=click.Choice(formats), default=None, help="Output format.")


def print_objects(objects: Sequence[Any], output: str) -> None:
    """Print MPIJobs as `name`, or as a List in `json` or `yaml`."""
    if output == "name":
        for each in objects:
            print_object(each, output)
        return
    whole = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    click.echo(json.dumps(whole, indent=2) if output == "json" else to_yaml(whole), nl=output == "json")


def report_none(what: str, namespace: str) -> None:
    """Report on stderr, as kubectl does, that nothing was found; `namespace` is "" for all."""
    click.echo(f"No {what} found in namespace {namespace}." if namespace else f"No {what} found.", err=True)


def print_object(made: Any, output: str) -> None:
    """Print one MPIJob as `json`, `yaml` or `name`; that of a job that is not yet named is the beginning of its name."""
    metadata = made["metadata"]
    name = f"{c.KIND.lower()}.{c.GROUP}/{metadata.get('name') or metadata.get('generateName', '')}"
    text = {"name": name + "\n", "json": json.dumps(made, indent=2, default=str) + "\n"}.get(output) or to_yaml(made)
    click.echo(text, nl=False)


class _Dumper(yaml.SafeDumper):
    """Writes strings of several lines as they are."""


def _represent_string(_dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_string)


def to_yaml(value: Any) -> str:
    """Return YAML with the keys in their order."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text


def printable(text: str) -> str:
    """Return a text of an object without control characters, which could change the terminal; line breaks and tabs stay."""
    return _CONTROLS.sub("\ufffd", text)


def write_line(text: bytes) -> None:
    """Write a line of a program as it is: standard output has the same bytes as the program's."""
    output = sys.stdout.buffer
    output.write(text + b"\n")
    output.flush()


@contextmanager
def progress_line(first: str = "") -> Generator[Callable[[str], None]]:
    """Yield what shows a line of progress on stderr: on a terminal one line that changes, else each new line."""
    from rich.text import Text  # noqa: PLC0415 - `step` starts faster without rich

    from mpiop.kubectl.screen import console  # noqa: PLC0415 - the same

    screen = console(stderr=True)
    if screen.is_terminal:
        with screen.status(Text(first)) as status:
            yield lambda line: status.update(Text(printable(line)))
        return
    yield lambda line: screen.print(printable(line))


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, coloured: int | None = None) -> None:
    """Print columns as kubectl does; the cells of column `coloured` are states. A narrow terminal cuts the ends of lines."""
    from rich.cells import cell_len  # noqa: PLC0415 - `step` starts faster without rich
    from rich.text import Text  # noqa: PLC0415 - the same

    from mpiop.kubectl.screen import console  # noqa: PLC0415 - the same

    lines = [[printable(re.sub(r"[\n\t]", " ", cell)) for cell in row] for row in [heads, *rows]]
    widths = [max(map(cell_len, column)) + _GAP for column in zip(*lines, strict=True)]
    screen = console()
    for number, row in enumerate(lines):
        line = Text(style="bold" if number == 0 else "")
        for column, cell in enumerate(row):
            is_state = number and column == coloured
            padding = "" if column == len(row) - 1 else " " * (widths[column] - cell_len(cell))
            line.append(cell, style=COLOURS.get(cell, "magenta") if is_state else "").append(padding)
        line.rstrip()
        screen.print(line, no_wrap=True, overflow="ellipsis", crop=screen.is_terminal)


def age(since: datetime | None, now: datetime | None = None) -> str:
    """Return how long ago that was, as kubectl writes it."""
    return "" if since is None else format_duration((now or datetime.now(UTC)) - since)


def counted(number: int, noun: str) -> str:
    """Return a number of things, such as `1 job` or `2 jobs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
