"""Verbs against an API server in memory."""

import os
from collections.abc import Callable

import pytest

from fakes.client_api import FakeApi
from mpiop.kubectl.main import run
from mpiop.kubectl.session import Session

Verb = Callable[..., tuple[int, str, str]]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    fake = FakeApi()

    def connect(_self: Session) -> FakeApi:
        return fake

    monkeypatch.setattr(Session, "api", connect)
    monkeypatch.setenv("MPIOP_CONFIG", os.devnull)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    return fake


@pytest.fixture
def apis(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeApi]:
    """An API server for each namespace that a verb works in; the context's is team."""
    made: dict[str, FakeApi] = {}

    def connect(session: Session) -> FakeApi:
        namespace = session.namespace or "team"
        made.setdefault(namespace, FakeApi()).namespace = namespace
        return made[namespace]

    monkeypatch.setattr(Session, "api", connect)
    return made


@pytest.fixture
def mpi(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> Verb:
    """Run `kubectl mpi` and return its exit code, output and errors."""
    del api

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(list(arguments))
        out, err = capsys.readouterr()
        return code, out, err

    return call
