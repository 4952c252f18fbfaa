"""Activity over long spans: nothing is lost between the pieces in which it is read, and it is remembered a moment."""

from __future__ import annotations

import pytest

from tests.support.services import Clock, Place
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.http import page_data

DAY = 86_400


@pytest.mark.store_contract
@pytest.mark.parametrize(("days", "points"), [(1, 48), (7, 84), (30, 60), (90, 90), (90, 7)])
async def test_every_impression_is_in_one_step(
    place: Place, clock: Clock, engine: Engine, shop: ServedCollection, days: int, points: int
) -> None:
    shown = []
    for passing in (0, 30 * DAY, 59.6 * DAY, 0.3 * DAY, 9.99, 20, 11 * 3600):
        clock.pass_by(passing)
        impression, documents = await engine.rank(shop, "owl")
        await engine.feedback(impression, documents[0]["id"])
        shown.append(clock.time)
    for whose in (shop, None):
        found = await page_data.activity(engine, whose, days * DAY, points)
        start, step = found["start"], found["step"]
        steps = [int((time - start) // step) for time in shown if time >= start]
        expected = [steps.count(at) for at in range(len(found["impressions"]))]
        assert found["impressions"] == found["satisfied"] == found["clicks_by_slot"][0] == expected
        assert start + step * len(expected) > clock.time


async def test_long_spans_are_remembered_a_minute_at_most(clock: Clock, engine: Engine, shop: ServedCollection) -> None:
    activities = page_data.ActivityCache(engine)
    for long, seconds in ((True, 90 * DAY), (False, 3600)):
        before = sum((await activities.look(shop, seconds, 90))["impressions"])
        await engine.rank(shop, "owl")
        await engine.write_queue.flush()
        clock.pass_by(50)
        now = sum((await activities.look(shop, seconds, 90))["impressions"])
        assert now == before + (0 if long else 1)
    clock.pass_by(11)
    assert sum((await activities.look(shop, 90 * DAY, 90))["impressions"]) == 2
    clock.pass_by(-1000)
    await engine.rank(shop, "owl")
    assert sum((await activities.look(shop, 90 * DAY, 90))["impressions"]) == 3  # a clock that was set back
