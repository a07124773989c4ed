"""Kubeconfigs with a wrong value in one place: each is used, or refused with one sentence."""

import base64
import copy
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fakes.certificates import Authority
from kubeconfig_cases import kubeconfig
from mpiop.clock import SystemClock
from mpiop.kube.credentials import Authenticator
from mpiop.kube.errors import ConfigError
from mpiop.kube.kubeconfig import load_kubeconfig

PAIR = Authority().issue("u")
PEM, KEY = (base64.b64encode(text.encode()).decode() for text in (PAIR.certificate, PAIR.key))
TOKEN = "eyJhbGciOiJub25lIn0.eyJleHAiOjB9."  # noqa: S105 - expired in 1970
USERS: dict[str, dict[str, Any]] = {
    "token": {"token": "t", "as": "jane", "as-uid": "1", "as-groups": ["g"], "as-user-extra": {"scopes": ["s"]}},
    "basic": {"username": "u", "password": "p"},
    "files": {"tokenFile": "token", "client-certificate": "c", "client-key": "k"},
    "data": {"client-certificate-data": PEM, "client-key-data": KEY},
    "oidc": {"auth-provider": {"name": "oidc", "config": {
        "idp-issuer-url": "https://127.0.0.1:1", "id-token": TOKEN, "refresh-token": "r", "client-id": "i", "client-secret": "s",
        "idp-certificate-authority-data": PEM,
    }}},
    "plug-in": {"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plug-in", "args": ["a"], "env": [{"name": "A", "value": "b"}],
        "interactiveMode": "Never", "provideClusterInfo": True, "installHint": "h",
    }},
}  # fmt: skip
CLUSTER = {"server": "https://127.0.0.1:1", "certificate-authority-data": PEM, "tls-server-name": "n", "proxy-url": "http://127.0.0.1:1"}
TEXTS = (
    *("", " ", "\n", "a\nb", "\0", "\ud7ff", "a.b.c", "....", "-1", "1e999", "YQ", "%", "no", "client.authentication.k8s.io/v9"),
    *("https://", "https://[::1", "https://u:p@127.0.0.1:1", "https://127.0.0.1:99999", "ftp://127.0.0.1", "127.0.0.1:1", "unix:///x"),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.dates() | st.binary(max_size=3) | st.sampled_from(TEXTS),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.integers() | st.sampled_from(["name", "value", *TEXTS]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


@pytest.mark.parametrize("kind", USERS)
@given(data=st.data())
def test_a_wrong_value_is_no_traceback(kind: str, data: st.DataObject) -> None:
    config = copy.deepcopy(kubeconfig(CLUSTER, USERS[kind], namespace="n"))
    *way, last = data.draw(st.sampled_from([path for path in places(config) if path[-1] != "command"]))
    parent = config
    for key in way:
        parent = parent[key]
    parent[last] = data.draw(VALUES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config"
        path.write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
        try:
            authenticator = Authenticator(load_kubeconfig([path]), SystemClock())
            authenticator.context(authenticator.current())
        except ConfigError as error:
            text = str(error)
            assert "\n" not in text.strip()
            assert "Traceback" not in text


def test_a_key_that_is_a_number_is_read_as_text_and_one_with_a_line_end_stays_in_its_line(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(kubeconfig(CLUSTER, USERS["token"] | {"as-user-extra": {5: ["a"]}})))
    assert ("Impersonate-Extra-5", "a") in load_kubeconfig([path]).headers
    path.write_text(yaml.safe_dump(kubeconfig(CLUSTER, USERS["token"] | {"as-user-extra": {"a\nb": [1]}})))
    with pytest.raises(ConfigError, match=r"'a\\nb' of the user's as-user-extra must be a list of texts: put them in quotes$"):
        load_kubeconfig([path])
