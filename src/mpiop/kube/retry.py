"""Which failed request may be sent again, when, and how many may be under way."""

import asyncio

from mpiop.kube.errors import KubeError, ResetError, StatusError
from mpiop.kube.request import Request
from mpiop.token_bucket import TokenBucket

MOST_RETRIES = 10
FIRST_RESET_DELAY_SECONDS = 0.05


def retry_delay_seconds(request: Request, error: KubeError, retries: int) -> float | None:
    """Return how long to wait before `request` is sent again after `error`, or None to give up.

    The rules are client-go's: 429 and 5xx only when the server says when to come back, a broken connection only for reads. A
    version that the server has not reached yet is left to the reflector, which knows a better question.

    Args:
        request: What was sent.
        error: What came of it.
        retries: How often it was sent again already.
    """
    if retries >= MOST_RETRIES:
        return None
    if isinstance(error, ResetError):
        return FIRST_RESET_DELAY_SECONDS * 2**retries if request.method == "GET" else None
    if isinstance(error, StatusError) and (error.code == 429 or error.code >= 500):  # noqa: PLR2004 - HTTP
        return None if error.is_too_large_resource_version else error.retry_after_seconds
    return None


class Throttle:
    """Bounds how many requests are under way, and optionally how many begin a second (token bucket).

    Waiting here is not part of a request's deadline: a slow server makes the queue longer, not the failures more.
    """

    def __init__(self, most_in_flight: int, qps: float = 0.0, burst: int = 0) -> None:
        """Bound requests under way to `most_in_flight`, their rate to `qps` after a burst of `burst`; qps 0 is no bound."""
        self._in_flight = asyncio.Semaphore(most_in_flight)
        self._bucket = TokenBucket(qps, max(burst, 1)) if qps > 0 else None

    async def __aenter__(self) -> None:
        """Wait for a turn and take a place."""
        if self._bucket is not None:
            await asyncio.sleep(self._bucket.reserve(asyncio.get_running_loop().time()))
        await self._in_flight.acquire()

    async def __aexit__(self, *_: object) -> None:
        """Leave the place to another."""
        self._in_flight.release()
