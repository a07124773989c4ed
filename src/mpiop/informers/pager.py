"""Reads a list page by page."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from mpiop.informers.source import ListerWatcher
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Object, ObjectList
from mpiop.kube.resources import Selection

BATCH = 50
"""Objects that are prepared before other tasks get their turn."""

Prepare = Callable[[Object], Object | None]
"""Prepares an object for the store; None leaves it out as unusable."""


class UnexpectedAnswerError(Exception):
    """The server answered a list with something else."""


@dataclass(slots=True)
class Listing:
    """A complete, consistent list.

    Attributes:
        items: The objects, prepared.
        resource_version: The moment.
        is_paginated: Whether it came in more than one page.
    """

    items: list[Object] = field(default_factory=list[Object])
    resource_version: str = ""
    is_paginated: bool = False


@dataclass(frozen=True, slots=True)
class Pager:
    """Reads lists of one selection."""

    client: ListerWatcher
    selection: Selection
    prepare: Prepare

    async def read(self, resource_version: str, limit: int) -> Listing:
        """Read all pages of at most `limit` objects (0: all at once), as of `resource_version`.

        When the server forgets the moment of the first page before the last one is read, the list is read once more, in one piece.

        Raises:
            KubeError: A page was refused or did not come; nothing is returned of the others.
            UnexpectedAnswerError: The answer is no list.
        """
        page = await self.client.list_page(self.selection, resource_version=resource_version, limit=limit)
        listing = Listing(resource_version=self._version(page))
        await self._take(listing, page)
        while token := page["metadata"].get("continue"):
            listing.is_paginated = True
            try:
                # The token holds the version; the server refuses both together.
                page = await self.client.list_page(self.selection, resource_version="", limit=limit, continue_token=str(token))
            except StatusError as error:
                if not error.is_expired:
                    raise
                page = await self.client.list_page(self.selection, resource_version=resource_version)
                listing = Listing(resource_version=self._version(page), is_paginated=True)
            await self._take(listing, page)
        return listing

    def _version(self, page: ObjectList) -> str:
        wire = cast("dict[str, Any]", page)
        kind = wire.get("kind", "List")
        if kind == "Table" or not isinstance(wire.get("items"), list) or not isinstance(wire.get("metadata"), dict):
            raise UnexpectedAnswerError(f"list {self.selection}: a {kind} is not a list of objects; is there a proxy in between?")
        return str(page["metadata"].get("resourceVersion", ""))

    async def _take(self, listing: Listing, page: ObjectList) -> None:
        for number, item in enumerate(page["items"], start=1):
            prepared = self.prepare(item)
            if prepared is not None:
                listing.items.append(prepared)
            if number % BATCH == 0:
                await asyncio.sleep(0)
