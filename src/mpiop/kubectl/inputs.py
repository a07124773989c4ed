"""Reads the input of verbs: text of a file or of standard input, and durations."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from mpiop.api.durations import parse_duration
from mpiop.client.errors import InvalidError


def read_text(file: str) -> str:
    """Return the text of a file; `-` is standard input.

    Raises:
        InvalidError: It cannot be read, or is not UTF-8.
    """
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InvalidError(f"{file}:{line}: not valid UTF-8") from error


def seconds_of(text: str) -> int:
    """Return the seconds of a duration such as `90`, `5m` or `1d`.

    Raises:
        InvalidError: It has another form.
    """
    seconds = parse_duration(f"{text}s" if text.isdigit() else text)
    if seconds is None:
        raise InvalidError(f"{text!r} is not a duration: write a number and s, m, h or d, such as 90m or 1h30m")
    return seconds


def seconds_option(name: str, text: str) -> Callable[[Any], Any]:
    """Return an option such as `--ttl 1h`, of which the verb gets the seconds; None without it."""

    def seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        try:
            return None if value is None else seconds_of(value)
        except InvalidError as error:
            raise click.BadParameter(str(error), ctx, param) from error

    return click.option(name, metavar="DURATION", callback=seconds, help=text)
