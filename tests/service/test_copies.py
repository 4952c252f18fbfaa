"""Copies of learners: they know what the query knows, learn by themselves, and nothing else ever hears of them."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.support.services import Clock, Place, as_json, audit, client_of, served, started
from zoomrank.service import copies
from zoomrank.service.engine import Engine
from zoomrank.service.http.access import Keys

MAKE = "/v1/collections/shop/copies"


async def _teach(engine: Engine, query: str, visits: int) -> None:
    shop = await served(engine)
    for visit in range(visits):
        name, documents = await engine.rank(shop, query)
        await engine.feedback(name, documents[0]["id"] if visit % 2 else None)


async def _made(client: httpx.AsyncClient, query: str = "owl") -> str:
    response = await client.post(MAKE, json={"query": query})
    assert response.status_code == 201, response.text
    return str(as_json(response)["copy"])


async def _play(client: httpx.AsyncClient, copy: str, visits: int) -> list[list[str]]:
    """Visitors of a copy, who click the last document; returns what they were shown."""
    shown = []
    for _ in range(visits):
        ranking = as_json(await client.post(f"/v1/copies/{copy}/rank", json={}))
        documents = [one["id"] for one in ranking["documents"]]
        told = [{"impression": ranking["impression"], "clicked": documents[-1]}]
        results = as_json(await client.post(f"/v1/copies/{copy}/feedback", json={"feedback": told}))["results"]
        assert results == [{"impression": ranking["impression"], "status": "learned"}]
        shown.append(documents)
    return shown


async def _all_that_is_kept(engine: Engine, client: httpx.AsyncClient) -> list[Any]:
    metrics = (await client.get("/metrics")).text.splitlines()
    return [
        [engine.store.read.last(table) for table in ("learners", "events")],
        engine.store.database.query("SELECT * FROM reports ORDER BY learner"),
        engine.store.database.query("SELECT * FROM activity ORDER BY collection, step, outcome"),
        engine.write_queue.batches,
        [line for line in metrics if line.startswith(("zoomrank_impressions", "zoomrank_learners", "zoomrank_writes"))],
        [learner.snapshot() for _, learner in engine.learners],
        as_json(await client.get("/v1/collections"))["collections"],
    ]


@pytest.mark.parametrize("similar", ["off", "words"])
async def test_a_copy_learns_and_nothing_else_does(
    place: Place, engine: Engine, client: httpx.AsyncClient, similar: str
) -> None:
    shop = await served(engine, similar=similar)
    for query in ("snowy owl", "barn owl", "owl"):
        await _teach(engine, query, 30)
    await engine.rank(shop, "owl")  # one that waits
    before = await _all_that_is_kept(engine, client)
    copy = await _made(client)
    shown = await _play(client, copy, 40)
    assert await _all_that_is_kept(engine, client) == before
    there = as_json(await client.get("/v1/collections/shop/query", params={"query": "owl", "copy": copy}))
    assert (there["impressions"], there["learned"], there["waiting"]) == (71, 70, 1)
    assert there["satisfied"] == 15 + 40
    here = as_json(await client.get("/v1/collections/shop/query", params={"query": "owl"}))
    assert (here["impressions"], here["satisfied"]) == (31, 15)
    assert here["ranking"] != there["ranking"]
    assert (here["support"] is None) == (similar == "off") == (there["support"] is None)
    trees = [
        as_json(await client.get("/v1/collections/shop/tree", params={"query": "owl"} | more))["nodes"]
        for more in ({}, {"copy": copy})
    ]
    assert trees[1][0]["visits"] > trees[0][0]["visits"]
    # The query itself, with the same visitors, would have shown the same.
    for documents in shown:
        name, ranked = await engine.rank(shop, "owl")
        assert [one["id"] for one in ranked] == documents
        await engine.feedback(name, documents[-1])
    await audit(engine)


@pytest.mark.parametrize("similar", ["off", "words"])
async def test_a_query_that_nobody_asked_is_not_made(engine: Engine, client: httpx.AsyncClient, similar: str) -> None:
    shop = await served(engine, similar=similar)
    await _teach(engine, "snowy owl", 3)
    before = await _all_that_is_kept(engine, client)
    made = await client.post(MAKE, json={"query": "  Barn OWL"})
    copy = as_json(made)["copy"]
    assert as_json(made) == {"copy": copy, "query": "barn owl", "impressions": 0}
    await _play(client, copy, 20)
    seen = await client.get("/v1/collections/shop/query", params={"query": "barn owl", "copy": copy})
    assert as_json(seen)["impressions"] == 20
    assert await _all_that_is_kept(engine, client) == before
    assert (await client.get("/v1/collections/shop/query?query=barn+owl")).status_code == 404
    assert shop.neighbours is None or len(shop.neighbours.queries.queries) == 1


async def test_what_a_copy_refuses(engine: Engine, client: httpx.AsyncClient) -> None:
    await _teach(engine, "owl", 2)
    await served(engine, "other")
    copy = await _made(client)
    ranking = as_json(await client.post(f"/v1/copies/{copy}/rank", json={}))
    impression, shown = ranking["impression"], ranking["documents"][0]["id"]
    told = [(impression, "d999"), (impression, shown), (impression, None), ("77", None), ("-1", None)]
    told += [("1-0-1a1e3030d14-374ae2561dd140d0d8f0", None), ("", None), ("²", None)]
    results = as_json(
        await client.post(
            f"/v1/copies/{copy}/feedback",
            json={"feedback": [{"impression": name, "clicked": clicked} for name, clicked in told]},
        )
    )["results"]
    said = [result.get("status") or result["error"] for result in results]
    assert said == ["unusable", "learned", "contradiction", *["unknown"] * 5]
    real = await client.post("/v1/feedback", json={"impression": impression, "clicked": None})
    assert real.status_code == 404
    for name, query in (("shop", "eagle"), ("other", "owl")):
        other = await client.get(f"/v1/collections/{name}/query", params={"query": query, "copy": copy})
        assert other.status_code == 404
        assert "belongs to query “owl” of “shop”" in other.text
    assert (await client.post(MAKE, json={"query": " "})).status_code == 422
    assert (await client.post("/v1/collections/none/copies", json={"query": "owl"})).status_code == 404
    for path in (MAKE, f"/v1/copies/{copy}/rank", f"/v1/copies/{copy}/feedback"):  # no page of somebody else
        refused = await client.post(path, content=b"{}", headers={"Content-Type": "text/plain"})
        assert refused.status_code == 415


async def test_copies_are_few_and_leave_when_nobody_uses_them(
    clock: Clock, engine: Engine, client: httpx.AsyncClient
) -> None:
    await _teach(engine, "owl", 2)

    async def there(copy: str) -> bool:
        response = await client.post(f"/v1/copies/{copy}/rank", json={})
        assert response.status_code in (200, 404)
        assert response.status_code == 200 or "Make a new one." in as_json(response)["message"]
        return response.status_code == 200

    made = [await _made(client) for _ in range(copies.MOST)]
    assert await there(made[0])  # so that the second one is the oldest
    made.append(await _made(client))
    assert [await there(copy) for copy in (made[0], made[1], made[2], made[-1])] == [True, False, True, True]
    clock.pass_by(copies.IDLE - 1)
    assert await there(made[3])
    clock.pass_by(2)
    assert [await there(copy) for copy in made[2:6]] == [False, True, False, False]


async def test_memory_of_copies_is_free_though_nobody_comes(
    clock: Clock, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = copies.Copies(engine)
    monkeypatch.setattr(copies, "IDLE", -0.99)  # seconds; and one more until it is looked after
    await kept.make(await served(engine), "owl")
    assert len(kept) == 1
    clock.pass_by(1)
    while len(kept):
        await asyncio.sleep(0.01)


async def test_a_copy_does_not_grow_with_visitors_who_never_answer(
    sqlite: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "MOST_WAITING", 10)
    async with started(sqlite, Clock()) as engine:
        kept = copies.Copies(engine)
        copy = await kept.make(await served(engine), "owl")
        for _ in range(30):
            kept.rank(copy)
        assert list(copy.learner.waiting) == [*range(20, 30)]
        assert copy.learner.answers == 0


async def test_who_may_read_may_play(sqlite: Place) -> None:
    keys = Keys({role * 5: role for role in ("read", "rank", "admin")})
    async with started(sqlite, Clock()) as engine, client_of(engine, keys) as client:
        await _teach(engine, "owl", 2)
        for role, status in (("read", 201), ("admin", 201), ("rank", 403), ("none", 401)):
            headers = {"Authorization": f"Bearer {role * 5}"}
            made = await client.post(MAKE, json={"query": "owl"}, headers=headers)
            assert made.status_code == status
            if status == 201:
                path = f"/v1/copies/{as_json(made)['copy']}/rank"
                assert (await client.post(path, json={}, headers=headers)).status_code == 200
                assert (await client.post(path, json={})).status_code == 401


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize("spaces", [" ", "\t \n", "\u2003\u00a0"])
async def test_a_query_is_more_than_spaces(engine: Engine, client: httpx.AsyncClient, fold: bool, spaces: str) -> None:
    await served(engine, fold=fold)
    refused = await client.post("/v1/collections/shop/rank", json={"query": spaces})
    assert refused.status_code == 422
    assert "A query has" in as_json(refused)["message"]
    assert engine.store.read.last("learners") == 0
