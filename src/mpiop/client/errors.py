"""What goes wrong for users: one sentence each, with what, where and what to do."""

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """A sentence for the user.

    Attributes:
        exit_code: That of a command that ends with it.
    """

    exit_code = 1


class InvalidError(ClientError):
    """What was asked for makes no sense, or the API server refuses it as invalid."""

    exit_code = 2


class NotFoundError(ClientError):
    """There is no such object."""

    exit_code = 3


class ForbiddenError(ClientError):
    """The user has no right to do it."""

    exit_code = 4


class UnauthenticatedError(ForbiddenError):
    """The API server does not accept the credentials, or there are none to send: the user must log in again."""


class UnreachableError(ClientError):
    """The API server does not answer, or cannot answer now (status 429, 500 and above), or no cluster is configured."""


class NoClusterError(UnreachableError):
    """No cluster is configured, or no request reaches it: any other would fail too."""


class NotNowError(UnreachableError):
    """The API server refused it for now, and did nothing: it is overloaded, or a webhook that it asks does not answer."""


class ConflictError(ClientError):
    """The object exists already, or was changed meanwhile."""


class JobFailed(ClientError):  # noqa: N818 - what users catch reads as a sentence
    """A job that failed, or was deleted before it ended.

    Attributes:
        job: Its name.
        reason: In one word, such as `BackoffLimitExceeded/Error`.
        code: Exit code of the launcher's last attempt; None if it is not known.
        log: The end of the launcher's log, or "".
        results: Of a function: the results that arrived whole, by rank.
    """

    def __init__(self, job: str, reason: str, message: str, code: int | None = None, log: str = "") -> None:
        """Say why the job failed."""
        super().__init__(f"job {job} failed: {reason}: {message}")
        self.job, self.reason, self.code, self.log = job, reason, code, log
        self.results: Mapping[int, Any] = {}


class JobTimeoutError(ClientError):
    """The job did not end in time; it goes on."""
