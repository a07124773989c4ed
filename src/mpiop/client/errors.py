"""What goes wrong for users: one sentence each, with what, where and what to do."""

from collections.abc import Mapping
from typing import Any, Final

SHOWN_LINES: Final = 20
"""So many lines of its log explain a failed job: the last ten are often `mpirun`'s own."""
LONGEST_LINE: Final = 1000
"""Characters of a line of the log that an error has."""


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
        log: The end of the launcher's log, or "". The message ends with its last lines.
        log_problem: Why that log could not be read, or "".
        results: Of a function: the results that arrived whole and can be unpickled, by rank.
    """

    def __init__(self, job: str, reason: str, message: str, code: int | None = None, log: str = "") -> None:
        """Make the message from the reason and message of the job."""
        super().__init__(f"job {job} failed: {reason}: {message}")
        self.job, self.reason, self.code, self.log = job, reason, code, log
        self.log_problem = ""
        self.results: Mapping[int, Any] = {}

    def __str__(self) -> str:
        """Return the message, with the end of the log: the job, and its log with it, may be deleted when somebody reads this."""
        lines = [line[:LONGEST_LINE] for line in self.log.splitlines()[-SHOWN_LINES:]]
        problem = [f"Its log cannot be read: {self.log_problem}"] if self.log_problem else []
        return "\n".join([super().__str__(), *problem, *(["The end of its log:", *lines] if lines else [])])


class JobTimeoutError(ClientError):
    """The job did not end in time; it keeps running."""
