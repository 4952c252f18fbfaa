"""Thousands of learners in little memory: those that leave come back the same, bit for bit."""

import asyncio
import random

import pytest

from tests.support.services import Clock, Place, audit, served, started
from zoomrank.service.engine import Engine
from zoomrank.service.http import page_data
from zoomrank.service.learners import learner_events


async def test_thousands_of_learners_leave_and_come_back(place: Place) -> None:
    many = 1200 if place.address is None else 400
    clock = Clock()
    random_ = random.Random(3)
    async with started(place, clock, budget=1_000 * many) as engine:
        shop = await served(engine)
        waiting = []
        for start in range(0, many, 100):
            shown = await asyncio.gather(
                *(engine.rank(shop, f"query {number}") for number in range(start, start + 100))
            )
            waiting += shown
            await engine.housekeep()
            assert engine.learners.size <= engine.learners.budget
            assert len(engine.learners) < many / 4
        assert page_data.about(engine, shop)["queries"] == many
        random_.shuffle(waiting)
        for start in range(0, many, 100):  # nearly all of them of learners that have left
            told = await asyncio.gather(
                *(
                    engine.feedback(name, documents[0]["id"] if start % 200 else None)
                    for name, documents in waiting[start : start + 100]
                )
            )
            assert set(told) == {"learned"}
            await engine.housekeep()
        assert engine.learners.size <= engine.learners.budget
        about = page_data.about(engine, shop)
        assert (about["impressions"], about["satisfied"], about["abandoned"]) == (many, many // 2, many // 2)
        assert (await page_data.queries(engine, shop, 0, 10))["total"] == many
    async with started(place, clock) as engine:
        assert not engine.learners  # they come when they are asked for
        found = await audit(engine)
        assert (found.learners, found.closed) == (many, many)


async def test_a_learner_in_memory_and_one_that_comes_and_goes_are_the_same(sqlite: Place) -> None:
    clock = Clock()
    async with (
        started(sqlite, clock, budget=1) as small,
        started(Place(sqlite.folder / "large"), clock) as large,
    ):
        here, there = await served(small, feedback_within=5), await served(large, feedback_within=5)
        for visit in range(150):
            clock.pass_by(0.5)
            query = f"query {visit % 7}"
            name, documents = await small.rank(here, query)
            other, same = await large.rank(there, query)
            assert documents == same
            if visit % 3:
                clicked = documents[visit % 3]["id"] if visit % 5 else None
                await small.feedback(name, clicked)
                await large.feedback(other, clicked)
            await small.housekeep()
            await large.housekeep()
            assert len(small.learners) == 1
        clock.pass_by(6)
        await small.housekeep()
        await large.housekeep()
        assert small.outcomes == large.outcomes
        for number in range(7):
            one = await small.learners.find(here, f"query {number}")
            two = await large.learners.find(there, f"query {number}")
            assert one is not None
            assert two is not None
            assert one.counts.waiting == 0
            assert one.counts.satisfied == two.counts.satisfied


async def test_leaving_under_load_loses_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner_events, "SNAPSHOT_EVERY", 20)
    async with started(place, budget=1) as engine:
        shop = await served(engine)

        async def visit(number: int) -> None:
            for turn in range(15):
                name, documents = await engine.rank(shop, f"query {(number * turn) % 9}")
                assert await engine.feedback(name, documents[0]["id"]) == "learned"

        async def sweep() -> None:
            while True:
                await engine.housekeep()
                await asyncio.sleep(0)

        housekeeping = asyncio.create_task(sweep())
        await asyncio.gather(*(visit(number) for number in range(20)))
        housekeeping.cancel()
        found = await audit(engine)
        assert found.closed == len(found.outcomes) == 300


@pytest.mark.parametrize("crash", [False, True])
async def test_what_is_said_of_queries_is_right_after_a_start(place: Place, crash: bool) -> None:
    clock = Clock()
    async with started(place, clock, crash=crash) as engine:
        shop = await served(engine)
        for number in range(4):
            for _ in range(number + 1):
                name, documents = await engine.rank(shop, f"query {number}")
                await engine.feedback(name, documents[0]["id"])
        before = page_data.about(engine, shop)
        listed = await page_data.queries(engine, shop, 0, 10)
    async with started(place, clock) as engine:
        await engine.housekeep()
        shop = engine.collections.find("shop")
        assert page_data.about(engine, shop) == before
        assert await page_data.queries(engine, shop, 0, 10) == listed
        assert [row["impressions"] for row in listed["queries"]] == [4, 3, 2, 1]


@pytest.mark.store_contract
@pytest.mark.parametrize("budget", [1, 2**30])
async def test_the_most_asked_queries_come_first(place: Place, budget: int) -> None:
    asked = [3, 9, 1, 7, 5, 2, 8, 4, 6]
    async with started(place, budget=budget) as engine:
        shop = await served(engine)
        for number, times in enumerate(asked):
            for _ in range(times):
                await engine.rank(shop, f"query {number}")
            await engine.housekeep()
        pages = [(await page_data.queries(engine, shop, offset, 4))["queries"] for offset in range(0, len(asked), 4)]
        rows = [row for page in pages for row in page]
        assert [row["impressions"] for row in rows] == sorted(asked, reverse=True)
        assert rows[0]["query"] == "query 1"
        await engine.rank(shop, "query 1")
        await engine.housekeep()
        writes = engine.write_queue.batches
        await engine.housekeep()
        assert engine.write_queue.batches == writes  # nothing new


async def test_outcomes_of_old_impressions_are_let_go_of(clock: Clock, engine: Engine) -> None:
    """A learner does not grow with every visitor it ever had."""
    shop = await served(engine, feedback_within=10)
    for _ in range(1000):
        clock.pass_by(0.1)
        name, _ = await engine.rank(shop, "owl")
        await engine.feedback(name, None)
    learner = await engine.learners.find(shop, "owl")
    assert learner is not None
    assert len(learner.outcomes) < 300
    assert len(learner.marks) < 5
    await audit(engine)
