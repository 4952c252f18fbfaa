"""An order that comes with a request: what the first visitors of a query see, durably and bit for bit."""

from typing import Any

import pytest

from tests.support.services import Place, as_json, audit, client_of, served, started
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.errors import KeyReusedError, UnprocessableError
from zoomrank.service.rank_options import Caller, RankOptions

ORDER: list[Any] = ["d300", "gone", "d111", "d020", "d222"]


def ids(documents: list[dict[str, Any]]) -> list[Any]:
    return [one["id"] for one in documents]


@pytest.mark.parametrize("similar", ["off", "words"])
async def test_the_first_visitors_see_it(place: Place, similar: str) -> None:
    async with started(place, crash=True) as engine:
        shop = await served(engine, similar=similar, slots=3)
        await engine.rank(shop, "owl at night")
        name, documents = await engine.rank(shop, "owl", RankOptions(order=ORDER))
        assert ids(documents) == ["d300", "d111", "d020"]
        await engine.feedback(name, "d020")
        name, documents = await engine.rank(shop, "owl", RankOptions(order=ORDER))
        assert ids(documents)[0] == "d020"
        await engine.feedback(name, None)
        _, documents = await engine.rank(shop, "owl", RankOptions(excluded=["d020"], order=ORDER))
        assert "d020" not in ids(documents)
    async with started(place) as engine:
        shop = await served(engine)
        _, documents = await engine.rank(shop, "owl", RankOptions(order=ORDER))
        assert ids(documents)[0] == "d020"
        await audit(engine)


async def test_a_wrong_one_is_given_up(place: Place, engine: Engine) -> None:
    shop = await served(engine, slots=3, prior=4)
    seen = []
    for _ in range(5):
        name, documents = await engine.rank(shop, "owl", RankOptions(order=ORDER[:4]))
        await engine.feedback(name, None)
        seen.append(set(ids(documents)))
    led = {"d300", "d111", "d020"}
    assert seen[:4] == [led] * 4
    assert seen[4] != led
    await audit(engine)


async def test_it_is_part_of_the_request(place: Place, engine: Engine, shop: ServedCollection) -> None:
    first = await engine.rank(shop, "owl", RankOptions(order=ORDER), caller=Caller(idempotency_key="k"))
    assert await engine.rank(shop, "owl", RankOptions(order=ORDER), caller=Caller(idempotency_key="k")) == first
    with pytest.raises(KeyReusedError):
        await engine.rank(shop, "owl", RankOptions(order=ORDER[1:]), caller=Caller(idempotency_key="k"))
    other = await served(engine, "other", algorithm="RankUCB1")
    with pytest.raises(UnprocessableError, match="cannot begin with an `order`"):
        await engine.rank(other, "owl", RankOptions(order=ORDER))
    async with client_of(engine) as client:
        sent = await client.post("/v1/collections/shop/rank", json={"query": "pike", "order": ORDER})
        assert as_json(sent)["documents"][0]["id"] == "d300"
