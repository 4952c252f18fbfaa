"""A response that was lost is asked for again: the same impression, once in the log, whatever happened in between."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.support.services import Clock, Place, as_json, audit, client_of, served, started
from zoomrank.service import idempotency
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.errors import KeyReusedError, StorageError
from zoomrank.service.http.access import Keys
from zoomrank.service.rank_options import Caller, RankOptions
from zoomrank.service.storage.events import Batch
from zoomrank.service.storage.ownership import count_in

ONE = Caller(idempotency_key="one")


def _shown(engine: Engine) -> int:
    return engine.outcomes[1][255]


@pytest.mark.store_contract
@pytest.mark.parametrize("crash", [False, True])
async def test_the_same_key_gets_the_same_ranking(place: Place, crash: bool) -> None:
    clock = Clock()
    async with started(place, clock, crash=crash) as engine:
        shop = await served(engine)
        first = await engine.rank(shop, "owl", caller=ONE)
        await engine.rank(shop, "owl")
        assert await engine.rank(shop, "owl", caller=ONE) == first
        assert await engine.rank(shop, "owl", caller=Caller(idempotency_key="another")) != first
        assert _shown(engine) == 3
    clock.pass_by(100_000)  # time without service is nobody's fault
    async with started(place, clock) as engine:
        shop = engine.collections.find("shop")
        assert await engine.rank(shop, "owl", caller=ONE) == first
        assert await engine.feedback(first[0], first[1][0]["id"]) == "learned"
        assert await engine.rank(shop, "owl", caller=ONE) == first
        assert _shown(engine) == 3
        await audit(engine)


async def test_another_request_under_the_same_key_is_refused(engine: Engine) -> None:
    shop, other = await served(engine), await served(engine, "other")
    await engine.rank(shop, "owl", caller=ONE)
    for query, options in (
        ("pike", RankOptions()),
        ("owl", RankOptions(slots=2)),
        ("owl", RankOptions(excluded=["d000"])),
    ):
        with pytest.raises(KeyReusedError, match="use a new key"):
            await engine.rank(shop, query, options, caller=ONE)
    assert _shown(engine) == 1
    await engine.rank(other, "owl", caller=ONE)  # whose keys are its own


async def test_those_who_ask_at_once_are_answered_once(place: Place, engine: Engine, shop: ServedCollection) -> None:
    found = await asyncio.gather(*(engine.rank(shop, "owl", caller=ONE) for _ in range(20)))
    assert len({name for name, _ in found}) == 1
    assert _shown(engine) == 1


async def test_a_key_is_forgotten_in_the_end(
    clock: Clock, engine: Engine, shop: ServedCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await engine.rank(shop, "owl", caller=ONE)
    clock.pass_by(idempotency.KEPT_FOR - 1)
    assert await engine.rank(shop, "owl", caller=ONE) == first
    clock.pass_by(2)
    assert await engine.rank(shop, "owl", caller=ONE) != first
    monkeypatch.setattr(idempotency, "MOST_KEPT", 10)
    for number in range(100):
        await engine.rank(shop, "owl", caller=Caller(idempotency_key=f"key {number}"))
    assert len(engine.idempotency_keys) <= 11


@pytest.mark.parametrize("comes_true", [False, True])
async def test_what_was_refused_is_looked_up(
    place: Place, engine: Engine, shop: ServedCollection, monkeypatch: pytest.MonkeyPatch, comes_true: bool
) -> None:
    """A connection that breaks during a commit leaves everybody unsure."""
    await engine.rank(shop, "owl")
    write = engine.store.write
    [(owl, *_)] = engine.store.read.learners(shop.id)

    def fail(batch: Batch) -> None:
        if comes_true:
            write(batch)
        raise StorageError("gone")

    with monkeypatch.context() as patched:
        patched.setattr(engine.store, "write", fail)
        with pytest.raises(StorageError):
            await engine.rank(shop, "owl", caller=ONE)
        engine.write_queue._count = count_in(engine.store.read.last("events"))  # as after another connection was made
    await engine.rank(shop, "owl", caller=ONE)
    assert len(list(engine.store.read.events(owl))) == 2


async def test_over_http(engine: Engine, client: httpx.AsyncClient) -> None:
    await served(engine)

    async def rank(key: str, **body: Any) -> Any:
        return await client.post(
            "/v1/collections/shop/rank", json={"query": "owl", **body}, headers={"Idempotency-Key": key}
        )

    first = as_json(await rank("one"))
    assert as_json(await rank("one")) == first
    assert as_json(await rank("two")) != first
    refused = await rank("one", slots=1)
    assert (refused.status_code, as_json(refused)["error"]) == (422, "key_reused")
    for key in ("", "x" * 256, "a b"):
        assert (await rank(key)).status_code == 422
    assert _shown(engine) == 2


async def test_keys_of_different_callers_are_different(sqlite: Place) -> None:
    secrets = ["a" * 16, "b" * 16]
    async with started(sqlite) as engine, client_of(engine, Keys(dict.fromkeys(secrets, "rank"))) as client:
        await served(engine)
        first, other, again = [
            as_json(
                await client.post(
                    "/v1/collections/shop/rank",
                    json={"query": "owl"},
                    headers={"Idempotency-Key": "one", "Authorization": f"Bearer {secret}"},
                )
            )
            for secret in (*secrets, secrets[0])
        ]
        assert first == again
        assert first["impression"] != other["impression"]
