"""`Repeats`: a request that comes twice under one key is answered once, and the second hears the same again.

A response may get lost on its way. Whoever asks again then gets the impression that was made for her, instead of
another one while the first counts as a visitor who left. The key stands in the log, in the event of the ranking that
it was answered with: so both are durable, or neither, and keys come back after a crash.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple

from zoomrank.service.ownership import Ownership
from zoomrank.service.refusals import ElsewhereError, KeyReusedError, StorageError
from zoomrank.service.storage.events import Event, parted
from zoomrank.service.storage.store import Store

KEPT_FOR = 600.0  # seconds
MOST_KEPT = 200_000
_KEY = 16  # bytes of a request's digest that are its key; the others are what it asked for


def request_digest(collection: int, key: str, body: bytes) -> bytes:
    """A request that came with a key, in the few bytes that are written down."""
    mine = hashlib.blake2b(f"{collection}/{key}".encode(), digest_size=_KEY).digest()
    return mine + hashlib.blake2b(body, digest_size=8).digest()


class Answered(NamedTuple):
    """A request that was answered, and the impression that it got."""

    request: bytes
    learner: int
    number: int
    time: float  # of the impression
    until: float  # it is remembered


class Repeats:
    """Requests of late, by their keys."""

    def __init__(self, store: Store, steady: Callable[[], float], ownership: Ownership) -> None:
        self._store = store
        self._steady = steady
        self._ownership = ownership
        self._answered: OrderedDict[bytes, Answered] = OrderedDict()
        self._coming: dict[bytes, tuple[bytes, asyncio.Task[Event | Answered]]] = {}
        self._unsure: dict[bytes, float] = {}  # those that were refused, though it may have come true: until when

    def start(self) -> None:
        """Read the requests of late from the log."""
        self.take(self.recent(self._ownership.partitions))

    def recent(self, partitions: Collection[int]) -> list[Event]:
        """What was shown of late to queries of some partitions, the newest first."""
        return list(self._store.read.recent(KEPT_FOR, partitions))

    def take(self, recent: Sequence[Event]) -> None:
        """Remember the requests of what was shown of late."""
        for event in reversed(recent):
            self._remember(_request_of(event), event)

    def __len__(self) -> int:
        return len(self._answered)

    async def once(self, request: bytes, ask: Callable[[], Awaitable[Event]]) -> Event | Answered:
        """Ask, unless the same was asked before under the same key: then what was answered."""
        key = request[:_KEY]
        while key in self._coming:
            _check(self._coming[key][0], request)
            await asyncio.wait({self._coming[key][1]})
        self._forget()
        answering = asyncio.create_task(self._answer(key, request, ask))
        answering.add_done_callback(lambda done: done.cancelled() or done.exception())  # though nobody may wait
        self._coming[key] = (request, answering)
        return await asyncio.shield(answering)  # who hangs up may ask again, and has to hear of this one

    async def _answer(self, key: bytes, request: bytes, ask: Callable[[], Awaitable[Event]]) -> Event | Answered:
        try:
            if key in self._unsure:
                await self._find(key)
            if key in self._answered:
                _check(self._answered[key].request, request)
                return self._answered[key]
            try:
                event = await ask()
            except ElsewhereError:  # nothing was begun
                raise
            except StorageError:
                self._unsure[key] = self._steady() + KEPT_FOR
                raise
            self._remember(request, event)
            return event
        finally:
            del self._coming[key]

    def _remember(self, request: bytes | None, event: Event) -> None:
        if request is not None:
            until = self._steady() + KEPT_FOR
            self._answered[request[:_KEY]] = Answered(request, event.learner, event.number, event.time, until)

    async def _find(self, key: bytes) -> None:
        """Look up whether what was refused has come true."""
        for event in await asyncio.to_thread(self.recent, self._ownership.partitions):
            request = _request_of(event)
            if request is not None and request[:_KEY] == key:
                self._remember(request, event)
        self._unsure.pop(key, None)

    def _forget(self) -> None:
        """Let go of those that nobody will ask for again."""
        now = self._steady()
        while self._answered:
            oldest = next(iter(self._answered.values()))
            if oldest.until > now and len(self._answered) <= MOST_KEPT:
                break
            self._answered.popitem(last=False)
        while self._unsure and next(iter(self._unsure.values())) <= now:
            del self._unsure[next(iter(self._unsure))]


def _request_of(event: Event) -> bytes | None:
    return parted(event.shown or b"\0\0").marks.request


def _check(before: bytes, request: bytes) -> None:
    if before != request:
        raise KeyReusedError("This Idempotency-Key came with another request before: take a new key for each ranking.")
