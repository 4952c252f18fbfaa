"""Similar queries in the service: spellings, where queries belong, what is lent, and that the log has all of it."""

from __future__ import annotations

import random
import unicodedata
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.services import (
    Clock,
    Place,
    as_json,
    audit,
    only_edition,
    served,
    small_collection,
    started,
)
from zoomrank.documents import Collection
from zoomrank.queries.loans import loan_to_bytes, report_to_bytes
from zoomrank.service.catalogue.neighbours import Neighbours
from zoomrank.service.catalogue.served_collection import ServedCollection, folded
from zoomrank.service.catalogue.settings import LONGEST_QUERY, Settings
from zoomrank.service.engine import Engine
from zoomrank.service.errors import StorageError, UnprocessableError
from zoomrank.service.http import page_data
from zoomrank.service.learners.query_learner import QueryLearner
from zoomrank.service.rank_options import RankOptions
from zoomrank.service.storage.events import ABANDONED, Event, EventTags, pack, unpack, unpack_parts
from zoomrank.service.storage.store import Store
from zoomrank.spaces import DocumentTree

RANK = "/v1/collections/shop/rank"


async def _visitors(engine: Engine, shop: ServedCollection, query: str, count: int, liked: str = "d11") -> None:
    """So many visitors who click the first document whose id begins so."""
    for _ in range(count):
        impression, documents = await engine.rank(shop, query)
        await engine.feedback(impression, next((one["id"] for one in documents if one["id"].startswith(liked)), None))


def _told(neighbours: Neighbours | None) -> dict[Any, tuple[bytes, dict[int, int]]]:
    """What every learner has told, and the groups that remember it, with after how many answers."""
    assert neighbours is not None
    lending, learners = neighbours.lending, neighbours.queries.queries
    return {
        learners[number]: (
            report_to_bytes(report),
            {group: known[number] for group, known in lending.known.items() if number in known},
        )
        for number, report in lending.reports.items()
    }


# Spellings.


@given(st.text(max_size=30))
def test_a_folded_query_is_its_own_spelling(text: str) -> None:
    once = folded(text)
    assert folded(once) == once
    for other in (text.upper().lower(), f"  {text}\t", unicodedata.normalize("NFD", text)):
        assert other.casefold() != text.casefold() or folded(other) == once


async def test_spellings_are_one_query(
    place: Place, engine: Engine, shop: ServedCollection, client: httpx.AsyncClient
) -> None:
    for spelling in ("Snowy  Owl", "snowy owl", " SNOWY\u3000ＯＷＬ ", "snowy\nowl"):
        assert as_json(await client.post(RANK, json={"query": spelling}))["query"] == "snowy owl"
    for spelling in ("Snowy Owl ", "snowy owl"):
        found = as_json(await client.get("/v1/collections/shop/query", params={"query": spelling}))
        assert (found["query"], found["impressions"]) == ("snowy owl", 4)
        tree = await client.get("/v1/collections/shop/tree", params={"query": spelling})
        assert tree.status_code == 200
    assert (await page_data.queries(engine, shop, 0, 10))["total"] == 1


async def test_without_folding_every_spelling_is_a_query(engine: Engine, client: httpx.AsyncClient) -> None:
    shop = await served(engine, fold=False)
    for spelling in ("Owl", "owl", " owl", "owl "):
        assert as_json(await client.post(RANK, json={"query": spelling}))["query"] == spelling
        found = as_json(await client.get("/v1/collections/shop/query", params={"query": spelling}))
        assert (found["query"], found["impressions"]) == (spelling, 1)
    assert (await page_data.queries(engine, shop, 0, 10))["total"] == 4


@pytest.mark.parametrize("query", [" ", "\t\u3000", "\ufdfa" * LONGEST_QUERY])
async def test_a_query_that_is_none_when_folded_is_refused(
    engine: Engine, shop: ServedCollection, client: httpx.AsyncClient, query: str
) -> None:
    refused = await client.post(RANK, json={"query": query})
    assert (refused.status_code, as_json(refused)["error"]) == (422, "unusable")
    assert f"1 to {LONGEST_QUERY} letters" in as_json(refused)["message"]
    assert (await client.get("/v1/collections/shop/query", params={"query": query})).status_code == 404
    assert page_data.about(engine, shop)["queries"] == 0


# What is refused.


async def test_only_zoomrank_lends(engine: Engine) -> None:
    with pytest.raises(UnprocessableError, match="RankThompson, set `similar` to off"):
        await served(engine, algorithm="RankThompson", similar="words")
    shop = await served(engine, similar="words", parameters={"optimism": 0.5})
    assert (type(shop.bandit).__name__, shop.bandit.settings["optimism"]) == ("LoanZooming", 0.5)


STEPS = [f"{step}" for step in range(33)]
REFUSED = [
    ("off", "Animals", "unusable", "learn alone"),
    ("words", "Animals", "unusable", "by their words"),
    ("paths", [1.0, 2.0], "unusable", "by their paths"),
    ("paths", "Animals >  > Cats", "unusable", "1 to 32 steps"),
    ("paths", " > ".join(STEPS), "unusable", "1 to 32 steps"),
    ("paths", "x" * 513, "unusable", "of 1 to 512 letters"),
    ("paths", STEPS, "malformed", "about"),
    ("paths", ["x" * 513], "malformed", "about"),
    ("paths", ["Animals", 2], "malformed", "about.steps.1: Input should be a valid string."),
    ("paths", 7, "malformed", "about: It is a path, as a text or as a list of its steps, or a vector of numbers."),
    ("paths", [], "malformed", "about"),
    ("vectors", "Animals", "unusable", "by their vectors"),
    ("vectors", ["Animals"], "unusable", "by their vectors"),
    ("vectors", [1, 2], "unusable", "has 3 numbers, not 2"),
    ("vectors", [0, 0, 0], "unusable", "has a direction"),
    ("vectors", [1e300, 0, 0], "unusable", "has a direction"),
    ("vectors", [1, True, 2], "malformed", "about.vector.1: Input should be a valid number."),
    ("vectors", [1.0] * 4097, "malformed", "about"),
]


@pytest.mark.parametrize("similar", ["off", "words", "paths", "vectors"])
async def test_what_does_not_fit_is_refused_in_words(engine: Engine, client: httpx.AsyncClient, similar: str) -> None:
    shop = await served(engine, similar=similar)
    if similar == "vectors":
        await engine.rank(shop, "the first", RankOptions(about=[1.0, 2.0, 3.0]))
    before = page_data.about(engine, shop)
    for _, about, code, words in (row for row in REFUSED if row[0] == similar):
        refused = await client.post(RANK, json={"query": "owl", "about": about})
        assert (refused.status_code, as_json(refused)["error"]) == (422, code), about
        assert words in as_json(refused)["message"]
        assert page_data.about(engine, shop) == before, about


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
async def test_numbers_are_finite(engine: Engine, client: httpx.AsyncClient, number: str) -> None:
    await served(engine, similar="vectors")
    sent = f'{{"query": "owl", "about": [1, {number}]}}'
    refused = await client.post(RANK, content=sent, headers={"Content-Type": "application/json"})
    assert (refused.status_code, as_json(refused)["error"]) == (422, "malformed")


# Where queries belong.


@pytest.mark.store_contract
@pytest.mark.parametrize(
    ("similar", "abouts"),
    [
        ("words", {"snowy owl": None, "snowy owls": None, "pike": None}),
        ("paths", {"a": "Birds > Owls", "b": ["Birds", " Owls"], "c": "Fish", "d": None}),
        ("vectors", {"a": [1.0, 0.0], "b": [2, 0.1], "c": [0.0, 1.0], "d": None}),
    ],
)
async def test_a_start_brings_queries_and_reports_back(place: Place, similar: str, abouts: dict[str, Any]) -> None:
    async with started(place, crash=True) as engine:
        other = await served(engine, "other", similar="words")  # so that learners have other numbers than queries
        await _visitors(engine, other, "snowy owl", 3)
        shop = await served(engine, similar=similar)
        for query, about in abouts.items():
            await engine.rank(shop, query, RankOptions(about=about))
            await _visitors(engine, shop, query, 5)
        await engine.rank(
            shop,
            "a",
        )
        assert shop.neighbours is not None
        before = shop.neighbours.queries
        near, same, far, *_ = (number for number, *_ in engine.store.read.learners(shop.id))
        assert before.steps_up(near, same) < before.steps_up(near, far)
        told, granted = _told(shop.neighbours), shop.neighbours.grant(near)
        assert len(told) == len(abouts)
    async with started(place) as engine:
        again = engine.collections.find("shop").neighbours
        assert again is not None
        assert (again.queries.queries, again.queries.group) == (before.queries, before.group)
        assert _told(again) == told
        assert granted is not None
        assert loan_to_bytes(again.grant(near) or granted._replace(lenders=())) == loan_to_bytes(granted)
        assert not again.is_due(near, 5)  # it has told what it knows
        assert again.is_due(near, 50)
        assert (await audit(engine)).loans > 0


async def test_a_new_query_is_shown_what_its_neighbour_found(sqlite: Place) -> None:
    for similar, found in (("off", False), ("words", True)):
        async with started(Place(sqlite.folder / similar)) as engine:
            shop = await served(engine, similar=similar)
            await _visitors(engine, shop, "snowy owl", 200, "d212")
            _, documents = await engine.rank(shop, "a snowy owl")
            assert (documents[0]["id"] == "d212") is found
            await audit(engine)


# The log.


async def test_a_loan_stands_behind_a_ranking(engine: Engine, shop: ServedCollection) -> None:
    learner = await _learner(engine, shop, "owl")
    ranking = learner.chooser().rank_arrays(1, None, 3)
    for change in ({}, {"pick": ranking.pick[:, ::-1]}, {"chance": ranking.chance / 2}):
        changed = ranking._replace(**change)
        assert unpack_parts(pack(changed)) == (pack(changed), EventTags(), None)
        assert unpack_parts(pack(changed, b"a loan")) == (pack(changed), EventTags(), b"a loan")
        for array, other in zip(unpack(pack(changed, b"a loan")), changed, strict=True):
            assert array.tolist() == other.tolist()


async def _learner(engine: Engine, shop: ServedCollection, query: str) -> QueryLearner:
    await engine.rank(shop, query)
    return await engine.known(shop, query)


async def test_the_log_makes_the_same_learner_whatever_its_neighbours_learn_later(place: Place, engine: Engine) -> None:
    shop = await served(engine, similar="words")
    await _visitors(engine, shop, "snowy owl", 40, "d1")
    learner = await _learner(engine, shop, "snowy owls")
    for _ in range(30):  # some of it is looked at in between, which must leave nothing behind
        await _visitors(engine, shop, "snowy owls", 1, "d2")
        await page_data.query(engine, shop, "snowy owls")
        learner.snapshot()
    assert learner.lenders == ((await _learner(engine, shop, "snowy owl")).number,)
    assert learner.meets > learner.answers
    before = learner.snapshot()
    await _visitors(engine, shop, "snowy owl", 100, "d3")
    await _visitors(engine, shop, "snowy eagle owl", 50, "d0")
    again = QueryLearner(learner.number, shop.versions, shop.settings)
    log = [event for _, event in engine.store.read.events(learner.number)]
    again.replay(log)
    assert (again.meets, again.lenders) == (learner.meets, learner.lenders)
    assert again.snapshot() == before
    assert all(unpack_parts(shown).loan is None for _, shown in learner.waiting.values())
    assert sum(event.shown is not None and unpack_parts(event.shown).loan is not None for event in log) > 2
    for place_ in (0, 1, len(log) // 2, len(log)):  # a snapshot at any time, and the events since
        half = QueryLearner(learner.number, shop.versions, shop.settings)
        half.replay(log[:place_])
        half = QueryLearner.restored(learner.number, shop.versions, shop.settings, 0, half.snapshot())
        half.replay(log[place_:])
        assert half.snapshot() == before
    await audit(engine)


def test_when_a_learner_was_written_down_does_not_matter() -> None:
    """Writing it down may make room in its arrays, and so may a loan: a small one, now and then."""
    settings = Settings(similar="words", slots=3, feedback_within=30 * 86_400)
    versions = only_edition(Collection(DocumentTree.exponential(depth=10)), settings)
    neighbours, chance = Neighbours("words", versions.newest), random.Random(5)
    lender, learner = (QueryLearner(number, versions, settings) for number in (1, 2))
    for number in (1, 2):
        neighbours.join(number, "snowy owl", None)
    for visit in range(6):
        lender.show(visit, 3, None)
        lender.close(visit, 1, visit)
    neighbours.report(1, lender.ranker.state, 1, lender.version)
    log: list[Event] = []
    for visit in range(400):
        shown, _ = learner.show(visit, 3, None, neighbours.grant(2) if visit % 10 == 0 else None)
        log.append(shown)
        if visit % 10 == 0:
            again = QueryLearner(2, versions, settings)
            again.replay(log)
            assert again.snapshot() == learner.snapshot()
        log.append(learner.close(shown.number, chance.choice([0, 1, 2, ABANDONED]), visit))
        learner.snapshot()


async def test_what_is_said_of_the_next_ranking_counts_the_loan_that_comes_with_it(
    place: Place, engine: Engine
) -> None:
    shop = await served(engine, similar="words")
    learner = await _learner(engine, shop, "snowy owls")
    alone = await page_data.query(engine, shop, "snowy owls")
    assert alone["support"] == {"visitors": 0.0, "faith": 0.0, "lenders": []}
    await _visitors(engine, shop, "snowy owl", 200, "d212")
    before = learner.snapshot()
    told = await page_data.query(engine, shop, "snowy owls")
    assert told["support"]["lenders"] == [{"query": "snowy owl", "impressions": 200}]
    assert told["support"]["visitors"] > 1
    assert 0.3 < told["support"]["faith"] < 1
    assert learner.snapshot() == before
    _, documents = await engine.rank(shop, "snowy owls")
    assert [one["id"] for one in documents] == [one["id"] for one in told["ranking"]]
    assert (await page_data.query(engine, shop, "snowy owls"))["support"] == told["support"]
    assert learner.lenders == ((await _learner(engine, shop, "snowy owl")).number,)


async def test_learners_that_come_and_go_are_lent_the_same(place: Place) -> None:
    clock = Clock()
    async with started(place, clock, budget=1) as small, started(Place(place.folder / "large"), clock) as large:
        here, there = await served(small, similar="words"), await served(large, similar="words")
        for visit in range(120):
            query = f"snowy owl {visit % 7}"
            one, documents = await small.rank(here, query)
            other, same = await large.rank(there, query)
            assert documents == same
            clicked = documents[visit % 3]["id"] if visit % 5 else None
            await small.feedback(one, clicked)
            await large.feedback(other, clicked)
            await small.housekeep()
        assert len(small.learners) == 1
        assert _told(here.neighbours) == _told(there.neighbours)
        assert (await audit(small)).loans == (await audit(large)).loans > 0


# What cannot be written down.


def _broken(self: Store, batch: Any) -> None:
    raise StorageError("The disk is full.")


async def test_what_was_refused_lends_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async with started(place) as engine:
        shop = await served(engine, similar="words", feedback_within=1)
        await _visitors(engine, shop, "pike", 2)
        assert shop.neighbours is not None
        told = _told(shop.neighbours)
        with monkeypatch.context() as broken:
            broken.setattr(Store, "write", _broken)
            with pytest.raises(StorageError):
                await engine.rank(shop, "snowy owl")
        assert shop.neighbours.lending.reports.keys() == {0}
        assert _told(shop.neighbours) == told
        await _visitors(engine, shop, "snowy owl", 3)
        await _visitors(engine, shop, "snowy owls", 3)
        assert (await engine.known(shop, "snowy owls")).lenders[0] == (await engine.known(shop, "snowy owl")).number
        assert (await audit(engine)).loans > 0
    async with started(place) as engine:
        await audit(engine)


async def test_a_first_vector_that_was_refused_says_nothing_about_others(
    place: Place, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = await served(engine, similar="vectors")
    await _visitors(engine, shop, "anything", 5)
    told = _told(shop.neighbours)
    with monkeypatch.context() as broken:
        broken.setattr(Store, "write", _broken)
        with pytest.raises(StorageError):
            await engine.rank(shop, "owl", RankOptions(about=[1.0, 2.0]))
    assert _told(shop.neighbours) == told
    await engine.rank(shop, "owl", RankOptions(about=[1.0, 2.0, 3.0]))
    with pytest.raises(UnprocessableError, match="has 3 numbers"):
        await engine.rank(shop, "pike", RankOptions(about=[1.0, 2.0]))
    anything = await engine.known(shop, "anything")
    assert (await engine.known(shop, "owl")).lenders == (anything.number,)
    await audit(engine)


def test_nobody_is_lent_anything_by_one_that_told_and_was_refused() -> None:
    shop = Settings(similar="words", slots=3)
    versions = only_edition(small_collection(), shop)
    neighbours = Neighbours("words", versions.newest)
    learner = QueryLearner(7, versions, shop)
    for number in (7, 8):
        neighbours.join(number, "owl", None)
    learner.show(0.0, 3, None)
    learner.close(0, 1, 0.0)
    neighbours.report(7, learner.ranker.state, 1, learner.version)
    granted = neighbours.grant(8)
    assert granted is not None
    assert granted.lenders == (7,)
    neighbours.forget({7})
    assert neighbours.grant(8) is None
    assert neighbours.is_due(7, 1)
