"""Some documents only: as many must be left as slots were asked for, not as the collection has."""

import httpx
import pytest

from tests.support.services import audit, served
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.errors import UnprocessableError
from zoomrank.service.rank_options import RankOptions

THREE = ["d000", "d111", "d222"]


async def test_three_documents_are_enough_for_two_slots_of_five(engine: Engine) -> None:
    shop = await served(engine, slots=5)
    for slots in (1, 2, 3):
        impression, documents = await engine.rank(shop, "owl", RankOptions(slots=slots, eligible=THREE))
        assert len(documents) == slots
        assert {one["id"] for one in documents} <= set(THREE)
        assert await engine.feedback(impression, documents[-1]["id"]) == "learned"
    _, documents = await engine.rank(shop, "owl", RankOptions(slots=2, eligible=THREE, excluded=THREE[:1]))
    assert {one["id"] for one in documents} == set(THREE[1:])
    assert (await audit(engine)).closed == 3


@pytest.mark.parametrize("slots", [4, None])
async def test_they_are_too_few_for_more(engine: Engine, slots: int | None) -> None:
    shop = await served(engine, slots=5)
    with pytest.raises(UnprocessableError, match=f"{slots or 5} slots cannot be filled: only 3 documents"):
        await engine.rank(shop, "owl", RankOptions(slots=slots, eligible=THREE))
    assert len(engine.learners) == 0  # none was made in vain
    assert not (await audit(engine)).outcomes


async def test_the_same_over_http(engine: Engine, client: httpx.AsyncClient) -> None:
    await served(engine, slots=5)
    rank = "/v1/collections/shop/rank"
    response = await client.post(rank, json={"query": "owl", "slots": 2, "eligible": THREE})
    assert response.status_code == 200, response.text
    assert {one["id"] for one in response.json()["documents"]} <= set(THREE)
    refused = await client.post(rank, json={"query": "owl", "slots": 4, "eligible": THREE})
    assert (refused.status_code, refused.json()["error"]) == (422, "unusable")


async def test_a_ranker_that_cannot_is_refused_before_a_learner_is_made(engine: Engine) -> None:
    shop = await served(engine, algorithm="RankUCB1")
    with pytest.raises(UnprocessableError, match="cannot choose among some documents only"):
        await engine.rank(shop, "owl", RankOptions(eligible=THREE))
    assert len(engine.learners) == 0


NEW = [*THREE, "came in this morning", "so did this"]


async def test_ids_that_nobody_knows_are_refused_or_skipped(engine: Engine) -> None:
    shop = await served(engine, slots=3)
    with pytest.raises(UnprocessableError, match=r"No document has the id 'came in this morning'.*unknown.*skip"):
        await engine.rank(shop, "owl", RankOptions(eligible=NEW))
    with pytest.raises(UnprocessableError, match='say "unknown": "skip"'):
        await engine.rank(shop, "owl", RankOptions(excluded=["gone"]))
    assert len(engine.learners) == 0
    _, documents = await engine.rank(shop, "owl", RankOptions(eligible=NEW, unknown="skip"))
    assert {one["id"] for one in documents} == set(THREE)
    _, documents = await engine.rank(
        shop, "owl", RankOptions(eligible=NEW, excluded=["gone", "d000"], slots=2, unknown="skip")
    )
    assert {one["id"] for one in documents} == set(THREE[1:])
    _, documents = await engine.rank(shop, "owl", RankOptions(excluded=["gone"], unknown="skip"))
    assert len(documents) == 3
    with pytest.raises(UnprocessableError, match="slots cannot be filled"):  # which is another thing
        await engine.rank(shop, "owl", RankOptions(eligible=NEW[2:], unknown="skip"))
    await audit(engine)


async def test_fewer_documents_than_slots_will_do_if_they_may(engine: Engine) -> None:
    shop = await served(engine, slots=5)
    with pytest.raises(UnprocessableError, match='say "fewer": true'):
        await engine.rank(shop, "owl", RankOptions(eligible=THREE))
    impression, documents = await engine.rank(shop, "owl", RankOptions(eligible=THREE, fewer=True))
    assert {one["id"] for one in documents} == set(THREE)
    assert await engine.feedback(impression, documents[2]["id"]) == "learned"
    left, documents = await engine.rank(shop, "owl", RankOptions(slots=2, eligible=THREE, fewer=True))
    assert len(documents) == 2
    assert await engine.feedback(left, None) == "learned"
    learner = await engine.known(shop, "owl")
    assert learner.counts.examined == [2, 2, 1, 0, 0]
    assert (await audit(engine)).closed == 2


async def test_nothing_to_show_is_no_impression(engine: Engine, client: httpx.AsyncClient) -> None:
    await served(engine)
    rank = "/v1/collections/shop/rank"
    body = {"query": "owl", "eligible": ["new"], "unknown": "skip"}
    refused = await client.post(rank, json=body)
    assert (refused.status_code, refused.json()["error"]) == (422, "unusable")
    for key in ({}, {"Idempotency-Key": "one"}, {"Idempotency-Key": "one"}):
        response = await client.post(rank, json={**body, "fewer": True}, headers=key)
        assert response.json() == {"impression": None, "query": "owl", "documents": []}
    assert len(engine.learners) == 0
    assert not (await audit(engine)).outcomes
    reused = await client.post(rank, json={**body, "eligible": THREE, "fewer": True}, headers=key)
    assert len(reused.json()["documents"]) == 3  # nothing was answered under that key
    other = await client.post(rank, json={**body, "eligible": THREE}, headers=key)
    assert other.json()["error"] == "key_reused"
    wrong = await client.post(rank, json={"query": "owl", "unknown": "ignore"})
    assert (wrong.status_code, wrong.json()["error"]) == (422, "malformed")


async def test_sets_are_kept_in_mind_by_what_is_done_with_unknown_ids(shop: ServedCollection) -> None:
    first = shop.version.eligible(NEW, None, skip=True)
    assert shop.version.eligible(NEW, None, skip=True) is first
    with pytest.raises(UnprocessableError):
        shop.version.eligible(NEW, None)
