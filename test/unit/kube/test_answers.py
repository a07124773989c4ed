"""What HTTP answers mean (F15): never a crash, never a half-read object."""

from dataclasses import replace
from typing import Any, NotRequired, TypedDict

import pytest

from mpiop.kube.answers import Head, decode, decode_event, warning_texts
from mpiop.kube.errors import KubeError, StatusError, TransportError
from mpiop.kube.objects import Key, Object, ObjectMeta, Unreadable
from mpiop.kube.request import Request
from mpiop.kube.resources import PODS

GET = Request("get", PODS, Key("a", "b"))
JSON = {"content-type": "application/json"}


def test_an_object_is_decoded() -> None:
    assert decode(GET, Head(200, JSON), b'{"kind":"Pod"}') == {"kind": "Pod"}
    assert decode(GET, Head(201, {}), b'{"kind":"Pod"}') == {"kind": "Pod"}


FAILURES: list[tuple[int, dict[str, str], bytes, type[KubeError], str]] = [
    (200, JSON, b"", TransportError, "get pods a/b: 200, but the answer is not a JSON object (application/json, 0 bytes):"),
    (200, JSON, b'{"a":"Po', TransportError,
     'get pods a/b: 200, but the answer is not a JSON object (application/json, 8 bytes): {"a":"Po'),
    (200, JSON, b"[1]", TransportError, "get pods a/b: 200, but the answer is not a JSON object (application/json, 3 bytes): [1]"),
    (200, {"content-type": "text/html"}, b"<html>\nlogin", TransportError,
     "get pods a/b: 200, but the answer is not a JSON object (text/html, 12 bytes): <html> login"),
    (502, {"content-type": "text/html"}, b"<html>Bad\r\nGateway", StatusError, "get pods a/b: 502: <html>Bad Gateway (text/html)"),
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
        decode(GET, Head(status, headers), body)
    assert str(caught.value) == message
    if isinstance(caught.value, StatusError):
        assert caught.value.code == status


@pytest.mark.parametrize(("text", "desired"), [("3", 3.0), ("0", 0.0), ("", None), ("Fri, 31 Dec 1999 23:59:59 GMT", None), ("-1", None)])
def test_retry_after_is_read_in_seconds(text: str, desired: float | None) -> None:
    with pytest.raises(StatusError) as caught:
        decode(GET, Head(429, {"retry-after": text}), b"busy")
    assert caught.value.retry_after_seconds == desired


def test_an_event_is_decoded() -> None:
    assert decode_event(GET, b'{"type":"ADDED","object":{}}') == {"type": "ADDED", "object": {}}


class Status(TypedDict, total=False):
    phase: str | None


class Projection(TypedDict):
    kind: NotRequired[str]
    metadata: ObjectMeta
    status: NotRequired[Status]


WATCH = Request("watch", PODS, projection=Projection)
LIST = Request("list", PODS, projection=Projection)
FITS = b'{"kind":"Pod","metadata":{"name":"a","managedFields":[{}]},"spec":{"x":1},"status":{"phase":null,"podIP":"x"}}'
PROJECTED = {"kind": "Pod", "metadata": {"name": "a"}, "status": {"phase": None}}
UNFIT = b'{"kind":"Pod","metadata":{"name":"b","namespace":"n","resourceVersion":"7","labels":{"x":"y"}},"status":[]}'
KNOWN: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "b", "namespace": "n", "resourceVersion": "7", "labels": {"x": "y"}},
}
UNREADABLE = Unreadable(KNOWN, "Expected `object`, got `array` - at `$.status`")


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])
def test_of_an_event_what_the_shape_has_is_decoded(kind: str) -> None:
    assert decode_event(WATCH, b'{"type":"%s","object":%s}' % (kind.encode(), FITS)) == {"type": kind, "object": PROJECTED}


def nested(levels: int) -> bytes:
    """Return a pod of which one field has that many levels."""
    return b'{"metadata":{"name":"b","uid":"u"},"spec":%s1%s}' % (b'{"a":[' * (levels // 2), b"]}" * (levels // 2))


STRANGE = [
    pytest.param(UNFIT, KNOWN["metadata"], id="another shape"),
    pytest.param(nested(300), {"name": "b", "uid": "u"}, id="300 levels"),
    pytest.param(nested(2_000), {"name": "b", "uid": "u"}, id="2,000 levels"),
    pytest.param(nested(200_000), {"name": "b", "uid": "u"}, id="200,000 levels"),
    pytest.param(b'{"metadata":{"name":"b","uid":"u"},"status":{"phase":"\xff"}}', {"name": "b", "uid": "u"}, id="not UTF-8"),
    pytest.param(b'{"metadata":{"name":"b","uid":"u","labels":{"x":"\xff"}}}', {"name": "b", "uid": "u"}, id="labels that are not UTF-8"),
    pytest.param(b'{"metadata":{"name":"b","uid":"u","labels":[[]]}}', {"name": "b", "uid": "u"}, id="labels of another shape"),
    pytest.param(b'{"metadata":{"name":"b","labels":{"x":"%s"}},"status":1}' % (b"y" * 70_000), {"name": "b"}, id="long metadata"),
    pytest.param(b'{"status":[],"metadata":{"name":"b","x":%s}}' % nested(5_000), {"name": "b"}, id="deep metadata that comes last"),
    pytest.param(b'{"metadata":null}', {}, id="no metadata"),
    pytest.param(b"[]", {}, id="an array"),
    pytest.param(b"5", {}, id="a number"),
    pytest.param(b"null", {}, id="null"),
]


@pytest.mark.parametrize(("obj", "metadata"), STRANGE)
def test_of_an_object_that_cannot_be_decoded_the_name_is_known(obj: bytes, metadata: ObjectMeta) -> None:
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        event = decode_event(WATCH, b'{"type":"%s","object":%s}' % (kind.encode(), obj))
        assert event["type"] == kind
        assert isinstance(event["object"], Unreadable)
        assert event["object"].object == {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    body = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[%s,%s,%s]}' % (FITS, obj, FITS)
    page = decode(LIST, Head(200, JSON), body)
    before, item, after = page["items"]
    assert before == after == PROJECTED | {"apiVersion": "v1"}
    assert item == event["object"]
    assert page["metadata"] == {"resourceVersion": "5"}


@pytest.mark.parametrize("levels", [200, 256])
@pytest.mark.parametrize("projection", [None, Projection])
def test_an_object_with_some_hundred_levels_is_decoded(levels: int, projection: type[Any] | None) -> None:
    body = b'{"metadata":{"name":"b"},"spec":%s}' % (b"[" * (levels - 1) + b'"\\"[{"' + b"]" * (levels - 1))
    assert decode(replace(GET, projection=projection), Head(200, JSON), body)["metadata"] == {"name": "b"}
    assert decode_event(replace(WATCH, projection=projection), b'{"type":"ADDED","object":%s}' % body)["object"]["metadata"] == {
        "name": "b"
    }


def test_a_list_that_ends_in_the_middle_is_no_list_though_it_is_deep() -> None:
    body = b'{"metadata":{"resourceVersion":"5"},"items":[%s,%s' % (FITS, nested(5_000)[:-1])
    with pytest.raises(TransportError, match="the answer is not a JSON object"):
        decode(LIST, Head(200, JSON), body)


def test_the_status_of_an_error_event_is_decoded_whole() -> None:
    line = b'{"type":"ERROR","object":{"kind":"Status","metadata":{},"code":410}}'
    assert decode_event(WATCH, line)["object"] == {"kind": "Status", "metadata": {}, "code": 410}


@pytest.mark.parametrize("line", [b"x", b"[]", b"{}", b'{"type":5,"object":{}}', b'{"type":"ADDED"}', b'{"type":"ADDED","obj', b"[" * 5000])
@pytest.mark.parametrize("projection", [None, Projection])
def test_F20_what_is_no_event_breaks_the_stream(line: bytes, projection: type[Any] | None) -> None:
    with pytest.raises(TransportError, match=r"watch pods: a line of the stream is not a watch event"):
        decode_event(replace(WATCH, projection=projection), line)


def test_the_items_of_a_list_are_decoded_one_by_one() -> None:
    body = b'{"kind":"PodList","metadata":{"resourceVersion":"5","continue":"x"},"items":[%s,%s]}' % (UNFIT, FITS)
    page = decode(LIST, Head(200, JSON), body)
    assert page["metadata"] == {"resourceVersion": "5", "continue": "x"}
    assert list(page["items"]) == [UNREADABLE, PROJECTED | {"apiVersion": "v1"}]
    assert len(decode(LIST, Head(200, JSON), b'{"metadata":{},"items":null}')["items"]) == 0


@pytest.mark.parametrize("body", [b'{"kind":"Table","metadata":{},"rows":[]}', b'{"items":[]}', b'{"metadata":{},"items":{}}'])
def test_what_is_no_list_is_decoded_whole(body: bytes) -> None:
    assert decode(LIST, Head(200, JSON), body) == decode(GET, Head(200, JSON), body)


def test_a_refusal_of_a_list_is_one() -> None:
    with pytest.raises(StatusError, match="list pods: 403 Forbidden: no"):
        decode(LIST, Head(403, JSON), b'{"kind":"Status","metadata":{},"items":[],"reason":"Forbidden","message":"no"}')


def test_of_one_object_what_the_shape_has_is_decoded() -> None:
    request = Request("delete", PODS, Key("a", "b"), projection=Projection)
    assert decode(request, Head(200, JSON), FITS) == PROJECTED
    with pytest.raises(TransportError, match="not a JSON object"):
        decode(request, Head(200, JSON), UNFIT)


@pytest.mark.parametrize("body", [b'{"a":"\xff"}', b"[" * 5000, nested(300), nested(5_000)])
def test_F15_what_cannot_be_decoded_is_no_answer(body: bytes) -> None:
    for request in (GET, LIST):
        with pytest.raises(TransportError, match="not a JSON object"):
            decode(request, Head(200, JSON), body)


@pytest.mark.parametrize(
    ("header", "texts"),
    [
        (r'299 - "unknown field \"spec.x\""', ['unknown field "spec.x"']),
        ('299 - "one", 299 - "two"', ["one", "two"]),
        ("nothing of the kind", []),
    ],
)
def test_warnings_are_read(header: str, texts: list[str]) -> None:
    assert warning_texts(header) == texts
