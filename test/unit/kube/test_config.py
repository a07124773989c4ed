"""Where the API server is: option, $KUBECONFIG, home, Pod; and what to do when it is nowhere."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpiop.kube.client_config import ClientConfig
from mpiop.kube.config import find_config, load_config
from mpiop.kube.errors import ConfigError
from mpiop.kube.tls import TLSConfig

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
KUBECONFIG = """
current-context: c
contexts:
- {name: c, context: {cluster: k, namespace: n}}
- {name: other, context: {cluster: k, namespace: o}}
- {name: bare, context: {cluster: k}}
clusters: [{name: k, cluster: {server: "https://%s"}}]
"""


@pytest.fixture
def account(tmp_path: Path) -> Path:
    """A service account's directory, as the kubelet mounts it."""
    directory = tmp_path / "account"
    directory.mkdir()
    (directory / "token").write_text("one")
    (directory / "ca.crt").write_text("pem")
    (directory / "namespace").write_text("mpi-operator\n")
    return directory


def kubeconfig(directory: Path, name: str) -> str:
    path = directory / name
    path.write_text(KUBECONFIG % path.name)
    return str(path)


def test_in_a_pod_the_service_account_counts(account: Path) -> None:
    assert load_config(environment=POD, service_account=account) == ClientConfig(
        server="https://10.0.0.1:6443",
        tls=TLSConfig(ca_file=str(account / "ca.crt")),
        namespace="mpi-operator",
        token_file=str(account / "token"),
        origin="service account of this Pod",
    )


def test_an_ipv6_address_gets_brackets(account: Path) -> None:
    assert load_config(environment=POD | {"KUBERNETES_SERVICE_HOST": "fd00::1"}, service_account=account).server == "https://[fd00::1]:6443"


def test_without_port_authority_and_namespace_it_works_too(account: Path) -> None:
    for name in ("ca.crt", "namespace"):
        (account / name).unlink()
    config = load_config(environment={"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, service_account=account)
    assert (config.server, config.tls, config.namespace) == ("https://10.0.0.1:443", TLSConfig(), "")


def test_a_master_wins_over_the_pods_address(account: Path) -> None:
    config = load_config("https://other:1/", environment=POD, service_account=account)
    assert (config.server, config.token_file) == ("https://other:1", str(account / "token"))


@pytest.mark.parametrize(
    ("master", "server"), [("http://localhost:8080/", "http://localhost:8080"), ("localhost:8080", "http://localhost:8080")]
)
def test_a_master_alone_needs_no_credentials(tmp_path: Path, master: str, server: str) -> None:
    assert load_config(master, environment={}, service_account=tmp_path) == ClientConfig(server)


def test_the_flag_wins_over_the_environment_and_that_over_the_pod(account: Path, tmp_path: Path) -> None:
    one, two = kubeconfig(tmp_path, "one"), kubeconfig(tmp_path, "two")
    environment = POD | {"KUBECONFIG": two}
    assert load_config("", one, environment=environment, service_account=account).server == "https://one"
    assert load_config(environment=environment, service_account=account).server == "https://two"
    assert load_config(environment=POD | {"KUBECONFIG": ""}, service_account=account).server == "https://10.0.0.1:6443"
    assert load_config("https://x", one, environment=environment, service_account=account).server == "https://x"


def test_nothing_found_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(environment={}, service_account=tmp_path)
    assert str(caught.value) == (
        "no API server is known: this is not a Pod (KUBERNETES_SERVICE_HOST is not set); "
        "pass --kubeConfig PATH or --master URL, or set KUBECONFIG"
    )


def test_a_pod_without_a_token_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"this is a Pod .* but it has no service account token at .*/token; project one"):
        load_config(environment=POD, service_account=tmp_path)


def test_an_address_must_be_http(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'ftp://x' is neither http:// nor https://"):
        load_config("ftp://x", environment={}, service_account=tmp_path)


@pytest.mark.parametrize(
    "master",
    ["https://", "https://x:port", "https://x:99999", "https://x:0", "https://a b", "https://[::1", "https://ü", "https://x/\r\ny"],
)
def test_an_address_must_be_one_that_can_be_connected_to(tmp_path: Path, master: str) -> None:
    with pytest.raises(ConfigError, match=r"^the API server's address '.*' is not a valid URL; it should look like https://host:6443$"):
        load_config(master, environment={}, service_account=tmp_path)


def test_a_token_does_not_show_in_a_configuration() -> None:
    assert "hunter2" not in repr(ClientConfig("https://x", token="hunter2"))


@dataclass(frozen=True)
class Search:
    """Where kubectl 1.36 and the tools find a cluster.

    Attributes:
        exists: The files that exist, of `.kube/config`, `one` and `two`; the server of each is called as it is.
        listed: The files that $KUBECONFIG lists.
        found: Server and namespace.
    """

    id: str
    exists: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    kubeconfig: str = ""
    context: str = ""
    is_pod: bool = False
    found: tuple[str, str] = ("", "")
    refused: str = ""


HOME = ".kube/config"
IN_POD = ("https://10.0.0.1:6443", "mpi-operator")
SEARCHES = [
    Search(id="home", exists=(HOME,), found=("https://config", "n")),
    Search(id="the list wins over home", exists=(HOME, "one"), listed=("one",), found=("https://one", "n")),
    Search(id="the option wins over the list", exists=("one", "two"), listed=("one",), kubeconfig="two", found=("https://two", "n")),
    Search(id="missing files of the list do not count", exists=("two",), listed=("one", "", "two"), found=("https://two", "n")),
    Search(
        id="home does not stand in for a list",
        exists=(HOME,),
        listed=("one",),
        refused="/one: no such kubeconfig, or an empty one; name one",
    ),
    Search(id="a missing file of the option", kubeconfig="one", exists=(HOME,), is_pod=True, refused="/one: no such kubeconfig"),
    Search(id="nothing", refused=f"/{HOME}: no such kubeconfig, or an empty one; name one with --kubeconfig or $KUBECONFIG"),
    Search(id="a context", exists=(HOME,), context="other", found=("https://config", "o")),
    Search(id="an unknown context", exists=(HOME,), context="x", refused="there is no context 'x'; the contexts are: 'c', 'other', 'bare'"),
    Search(id="a Pod", is_pod=True, found=IN_POD),
    Search(id="a Pod whose list is of missing files", is_pod=True, listed=("one",), found=IN_POD),
    Search(id="a Pod with a kubeconfig", is_pod=True, exists=(HOME,), found=("https://config", "n")),
    Search(
        id="a Pod with a kubeconfig without a namespace",
        is_pod=True,
        exists=(HOME,),
        context="bare",
        found=("https://config", "mpi-operator"),
    ),
    Search(id="a context in a Pod without kubeconfig", is_pod=True, context="c", refused=f"/{HOME}: no such kubeconfig"),
]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.id)
def test_the_tools_search_where_kubectl_does(search: Search, account: Path, tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    for name in search.exists:
        kubeconfig(tmp_path, name)
    paths = [str(tmp_path / name) if name else "" for name in search.listed]
    environment = {"HOME": str(tmp_path), "KUBECONFIG": os.pathsep.join(paths)} | (POD if search.is_pod else {})
    options = (str(tmp_path / search.kubeconfig) if search.kubeconfig else "", search.context)
    if search.refused:
        with pytest.raises(ConfigError, match=re.escape(search.refused)):
            find_config(*options, environment=environment, service_account=account)
    else:
        config = find_config(*options, environment=environment, service_account=account)
        assert (config.server, config.namespace) == search.found


def test_the_namespace_of_a_pod_may_be_in_its_environment(account: Path, tmp_path: Path) -> None:
    environment = POD | {"HOME": str(tmp_path), "POD_NAMESPACE": "mine"}
    assert find_config(environment=environment, service_account=account).namespace == "mine"


def test_the_operator_takes_a_missing_kubeconfig_for_a_mistake(account: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="/none: no such kubeconfig"):
        load_config(environment=POD | {"KUBECONFIG": str(tmp_path / "none")}, service_account=account)
