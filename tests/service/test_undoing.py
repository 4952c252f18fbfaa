"""What was taken back is as if it had never been: in learners, in counts, after a crash, among similar queries."""

import asyncio
import contextlib
import random
from typing import Any

import httpx
import numpy as np
import pytest

from tests.support.services import Clock, Place, as_json, audit, client_of, key_of, served, started
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.errors import NotFoundError, QuotaExceededError, StorageError, VoidedError
from zoomrank.service.http import page_data
from zoomrank.service.http.access import Keys, caller_digest
from zoomrank.service.learners import learner_events
from zoomrank.service.learners.housekeeping import REMOVE_EVERY
from zoomrank.service.learners.query_learner import QueryLearner
from zoomrank.service.learners.void import ImpressionFilter
from zoomrank.service.rank_options import Caller
from zoomrank.service.storage.events import TIMED_OUT, UNSEEN, VOIDED, WAITING, Batch, Event

NOBODY = Caller()
BOT = Caller(digest=caller_digest("the key of a bot"))


async def _visits(
    engine: Engine, shop: ServedCollection, seed: int, number: int = 60, caller: Caller = NOBODY, query: str = "owl"
) -> list[str]:
    """Visitors who click what they like, some later than others, some not at all."""
    rng, names, late = random.Random(seed), [], []
    for _ in range(number):
        name, documents = await engine.rank(shop, query, caller=caller)
        names.append(name)
        late.append((name, rng.choice([None, *(one["id"] for one in documents)])))
        rng.shuffle(late)
        if len(late) > 5:
            with contextlib.suppress(VoidedError):
                await engine.feedback(*late.pop())
    return names


def _same_learned(one: QueryLearner, other: QueryLearner) -> bool:
    ours, theirs = one.ranker.learned, other.ranker.learned
    return ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours)


def _without(engine: Engine, served: ServedCollection, number: int, void: set[int]) -> QueryLearner:
    """What a learner would be that never met some of its visitors: literally."""
    made = QueryLearner.restored(number, served.versions, served.settings, 0)
    place: dict[int, int] = {}
    for _, event in engine.store.read.events(number):
        if event.number not in void and event.outcome != VOIDED:
            place.setdefault(event.number, len(place))
            made.note(Event(number, place[event.number], event.time, event.outcome, event.shown))
    return made


@pytest.mark.parametrize("similar", ["off", "words"])
@pytest.mark.parametrize("crash", [False, True])
async def test_what_a_bot_taught_is_untaught(
    place: Place, similar: str, crash: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner_events, "SNAPSHOT_EVERY", 10)
    clock = Clock()
    async with started(place, clock, crash=crash) as engine:
        shop = await served(engine, similar=similar)
        await _visits(engine, shop, 9, query="owl at night")
        await _visits(engine, shop, 1)
        clock.pass_by(10)
        bots = await _visits(engine, shop, 2, caller=BOT)
        mixed = await asyncio.gather(_visits(engine, shop, 3, caller=BOT), _visits(engine, shop, 4))
        number = key_of(bots[0])[0]
        void = {key_of(name)[1] for name in [*bots, *mixed[0]]}
        before = (await engine.known(shop, "owl")).snapshot()
        span = ImpressionFilter(caller=BOT.digest)
        assert await engine.void(shop, span, dry_run=True) == (120, 1)
        assert (await engine.known(shop, "owl")).snapshot() == before
        assert await engine.void(shop, span) == (120, 1)
        learner = await engine.known(shop, "owl")
        assert _same_learned(learner, _without(engine, shop, number, void))
        assert (learner.counts.impressions, learner.counts.voided) == (120, 120)
        with pytest.raises(VoidedError):
            await engine.feedback(bots[-1], None)
        with pytest.raises(VoidedError):
            await engine.seen(bots[-1])
        assert await engine.void(shop, span) == (0, 0)
        await _visits(engine, shop, 5)
        after = (await engine.known(shop, "owl")).snapshot()
        await audit(engine)
    async with started(place, clock) as engine:
        shop = engine.collections.find("shop")
        assert (await engine.known(shop, "owl")).snapshot() == after
        await audit(engine)
        await _visits(engine, shop, 6)
        await engine.void(shop, ImpressionFilter(since=clock() - 5))  # some of which are void already
        await audit(engine)


async def test_a_time_a_query_and_a_key_all_have_to_hold(place: Place, clock: Clock, engine: Engine) -> None:
    shop, other = await served(engine), await served(engine, "other")
    for query in ("owl", "pike"):
        for caller in (Caller(), BOT):
            for _ in range(3):
                clock.pass_by(10)
                await engine.rank(shop, query, caller=caller)
                await engine.rank(other, query, caller=caller)
    start = clock() - 110
    for span, found in (
        (ImpressionFilter(query="owl"), (6, 1)),
        (ImpressionFilter(query="oak"), (0, 0)),
        (ImpressionFilter(since=start + 20), (10, 2)),
        (ImpressionFilter(until=start + 20), (2, 1)),
        (ImpressionFilter(since=start + 20, until=start + 80), (6, 2)),
        (ImpressionFilter(caller=BOT.digest), (6, 2)),
        (ImpressionFilter("owl", start, start + 40, BOT.digest), (1, 1)),
    ):
        assert await engine.void(shop, span, dry_run=True) == found
    await engine.void(shop, ImpressionFilter(query="owl"))
    assert page_data.about(engine, shop)["impressions"] == 6
    assert page_data.about(engine, other)["impressions"] == 12
    await audit(engine)


async def test_a_query_that_is_void_begins_anew(place: Place, engine: Engine) -> None:
    shop = await served(engine, similar="words")
    await _visits(engine, shop, 1)
    await _visits(engine, shop, 2, query="owl at night")
    await engine.void(shop, ImpressionFilter(query="owl"))
    learner = await engine.known(shop, "owl")
    assert learner.answers == 0
    assert _same_learned(learner, QueryLearner(learner.number, shop.versions, shop.settings))
    await audit(engine)
    await _visits(engine, shop, 3)
    await audit(engine)


async def test_a_void_that_cannot_be_written_down_changes_nothing(
    place: Place, engine: Engine, shop: ServedCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _visits(engine, shop, 1)
    before = (await engine.known(shop, "owl")).snapshot()
    write = engine.store.write

    def refuse_voids(batch: Batch) -> None:
        if any(event.outcome == VOIDED for _, event in batch.events):
            raise StorageError("no")
        write(batch)

    with monkeypatch.context() as patched:
        patched.setattr(engine.store, "write", refuse_voids)
        with pytest.raises(StorageError):
            await engine.void(shop, ImpressionFilter(query="owl"))
    assert (await engine.known(shop, "owl")).snapshot() == before
    await audit(engine)


async def test_visitors_go_on_while_something_is_taken_back(place: Place) -> None:
    async with started(place, budget=100_000) as engine:
        shop = await served(engine)
        await _visits(engine, shop, 1, 200, BOT)

        async def take_back() -> None:
            for _ in range(5):
                await engine.void(shop, ImpressionFilter(caller=BOT.digest))
                await engine.housekeep()

        await asyncio.gather(
            *(_visits(engine, shop, seed, 60, BOT if seed % 2 else Caller()) for seed in range(4)), take_back()
        )
        await engine.void(shop, ImpressionFilter(caller=BOT.digest))
        assert (await engine.known(shop, "owl")).counts.impressions == 120
        await audit(engine)


# Queries that are removed.


@pytest.mark.parametrize("similar", ["off", "words"])
async def test_a_query_that_is_removed_is_gone(place: Place, similar: str) -> None:
    async with started(place, crash=True) as engine:
        shop = await served(engine, similar=similar)
        await _visits(engine, shop, 1, query="pike")
        names = await _visits(engine, shop, 2)
        await engine.void(shop, ImpressionFilter(caller=BOT.digest))
        await engine.remove_query(shop, "owl")
        with pytest.raises(NotFoundError):
            await engine.known(shop, "owl")
        with pytest.raises(NotFoundError):
            await engine.remove_query(shop, "owl")
        await audit(engine)
    async with started(place) as engine:
        shop = engine.collections.find("shop")
        await _visits(engine, shop, 3)
        assert (await engine.known(shop, "owl")).counts.impressions == 60
        with pytest.raises(NotFoundError):  # not an impression of the new learner
            await engine.feedback(names[-1], None)
        assert page_data.about(engine, shop)["impressions"] == 180  # what was shown was shown
        await audit(engine)


async def test_places_in_the_log_are_never_given_twice(place: Place) -> None:
    """Snapshots say up to which place they know the log: what came later at an earlier place would be lost."""
    async with started(place) as engine:
        shop = await served(engine)
        await _visits(engine, shop, 1, query="pike")
        await _visits(engine, shop, 2)
    async with started(place, crash=True) as engine:
        await engine.remove_query(engine.collections.find("shop"), "owl")
    async with started(place, crash=True) as engine:
        await _visits(engine, engine.collections.find("shop"), 3, query="pike")
        expected = (await engine.known(engine.collections.find("shop"), "pike")).snapshot()
    async with started(place) as engine:
        assert (await engine.known(engine.collections.find("shop"), "pike")).snapshot() == expected
        await audit(engine)


async def test_visitors_go_on_while_their_query_is_removed(
    place: Place, engine: Engine, shop: ServedCollection
) -> None:
    going_on = True

    async def ask() -> None:
        while going_on:
            await engine.rank(shop, "owl")

    async def look() -> None:
        while going_on:
            with contextlib.suppress(NotFoundError):
                await engine.known(shop, "owl")
            await asyncio.sleep(0)

    others = [asyncio.create_task(ask()) for _ in range(4)] + [asyncio.create_task(look())]
    for _ in range(20):
        await asyncio.sleep(0.005)
        await engine.void_service.remove(shop, "owl")
    going_on = False
    await asyncio.gather(*others)
    await audit(engine)


async def test_what_may_still_be_answered_is_not_removed(clock: Clock, engine: Engine) -> None:
    shop = await served(engine, asked_again_within=10, feedback_within=1000)
    name, _ = await engine.rank(shop, "owl")
    clock.pass_by(900)
    await engine.housekeep()
    assert await engine.feedback(name, None) == "learned"
    clock.pass_by(101)
    await engine.housekeep()
    assert page_data.about(engine, shop)["queries"] == 0


async def test_what_nobody_asked_again_is_removed(place: Place, clock: Clock, engine: Engine) -> None:
    shop = await served(engine, asked_again_within=1000, feedback_within=60)
    for number in range(20):
        await engine.rank(shop, f"once {number}")
    await _visits(engine, shop, 1, 2)
    clock.pass_by(900)
    await engine.rank(shop, "once 3")
    await engine.rank(shop, "late")
    await engine.housekeep()
    assert page_data.about(engine, shop)["queries"] == 22
    clock.pass_by(101 + REMOVE_EVERY)
    both = asyncio.gather(engine.housekeep(), engine.rank(shop, "once 0"))  # which is taken for asked again, or new
    await both
    name, _ = await engine.rank(shop, "once 0")
    assert await engine.feedback(name, None) == "learned"
    await engine.remove_query(shop, "once 0")
    found = await page_data.queries(engine, shop, 0, 50)
    assert {row["query"] for row in found["queries"]} == {"owl", "once 3", "late"}
    assert page_data.about(engine, shop)["impressions"] == 26
    await audit(engine)


# New queries.


async def test_a_collection_takes_so_many_queries(engine: Engine, client: httpx.AsyncClient) -> None:
    shop = await served(engine, most_queries=3)
    for query in ("a", "b", "c", "a"):
        await engine.rank(shop, query)
    refused = await client.post("/v1/collections/shop/rank", json={"query": "d"})
    assert (refused.status_code, as_json(refused)["error"]) == (429, "too_many")
    assert "`most_queries`" in as_json(refused)["message"]
    assert refused.headers["Retry-After"]
    await engine.remove_query(shop, "b")
    await engine.rank(shop, "d")
    assert page_data.about(engine, shop)["queries"] == 3


async def test_whoever_asks_takes_so_many_new_queries_an_hour(clock: Clock, engine: Engine) -> None:
    shop = await served(engine, new_queries=60)
    for number in range(60):
        await engine.rank(shop, f"one {number}", caller=BOT)
    with pytest.raises(QuotaExceededError, match="60 new queries an hour"):
        await engine.rank(shop, "another", caller=BOT)
    await engine.rank(shop, "one 7", caller=BOT)  # which is not new
    await engine.rank(shop, "another")  # somebody else
    clock.pass_by(61)
    await engine.rank(shop, "one more", caller=BOT)
    with pytest.raises(QuotaExceededError):
        await engine.rank(shop, "and one more", caller=BOT)


# Impressions that were seen.


@pytest.mark.parametrize("no_feedback", ["unseen", "abandoned"])
async def test_only_what_was_seen_counts_as_left(place: Place, no_feedback: str) -> None:
    clock = Clock()
    async with started(place, clock, crash=True) as engine:
        shop = await served(engine, feedback_within=60, no_feedback=no_feedback)
        shown = [await engine.rank(shop, "owl") for _ in range(4)]
        assert await engine.seen(shown[0][0]) == "noted"
        assert await engine.seen(shown[0][0]) == "repeated"
        assert await engine.seen(shown[1][0]) == "noted"
        assert await engine.feedback(shown[1][0], shown[1][1][0]["id"]) == "learned"
        assert await engine.seen(shown[1][0]) == "repeated"
    async with started(place, clock) as engine:
        assert await engine.seen(shown[0][0]) == "repeated"
        clock.pass_by(61)
        await engine.housekeep()
        found = await audit(engine)
        left = UNSEEN if no_feedback == "unseen" else TIMED_OUT
        assert [found.outcomes[key_of(name)] for name, _ in shown] == [TIMED_OUT, 0, left, left]
        assert WAITING not in found.outcomes.values()


# Over HTTP.


async def test_over_http(sqlite: Place) -> None:
    keys = Keys({"a" * 16: "admin", "r" * 16: "rank", "b" * 16: "rank", "s" * 16: "read"})
    async with started(sqlite) as engine, client_of(engine, keys) as client:
        await served(engine)

        async def send(key: str, method: str, path: str, **more: Any) -> Any:
            return await client.request(method, path, headers={"Authorization": f"Bearer {key * 16}"}, **more)

        rank, void = "/v1/collections/shop/rank", "/v1/collections/shop/void"
        shown = [as_json(await send(key, "POST", rank, json={"query": "Owl"})) for key in "rbbr"]
        seen = await send("r", "POST", "/v1/seen", json={"impression": shown[0]["impression"]})
        assert as_json(seen) == {"impression": shown[0]["impression"], "status": "noted"}
        assert (await send("r", "POST", void, json={"query": "owl"})).status_code == 403
        assert (await send("s", "POST", void, json={"query": "owl"})).status_code == 403
        assert "No impressions are selected" in as_json(await send("a", "POST", void, json={}))["message"]
        found = as_json(await send("a", "POST", void, json={"key": "b" * 16, "dry_run": True}))
        assert found == {"impressions": 2, "queries": 1, "retired": 0, "dry_run": True}
        await send("a", "POST", void, json={"key": "b" * 16})
        gone = await send("b", "POST", "/v1/feedback", json={"impression": shown[1]["impression"], "clicked": None})
        assert (gone.status_code, as_json(gone)["error"]) == (410, "voided")
        about = as_json(await send("s", "GET", "/v1/collections/shop/query?query=owl"))
        assert about["impressions"] == 2
        removed = await send("a", "DELETE", "/v1/collections/shop/query?query=OWL")
        assert as_json(removed) == {"query": "owl", "status": "removed"}
        assert (await send("s", "GET", "/v1/collections/shop/query?query=owl")).status_code == 404
        assert (await send("s", "DELETE", "/v1/collections/shop/query?query=owl")).status_code == 403
