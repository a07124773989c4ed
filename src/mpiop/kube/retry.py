"""The rules for retrying failed requests."""

from mpiop.backoff import RESET_READ
from mpiop.kube.errors import KubeError, ResetError, StatusError
from mpiop.kube.request import Request

MOST_RETRIES = 10


def retry_delay_seconds(request: Request, error: KubeError, retries: int) -> float | None:
    """Return how long to wait before `request` is sent again after `error`, or None to give up.

    The rules are client-go's: 429 and 5xx only with a Retry-After header, a broken connection only for reads. A
    version that the server has not reached yet is left to the reflector, which knows a better question.

    Args:
        request: What was sent.
        error: What came of it.
        retries: How often it was sent again already.
    """
    if retries >= MOST_RETRIES:
        return None
    if isinstance(error, ResetError):
        return RESET_READ.delay_seconds(retries) if request.method == "GET" else None
    if isinstance(error, StatusError) and (error.code == 429 or error.code >= 500):  # noqa: PLR2004 - HTTP
        return None if error.is_too_large_resource_version else error.retry_after_seconds
    return None
