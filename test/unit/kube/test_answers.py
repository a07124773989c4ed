"""What HTTP answers mean (F15): never a crash, never a half-read object."""

from typing import Any

import pytest

from mpiop.kube.answers import decode, decode_event
from mpiop.kube.errors import KubeError, StatusError, TransportError
from mpiop.kube.objects import Key
from mpiop.kube.request import Request
from mpiop.kube.resources import PODS

GET = Request("get", PODS, Key("a", "b"))
JSON = {"Content-Type": "application/json"}


def test_an_object_is_decoded() -> None:
    assert decode(GET, 200, JSON, b'{"kind":"Pod"}') == {"kind": "Pod"}
    assert decode(GET, 201, {}, b'{"kind":"Pod"}') == {"kind": "Pod"}


FAILURES: list[tuple[int, dict[str, str], bytes, type[KubeError], str]] = [
    (200, JSON, b"", TransportError, "get pods a/b: 200, but the answer is no JSON object (application/json, 0 bytes):"),
    (200, JSON, b'{"a":"Po', TransportError, 'get pods a/b: 200, but the answer is no JSON object (application/json, 8 bytes): {"a":"Po'),
    (200, JSON, b"[1]", TransportError, "get pods a/b: 200, but the answer is no JSON object (application/json, 3 bytes): [1]"),
    (200, {"Content-Type": "text/html"}, b"<html>\nlogin", TransportError,
     "get pods a/b: 200, but the answer is no JSON object (text/html, 12 bytes): <html> login"),
    (502, {"Content-Type": "text/html"}, b"<html>Bad\r\nGateway", StatusError, "get pods a/b: 502: <html>Bad Gateway (text/html)"),
    (503, {}, b"", StatusError, "get pods a/b: 503: empty answer (no content type)"),
    (500, JSON, b"\xff\xfe", StatusError, "get pods a/b: 500: �� (application/json)"),
    (500, JSON, b'"text"', StatusError, 'get pods a/b: 500: "text" (application/json)'),
    (302, {}, b"elsewhere", StatusError, "get pods a/b: 302: elsewhere (no content type)"),
    (404, JSON, b'{"kind":"Status","code":404,"reason":"NotFound","message":"gone"}', StatusError, "get pods a/b: 404 NotFound: gone"),
    (404, JSON, b'{"kind":"Status","code":200,"message":"gone"}', StatusError, "get pods a/b: 404: gone"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "headers", "body", "kind", "message"), FAILURES)
def test_F15_what_is_no_answer_is_an_error(status: int, headers: dict[str, str], body: bytes, kind: type[KubeError], message: str) -> None:
    with pytest.raises(kind) as caught:
        decode(GET, status, headers, body)
    assert str(caught.value) == message
    if isinstance(caught.value, StatusError):
        assert caught.value.code == status


@pytest.mark.parametrize(("text", "wanted"), [("3", 3.0), ("0", 0.0), ("", None), ("Fri, 31 Dec 1999 23:59:59 GMT", None), ("-1", None)])
def test_retry_after_is_read_in_seconds(text: str, wanted: float | None) -> None:
    with pytest.raises(StatusError) as caught:
        decode(GET, 429, {"Retry-After": text}, b"busy")
    assert caught.value.retry_after_seconds == wanted


def test_an_event_is_decoded() -> None:
    assert decode_event(GET, b'{"type":"ADDED","object":{}}') == {"type": "ADDED", "object": {}}


@pytest.mark.parametrize("line", [b"x", b"[]", b"{}", b'{"type":5,"object":{}}', b'{"type":"ADDED"}', b'{"type":"ADDED","obj'])
def test_F20_what_is_no_event_breaks_the_stream(line: Any) -> None:
    with pytest.raises(TransportError, match=r"get pods a/b: a line of the stream is no watch event"):
        decode_event(GET, line)
