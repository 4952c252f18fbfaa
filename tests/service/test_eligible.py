"""Some documents only: as many must be left as slots were asked for, not as the collection has."""

import pytest

from tests.support.services import Place, audit, client_of, run, served, started
from zoomrank.service.refusals import UnusableError

THREE = ["d000", "d111", "d222"]


def test_three_documents_are_enough_for_two_slots_of_five(sqlite: Place) -> None:
    async def scenario() -> None:
        async with started(sqlite) as engine:
            shop = await served(engine, slots=5)
            for slots in (1, 2, 3):
                impression, documents = await engine.rank(shop, "owl", slots=slots, eligible=THREE)
                assert len(documents) == slots
                assert {one["id"] for one in documents} <= set(THREE)
                assert await engine.feedback(impression, documents[-1]["id"]) == "learned"
            _, documents = await engine.rank(shop, "owl", slots=2, eligible=THREE, excluded=THREE[:1])
            assert {one["id"] for one in documents} == set(THREE[1:])
            assert (await audit(engine)).closed == 3

    run(scenario())


@pytest.mark.parametrize("slots", [4, None])
def test_they_are_too_few_for_more(sqlite: Place, slots: int | None) -> None:
    async def scenario() -> None:
        async with started(sqlite) as engine:
            shop = await served(engine, slots=5)
            with pytest.raises(UnusableError, match=f"{slots or 5} slots cannot be filled: only 3 documents"):
                await engine.rank(shop, "owl", slots=slots, eligible=THREE)
            assert len(engine.learners) == 0  # none was made in vain
            assert not (await audit(engine)).outcomes

    run(scenario())


def test_the_same_over_http(sqlite: Place) -> None:
    async def scenario() -> None:
        async with started(sqlite) as engine, client_of(engine) as client:
            await served(engine, slots=5)
            rank = "/v1/collections/shop/rank"
            response = await client.post(rank, json={"query": "owl", "slots": 2, "eligible": THREE})
            assert response.status_code == 200, response.text
            assert {one["id"] for one in response.json()["documents"]} <= set(THREE)
            refused = await client.post(rank, json={"query": "owl", "slots": 4, "eligible": THREE})
            assert (refused.status_code, refused.json()["error"]) == (422, "unusable")

    run(scenario())


def test_a_ranker_that_cannot_is_refused_before_a_learner_is_made(sqlite: Place) -> None:
    async def scenario() -> None:
        async with started(sqlite) as engine:
            shop = await served(engine, algorithm="RankUCB1")
            with pytest.raises(UnusableError, match="cannot choose among some documents only"):
                await engine.rank(shop, "owl", eligible=THREE)
            assert len(engine.learners) == 0

    run(scenario())
