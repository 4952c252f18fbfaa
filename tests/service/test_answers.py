"""Answers that say more than a click: several, purchases, dislikes, short screens; what is learned, and refused."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests.support.services import Clock, Place, audit, client_of, key_of, served, started
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.errors import ContradictionError, ExpiredError, UnprocessableError, VoidedError
from zoomrank.service.feedback import ImpressionFeedback
from zoomrank.service.learners.void import ImpressionFilter
from zoomrank.service.rank_options import RankOptions
from zoomrank.service.storage.events import ABANDONED, TIMED_OUT, UNSEEN, by_word


class Visit:
    """An impression of four slots, and what is said of it by slots."""

    def __init__(self, engine: Engine, name: str, ids: list[Any]) -> None:
        self.engine, self.name, self.ids = engine, name, ids

    @classmethod
    async def begun(cls, engine: Engine, shop: ServedCollection, **options: Any) -> "Visit":
        name, documents = await engine.rank(shop, "owl", RankOptions(**options))
        return cls(engine, name, [one["id"] for one in documents])

    async def say(
        self,
        clicked: Sequence[int] = (),
        *,
        left: bool = False,
        looked_at: int = 0,
        disliked: Sequence[int] = (),
        purchased: Sequence[int] = (),
    ) -> str:
        named = ([self.ids[slot] for slot in some] for some in (clicked, disliked, purchased))
        clicks, dislikes, purchases = named
        return await self.engine.record_feedback(
            self.name, ImpressionFeedback(clicks, left, looked_at, dislikes, purchases)
        )


NO = [0, 0, 0, 0]  # clicks
Told = list[dict[str, Any]]


@contextlib.asynccontextmanager
async def audited_shop(
    place: Place, clock: Clock | None = None, **settings: Any
) -> AsyncIterator[tuple[Engine, ServedCollection]]:
    """A collection of four slots that is audited at the end, and once more after a restart."""
    async with started(place, clock or Clock()) as engine:
        yield engine, await served(engine, slots=4, **settings)
        await audit(engine)
    async with started(place, clock or Clock()) as engine:
        await audit(engine)


@pytest.mark.parametrize(
    ("by", "told", "statuses", "examined", "clicks"),
    [
        ("click", [{"clicked": [2]}], "learned", [1, 1, 1, 0], [0, 0, 1, 0]),
        ("click", [{"left": True}], "learned", [1, 1, 1, 1], NO),
        ("click", [{"clicked": [3, 1]}], "learned", [1, 1, 0, 0], [0, 1, 0, 0]),  # the topmost
        ("click", [{"left": True, "looked_at": 2}], "learned", [1, 1, 0, 0], NO),
        ("click", [{"clicked": [3], "looked_at": 2}], "learned", [1, 1, 1, 1], [0, 0, 0, 1]),  # a click proves a look
        ("click", [{"left": True, "disliked": [1]}], "learned", [1, 1, 1, 1], NO),
        ("click", [{"left": True, "looked_at": 1, "disliked": [3]}], "learned", [1, 0, 0, 1], NO),
        ("click", [{"clicked": [1], "disliked": [3]}], "learned", [1, 1, 0, 1], [0, 1, 0, 0]),  # also below
        ("click", [{"clicked": [1, 2], "disliked": [1]}], "learned", [1, 1, 1, 0], [0, 0, 1, 0]),  # not satisfied by it
        ("click", [{"clicked": [1], "disliked": [1]}, {"left": True}], "noted learned", [1, 1, 1, 1], NO),
        ("click", [{"clicked": [1], "disliked": [1]}, {"clicked": [3]}], "noted learned", [1, 1, 1, 1], [0, 0, 0, 1]),
        (
            "click",
            [{"looked_at": 3}, {"looked_at": 1}, {"left": True}],
            "noted repeated learned",
            [1, 1, 1, 0],
            [0] * 4,
        ),
        ("click", [{"looked_at": 1}, {"looked_at": 3}, {"left": True}], "noted noted learned", [1, 1, 1, 0], NO),
        ("click", [{"looked_at": 9}, {"left": True}], "noted learned", [1, 1, 1, 1], NO),
        ("click", [{"disliked": [0]}, {"clicked": [0]}, {"left": True}], "noted noted learned", [1] * 4, NO),
        ("click", [{"purchased": [2]}], "learned", [1, 1, 1, 0], [0, 0, 1, 0]),  # which begins with a click
        ("click", [{"clicked": [2]}, {"purchased": [2]}], "learned noted", [1, 1, 1, 0], [0, 0, 1, 0]),
        ("click", [{"clicked": [2]}, {"clicked": [0, 3]}], "learned noted", [1, 1, 1, 0], [0, 0, 1, 0]),
        ("click", [{"clicked": [2]}, {"disliked": [0]}], "learned noted", [1, 1, 1, 0], [0, 0, 1, 0]),
        ("click", [{"clicked": [2]}, {"looked_at": 4}], "learned noted", [1, 1, 1, 0], [0, 0, 1, 0]),
        ("click", [{"left": True}, {"disliked": [2]}], "learned noted", [1, 1, 1, 1], NO),
        ("purchase", [{"clicked": [1]}, {"purchased": [1]}], "noted learned", [1, 1, 0, 0], [0, 1, 0, 0]),
        ("purchase", [{"clicked": [0]}, {"purchased": [2]}], "noted learned", [1, 1, 1, 0], [0, 0, 1, 0]),
        ("purchase", [{"purchased": [2, 1]}], "learned", [1, 1, 0, 0], [0, 1, 0, 0]),
        ("purchase", [{"clicked": [1]}, {"left": True}], "noted learned", [1, 1, 1, 1], NO),
        ("purchase", [{"clicked": [2], "looked_at": 2}, {"left": True}], "noted learned", [1, 1, 1, 0], NO),
        ("purchase", [{"clicked": [2], "looked_at": 4}, {"left": True}], "noted learned", [1, 1, 1, 1], NO),
        ("purchase", [{"purchased": [1]}, {"left": True}], "learned repeated", [1, 1, 0, 0], [0, 1, 0, 0]),
        ("purchase", [{"purchased": [1]}, {"clicked": [1]}], "learned noted", [1, 1, 0, 0], [0, 1, 0, 0]),
        ("purchase", [{"left": True}, {"clicked": [3]}], "learned noted", [1, 1, 1, 1], NO),
        ("purchase", [{"purchased": [1], "disliked": [1]}, {"left": True}], "noted learned", [1, 1, 1, 1], NO),
    ],
)
async def test_what_is_learned_of_which_slots(
    sqlite: Place, by: str, told: Told, statuses: str, examined: list[int], clicks: list[int]
) -> None:
    async with audited_shop(sqlite, satisfied_by=by) as (engine, shop):
        visit = await Visit.begun(engine, shop)
        assert [await visit.say(**one) for one in told] == statuses.split()
        assert [await visit.say(**one) for one in told] == ["repeated"] * len(told)  # all of it once more
        counts = (await engine.known(shop, "owl")).counts
        assert (counts.examined, counts.clicks) == (examined, clicks)
        assert (counts.satisfied, counts.abandoned) == ((1, 0) if any(clicks) else (0, 1))


@pytest.mark.parametrize(
    ("by", "first", "then"),
    [
        ("click", {"clicked": [1]}, {"left": True}),
        ("click", {"clicked": [1]}, {"disliked": [1]}),  # it had satisfied her
        ("click", {"clicked": [1]}, {"disliked": [2]}),  # which would have taught something more
        ("click", {"left": True}, {"clicked": [1]}),
        ("click", {"left": True}, {"purchased": [1]}),
        ("click", {"left": True}, {"looked_at": 3}),  # the fourth was learned to be skipped
        ("click", {"left": True, "looked_at": 2}, {"looked_at": 3}),
        ("click", {"left": True, "looked_at": 2}, {"disliked": [3]}),
        ("purchase", {"left": True}, {"purchased": [1]}),
        ("purchase", {"left": True, "looked_at": 2}, {"clicked": [3]}),
        ("purchase", {"purchased": [1]}, {"disliked": [1]}),
    ],
)
async def test_what_would_have_taught_something_else_is_refused(
    sqlite: Place, by: str, first: dict[str, Any], then: dict[str, Any]
) -> None:
    async with audited_shop(sqlite, satisfied_by=by) as (engine, shop):
        visit = await Visit.begun(engine, shop)
        assert await visit.say(**first) == "learned"
        before = (await engine.known(shop, "owl")).snapshot()
        with pytest.raises(ContradictionError):
            await visit.say(**then)
        assert (await engine.known(shop, "owl")).snapshot() == before
        assert await visit.say(**first) == "repeated"


async def test_a_note_alone_teaches_nothing(sqlite: Place) -> None:
    async with audited_shop(sqlite) as (engine, shop):
        await (await Visit.begun(engine, shop)).say([1])
        visit, learner = await Visit.begun(engine, shop), await engine.known(shop, "owl")
        learner.ranker.prepare_room()
        before = {name: array.copy() for name, array in learner.ranker.learned.items()}
        assert await visit.say(looked_at=1, disliked=[3]) == "noted"
        assert all(np.array_equal(learner.ranker.learned[name], array) for name, array in before.items())
        assert await visit.say(left=True) == "learned"
        assert not all(np.array_equal(learner.ranker.learned[name], array) for name, array in before.items())


async def test_notes_survive_a_crash_and_count_in_the_end(place: Place) -> None:
    clock = Clock()
    async with started(place, clock, crash=True) as engine:
        shop = await served(engine, slots=4, satisfied_by="purchase", feedback_within=60)
        visit, other = [await Visit.begun(engine, shop) for _ in range(2)]
        assert await visit.say([1], looked_at=2) == "noted"
        assert await other.say([1]) == "noted"
    async with started(place, clock) as engine:  # writes snapshots
        shop = engine.collections.find("shop")
        visit.engine = other.engine = engine
        assert await visit.say([1]) == "repeated"
        await audit(engine)
    async with started(place, clock) as engine:
        shop = engine.collections.find("shop")
        visit.engine = other.engine = engine
        assert (await engine.known(shop, "owl")).notes.keys() == {0, 1}
        assert await other.say(purchased=[1]) == "learned"
        clock.pass_by(61)
        await engine.housekeep()
        found = await audit(engine)
        assert found.outcomes[key_of(visit.name)] == TIMED_OUT
        counts = (await engine.known(shop, "owl")).counts
        assert counts.examined == [2, 2, 0, 0]
        with pytest.raises(ExpiredError):
            await visit.say(purchased=[1])


@pytest.mark.parametrize(
    ("told", "outcome"), [({"clicked": [1]}, TIMED_OUT), ({"looked_at": 1}, TIMED_OUT), (None, UNSEEN)]
)
async def test_whoever_did_something_has_seen_it(sqlite: Place, told: dict[str, Any] | None, outcome: int) -> None:
    clock = Clock()
    async with audited_shop(sqlite, clock, satisfied_by="purchase", no_feedback="unseen", feedback_within=60) as (
        engine,
        shop,
    ):
        visit = await Visit.begun(engine, shop)
        if told is not None:
            assert await visit.say(**told) == "noted"
        clock.pass_by(61)
        await engine.housekeep()
        assert (await audit(engine)).outcomes[key_of(visit.name)] == outcome


async def test_many_say_the_same_at_once(place: Place) -> None:
    """Each line of the log is written once, and nobody hears of it before it is."""
    async with audited_shop(place, satisfied_by="purchase") as (engine, shop):
        visit = await Visit.begun(engine, shop)
        told = await asyncio.gather(*(visit.say([1]) for _ in range(10)))
        assert sorted(told) == ["noted"] + ["repeated"] * 9
        told = await asyncio.gather(*(visit.say(purchased=[1]) for _ in range(10)))
        assert sorted(told) == ["learned"] + ["repeated"] * 9
        later = await asyncio.gather(*(visit.say([slot]) for slot in (0, 2, 3) for _ in range(5)))
        assert sorted(later) == ["noted"] * 3 + ["repeated"] * 12
        assert by_word(engine.outcomes[shop.id]) == {"shown": 1, "satisfied": 1, "clicked": 4}


async def test_all_of_it_is_taken_back(place: Place) -> None:
    async with audited_shop(place) as (engine, shop):
        first = await Visit.begun(engine, shop)
        assert await first.say([1, 2], disliked=[3], purchased=[1]) == "learned"
        assert await first.say([0]) == "noted"
        waits = await Visit.begun(engine, shop)
        assert await waits.say(disliked=[0]) == "noted"
        assert await engine.void(shop, ImpressionFilter(query="owl")) == (2, 1)
        await audit(engine)
        assert +by_word(engine.outcomes[shop.id]) == {"voided": 2}
        counts = (await engine.known(shop, "owl")).counts
        assert (counts.examined, counts.impressions) == ([0] * 4, 0)
        for visit in (first, waits):
            with pytest.raises(VoidedError):
                await visit.say([3])


async def test_a_later_click_while_it_is_taken_back(sqlite: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async with audited_shop(sqlite) as (engine, shop):
        visit = await Visit.begun(engine, shop)
        await visit.say([1])
        told = await asyncio.gather(
            engine.void(shop, ImpressionFilter(query="owl")), visit.say([2]), return_exceptions=True
        )
        assert told[1] == "noted" or isinstance(told[1], VoidedError)
        await audit(engine)


async def test_what_was_not_shown_is_refused_and_nothing_is_noted(sqlite: Place) -> None:
    async with audited_shop(sqlite) as (engine, shop):
        visit = await Visit.begun(engine, shop)
        for answer in (
            ImpressionFeedback(["nowhere"]),
            ImpressionFeedback([visit.ids[0], "nowhere"]),
            ImpressionFeedback(disliked=["nowhere"], left=True),
            ImpressionFeedback(purchased=["nowhere"]),
            ImpressionFeedback(),
        ):
            with pytest.raises(UnprocessableError):
                await engine.record_feedback(visit.name, answer)
        assert by_word(engine.outcomes[shop.id]) == {"shown": 1}
        assert await visit.say(left=True) == "learned"
        with pytest.raises(UnprocessableError):
            await engine.record_feedback(visit.name, ImpressionFeedback(["nowhere"]))


async def test_over_http(sqlite: Place) -> None:
    async with audited_shop(sqlite) as (engine, shop), client_of(engine) as client:

        async def tell(impression: str, **told: Any) -> tuple[int, str]:
            response = await client.post("/v1/feedback", json={"impression": impression, **told})
            return response.status_code, response.json().get("status", response.json().get("error"))

        visit = await Visit.begun(engine, shop)
        one, two, three, four = visit.ids
        assert await tell(visit.name) == (422, "unusable")
        assert await tell(visit.name, looked_at=0) == (422, "malformed")
        assert await tell(visit.name, disliked=three) == (422, "malformed")
        assert await tell(visit.name, clicked={"id": one}) == (422, "malformed")
        assert await tell(visit.name, looked_at=3) == (200, "noted")
        assert await tell(visit.name, clicked=[two, four], disliked=[three]) == (200, "learned")
        assert await tell(visit.name, clicked=[four, two]) == (200, "repeated")
        assert await tell(visit.name, purchased=two) == (200, "noted")
        assert await tell(visit.name, clicked=[]) == (409, "contradiction")
        left = await Visit.begun(engine, shop)
        assert await tell(left.name, clicked=[], looked_at=1) == (200, "learned")
        assert (await engine.known(shop, "owl")).counts.examined == [2, 1, 1, 0]
        found = await audit(engine)
        assert found.outcomes == {key_of(visit.name): 1, key_of(left.name): ABANDONED}
        more = await Visit.begun(engine, shop)
        batch = {"feedback": [{"impression": more.name, "disliked": [more.ids[0]]}]}
        told = await client.post("/v1/feedback/batch", json=batch)
        assert told.json() == {"results": [{"impression": more.name, "status": "noted"}]}
        metrics = (await client.get("/metrics")).text
        assert 'zoomrank_impressions_total{collection="shop",outcome="purchased"} 1.0' in metrics


async def test_copies_understand_the_same(sqlite: Place) -> None:
    async with audited_shop(sqlite, satisfied_by="purchase") as (engine, _), client_of(engine) as client:
        copy = (await client.post("/v1/collections/shop/copies", json={"query": "owl"})).json()["copy"]
        shown = (await client.post(f"/v1/copies/{copy}/rank", json={})).json()
        ids = [one["id"] for one in shown["documents"]]
        for told, status in (
            ({"clicked": ids[1]}, "noted"),
            ({"purchased": ids[1], "disliked": [ids[3]]}, "learned"),
        ):
            report = {"feedback": [{"impression": shown["impression"], **told}]}
            results = (await client.post(f"/v1/copies/{copy}/feedback", json=report)).json()["results"]
            assert [one["status"] for one in results] == [status]
