"""`IdempotencyKeys`: idempotency keys. A request repeated under its key gets the response of the first one.

A response may get lost. A retry then gets the same impression, instead of a second one while the first counts as a
visitor who left. The key is stored in the log, in the event of the ranking: so both are durable or neither, and keys
survive a crash.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple

from zoomrank.service.errors import KeyReusedError, NotOwnerError, StorageError
from zoomrank.service.rank_options import Caller
from zoomrank.service.storage.events import Event, unpack_parts
from zoomrank.service.storage.store import EngineContext

KEPT_FOR = 600.0  # seconds
MOST_KEPT = 200_000
_KEY = 16  # bytes of a request's digest that identify the key; the rest identifies the body


def request_digest(collection: int, caller: Caller, body: bytes) -> bytes:
    """Return the digest that is stored of a request with a key. Each API key has idempotency keys of its own."""
    key = (caller.digest or b"") + f"{collection}/{caller.idempotency_key}".encode()
    mine = hashlib.blake2b(key, digest_size=_KEY).digest()
    return mine + hashlib.blake2b(body, digest_size=8).digest()


class AnsweredRequest(NamedTuple):
    """A request that was answered, and its impression."""

    request: bytes
    learner: int
    number: int
    time: float  # of the impression
    until: float  # time until which it is remembered


class IdempotencyKeys:
    """Recent requests by idempotency key."""

    def __init__(self, context: EngineContext) -> None:
        self._store, self._ownership, _, self._steady = context
        self._answered: OrderedDict[bytes, AnsweredRequest] = OrderedDict()
        self._in_flight: dict[bytes, tuple[bytes, asyncio.Task[Event | AnsweredRequest]]] = {}
        self._unknown_outcome: dict[bytes, float] = {}  # failed requests whose write may have succeeded: until when

    def start(self) -> None:
        """Read the requests of late from the log."""
        self.take(self.recent(self._ownership.partitions))

    def recent(self, partitions: Collection[int]) -> list[Event]:
        """Return recent ranking events of some partitions, newest first."""
        return list(self._store.read.recent(KEPT_FOR, partitions))

    def take(self, recent: Sequence[Event]) -> None:
        """Remember the requests of recent events."""
        for event in reversed(recent):
            self._remember(_request_of(event), event)

    def __len__(self) -> int:
        return len(self._answered)

    async def once(self, request: bytes, ask: Callable[[], Awaitable[Event]]) -> Event | AnsweredRequest:
        """Run `ask`, or return the earlier response if the same request came before under its key."""
        key = request[:_KEY]
        while key in self._in_flight:
            _check(self._in_flight[key][0], request)
            await asyncio.wait({self._in_flight[key][1]})
        self._forget()
        answering = asyncio.create_task(self._respond(key, request, ask))
        # Retrieved, since no caller may be left to do so.
        answering.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._in_flight[key] = (request, answering)
        return await asyncio.shield(answering)  # a caller that disconnects may retry and must get this response

    async def _respond(
        self, key: bytes, request: bytes, ask: Callable[[], Awaitable[Event]]
    ) -> Event | AnsweredRequest:
        try:
            if key in self._unknown_outcome:
                await self._find(key)
            if key in self._answered:
                _check(self._answered[key].request, request)
                return self._answered[key]
            try:
                event = await ask()
            except NotOwnerError:  # nothing was started
                raise
            except StorageError:
                self._unknown_outcome[key] = self._steady() + KEPT_FOR
                raise
            self._remember(request, event)
            return event
        finally:
            del self._in_flight[key]

    def _remember(self, request: bytes | None, event: Event) -> None:
        if request is not None:
            until = self._steady() + KEPT_FOR
            self._answered[request[:_KEY]] = AnsweredRequest(request, event.learner, event.number, event.time, until)

    async def _find(self, key: bytes) -> None:
        """Check whether the write of a failed request succeeded after all."""
        for event in await asyncio.to_thread(self.recent, self._ownership.partitions):
            request = _request_of(event)
            if request is not None and request[:_KEY] == key:
                self._remember(request, event)
        self._unknown_outcome.pop(key, None)

    def _forget(self) -> None:
        """Forget expired requests."""
        now = self._steady()
        while self._answered:
            oldest = next(iter(self._answered.values()))
            if oldest.until > now and len(self._answered) <= MOST_KEPT:
                break
            self._answered.popitem(last=False)
        while self._unknown_outcome and next(iter(self._unknown_outcome.values())) <= now:
            del self._unknown_outcome[next(iter(self._unknown_outcome))]


def _request_of(event: Event) -> bytes | None:
    return unpack_parts(event.shown or b"\0\0").tags.request


def _check(before: bytes, request: bytes) -> None:
    if before != request:
        raise KeyReusedError("This Idempotency-Key was used with another request: use a new key for each ranking.")
