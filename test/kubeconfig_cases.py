"""Kubeconfigs, each with what kubectl 1.36 sends for it, or with the sentence that refuses it.

The operator, the tools for users and kubectl itself run through the same rows.
"""

import base64
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from fakes.certificates import Authority
from fakes.http_server import Exchange

V1: Final = "client.authentication.k8s.io/v1"
V1BETA1: Final = "client.authentication.k8s.io/v1beta1"
SERVER_NAME: Final = "kubernetes.example.com"
"""The DNS name in the server's certificate, next to its address."""


@dataclass(frozen=True)
class Case:
    """A kubeconfig.

    Attributes:
        id: The situation, as a sentence.
        user: Fields of the user; `$CA`, `$OTHER_CA`, `$CERTIFICATE` and `$KEY` become PEM, with `64` at the end base64 of it.
        cluster: Fields of the cluster, in addition to server and certificate-authority-data; None removes one.
        top: Top-level fields that replace the usual ones.
        files: More files in the folder of the kubeconfig; a name that ends in `.sh` is executable.
        sends: Headers of the request, in lower case: `authorization` and those of impersonation.
        name: Common name of the client certificate that the request comes with.
        path: Begins the path of the request.
        refused: Part of the sentence that the operator and the tools give.
        by_kubectl: Part of kubectl's error, where it gives one.
    """

    id: str
    user: dict[str, Any] = field(default_factory=dict)
    cluster: dict[str, Any] = field(default_factory=dict)
    top: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    sends: dict[str, str] = field(default_factory=dict)
    name: str = ""
    path: str = ""
    refused: str = ""
    by_kubectl: str = ""


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def jwt(*, seconds: float) -> str:
    """Return an ID token that expires in `seconds`."""
    claims = base64.urlsafe_b64encode(json.dumps({"exp": time.time() + seconds}).encode()).decode().rstrip("=")
    return f"e30.{claims}.c2ln"


def plugin(**fields: Any) -> dict[str, Any]:
    """Return a user with a credential plug-in in the folder of the kubeconfig."""
    return {"exec": {"apiVersion": V1, "command": "./bin/plugin.sh", "interactiveMode": "Never"} | fields}


def script(text: str) -> dict[str, str]:
    return {"bin/plugin.sh": f"#!/bin/sh\n{text}\n"}


def credential(version: str = V1, **status: str) -> str:
    return f"echo '{json.dumps({'apiVersion': version, 'kind': 'ExecCredential', 'status': status})}'"


def oidc(**config: str) -> dict[str, Any]:
    return {"auth-provider": {"name": "oidc", "config": {"idp-issuer-url": "https://127.0.0.1:9", "client-id": "me", **config}}}


CERTIFICATE: Final = {"client-certificate-data": "$CERTIFICATE64", "client-key-data": "$KEY64"}
JANE: Final = {"token": "t", "as": "jane"}
SECRET: Final = credential(token="secret")
VALID, EXPIRED = jwt(seconds=3600), jwt(seconds=-3600)

CASES: Final = (
    Case(id="a token", user={"token": "t"}, sends=bearer("t")),
    Case(id="a token with white space around it", user={"token": " t\n"}, sends=bearer("t"), by_kubectl="invalid header field value"),
    Case(
        id="a token that is a number", user={"token": 5}, refused="token of the user must be a text", by_kubectl="cannot unmarshal number"
    ),
    Case(
        id="a token that would be a header of its own",
        user={"token": "a\r\nImpersonate-User: root"},
        refused="the bearer token contains invalid characters",
        by_kubectl="invalid header field value",
    ),
    Case(id="a token file with a final newline", user={"tokenFile": "t"}, files={"t": "one\n"}, sends=bearer("one")),
    Case(id="a token file wins over a token", user={"token": "a", "tokenFile": "t"}, files={"t": "b"}, sends=bearer("b")),
    Case(id="a token stands in for a file that is missing", user={"token": "a", "tokenFile": "t"}, sends=bearer("a")),
    Case(id="a token stands in for a file that is empty", user={"token": "a", "tokenFile": "t"}, files={"t": "\n"}, sends=bearer("a")),
    Case(
        id="a token file that is missing",
        user={"tokenFile": "t"},
        refused="/t cannot be used: [Errno 2] No such file or directory",
        by_kubectl="no such file or directory",
    ),
    Case(
        id="a token file that is empty",
        user={"tokenFile": "t"},
        files={"t": ""},
        refused="/t cannot be used: it is empty",
        by_kubectl="Please enter Username",
    ),
    Case(id="a client certificate as data", user=CERTIFICATE, name="alice"),
    Case(
        id="a client certificate in files",
        user={"client-certificate": "c", "client-key": "k"},
        files={"c": "$CERTIFICATE", "k": "$KEY"},
        name="alice",
    ),
    Case(id="a client certificate and a token", user={**CERTIFICATE, "token": "t"}, name="alice", sends=bearer("t")),
    Case(
        id="a client certificate without a key",
        user={"client-certificate-data": "$CERTIFICATE64"},
        refused="the user has only one of client-certificate and client-key",
        by_kubectl="client-key-data or client-key must be specified",
    ),
    Case(
        id="a client certificate file that is missing",
        user={"client-certificate": "c", "client-key": "k"},
        refused="/c cannot be read: [Errno 2] No such file or directory",
        by_kubectl="unable to read client-cert",
    ),
    Case(
        id="a client certificate twice",
        user={**CERTIFICATE, "client-certificate": "c"},
        files={"c": "$CERTIFICATE"},
        refused="the user has both client-certificate and client-certificate-data; remove one",
        by_kubectl="client-cert-data and client-cert are both specified",
    ),
    Case(
        id="a key that is not base64",
        user={**CERTIFICATE, "client-key-data": "*x"},
        refused="client-key-data of the user is not base64",
        by_kubectl="illegal base64 data",
    ),
    Case(
        id="a key of another certificate",
        user={**CERTIFICATE, "client-key-data": "$OTHER_KEY64"},
        refused="the client certificate of the configuration and its key cannot be used",
        by_kubectl="private key does not match public key",
    ),
    Case(
        id="a key without a client certificate",
        user={"client-key-data": "$KEY64"},
        refused="the user has only one of client-certificate and client-key",
        by_kubectl="Please enter Username",
    ),
    Case(
        id="a password without a username",
        user={"password": "b"},
        refused="the user has a password without a username",
        by_kubectl="Please enter Username",
    ),
    Case(id="basic authentication", user={"username": "a", "password": "b"}, sends={"authorization": "Basic YTpi"}),
    Case(
        id="basic authentication and a token",
        user={"username": "a", "password": "b", "token": "t"},
        refused="the user has both a token and a username; remove one",
        by_kubectl="more than one authentication method",
    ),
    Case(id="impersonation of a user", user=JANE, sends=bearer("t") | {"impersonate-user": "jane"}),
    Case(
        id="impersonation with groups, UID and extra",
        user={**JANE, "as-groups": ["a", "b"], "as-uid": "u-1", "as-user-extra": {"Example.com/x": ["1", "2"]}},
        sends=bearer("t")
        | {"impersonate-user": "jane", "impersonate-group": "a, b", "impersonate-uid": "u-1", "impersonate-extra-example.com%2fx": "1, 2"},
    ),
    Case(
        id="impersonation of a user with a name beyond Latin-1",
        user={"token": "t", "as": "Жэнь"},
        sends=bearer("t") | {"impersonate-user": "Жэнь"},
    ),
    Case(
        id="impersonation of a group without a user",
        user={"token": "t", "as-groups": ["a"]},
        refused="without as; name the user to impersonate",
        by_kubectl="without impersonating a user",
    ),
    Case(
        id="impersonation with a header of its own",
        user={"token": "t", "as": "jane\r\nX: y"},
        refused="has line ends or control characters",
        by_kubectl="invalid header field value",
    ),
    Case(id="a plug-in", user=plugin(), files=script(SECRET), sends=bearer("secret")),
    Case(
        id="a plug-in of v1beta1, which needs no interactiveMode",
        user=plugin(apiVersion=V1BETA1, interactiveMode=""),
        files=script(credential(V1BETA1, token="secret")),
        sends=bearer("secret"),
    ),
    Case(
        id="a plug-in with arguments and variables",
        user=plugin(args=["a b"], env=[{"name": "GIVEN", "value": "c"}]),
        files=script("printf " + credential(token="%s-%s").removeprefix("echo ") + ' "${#1}" "$GIVEN"'),
        sends=bearer("3-c"),
    ),
    Case(
        id="a plug-in with a client certificate",
        user=plugin(),
        files={**script('cat "$(dirname "$0")/answer"'), "bin/answer": "$EXEC_CERTIFICATE"},
        name="alice",
    ),
    Case(
        id="a plug-in that fails",
        user=plugin(),
        files=script("echo 'your session\nhas ended' >&2; exit 3"),
        refused="credential plug-in $DIR/bin/plugin.sh failed with exit code 3: your session has ended",
        by_kubectl="plugin.sh failed with exit code 3",
    ),
    Case(
        id="a plug-in that is missing",
        user=plugin(installHint="Get it at example.com."),
        refused="credential plug-in $DIR/bin/plugin.sh is not installed, or not executable; install it: Get it at example.com.",
        by_kubectl="no such file or directory",
    ),
    Case(
        id="a plug-in that is not in the PATH",
        user=plugin(command="no-such-plugin"),
        refused="credential plug-in no-such-plugin is not installed",
        by_kubectl="executable no-such-plugin not found",
    ),
    Case(
        id="a plug-in that prints much to stderr",
        user=plugin(),
        files=script(f"head -c 1000000 /dev/zero | tr '\\0' x >&2; {SECRET}"),
        sends=bearer("secret"),
    ),
    Case(
        id="a plug-in that needs a terminal",
        user=plugin(interactiveMode="Always"),
        files=script(SECRET),
        refused="needs a terminal for its questions (interactiveMode: Always)",
        by_kubectl="standard input is not a terminal",
    ),
    Case(
        id="a plug-in of v1 without interactiveMode",
        user=plugin(interactiveMode=None),
        files=script(SECRET),
        refused="interactiveMode ''; it must be Never, IfAvailable or Always",
        by_kubectl="interactiveMode must be specified",
    ),
    Case(
        id="a plug-in of an unknown version",
        user=plugin(apiVersion="client.authentication.k8s.io/v1alpha1"),
        refused="it must be client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1",
        by_kubectl="invalid apiVersion",
    ),
    Case(id="a plug-in without a command", user=plugin(command=""), refused="exec has no command", by_kubectl="command must be specified"),
    Case(
        id="a plug-in that answers in another version",
        user=plugin(),
        files=script(credential(V1BETA1, token="secret")),
        refused=f"but the kubeconfig demands an ExecCredential of {V1}",
        by_kubectl="plugin returned version",
    ),
    Case(
        id="a plug-in that prints nonsense",
        user=plugin(),
        files=script("echo hello"),
        refused="printed what is not an ExecCredential: JSONDecodeError: ",
        by_kubectl="decoding stdout",
    ),
    Case(
        id="a plug-in without a credential",
        user=plugin(),
        files=script(credential()),
        refused="gave neither a token nor a client certificate",
        by_kubectl="didn't return a token or cert/key pair",
    ),
    Case(
        id="a plug-in with half a certificate",
        user=plugin(),
        files=script(credential(clientKeyData="k")),
        refused="gave only one of clientCertificateData and clientKeyData",
        by_kubectl="returned only certificate or key, not both",
    ),
    Case(
        id="a plug-in with an expiry that is not a time",
        user=plugin(),
        files=script(credential(token="secret", expirationTimestamp="soon")),
        refused="expirationTimestamp 'soon' is not a time",
        by_kubectl="decoding stdout",
    ),
    Case(
        id="a plug-in whose token the server refuses, once more",
        user=plugin(),
        files=script(
            'f="$(dirname "$0")/ran"; test -e "$f" && t=fresh || t=stale; touch "$f"; ' + credential(token="@").replace("@", "'$t'")
        ),
        sends=bearer("fresh"),
        by_kubectl="You must be logged in",
    ),
    Case(id="a token wins over a plug-in", user={**plugin(), "token": "t"}, files=script("exit 1"), sends=bearer("t")),
    Case(id="a client certificate wins over a plug-in", user={**plugin(), **CERTIFICATE}, files=script("exit 1"), name="alice"),
    Case(id="an OIDC token", user=oidc(**{"id-token": VALID}), sends=bearer(VALID)),
    Case(
        id="an OIDC token that has expired",
        user=oidc(**{"id-token": EXPIRED}),
        refused="the OIDC token has expired, and there is no refresh-token to refresh it; log in again",
        by_kubectl="cannot refresh without refresh-token",
    ),
    Case(
        id="an OIDC provider that does not answer",
        user=oidc(**{"id-token": EXPIRED, "refresh-token": "r"}),
        refused="Connection refused; check idp-issuer-url, or log in again",
        by_kubectl="refused",
    ),
    Case(id="an OIDC token that is not one", user=oidc(**{"id-token": "x"}), refused="is not a JWT", by_kubectl="not a valid JWT"),
    Case(
        id="an OIDC provider without settings",
        user={"auth-provider": {"name": "oidc"}},
        refused="the user's auth-provider has no config",
        by_kubectl="Must provide idp-issuer-url",
    ),
    Case(
        id="a provider that kubectl had long ago",
        user={"auth-provider": {"name": "gcp"}},
        refused="the user's auth-provider 'gcp' is not supported",
        by_kubectl="The gcp auth plugin has been removed",
    ),
    Case(
        id="a plug-in and a provider",
        user={**plugin(), **oidc()},
        refused="the user has both exec and auth-provider; remove one",
        by_kubectl="authProvider cannot be provided in combination with an exec plugin",
    ),
    # client-go, and so Kubeflow's operator, sends nothing for a user without a credential; kubectl asks for a name and a password.
    Case(id="a user without a credential", by_kubectl="Please enter Username"),
    Case(id="a context without a user", top={"contexts": [{"name": "c", "context": {"cluster": "k"}}]}, by_kubectl="Please enter Username"),
    Case(id="an unknown user", top={"users": []}, refused="there is no user 'u'; the users are: none", by_kubectl="Please enter Username"),
    Case(
        id="an unknown cluster",
        top={"clusters": [{"name": "other", "cluster": {}}]},
        refused="there is no cluster 'k'; the clusters are: 'other'",
        by_kubectl="localhost:8080",
    ),
    Case(
        id="an unknown context",
        top={"current-context": "x"},
        refused="context 'x': there is no context 'x'; the contexts are: 'c'",
        by_kubectl="context was not found for specified context: x",
    ),
    Case(id="no current context", top={"current-context": ""}, refused="has no current-context; choose one", by_kubectl="localhost:8080"),
    Case(id="a cluster without a server", cluster={"server": None}, refused="the cluster has no server", by_kubectl="localhost:8080"),
    Case(
        id="a path, as Rancher's",
        user={"token": "t"},
        cluster={"server": "$URL/k8s/clusters/c-1"},
        path="/k8s/clusters/c-1",
        sends=bearer("t"),
    ),
    Case(id="trailing slashes", user={"token": "t"}, cluster={"server": "$URL/k8s//"}, path="/k8s", sends=bearer("t")),
    Case(
        id="an authority in a file",
        user={"token": "t"},
        cluster={"certificate-authority-data": None, "certificate-authority": "ca"},
        files={"ca": "$CA"},
        sends=bearer("t"),
    ),
    Case(
        id="an authority file that is missing",
        cluster={"certificate-authority-data": None, "certificate-authority": "ca"},
        refused="/ca cannot be read: [Errno 2] No such file or directory",
        by_kubectl="unable to read certificate-authority",
    ),
    Case(
        id="an authority that is not a certificate",
        user={"token": "t"},
        cluster={"certificate-authority-data": "aGVsbG8="},
        refused="certificate-authority-data contains no usable CA certificate",
        by_kubectl="unable to load root certificates",
    ),
    Case(
        id="another authority",
        user={"token": "t"},
        cluster={"certificate-authority-data": "$OTHER_CA64"},
        refused="certificate",
        by_kubectl="certificate signed by unknown authority",
    ),
    Case(
        id="the system's authorities",
        user={"token": "t"},
        cluster={"certificate-authority-data": None},
        refused="certificate",
        by_kubectl="certificate signed by unknown authority",
    ),
    Case(
        id="no check of the certificate",
        user={"token": "t"},
        cluster={"certificate-authority-data": None, "insecure-skip-tls-verify": True},
        sends=bearer("t"),
    ),
    Case(
        id="no check of the certificate, as a text",
        cluster={"certificate-authority-data": None, "insecure-skip-tls-verify": "false"},
        refused="insecure-skip-tls-verify of the cluster must be true or false, without quotes",
        by_kubectl="cannot unmarshal string",
    ),
    Case(
        id="no check of the certificate, and an authority",
        user={"token": "t"},
        cluster={"insecure-skip-tls-verify": True},
        refused="the cluster has both insecure-skip-tls-verify and a certificate-authority; remove one",
        by_kubectl="specifying a root certificates file with the insecure flag is not allowed",
    ),
    Case(id="a server name", user={"token": "t"}, cluster={"tls-server-name": SERVER_NAME}, sends=bearer("t")),
    Case(
        id="another server name",
        user={"token": "t"},
        cluster={"tls-server-name": "other.example.com"},
        refused="certificate",
        by_kubectl="certificate is valid for",
    ),
    Case(
        id="a SOCKS proxy",
        cluster={"proxy-url": "socks5://127.0.0.1:9"},
        refused="proxy-url 'socks5://127.0.0.1:9' is not supported; use an http:// or https:// proxy",
        by_kubectl="refused",
        user={"token": "t"},
    ),
    Case(
        id="a user without a name before the context's",
        top={"users": [{"user": {"token": "nobody's"}}, {"name": "u", "user": JANE}]},
        sends={**bearer("t"), "impersonate-user": "jane"},
    ),
    Case(
        id="a context without a user, and a user without a name",
        top={"contexts": [{"name": "c", "context": {"cluster": "k"}}], "users": [{"user": {"token": "t"}}]},
        sends=bearer("t"),
    ),
    Case(
        id="two users of one name",
        top={"users": [{"name": "u", "user": {"token": "a"}}, {"name": "u", "user": {"token": "b"}}]},
        refused="users of the kubeconfig $DIR/kubeconfig has two entries with the name 'u'; remove one",
        by_kubectl='duplicate name "u" in list',
    ),
    Case(
        id="two users of a name that the context does not ask for",
        top={"users": [{"name": "u", "user": {"token": "a"}}, {"name": "v"}, {"name": "v"}]},
        refused="users of the kubeconfig $DIR/kubeconfig has two entries with the name 'v'; remove one",
        by_kubectl='duplicate name "v" in list',
    ),
    Case(
        id="a user whose name is a number",
        top={"users": [{"name": "u", "user": {"token": "t"}}, {"name": 5}]},
        refused="name of the kubeconfig $DIR/kubeconfig's users must be a text: put it in quotes",
        by_kubectl="cannot unmarshal number",
    ),
    Case(
        id="a provider of OIDC over plain HTTP",
        user=oidc(**{"idp-issuer-url": "http://127.0.0.1:9", "refresh-token": "r"}),
        refused="idp-issuer-url must begin with https://",
        by_kubectl="refused",
    ),
    Case(
        id="a proxy that is not a URL",
        cluster={"proxy-url": "http://p:port"},
        refused="proxy-url 'http://p:port' is not a valid URL",
        by_kubectl="could not parse",
    ),
)


def kubeconfig(cluster: dict[str, Any], user: dict[str, Any], **context: str) -> dict[str, Any]:
    """Return a kubeconfig with the context c, of the cluster k and the user u."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", **context}}],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }


def write(folder: Path, case: Case, url: str, authority: Authority) -> Path:
    """Write the kubeconfig of `case` for the server at `url`, and its other files; return its path."""
    alice, bob = authority.issue("alice"), authority.issue("bob")
    answer = {"clientCertificateData": alice.certificate, "clientKeyData": alice.key}
    words = {
        "$CA": authority.certificate,
        "$OTHER_CA": Authority("other").certificate,
        "$CERTIFICATE": alice.certificate,
        "$KEY": alice.key,
        "$OTHER_KEY": bob.key,
        "$EXEC_CERTIFICATE": json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": answer}),
    }
    words |= {f"{word}64": base64.b64encode(text.encode()).decode() for word, text in words.items()}

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: filled(inner) for key, inner in value.items()}
        return words.get(value, value.replace("$URL", url)) if isinstance(value, str) else value

    cluster = {"server": url, "certificate-authority-data": "$CA64", **case.cluster}
    content = kubeconfig({key: value for key, value in filled(cluster).items() if value is not None}, filled(case.user)) | case.top
    folder.mkdir(exist_ok=True)
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    for name, text in case.files.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(words.get(text, text))
        file.chmod(0o755 if name.endswith(".sh") else 0o600)
    return path


async def echo(exchange: Exchange) -> None:
    """Refuse stale tokens, answer anybody else with a Pod."""
    if exchange.headers.get("authorization") == "Bearer stale":
        await exchange.refuse(401, "Unauthorized")
    else:
        await exchange.answer({"kind": "Pod", "metadata": {"name": "a"}})


def seen(exchange: Exchange) -> tuple[str, str, dict[str, str]]:
    """Return path, client certificate and credentials of a request."""
    subject = dict(pair[0] for pair in exchange.client_certificate.get("subject", ()))
    headers = {name: value for name, value in exchange.headers.items() if name == "authorization" or name.startswith("impersonate-")}
    return exchange.path, subject.get("commonName", ""), headers
