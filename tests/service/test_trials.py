"""What the service tells of documents on trial: which, why, how often, and about how many clicks a day that costs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.services import Clock, as_json, client_of, served
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.http import page_data

DAY = 86_400


async def _visitors(engine: Engine, shop: ServedCollection, query: str, count: int, liked: str = "d") -> None:
    """So many visitors who click the first document whose id begins so."""
    for _ in range(count):
        impression, documents = await engine.rank(shop, query)
        await engine.feedback(impression, next((one["id"] for one in documents if one["id"].startswith(liked)), None))


async def test_a_new_query_tries_everywhere(engine: Engine, shop: ServedCollection) -> None:
    await engine.rank(shop, "owl")
    found = await page_data.query(engine, shop, "owl")
    assert [(one["trial"], one["record"]) for one in found["ranking"]] == [(True, None)] * 3
    assert all(one["why"].startswith("On trial: no visitor has looked at") for one in found["ranking"])
    assert all("nothing better is known" in one["why"] for one in found["ranking"])
    assert [slot["share"] for slot in found["forecast"]["slots"]] == [1.0] * 3
    assert found["forecast"]["slots"][0]["tried"] == [{"label": "shop", "documents": 36, "visits": 200}]


async def test_what_is_liked_has_proved_itself_and_the_slots_below_try(engine: Engine, shop: ServedCollection) -> None:
    await _visitors(engine, shop, "owl", 150, "d11")
    found = await page_data.query(engine, shop, "owl")
    top, *below = found["ranking"]
    assert top["trial"] is False
    assert top["record"] == pytest.approx(1, abs=0.1)
    assert not top["why"].startswith("On trial")
    slots = found["forecast"]["slots"]
    assert (slots[0]["share"], slots[0]["tried"]) == (0.0, [])
    tried = [one for one in below if one["trial"]]
    assert all(one["why"].startswith("On trial: ") for one in tried)
    assert bool(tried) <= any(slot["share"] > 0 for slot in slots[1:])


async def test_the_cost_of_a_day_is_that_of_the_querys_share_of_a_day(
    clock: Clock, engine: Engine, shop: ServedCollection
) -> None:
    for count in (30, 10):  # the day before yesterday, and today
        await _visitors(engine, shop, "owl", 3 * count, "d0")
        await _visitors(engine, shop, "pike", count, "d0")
        clock.pass_by(2 * DAY if count == 30 else 60)
    await engine.write_queue.flush()
    told = (await page_data.query(engine, shop, "owl"))["forecast"]
    assert told["impressions_per_day"] == pytest.approx(40 * 120 / 160)
    for slot in told["slots"]:
        assert slot["cost_per_day"] == pytest.approx(slot["cost_per_100_visits"] / 100 * 30)


@pytest.mark.parametrize(("algorithm", "tells"), [("ZoomRank", True), ("RankCorrZoom", False)])
async def test_over_http(engine: Engine, algorithm: str, tells: bool) -> None:
    shop = await served(engine, algorithm=algorithm)
    await _visitors(engine, shop, "owl", 20, "d0")
    async with client_of(engine) as client:
        found: dict[str, Any] = as_json(await client.get("/v1/collections/shop/query?query=owl"))
    assert (found["forecast"] is not None) == tells
    assert all((one["trial"] is not None) == tells for one in found["ranking"])
    if tells:
        assert (found["forecast"]["visits"], len(found["forecast"]["slots"])) == (200, 3)
