"""What can go wrong between us and the API server, as one family of exceptions."""

import contextlib
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, cast


class KubeError(Exception):
    """A request that did not succeed; the message states what, where and why on one line."""


class ConfigError(KubeError):
    """The configuration (kubeconfig, service account, plugin) cannot be used; the message states what to do."""


class NoContextError(ConfigError):
    """No kubeconfig exists, or none names the context to use."""


class TransportError(KubeError):
    """No usable answer: refused, reset, timed out, cut or not JSON. Whether a write took effect is unknown."""


class ResetError(TransportError):
    """The connection ended before an answer began: a read may simply be sent again."""


class TooLargeError(TransportError):
    """The answer has more bytes than are read: a list must be asked for in smaller pages."""


class CalledOffError(Exception):
    """A request was not sent, for its fencing did not allow it any more (`Client.fenced`)."""


class StatusError(KubeError):
    """The API server's answer was a failure (`metav1.Status`).

    Attributes:
        code: HTTP status code; 500 when the Status names none.
        reason: `Status.reason`, for example `AlreadyExists`; "" when absent.
        status_message: `Status.message`, as the server put it; "" when absent.
        causes: `Status.details.causes[].reason`, or the cause's message where it gives no reason (before Kubernetes 1.18.6).
        retry_after_seconds: What the server asked us to wait, or None.
    """

    def __init__(self, request: str, status: Mapping[str, Any], *, retry_after_seconds: float | None = None) -> None:
        """Read the parts of the answer that decisions depend on; any of them may be missing.

        Args:
            request: What was asked, as `verb resource namespace/name`; begins the message.
            status: `metav1.Status` on the wire, for example `{"code": 409, "reason": "AlreadyExists", "message": "…"}`.
            retry_after_seconds: Value of the `Retry-After` header; without it, `status.details.retryAfterSeconds` counts.
        """
        details = _mapping(status.get("details"))
        wait = details.get("retryAfterSeconds") if retry_after_seconds is None else retry_after_seconds
        self.code = int(_number(status.get("code")) or HTTPStatus.INTERNAL_SERVER_ERROR)
        self.reason = str(status.get("reason") or "")
        self.status_message = str(status.get("message") or "")
        causes = [_mapping(cause) for cause in _sequence(details.get("causes"))]
        self.causes = tuple(str(cause.get("reason") or cause.get("message") or "") for cause in causes)
        self.retry_after_seconds = _number(wait)
        answer = f"{self.code} {self.reason}".rstrip()
        super().__init__(" ".join(f"{request}: {answer}: {self.status_message or 'no message'}".split()))

    @property
    def is_not_found(self) -> bool:
        """Return whether the object does not exist."""
        return self.code == HTTPStatus.NOT_FOUND

    @property
    def is_already_exists(self) -> bool:
        """Return whether a create met an object of that name."""
        return self.code == HTTPStatus.CONFLICT and self.reason == "AlreadyExists"

    @property
    def is_conflict(self) -> bool:
        """Return whether a precondition (resourceVersion or uid) did not hold."""
        return self.code == HTTPStatus.CONFLICT and self.reason != "AlreadyExists"

    @property
    def is_invalid(self) -> bool:
        """Return whether the object itself was refused: sent again unchanged, it is refused again."""
        return self.code in {HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY}

    @property
    def is_forbidden(self) -> bool:
        """Return whether we lack the permission, or a quota or admission plug-in refuses."""
        return self.code == HTTPStatus.FORBIDDEN

    @property
    def is_unauthorized(self) -> bool:
        """Return whether the server did not accept our credentials."""
        return self.code == HTTPStatus.UNAUTHORIZED

    @property
    def is_expired(self) -> bool:
        """Return whether the resourceVersion or continue token is too old (410)."""
        return self.code == HTTPStatus.GONE or self.reason in {"Expired", "Gone"}

    @property
    def is_too_large_resource_version(self) -> bool:
        """Return whether the server has not reached the resourceVersion that was asked for."""
        texts = (*self.causes, self.status_message)
        return "ResourceVersionTooLarge" in self.causes or any("Too large resource version" in text for text in texts)

    @property
    def is_terminating_namespace(self) -> bool:
        """Return whether a create was refused because its namespace is being deleted."""
        return self.code == HTTPStatus.FORBIDDEN and "NamespaceTerminating" in self.causes


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return `value` where it is a mapping, else an empty one: a Status may come from a broken proxy."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def _number(value: Any) -> float | None:
    """Return a number; None for what is none, or too large for one."""
    with contextlib.suppress(OverflowError):
        if isinstance(value, int | float) and math.isfinite(value):
            return float(value)
    return None
