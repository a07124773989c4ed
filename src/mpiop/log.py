"""Logs: structlog for us, the standard library's loggers (aiohttp, asyncio) routed through it; one line a record.

JSON where a program reads (a pipe), aligned and coloured where a person does (a terminal). Nothing that is logged may do harm: what looks
like a credential is masked, control characters are escaped, and a closed, full or missing output does not stop the process.
"""

import logging
import os
import re
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final, cast

import msgspec
import structlog
from structlog.typing import EventDict, Processor

_MASK: Final = "<masked>"
_SECRET_KEYS: Final = frozenset({"authorization", "token", "password", "private_key", "ssh_privatekey", "client_key"})
_SECRET_TEXT: Final = re.compile(
    r"(?<=Bearer )[\w.~+/=-]{8,}|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_TIME_KEY: Final = "time"
_EVENT_KEY: Final = "msg"


def configure(log_format: str, level: str, *, fd: int | None) -> None:
    """Send all logs of this process to the file descriptor `fd` (None: nowhere).

    Args:
        log_format: "json", "text", or "auto": text on a terminal, else json.
        level: "debug", "info", "warning" or "error"; lower messages are dropped.
        fd: The file descriptor. Lines are written without a buffer, so none is lost when the process ends.
    """
    is_terminal = fd is not None and os.isatty(fd)
    is_text = log_format == "text" or (log_format == "auto" and is_terminal)
    structlog.configure(
        processors=_text_processors(colors=is_terminal) if is_text else _json_processors(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: _Output(fd),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers[:] = [_ToStructlog()]
    # At debug level, aiohttp and asyncio log nothing useful here.
    root.setLevel(max(logging.getLevelNamesMapping()[level.upper()], logging.INFO))
    logging.captureWarnings(capture=True)


class _Output:
    """Writes whole lines to a file descriptor and survives whatever happens to it."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd

    def write(self, line: bytes) -> None:
        if self._fd is None:
            return
        rest = memoryview(line + b"\n")
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError:  # closed, broken pipe, disk full: the log cannot be written
            return

    debug = info = warning = error = critical = exception = msg = write


class _ToStructlog(logging.Handler):
    """Passes the standard library's records on."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger(record.name)
        # The text may be anything, so it is a value; the phrase is constant.
        values: dict[str, Any] = {"logger": record.name, "text": record.getMessage()}
        if record.exc_info:
            values["exc_info"] = record.exc_info
        log.log(record.levelno, "library message", **values)


def _json_processors() -> list[Processor]:
    return [*_shared_processors(), structlog.processors.EventRenamer(_EVENT_KEY), _to_json]


def _text_processors(*, colors: bool) -> list[Processor]:
    renderer = structlog.dev.ConsoleRenderer(
        colors=colors,
        timestamp_key=_TIME_KEY,
        exception_formatter=structlog.dev.plain_traceback,  # the others show local variables, and so secrets
    )
    return [*_shared_processors(), _quote_unprintable, cast("Processor", _encoded(renderer))]


def _shared_processors() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key=_TIME_KEY),
        structlog.processors.format_exc_info,
        _mask_secrets,
    ]


def _mask_secrets(_logger: Any, _method: str, event_dict: EventDict) -> EventDict:
    return {key: _masked(key, value) for key, value in event_dict.items()}


def _masked(key: str, value: Any) -> Any:
    if key.lower().replace("-", "_") in _SECRET_KEYS:
        return _MASK
    if isinstance(value, bytes):
        value = repr(value)  # else it would be encoded as base64, where a secret is not found
    if isinstance(value, str):
        return _SECRET_TEXT.sub(_MASK, value)
    if isinstance(value, Mapping):
        entries: Mapping[Any, Any] = value  # pyright: ignore[reportUnknownVariableType] - mypy calls a cast redundant
        return {str(inner_key): _masked(str(inner_key), inner) for inner_key, inner in entries.items()}
    if isinstance(value, (list, tuple)):
        items = cast("list[Any]", value)
        return [_masked("", item) for item in items]
    return value


class _Quoted:
    """A text that is shown as Python quotes it, because the renderer quotes only texts with spaces."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return repr(self._text)


def _quote_unprintable(_logger: Any, _method: str, event_dict: EventDict) -> EventDict:
    kept = {"event", "exception"}
    return {key: value if key in kept or not _is_unprintable(value) else _Quoted(value) for key, value in event_dict.items()}


def _is_unprintable(value: Any) -> bool:
    return isinstance(value, str) and not value.isprintable()


def _to_json(_logger: Any, _method: str, event_dict: EventDict) -> bytes:
    first = {key: event_dict.pop(key) for key in (_TIME_KEY, "level", _EVENT_KEY) if key in event_dict}
    event_dict = {**first, **event_dict}
    try:
        return msgspec.json.encode(event_dict, enc_hook=str)
    except (TypeError, UnicodeEncodeError):  # what is neither JSON nor has a text; a lone surrogate
        return msgspec.json.encode(_printable(event_dict))


def _printable(event_dict: MutableMapping[str, Any]) -> dict[str, str]:
    return {_replaced(str(key)): _replaced(str(value)) for key, value in event_dict.items()}


def _replaced(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _encoded(renderer: structlog.dev.ConsoleRenderer) -> Callable[[Any, str, EventDict], bytes]:
    def render(logger: Any, method: str, event_dict: EventDict) -> bytes:
        return renderer(logger, method, event_dict).encode("utf-8", "replace")

    return render
