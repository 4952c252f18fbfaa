"""Every algorithm that the service offers: the log alone makes the same learner again, bit for bit."""

import json
import random
from typing import Any

import numpy as np
import pytest

from tests.support.services import Clock, Place, audit, served, started
from zoomrank.service.catalogue.settings import ALGORITHMS
from zoomrank.service.engine import Engine
from zoomrank.service.http import page_data
from zoomrank.service.learners import learner_events
from zoomrank.service.learners.query_learner import QueryLearner
from zoomrank.service.rank_options import RankOptions
from zoomrank.service.storage.events import pack, unpack

RESTRICTABLE = ("ZoomRank", "RankThompson", "RankRandom")
FIRST = ("ZoomRank", "RankCorrZoom", "RankThompson")  # of three kinds; the others are in the longer tier
SOME_FIRST = [name if name in FIRST else pytest.param(name, marks=pytest.mark.full) for name in ALGORITHMS]


async def _visit(engine: Any, shop: Any, clock: Clock, visits: int, seed: int) -> None:
    """Visitors of three queries: some click, some leave, some say nothing; views are looked at in between."""
    random_ = random.Random(seed)
    waiting: list[Any] = []
    restricted = shop.settings.algorithm in RESTRICTABLE
    for visit in range(visits):
        clock.pass_by(random_.random())
        query = random_.choice(["owl", "pike", "oak"])
        excluded = ["d000", "d111"] if restricted and random_.random() < 0.2 else None
        waiting.append(
            await engine.rank(shop, query, RankOptions(slots=random_.choice([None, 1, 2]), excluded=excluded))
        )
        random_.shuffle(waiting)
        while len(waiting) > 5:
            impression, documents = waiting.pop()
            fate = random_.random()
            if fate < 0.8:
                clicked = next((one["id"] for one in documents if one["id"].startswith(("d0", "d21"))), None)
                await engine.feedback(impression, clicked)
        if visit % 50 == 25:
            json.dumps(await page_data.query(engine, shop, query), allow_nan=False)
            json.dumps(await page_data.tree(engine, shop, query, 50), allow_nan=False)
        if visit % 60 == 30:
            await engine.housekeep()


@pytest.mark.parametrize("algorithm", SOME_FIRST)
async def test_live_recovered_and_replayed_learners_are_the_same(
    sqlite: Place, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner_events, "SNAPSHOT_EVERY", 150)
    clock = Clock()
    for round_, crash in enumerate((True, False, True)):
        async with started(sqlite, clock, crash=crash) as engine:
            shop = await served(engine, algorithm=algorithm, feedback_within=30, seed=round_)
            await _visit(engine, shop, clock, 250, round_)
            live = {learner.number: learner.snapshot() for _, learner in engine.learners}
            await audit(engine)
        async with started(sqlite, clock, crash=True) as engine:
            await audit(engine)
            assert {learner.number: learner.snapshot() for _, learner in engine.learners} == live


@pytest.mark.parametrize("algorithm", SOME_FIRST)
async def test_a_learner_that_came_back_shows_what_it_would_have_shown(sqlite: Place, algorithm: str) -> None:
    """Two services with the same feedback; one of them stops again and again."""
    clock = Clock()
    steady_place = Place(sqlite.folder / "steady")
    async with started(steady_place, clock) as steady:
        there = await served(steady, algorithm=algorithm)
        for life in range(6):
            async with started(sqlite, clock, crash=life % 2 == 0) as shaky:
                here = await served(shaky, algorithm=algorithm)
                for visit in range(12):
                    name, documents = await steady.rank(there, "owl")
                    same_name, same_documents = await shaky.rank(here, "owl")
                    assert documents == same_documents
                    clicked = documents[visit % 3]["id"] if visit % 4 else None
                    await steady.feedback(name, clicked)
                    await shaky.feedback(same_name, clicked)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_looking_changes_nothing(clock: Clock, engine: Engine, algorithm: str) -> None:
    shop = await served(engine, algorithm=algorithm)
    await _visit(engine, shop, clock, 30, 1)
    learner = await engine.learners.find(shop, "owl")
    assert learner is not None
    before = learner.snapshot()
    shown = (await page_data.query(engine, shop, "owl"))["ranking"]
    for _ in range(3):
        assert (await page_data.query(engine, shop, "owl"))["ranking"] == shown
        await page_data.tree(engine, shop, "owl", 100)
    assert learner.snapshot() == before
    _, documents = await engine.rank(shop, "owl")
    assert [one["id"] for one in documents] == [one["id"] for one in shown]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_what_is_written_down_of_a_ranking_is_all_of_it(clock: Clock, engine: Engine, algorithm: str) -> None:
    shop = await served(engine, algorithm=algorithm)
    await _visit(engine, shop, clock, 60, 2)
    learner = await engine.learners.find(shop, "owl")
    assert learner is not None
    for slots in (1, 2, 3):
        ranking = learner.chooser().rank_arrays(1, None, slots)
        again = unpack(pack(ranking))
        for array, other in zip(ranking, again, strict=True):
            assert array.shape == other.shape == (1, slots)
            assert np.array_equal(array, other, equal_nan=True)  # RankThompson does not know how likely
    assert isinstance(learner, QueryLearner)
