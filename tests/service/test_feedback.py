"""Feedback as in life: late, twice, contradictory, about what was never shown, after its time, and none at all."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.support.services import Clock, Place, audit, key_of, served, started
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.errors import ContradictionError, ExpiredError, NotFoundError, UnprocessableError
from zoomrank.service.http import page_data
from zoomrank.service.rank_options import RankOptions
from zoomrank.service.storage.events import ABANDONED, TIMED_OUT, UNSEEN


async def test_late_feedback_counts_in_the_order_in_which_it_comes(place: Place, clock: Clock, engine: Engine) -> None:
    shop = await served(engine, feedback_within=100)
    shown = []
    for _ in range(20):
        shown.append(await engine.rank(shop, "owl"))
        clock.pass_by(1)
    for impression, documents in reversed(shown):
        assert await engine.feedback(impression, documents[-1]["id"]) == "learned"
    about = await page_data.query(engine, shop, "owl")
    assert (about["impressions"], about["satisfied"], about["waiting"]) == (20, 20, 0)
    assert about["clicks_by_slot"] == [0, 0, 20]
    assert (await audit(engine)).closed == 20


@pytest.mark.store_contract
async def test_the_same_feedback_twice_is_applied_once(place: Place) -> None:
    async with started(place) as engine:
        shop = await served(engine)
        clicked, left = [await engine.rank(shop, "owl") for _ in range(2)]
        first = clicked[1][0]["id"]
        assert [await engine.feedback(clicked[0], first) for _ in range(3)] == ["learned", "repeated", "repeated"]
        assert [await engine.feedback(left[0], None) for _ in range(2)] == ["learned", "repeated"]
        together = await engine.rank(shop, "owl")
        told = await asyncio.gather(*(engine.feedback(together[0], together[1][1]["id"]) for _ in range(20)))
        assert sorted(told) == ["learned"] + ["repeated"] * 19
        assert (await audit(engine)).closed == 3
    async with started(place) as engine:  # still known after a restart
        assert await engine.feedback(clicked[0], first) == "repeated"
        assert await engine.feedback(left[0], None) == "repeated"
        assert (await audit(engine)).closed == 3


async def test_a_contradiction_is_refused_and_changes_nothing(
    place: Place, engine: Engine, shop: ServedCollection
) -> None:
    impression, documents = await engine.rank(shop, "owl")
    await engine.feedback(impression, documents[0]["id"])
    with pytest.raises(ContradictionError):
        await engine.feedback(impression, None)
    impression, documents = await engine.rank(shop, "owl")
    await engine.feedback(impression, None)
    with pytest.raises(ContradictionError):
        await engine.feedback(impression, documents[0]["id"])
    about = await page_data.query(engine, shop, "owl")
    assert (about["satisfied"], about["abandoned"]) == (1, 1)
    impression, documents = await engine.rank(shop, "owl")
    reports = [documents[0]["id"], documents[1]["id"], None] * 5
    told = await asyncio.gather(*(engine.feedback(impression, one) for one in reports), return_exceptions=True)
    assert told.count("learned") == 1
    assert told.count("noted") == 1  # another click, which teaches nothing more
    assert told.count("repeated") == 8
    assert sum(isinstance(one, ContradictionError) for one in told) == 5
    assert (await audit(engine)).closed == 3


@pytest.mark.parametrize(
    "name",
    ["", "x", "1-0-0-" + "0" * 20, "0-0-0-0", "1-0-18bcfe56800-" + "f" * 20, "../../etc/passwd", "1-0-0-\x00"],
)
async def test_an_impression_that_nobody_gave_out_is_unknown(engine: Engine, name: str) -> None:
    await engine.rank(await served(engine), "owl")
    with pytest.raises(NotFoundError):
        await engine.feedback(name, None)
    assert (await audit(engine)).closed == 0


async def test_the_impression_of_another_service_is_unknown(tmp_path: Any) -> None:
    async with started(Place(tmp_path / "one")) as one, started(Place(tmp_path / "two")) as two:
        impression, _ = await one.rank(await served(one), "owl")
        await two.rank(await served(two), "owl")
        with pytest.raises(NotFoundError):
            await two.feedback(impression, None)


async def test_an_altered_impression_is_unknown(engine: Engine) -> None:
    impression, _ = await engine.rank(await served(engine), "owl")
    for at, letter in enumerate(impression):
        for other in "0f-":
            if other != letter:
                with pytest.raises(NotFoundError):
                    await engine.feedback(impression[:at] + other + impression[at + 1 :], None)
    for altered in (impression.upper(), f"0{impression}", f"{impression} ", f"{impression}\n"):
        if altered != impression:
            with pytest.raises(NotFoundError):
                await engine.feedback(altered, None)


async def test_a_document_that_was_not_shown_is_refused_and_the_impression_still_waits(
    place: Place, engine: Engine, shop: ServedCollection
) -> None:
    impression, documents = await engine.rank(shop, "owl", RankOptions(slots=2))
    assert len(documents) == 2
    shown = {one["id"] for one in documents}
    other = next(one["id"] for one in page_data.documents(shop, 0, 10)["documents"] if one["id"] not in shown)
    for clicked in (other, "nothing", 0, -1, 2**62, ""):
        with pytest.raises(UnprocessableError):
            await engine.feedback(impression, clicked)
    assert await engine.feedback(impression, documents[1]["id"]) == "learned"
    with pytest.raises(UnprocessableError):
        await engine.feedback(impression, other)
    about = await page_data.query(engine, shop, "owl")
    assert about["examined_by_slot"] == [1, 1, 0]
    assert (await audit(engine)).closed == 1


@pytest.mark.parametrize("swept", [True, False])
async def test_after_its_time_an_impression_takes_no_feedback(
    place: Place, clock: Clock, engine: Engine, swept: bool
) -> None:
    shop = await served(engine, feedback_within=60)
    impression, documents = await engine.rank(shop, "owl")
    reported, _ = await engine.rank(shop, "owl")
    await engine.feedback(reported, None)
    clock.pass_by(60)
    in_time, _ = await engine.rank(shop, "owl")
    if swept:
        await engine.housekeep()
        assert (await audit(engine)).closed == 1  # not yet
    clock.pass_by(0.002)
    if swept:
        await engine.housekeep()
    with pytest.raises(ExpiredError):
        await engine.feedback(impression, documents[0]["id"])
    with pytest.raises(ExpiredError):
        await engine.feedback(reported, None)
    assert await engine.feedback(in_time, None) == "learned"
    await engine.housekeep()
    assert (await audit(engine)).closed == 3


@pytest.mark.parametrize(("no_feedback", "outcome"), [("abandoned", TIMED_OUT), ("unseen", UNSEEN)])
async def test_no_feedback_counts_as_the_owner_chose(
    place: Place, clock: Clock, engine: Engine, no_feedback: str, outcome: int
) -> None:
    shop = await served(engine, feedback_within=60, no_feedback=no_feedback)
    names = [(await engine.rank(shop, "owl"))[0] for _ in range(5)]
    await engine.feedback(names[2], None)
    before = (await page_data.query(engine, shop, "owl"))["examined_by_slot"]
    clock.pass_by(61)
    await engine.housekeep()
    await engine.housekeep()
    found = await audit(engine)
    assert [found.outcomes[key_of(name)] for name in names] == [outcome, outcome, ABANDONED, outcome, outcome]
    about = await page_data.query(engine, shop, "owl")
    assert about["waiting"] == 0
    learned = no_feedback == "abandoned"
    assert (about["abandoned"], about["unseen"]) == ((5, 0) if learned else (1, 4))
    assert about["examined_by_slot"] == ([5, 5, 5] if learned else before)
    assert page_data.about(engine, shop)["abandoned"] == about["abandoned"]


async def test_no_feedback_counts_although_its_learner_left_memory(place: Place) -> None:
    clock = Clock()
    async with started(place, clock, budget=1) as engine:
        shop = await served(engine, feedback_within=60)
        for query in ("owl", "pike", "oak"):
            await engine.rank(shop, query)
        await engine.housekeep()
        assert len(engine.learners) == 1
        clock.pass_by(61)
        await engine.housekeep()
        await engine.housekeep()
        assert page_data.about(engine, shop)["abandoned"] == 3
        await audit(engine)


@pytest.mark.store_contract
@pytest.mark.parametrize("crash", [False, True])
async def test_no_feedback_counts_although_the_service_was_down(place: Place, crash: bool) -> None:
    clock = Clock()
    async with started(place, clock, crash=crash) as engine:
        shop = await served(engine, feedback_within=60)
        for query in ("owl", "pike", "oak"):
            await engine.rank(shop, query)
    clock.pass_by(1000)
    async with started(place, clock) as engine:
        await engine.housekeep()
        assert page_data.about(engine, engine.collections.find("shop"))["abandoned"] == 0  # who could have said so?
        clock.pass_by(61)
        await engine.housekeep()
        await engine.housekeep()
        assert page_data.about(engine, engine.collections.find("shop"))["abandoned"] == 3
        await audit(engine)


async def test_statuses_over_http(place: Place, clock: Clock, engine: Engine, client: httpx.AsyncClient) -> None:
    await served(engine, feedback_within=60)

    async def tell(impression: str, clicked: Any) -> tuple[int, Any]:
        response = await client.post("/v1/feedback", json={"impression": impression, "clicked": clicked})
        return response.status_code, response.json().get("status", response.json().get("error"))

    asked = await client.post("/v1/collections/shop/rank", json={"query": "owl"})
    assert asked.status_code == 200
    shown = asked.json()
    first, second = (one["id"] for one in shown["documents"][:2])
    assert await tell(shown["impression"], "nowhere") == (422, "unusable")
    assert await tell(shown["impression"], first) == (200, "learned")
    assert await tell(shown["impression"], first) == (200, "repeated")
    assert await tell(shown["impression"], second) == (200, "noted")
    assert await tell(shown["impression"], None) == (409, "contradiction")
    assert await tell("1-0-0-00000000000000000000", first) == (404, "unknown")
    clock.pass_by(61)
    assert await tell(shown["impression"], first) == (410, "expired")


async def test_a_batch_takes_or_refuses_each_by_itself(
    place: Place, engine: Engine, shop: ServedCollection, client: httpx.AsyncClient
) -> None:
    one, two, three = [await engine.rank(shop, f"query {number}") for number in range(3)]
    reports = [
        (one[0], one[1][0]["id"]),
        ("unknown", None),
        (two[0], "not shown"),
        (one[0], one[1][0]["id"]),
        (one[0], None),
        (three[0], None),
    ]
    sent = {"feedback": [{"impression": name, "clicked": clicked} for name, clicked in reports]}
    told = await client.post("/v1/feedback/batch", json=sent)
    assert told.status_code == 200
    results = told.json()["results"]
    assert [result["impression"] for result in results] == [name for name, _ in reports]
    assert [result.get("status", result.get("error")) for result in results] == [
        "learned",
        "unknown",
        "unusable",
        "repeated",
        "contradiction",
        "learned",
    ]
    assert (await audit(engine)).closed == 2
