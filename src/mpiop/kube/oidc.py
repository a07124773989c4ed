"""The `auth-provider: oidc` of a kubeconfig: its ID token, refreshed and stored in the file again when it has expired.

Source: client-go 1.36, plugin/pkg/client/auth/oidc. The `kubernetes` package sends the refresh token to providers without checking their
certificate, and continues without a credential if the answer is an error. client-go sends them over plain HTTP if the issuer's URL is that.
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import urllib3

from mpiop.kube.errors import ConfigError
from mpiop.kube.tls import TLSConfig, build_context

_EARLY: Final = timedelta(seconds=10)
_TIMEOUT: Final = 30.0
_DO: Final = "log in again"


def oidc_credential(provider: dict[str, Any], tls: TLSConfig, save: Callable[[], None]) -> Mapping[str, Any]:
    """Return the ID token and when it expires, as the `status` of an ExecCredential.

    Args:
        provider: The provider's `config`; a new token is put in here.
        tls: Certificates of the provider.
        save: Stores `provider` in its kubeconfig: a refresh token may be good for one use only.

    Raises:
        ConfigError: The token has expired and cannot be refreshed.
    """
    token = str(provider.get("id-token") or "")
    expires = _expiry(token) if token else datetime.min.replace(tzinfo=UTC)
    if expires <= datetime.now(UTC) + _EARLY:
        if missing := [field for field in ("refresh-token", "idp-issuer-url", "client-id") if not provider.get(field)]:
            raise ConfigError(f"the OIDC token has expired, and there is no {missing[0]} to refresh it; {_DO}")
        try:
            provider |= _refreshed(provider, tls)
            save()
        except (urllib3.exceptions.HTTPError, OSError, ValueError, LookupError, TypeError) as error:
            why = " ".join(str(getattr(error, "reason", None) or error).split())
            raise ConfigError(f"the OIDC token cannot be refreshed: {why}; check idp-issuer-url, or {_DO}") from error
        token = str(provider["id-token"])
        expires = _expiry(token)
    return {"token": token, "expirationTimestamp": expires.isoformat()}


def _refreshed(provider: Mapping[str, Any], tls: TLSConfig) -> Mapping[str, str]:
    http = urllib3.PoolManager(ssl_context=build_context(tls, None), timeout=_TIMEOUT)
    issuer = str(provider["idp-issuer-url"]).removesuffix("/")
    _require_https(issuer, "idp-issuer-url")
    discovery = http.request("GET", f"{issuer}/.well-known/openid-configuration", redirect=False)
    if discovery.status != 200:  # noqa: PLR2004 - OK
        raise ValueError(f"{issuer}/.well-known/openid-configuration answered {discovery.status}")
    endpoint = str(discovery.json()["token_endpoint"])
    _require_https(endpoint, "the provider's token_endpoint")
    client, secret = str(provider["client-id"]), str(provider.get("client-secret") or "")
    identity = {"client_id": client} | ({"client_secret": secret} if secret else {})
    form = {"grant_type": "refresh_token", "refresh_token": str(provider["refresh-token"])}
    # As Go's oauth2: the secret in the header, which the standard prefers, then in the form, which some providers demand.
    basic = urllib3.make_headers(basic_auth=f"{client}:{secret}")
    answer = http.request("POST", endpoint, fields=form, encode_multipart=False, headers=basic, redirect=False)
    if answer.status in {400, 401}:
        answer = http.request("POST", endpoint, fields=form | identity, encode_multipart=False, redirect=False)
    found = answer.json()
    if answer.status != 200 or not found.get("id_token"):  # noqa: PLR2004 - OK
        why = found.get("error_description") or found.get("error") or "without an id_token"
        raise ValueError(f"{endpoint} answered {answer.status} {why}")
    return {"id-token": str(found["id_token"]), "refresh-token": str(found.get("refresh_token") or provider["refresh-token"])}


def _require_https(url: str, what: str) -> None:
    """Raise unless `url` is HTTPS: a refresh token is good for more than one of the short-lived ID tokens."""
    if not url.lower().startswith("https://"):
        raise ValueError(f"{what} must begin with https://")


def _expiry(token: str) -> datetime:
    try:
        _, payload, _ = token.split(".")
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return datetime.fromtimestamp(claims["exp"], UTC)
    except (ValueError, LookupError, TypeError, OverflowError, OSError, binascii.Error) as error:
        raise ConfigError(f"the id-token of the OIDC provider is not a JWT with an expiry; {_DO}") from error
