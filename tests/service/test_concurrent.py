"""Many clients at once, over real connections: no update is lost."""

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from tests.support.killing import Client, Memory, check, kill, make_collection, nursery
from tests.support.services import Place, audit, served, started
from zoomrank.service.catalogue.version_history import VersionHistory


def test_clients_at_once_lose_nothing(place: Place) -> None:
    make_collection(place)
    memory = Memory()
    with nursery() as servers:
        pid, address = servers.start(place, 2**20)
        clients = [Client(address, memory, seed) for seed in range(12)]
        for client in clients:
            client.start()
        enough = threading.Event()
        while len(memory.told) < 400 and any(client.is_alive() for client in clients):
            enough.wait(0.01)
        for client in clients:
            client.stopping = True
            client.join(30)
            assert client.failure is None
        kill(pid)
    assert len(memory.told) >= 400
    assert not memory.unsure
    found = check(place, memory)
    assert len(found.outcomes) == len(memory.shown)
    assert len(memory.told) <= found.closed


@pytest.mark.parametrize("turns", range(8))
async def test_those_who_ask_while_a_learner_begins_all_meet_the_same(
    place: Place, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """Somebody asks some turns of the loop after a query has turned out to be new: for one number of turns, that is
    between this and the making of its learner.
    """

    async def in_the_loop(function: Callable[..., Any], *arguments: Any) -> Any:
        """What would be done in a thread: there, nobody knows how many turns of the loop it takes."""
        if not asked:
            ask_after(turns)
            return function(*arguments)
        await asyncio.sleep(0.01)  # the first visit is written down meanwhile
        result = function(*arguments)
        await asyncio.sleep(0.01)  # more visits are
        return result

    def ask_after(turns: int) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(ask_after, turns - 1)
        else:
            asked.append(asyncio.create_task(visits()))

    async def visits() -> None:
        for _ in range(10):
            impression, documents = await engine.rank(where, "owl")
            assert await engine.feedback(impression, documents[0]["id"]) == "learned"
            await asyncio.sleep(0.003)

    asked: list[asyncio.Task[None]] = []
    async with started(place) as engine:
        where = await served(engine)
        with monkeypatch.context() as patched:
            patched.setattr(asyncio, "to_thread", in_the_loop)
            await visits()
            await asyncio.gather(*asked)
        found = await audit(engine)
        assert (found.learners, found.closed) == (1, 20)


def test_any_thread_may_ask_for_the_way_from_one_edition_to_another() -> None:
    """Changes are rehearsed beside visitors who make learners move."""
    newest = Mock(number=0)
    newest.catalogue.remap_to = lambda _: (np.zeros(1),)
    history = VersionHistory(newest)

    def ask(thread: int) -> None:
        for number in range(150):
            later = Mock(number=(thread, number))
            history.remap(newest, later)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(ask, range(4)))
    finally:
        sys.setswitchinterval(before)
