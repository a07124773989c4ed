"""Reads a list page by page."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import structlog

from mpiop.informers.source import ListerWatcher
from mpiop.kube.errors import StatusError, TooLargeError
from mpiop.kube.items import each
from mpiop.kube.objects import Item, Object, ObjectList, Unreadable, key_of
from mpiop.kube.resources import Selection

log = structlog.get_logger(__name__)

PAGE_LIMIT = 500
"""Objects a page, as in client-go."""

SLICE_SECONDS = 0.005
"""How long items are decoded and prepared before other tasks get their turn."""

SHRINKING = 10
"""What the limit is divided by when a page is too large; then it is doubled with each page that is not."""

Prepare = Callable[[Object], Object | None]
"""Prepares an object for the store; None leaves it out as unusable."""


class UnexpectedAnswerError(Exception):
    """The server answered a list with something else."""


@dataclass(slots=True)
class Listing:
    """A complete, consistent list.

    Attributes:
        items: The objects, prepared; those that cannot be decoded as they are.
        resource_version: The moment.
        is_paginated: Whether it came in more than one page.
        is_repeated: Whether it was read once more, because the server forgot the moment of the first page.
    """

    items: list[Item] = field(default_factory=list[Item])
    resource_version: str = ""
    is_paginated: bool = False
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class Pager:
    """Reads lists of one selection."""

    client: ListerWatcher
    selection: Selection
    prepare: Prepare

    async def read(self, resource_version: str, limit: int) -> Listing:
        """Read all pages of at most `limit` objects (0: all at once), as of `resource_version`.

        When the server forgets the moment of the first page before the last one is read, the list is read once more, in one piece. When a
        page has more bytes than are read, it is read in smaller ones, and a list from its beginning then is the newest one: the watch cache
        of the server, which answers for older versions, ignores limits.

        Raises:
            KubeError: A page was refused or did not come; nothing is returned of the others.
            UnexpectedAnswerError: The answer is not a list.
        """
        listing, token, size = Listing(), "", limit
        while True:
            try:
                # The token contains the version; the server refuses both together.
                version = "" if token else resource_version
                page = await self.client.list_page(self.selection, resource_version=version, limit=size, continue_token=token)
            except TooLargeError:
                if size == 1:
                    raise
                size = max(1, (size or PAGE_LIMIT) // SHRINKING)
                resource_version = resource_version if token else ""
                continue
            except StatusError as error:
                if not error.is_expired or not token or listing.is_repeated:
                    raise
                listing, token, size = Listing(is_paginated=True, is_repeated=True), "", 0
                continue
            listing.resource_version = listing.resource_version or self._version(page)
            await self._take(listing, page)
            token = str(page["metadata"].get("continue") or "")
            if not token:
                return listing
            listing.is_paginated = True
            size = min(2 * size, limit or PAGE_LIMIT)

    def _version(self, page: ObjectList) -> str:
        wire = cast("dict[str, Any]", page)
        kind = wire.get("kind", "List")
        if kind == "Table" or not isinstance(wire.get("items"), Sequence) or not isinstance(wire.get("metadata"), dict):
            raise UnexpectedAnswerError(f"list {self.selection}: a {kind} is not a list of objects; is there a proxy in between?")
        return str(page["metadata"].get("resourceVersion", ""))

    async def _take(self, listing: Listing, page: ObjectList) -> None:
        now = asyncio.get_running_loop().time
        until = now() + SLICE_SECONDS
        async for item in each(page["items"]):
            prepared = item if isinstance(item, Unreadable) else self.prepare(item)
            if isinstance(prepared, Unreadable) and not key_of(prepared.object).name:
                log.warning("object skipped", selection=str(self.selection), problem=prepared.problem)
            elif prepared is not None:
                listing.items.append(prepared)
            if now() >= until:
                await asyncio.sleep(0)
                until = now() + SLICE_SECONDS
