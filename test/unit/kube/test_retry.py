"""T3: what is sent again, and when."""

import pytest

from mpiop.kube.errors import ResetError, StatusError, TransportError
from mpiop.kube.objects import Key
from mpiop.kube.request import METHODS, Request
from mpiop.kube.resources import PODS
from mpiop.kube.retry import retry_delay_seconds

VERBS = sorted(METHODS)
READS = {"get", "list", "log", "watch", "discover"}


def request(verb: str) -> Request:
    return Request(verb, PODS, Key("a", "b"))


def refusal(code: int, wait: float | None = None, message: str = "") -> StatusError:
    return StatusError("x", {"code": code, "message": message}, retry_after_seconds=wait)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_T3_any_verb_is_sent_again_when_the_server_says_when(verb: str, code: int) -> None:
    assert retry_delay_seconds(request(verb), refusal(code, 3), 0) == 3
    assert retry_delay_seconds(request(verb), refusal(code, 0), 0) == 0


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_T3_nothing_is_sent_again_when_the_server_does_not_say_when(code: int) -> None:
    assert retry_delay_seconds(request("get"), refusal(code), 0) is None


@pytest.mark.parametrize("code", [302, 400, 401, 403, 404, 409, 410, 422])
def test_T3_other_refusals_are_final(code: int) -> None:
    assert retry_delay_seconds(request("get"), refusal(code, 1), 0) is None


@pytest.mark.parametrize("verb", VERBS)
def test_T3_a_broken_connection_is_tried_again_for_reads_alone(verb: str) -> None:
    assert (retry_delay_seconds(request(verb), ResetError("x"), 0) is not None) == (verb in READS)


def test_T3_other_failures_of_the_connection_are_final() -> None:
    assert retry_delay_seconds(request("get"), TransportError("refused"), 0) is None


def test_a_version_from_the_future_is_for_the_reflector_to_handle() -> None:
    assert retry_delay_seconds(request("list"), refusal(504, 1, "Too large resource version: 9, current: 8"), 0) is None
