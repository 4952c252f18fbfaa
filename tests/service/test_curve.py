"""The learning curve of a query: it is what its log says, window by window, however long it is."""

from __future__ import annotations

import io
import json
from typing import Any

import httpx
import pytest

from tests.support.services import Place, as_json, served, started
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.click_import import ImportedLog
from zoomrank.service.engine import Engine
from zoomrank.service.http import page_details
from zoomrank.service.http.page_details import LearningCurves, counted, windows
from zoomrank.service.learners.void import ImpressionFilter
from zoomrank.service.storage.events import ABANDONED, SEEN, TIMED_OUT, UNSEEN, VOIDED


async def _visitors(engine: Engine, shop: ServedCollection, count: int, query: str = "owl") -> list[bool]:
    """So many visitors; says who clicked."""
    clicked = []
    for number in range(count):
        impression, documents = await engine.rank(shop, query)
        likes = number * number % 7 < 3
        await engine.feedback(impression, documents[0]["id"] if likes else None)
        clicked.append(likes)
    return clicked


@pytest.mark.parametrize("impressions", [0, 1, 49, 50, 74, 76, 100, 451, 10_000, 1_000_000])
def test_windows_hold_each_impression_once(impressions: int) -> None:
    found = list(windows(impressions))
    assert [window.start for window in found[1:]] == [window.stop for window in found[:-1]]
    assert sum(map(len, found)) == impressions
    assert all(len(window) >= min(25, impressions) for window in found)
    assert len(found) <= 75


def test_only_answers_count() -> None:
    lines = [(0, 2), (1, ABANDONED), (2, TIMED_OUT), (3, UNSEEN), (4, SEEN), (4, 0), (5, 1), (5, VOIDED), (6, SEEN)]
    assert counted(lines) == {"answered": 4, "satisfied": 2}


@pytest.mark.store_contract
async def test_a_curve_is_what_became_of_impressions(place: Place, engine: Engine, shop: ServedCollection) -> None:
    clicked = await _visitors(engine, shop, 230)
    curves = LearningCurves(engine)
    curve = await curves.curve(shop, "owl")
    for point in curve["points"]:
        here = clicked[point["start"] : point["end"]]
        assert (point["answered"], point["satisfied"]) == (len(here), sum(here))
    assert [point["end"] for point in curve["points"]] == [50, 100, 150, 200, 230]
    assert curve["first"] == {"answered": 100, "satisfied": sum(clicked[:100])}
    assert curve["unlearned"] == {"answered": 20, "satisfied": sum(clicked[:20])}
    clicked += await _visitors(engine, shop, 5)
    assert sum(point["satisfied"] for point in (await curves.curve(shop, "owl"))["points"]) == sum(clicked)
    await engine.void(shop, ImpressionFilter(query="owl"))
    curve = await curves.curve(shop, "owl")
    assert not any(point["answered"] for point in curve["points"])
    assert (curve["first"], curve["unlearned"]) == (None, None)


async def test_of_a_long_window_some_are_read(sqlite: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_details, "_MOST_READ", 10)
    async with started(sqlite) as engine:
        shop = await served(engine)
        clicked = await _visitors(engine, shop, 120)
        curve = await LearningCurves(engine).curve(shop, "owl")
        assert [point["answered"] for point in curve["points"]] == [10, 10]
        assert curve["points"][1]["satisfied"] == sum(clicked[50:60])
        assert curve["first"]["answered"] == 100


async def test_what_was_lent_from_the_start_is_no_random_ranking(engine: Engine) -> None:
    shop = await served(engine, similar="words")
    await _visitors(engine, shop, 30, "snowy owl")
    curve = await LearningCurves(engine).curve(shop, "snowy owl")
    assert curve["first"]["answered"] == 30
    assert curve["unlearned"] is None


@pytest.mark.parametrize(("before", "random"), [(0, False), (10, False), (20, True)])
async def test_what_another_ranker_showed_is_no_random_ranking(
    place: Place, engine: Engine, shop: ServedCollection, before: int, random: bool
) -> None:
    """An import within the first impressions, or after them."""
    clicked = await _visitors(engine, shop, before)
    line = json.dumps({"query": "owl", "shown": ["d000", "d001"], "clicked": "d001"}).encode()
    await engine.importer.learn(ImportedLog(shop, io.BytesIO(b"\n".join([line] * 15)), ".jsonl", "refuse"))
    curve = await LearningCurves(engine).curve(shop, "owl")
    assert curve["first"] == {"answered": before + 15, "satisfied": sum(clicked) + 15}
    assert curve["unlearned"] == ({"answered": 20, "satisfied": sum(clicked)} if random else None)


async def test_over_http(engine: Engine, shop: ServedCollection, client: httpx.AsyncClient) -> None:
    await _visitors(engine, shop, 3)
    found: Any = as_json(await client.get("/v1/collections/shop/query/curve?query=%20OWL"))
    assert found["points"][0]["answered"] == 3
    assert found["query"] == "owl"
    assert (await client.get("/v1/collections/shop/query/curve?query=never")).status_code == 404
