"""Several rankings in one request: each as if it were requested alone, all in one write."""

from typing import Any

import httpx
import pytest

from tests.support.services import Clock, Place, as_json, audit, client_of, served, started
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.errors import StorageError
from zoomrank.service.experiments import ArmSpec
from zoomrank.service.storage.events import Batch
from zoomrank.wire import MOST_RANKINGS

PATH = "/v1/collections/shop/rank/batch"
QUERIES = [f"query {number}" for number in range(MOST_RANKINGS)]


async def _posted(client: httpx.AsyncClient, requests: list[Any], **headers: str) -> Any:
    told = await client.post(PATH, json={"requests": requests}, headers=headers)
    assert told.status_code == 200, told.text
    return as_json(told)["results"]


def _asked(*queries: str) -> list[Any]:
    return [{"query": query} for query in queries]


def _shown(engine: Engine) -> int:
    return engine.outcomes[1][255]


@pytest.mark.store_contract
async def test_a_batch_is_one_write_and_each_ranking_counts(
    place: Place, engine: Engine, shop: ServedCollection, client: httpx.AsyncClient
) -> None:
    first = await _posted(client, _asked(*QUERIES))
    writes = engine.write_queue.batches
    again = await _posted(client, _asked(*QUERIES), **{"Idempotency-Key": "one"})
    assert engine.write_queue.batches == writes + 1
    assert [one["query"] for one in again] == QUERIES
    assert len({one["impression"] for one in first + again}) == 2 * len(QUERIES)
    for one in again[:10]:
        told = await client.post("/v1/feedback", json={"impression": one["impression"], "clicked": None})
        assert as_json(told)["status"] == "learned"
    metrics = (await client.get("/metrics")).text
    assert 'zoomrank_impressions_total{collection="shop",outcome="shown"} 200.0' in metrics
    assert 'zoomrank_requests_total{kind="rank/batch",status="200"} 2.0' in metrics
    assert (await audit(engine)).learners == len(QUERIES)


async def test_a_ranking_of_a_batch_is_the_one_that_would_be_shown_alone(sqlite: Place, tmp_path: Any) -> None:
    requests: list[dict[str, Any]] = [
        {"query": "Owl ", "slots": 2},
        {"query": "owl", "eligible": ["d000", "d111", "d221"], "propensities": True},
        {"query": "owl", "eligible": ["none"], "unknown": "skip", "fewer": True, "propensities": True},
        {"query": "pike", "order": ["d212", "d000"], "visitor": "v"},
    ]
    async with started(sqlite) as engine, client_of(engine) as client:
        await served(engine)
        together = await _posted(client, requests)
    alone = []
    other = Place(tmp_path / "other")
    async with started(other) as engine, client_of(engine) as client:
        await served(engine)
        for one in requests:
            alone.append(as_json(await client.post("/v1/collections/shop/rank", json=one)))
    other.close()
    for one in together + alone:
        one["impression"] = one["impression"] is not None and one["impression"].rpartition("-")[0]
    assert together == alone


async def test_what_is_malformed_is_named_by_its_place_and_nothing_is_done(
    engine: Engine, shop: ServedCollection, client: httpx.AsyncClient
) -> None:
    for requests, named in (
        ([*_asked("owl", "pike"), {"query": "cod", "slots": 0}], "requests.2.slots"),
        ([*_asked("owl"), {"slots": 1}, 7], "requests.1.query"),
        ([], "requests"),
        (_asked(*QUERIES, "one more"), "requests"),
    ):
        told = await client.post(PATH, json={"requests": requests})
        assert (told.status_code, as_json(told)["error"]) == (422, "malformed")
        assert as_json(told)["message"].startswith(f"{named}: ")
    told = await client.post("/v1/collections/none/rank/batch", json={"requests": _asked("owl")})
    assert (told.status_code, as_json(told)["error"]) == (404, "unknown")
    assert _shown(engine) == 0


async def test_each_ranking_succeeds_or_fails_by_itself(sqlite: Place) -> None:
    async with started(sqlite) as engine, client_of(engine) as client:
        await served(engine, new_queries=2)
        await _posted(client, _asked("owl", "pike"))  # new queries of a batch are admitted in any order
        told = await _posted(
            client,
            [
                {"query": "owl"},
                {"query": "owl", "eligible": ["none"]},
                {"query": "pike"},
                {"query": "cod"},
                {"query": " "},
                {"query": "pike", "slots": 1},
            ],
        )
        assert [one.get("error") for one in told] == [None, "unusable", None, "too_many", "unusable", None]
        assert [one["query"] for one in told] == ["owl", "owl", "pike", "cod", " ", "pike"]
        assert _shown(engine) == 5


@pytest.mark.parametrize("crash", [False, True])
async def test_a_key_covers_the_batch(place: Place, crash: bool) -> None:
    clock, key = Clock(), {"Idempotency-Key": "one"}
    asked = _asked("owl", "pike", "owl", "cod")
    async with started(place, clock, crash=crash) as engine, client_of(engine) as client:
        await served(engine)
        first = await _posted(client, asked, **key)
        assert len({one["impression"] for one in first}) == 4  # two visitors may ask for the same
        assert await _posted(client, asked, **key) == first
        alone = await client.post("/v1/collections/shop/rank", json={"query": "owl"}, headers=key)
        assert as_json(alone)["impression"] not in {one["impression"] for one in first}
    async with started(place, clock) as engine, client_of(engine) as client:
        assert await _posted(client, asked, **key) == first
        other = await _posted(client, [{"query": "owl", "slots": 1}, {"query": "pike"}], **key)
        assert other[0]["error"] == "key_reused"
        assert other[1] == first[1]
        assert _shown(engine) == 5
        await audit(engine)


async def test_a_batch_that_could_not_be_written_is_refused_as_a_whole(
    engine: Engine, shop: ServedCollection, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, key = _asked(*QUERIES[:5]), {"Idempotency-Key": "one"}
    await _posted(client, asked)

    def fail(batch: Batch) -> None:
        raise StorageError("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(engine.store, "write", fail)
        told = await client.post(PATH, json={"requests": asked}, headers=key)
        assert (told.status_code, as_json(told)["error"], told.headers["Retry-After"]) == (503, "storage", "1")
    told = await _posted(client, asked, **key)
    assert all(one["impression"] for one in told)
    assert _shown(engine) == 10
    await audit(engine)


async def test_a_visitor_counts_once_in_an_experiment(
    engine: Engine, shop: ServedCollection, client: httpx.AsyncClient
) -> None:
    """Also where all learners are new, so that no ranking is ready when the others begin."""
    arms = [ArmSpec("now", 0.5, None), ArmSpec("other", 0.5, {"seed": 1})]
    experiment = await engine.experiments.create(shop, "first", arms)
    told = await _posted(client, [{"query": query, "visitor": "v"} for query in QUERIES[:8]])
    assert all(one["impression"] for one in told)
    counts = [count for *_, count in engine.store.read.arm_visits(experiment.id)]
    assert sum(counts) == 1
    assert len(engine.store.read.visitors(experiment.id)) == 1
