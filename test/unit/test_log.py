"""Logs: one line a record, for programs or for people, and no harm from what is in them or from where they go."""

import json
import logging
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from mpiop import log

PRIVATE_KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----"


class Capture:
    """A file that is logged to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = os.open(path, os.O_CREAT | os.O_WRONLY)

    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text().splitlines()]

    def record(self) -> dict[str, Any]:
        (record,) = self.records()
        return record


@pytest.fixture
def capture(tmp_path: Path) -> Iterator[Capture]:
    capture = Capture(tmp_path / "log")
    yield capture
    os.close(capture.fd)


def logger() -> Any:
    return structlog.get_logger("test")


def test_a_pipe_gets_json_with_rfc_3339_time_level_and_phrase_first(capture: Capture) -> None:
    log.configure("auto", "info", fd=capture.fd)
    logger().bind(job="ns/pi").warning("write refused", kind="Pod", code=403)
    record = capture.record()
    assert list(record) == ["time", "level", "msg", "job", "kind", "code"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", record["time"])
    assert record["level"] == "warning"
    assert record["msg"] == "write refused"
    assert (record["job"], record["kind"], record["code"]) == ("ns/pi", "Pod", 403)


def test_a_terminal_gets_lines_for_people() -> None:
    master, slave = os.openpty()
    log.configure("auto", "info", fd=slave)
    logger().info("started leading", lease="ns/name")
    os.close(slave)
    line = os.read(master, 4096).decode()
    os.close(master)
    assert "\x1b[" in line, "in colour"
    plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
    assert re.search(r"\[info +\] started leading +lease=ns/name", plain)


def test_text_in_a_file_has_no_colours(capture: Capture) -> None:
    log.configure("text", "info", fd=capture.fd)
    logger().info("started leading", lease="ns/name")
    assert "\x1b" not in capture.text()
    assert "lease=ns/name" in capture.text()


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("debug", ["debug", "info", "warning", "error"]),
        ("info", ["info", "warning", "error"]),
        ("warning", ["warning", "error"]),
        ("error", ["error"]),
    ],
)
def test_what_is_below_the_level_is_dropped(capture: Capture, level: str, shown: list[str]) -> None:
    log.configure("json", level, fd=capture.fd)
    for name in ("debug", "info", "warning", "error"):
        getattr(logger(), name)("something happened")
    assert [record["level"] for record in capture.records()] == shown


def test_the_standard_librarys_records_come_the_same_way(capture: Capture) -> None:
    log.configure("json", "info", fd=capture.fd)
    logging.getLogger("aiohttp.server").error("broken %s\nsecond line", "pipe")
    record = capture.record()
    assert (record["level"], record["logger"], record["text"]) == ("error", "aiohttp.server", "broken pipe\nsecond line")


def test_the_standard_librarys_errors_keep_their_traceback_and_its_chatter_is_dropped(capture: Capture) -> None:
    log.configure("json", "debug", fd=capture.fd)
    logging.getLogger("asyncio").debug("using selector")
    try:
        json.loads("{}")["lost"]
    except KeyError:
        logging.getLogger("asyncio").exception("task failed")
    assert "KeyError: 'lost'" in capture.record()["exception"]


def test_warnings_of_the_interpreter_are_logged(capture: Capture) -> None:
    log.configure("json", "info", fd=capture.fd)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("something is deprecated", stacklevel=1)
    assert capture.record()["logger"] == "py.warnings"


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_a_traceback_shows_no_local_variables(capture: Capture, log_format: str) -> None:
    log.configure(log_format, "info", fd=capture.fd)
    password_of_the_moment = f"hunter{1 + 1}"
    try:
        int(password_of_the_moment[:1])
    except ValueError:
        logger().exception("sync failed")
    assert "ValueError: invalid literal" in capture.text()
    assert "hunter2" not in capture.text()


@pytest.mark.parametrize("log_format", ["json", "text"])
@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"token": "eyJhbGciOi"}, id="by its key"),
        pytest.param({"Authorization": "eyJhbGciOi"}, id="by its key in another spelling"),
        pytest.param({"headers": {"Authorization": "eyJhbGciOi"}}, id="by its key in a mapping"),
        pytest.param({"error": "sent Bearer eyJhbGciOi.x"}, id="by how a bearer token is sent"),
        pytest.param({"lines": ["sent Bearer eyJhbGciOi.x"]}, id="in a list"),
        pytest.param({"data": PRIVATE_KEY.replace("b3BlbnNzaC1rZXk", "eyJhbGciOi")}, id="a private key"),
        pytest.param({"data": PRIVATE_KEY[:55].replace("b3BlbnNzaC1rZXk", "eyJhbGciOi")}, id="the beginning of a private key"),
    ],
)
def test_what_looks_like_a_credential_is_masked(capture: Capture, log_format: str, values: dict[str, Any]) -> None:
    log.configure(log_format, "info", fd=capture.fd)
    logger().info("request sent", **values)
    assert "request sent" in capture.text()
    assert "<masked>" in capture.text()
    assert "eyJhbGciOi" not in capture.text()


def test_F58_text_of_users_cannot_forge_lines_or_move_the_cursor(capture: Capture) -> None:
    log.configure("text", "info", fd=capture.fd)
    logger().info("launcher failed", short="\x1b[2J", message="\x1b[2Jgone\nFAKE [error] line \u202etxet \u2028 end é 字 🙂")
    (line,) = capture.text().split("\n")[:-1]
    assert r"short='\x1b[2J'" in line
    assert r"\x1b[2Jgone\nFAKE" in line
    assert "\\u202e" in line
    assert "é 字 🙂" in line


@pytest.mark.parametrize("log_format", ["json", "text"])
@pytest.mark.parametrize("value", ["\ud800 alone", 2**80, {1: 2}, object(), b"\xff"], ids=["surrogate", "huge", "keys", "object", "bytes"])
def test_nothing_that_can_be_said_stops_the_log(capture: Capture, log_format: str, value: object) -> None:
    log.configure(log_format, "info", fd=capture.fd)
    logger().info("odd value", value=value)
    assert "odd value" in capture.text()


def test_F38_a_closed_output_is_no_reason_to_stop(capture: Capture) -> None:
    closed = os.dup(capture.fd)
    log.configure("json", "info", fd=closed)
    os.close(closed)
    logger().info("nobody hears this")
    assert capture.text() == ""


def test_F38_a_broken_pipe_is_no_reason_to_stop() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    log.configure("json", "info", fd=writer)
    logger().info("nobody hears this")
    os.close(writer)


def test_F38_a_full_disk_is_no_reason_to_stop() -> None:
    fd = os.open("/dev/full", os.O_WRONLY)
    log.configure("json", "info", fd=fd)
    logger().info("nobody hears this")
    os.close(fd)


def test_F38_without_standard_output_there_are_no_logs() -> None:
    log.configure("auto", "info", fd=None)
    logger().info("nobody hears this")
    logging.getLogger("aiohttp").warning("nor this")
