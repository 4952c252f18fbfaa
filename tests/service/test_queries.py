"""Lists of queries: searched, in several orders, with a trend; in memory or not makes no difference."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.services import Clock, Place, as_json, served, started
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.http import page_data
from zoomrank.service.learners.query_learner import QueryCounts


async def _ask(engine: Engine, shop: ServedCollection, query: str, clicks: str) -> None:
    """A visitor for each letter, who clicks if it is an x."""
    for letter in clicks:
        impression, documents = await engine.rank(shop, query)
        await engine.feedback(impression, documents[0]["id"] if letter == "x" else None)


async def _listed(engine: Engine, shop: ServedCollection, **asked: Any) -> list[str]:
    found = await page_data.queries(engine, shop, asked.pop("offset", 0), asked.pop("limit", 50), **asked)
    return [one["query"] for one in found["queries"]]


@pytest.mark.store_contract
async def test_orders(place: Place) -> None:
    clock = Clock()
    async with started(place, clock) as engine:
        shop = await served(engine)
        for query, clicks in (
            ("bad", "." * 20 + "x"),
            ("unlucky once", "."),
            ("good", "x" * 9 + "."),
            ("falling", "x" * 100 + "." * 30),
            ("rising", "." * 60 + "x" * 60),
        ):
            await _ask(engine, shop, query, clicks)
            clock.pass_by(1)
        await engine.rank(shop, "unanswered")
        await engine.housekeep()
        expected = {
            "asked": ["falling", "rising", "bad", "good", "unanswered", "unlucky once"],
            "worst": ["bad", "unlucky once", "rising", "falling", "good", "unanswered"],
            "newest": ["unanswered", "rising", "falling", "good", "unlucky once", "bad"],
        }
        for sort, queries in expected.items():
            assert await _listed(engine, shop, sort=sort) == queries
            pages = [await _listed(engine, shop, sort=sort, offset=at, limit=2) for at in (0, 2, 4)]
            assert [query for page in pages for query in page] == queries
        assert (await _listed(engine, shop, sort="trend"))[:2] == ["falling", "rising"]
    async with started(place, clock) as engine:
        shop = await served(engine)
        for sort, queries in expected.items():
            assert await _listed(engine, shop, sort=sort) == queries


@pytest.mark.store_contract
@pytest.mark.parametrize("fold", [True, False])
async def test_letters_are_looked_for_as_they_are(place: Place, engine: Engine, fold: bool) -> None:
    shop = await served(engine, fold=fold)
    for query in ("Snowy Owl", "owls", "100% wool", "a_b", "axb", "über!"):
        await engine.rank(shop, shop.query(query))
    same = str.lower if fold else str
    assert set(await _listed(engine, shop, search="OWL")) == {same("Snowy Owl"), "owls"}
    assert await _listed(engine, shop, search="0%") == ["100% wool"]
    assert await _listed(engine, shop, search="a_b") == ["a_b"]
    assert await _listed(engine, shop, search="r!") == ["über!"]
    assert await _listed(engine, shop, search="nothing") == []
    found = await page_data.queries(engine, shop, 0, 1, search="owl")
    assert (len(found["queries"]), found["total"]) == (1, 2)


def test_the_share_of_late_follows_what_happens() -> None:
    counts = QueryCounts()
    for _ in range(99):
        counts.count_answer(True)
    assert (counts.late, counts.recent) == (1.0, None)
    for _ in range(51):
        counts.count_answer(False)
    assert counts.recent == pytest.approx(0.98**51)
    first = QueryCounts()
    for clicked in (True, False, False, True):
        first.count_answer(clicked)
    assert first.late == pytest.approx(0.5)


async def test_over_http(engine: Engine, shop: ServedCollection, client: httpx.AsyncClient) -> None:
    await _ask(engine, shop, "owl", "x" * 100)
    await _ask(engine, shop, "pike", "..")
    await engine.housekeep()
    found = as_json(await client.get("/v1/collections/shop/queries?sort=worst&search=%20O"))
    assert [(one["query"], one["recent"]) for one in found["queries"]] == [("owl", 1.0)]
    assert found["total"] == 1
    assert (await client.get("/v1/collections/shop/queries?sort=best")).status_code == 422


async def test_the_zoom_tree_is_open_where_visitors_went(engine: Engine, shop: ServedCollection) -> None:
    await _ask(engine, shop, "owl", "x." * 20)
    nodes, some, two = [(await page_data.tree(engine, shop, "owl", limit))["nodes"] for limit in (200, 6, 2)]
    assert nodes[:6] == some
    assert nodes[:2] == two
    of = {node["id"]: [one for one in nodes if one["parent"] == node["id"]] for node in nodes}
    assert sum(map(len, of.values())) == len(nodes) - 1  # all but the root
    for node in nodes:
        for count in ("visits", "clicks"):
            assert sum(one[count] for one in of[node["id"]]) <= node[count]
    assert of[max(some[2:], key=lambda node: node["visits"])["id"]]
