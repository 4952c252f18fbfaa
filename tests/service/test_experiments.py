"""Experiments: who meets which arm, who counts, what is told, and what becomes of arms that are stopped or promoted."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tests.support.services import Clock, Place, audit, served, started
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.engine import Engine
from zoomrank.service.errors import ExistsError, NotFoundError, StorageError, UnprocessableError
from zoomrank.service.experiments import ArmSpec, CollectionExperiment, ExperimentArm, result, visitor_digest
from zoomrank.service.learners.void import ImpressionFilter
from zoomrank.service.rank_options import Caller, RankOptions
from zoomrank.service.storage.events import Batch
from zoomrank.service.storage.store import Store

FIXED = ("d000", "d100", "d200")
TWO = [ArmSpec("now", 0.5, None), ArmSpec("fixed", 0.4, {"shows": FIXED})]


async def _begun(
    engine: Engine, arms: Sequence[ArmSpec] = TWO, **settings: Any
) -> tuple[ServedCollection, CollectionExperiment]:
    shop = await served(engine, **settings)
    return shop, await engine.experiments.create(shop, "first", arms)


async def _visits(engine: Engine, shop: ServedCollection, seed: int, number: int, answered: float = 0.9) -> None:
    """Visitors, of whom some come again, who click what is in the first branch, or say nothing."""
    rng = random.Random(seed)
    for _ in range(number):
        name, documents = await engine.rank(shop, "owl", RankOptions(visitor=f"v{rng.randrange(number)}"))
        liked = [one["id"] for one in documents if one["id"].startswith("d0")]
        if rng.random() < answered:
            await engine.feedback(name, liked[0] if liked else None)


def _told(engine: Engine, experiment: CollectionExperiment) -> dict[str, Any]:
    return result(experiment, engine.store.read.arm_visits(experiment.id))


def test_visitors_are_shared_out_by_their_names() -> None:
    home: Any = None
    arms = [ExperimentArm("a", 0.2, home), ExperimentArm("b", 0.5, home), ExperimentArm("c", 0.1, home)]
    one = CollectionExperiment(1, "one", home, 0.0, "salt", arms)
    names = [visitor_digest("salt", f"v{number}") for number in range(20_000)]
    met = Counter(one.arm_of(name) for name in names)
    for number, share in ((0, 0.2), (1, 0.5), (2, 0.1), (None, 0.2)):
        assert met[number] / len(names) == pytest.approx(share, abs=0.015)
    arms[1].stopped = 1.0
    assert {None if number == 1 else number for number in map(one.arm_of, names)} == {None, 0, 2}
    after = Counter(one.arm_of(name) for name in names)
    assert after[0] == met[0]
    assert after[2] == met[2]  # nobody else changes arms
    others = [one.arm_of(visitor_digest("another", f"v{number}")) for number in range(20_000)]
    both = Counter(zip(map(one.arm_of, names), others, strict=True))
    assert both[0, 0] / met[0] == pytest.approx(0.2, abs=0.03)  # elsewhere she may be anywhere


@pytest.mark.store_contract
async def test_each_arm_has_learners_of_its_own_and_each_visitor_counts_once(
    place: Place, clock: Clock, engine: Engine
) -> None:
    shop, experiment = await _begun(engine)
    now, fixed = (arm.served for arm in experiment.arms)
    assert now is shop
    assert fixed is not shop
    await _visits(engine, shop, 1, 300)
    one, other = await engine.known(now, "owl"), await engine.known(fixed, "owl")
    assert one.number != other.number
    assert one.counts.impressions + other.counts.impressions == 300
    clock.pass_by(4000)
    await engine.housekeep()
    told = _told(engine, experiment)
    rng = random.Random(1)
    names = set()
    for _ in range(300):
        names.add(f"v{rng.randrange(300)}")
        rng.random()
    met = Counter(experiment.arm_of(visitor_digest(experiment.salt, name)) for name in names)
    assert [arm["visitors"] for arm in told["arms"]] == [met[0], met[1]]
    assert [arm["counted"] for arm in told["arms"]] == [met[0], met[1]]
    assert told["arms"][1]["satisfied"] > 0
    assert -1 < told["arms"][1]["difference"]["low"] < 0 < told["arms"][1]["difference"]["high"] < 1
    await audit(engine)


async def test_the_same_visitor_is_shown_the_fixed_ranking_whenever_she_comes(place: Place, engine: Engine) -> None:
    shop, experiment = await _begun(engine)
    for number in range(40):
        visitor = f"v{number}"
        met = experiment.arm_of(visitor_digest(experiment.salt, visitor))
        for _ in range(2):
            _, documents = await engine.rank(shop, "owl", RankOptions(visitor=visitor))
            if met == 1:
                assert tuple(one["id"] for one in documents) == FIXED
    _, documents = await engine.rank(experiment.arms[1].served, "owl", RankOptions(eligible=["d100", "d320", "d321"]))
    assert documents[0]["id"] == "d100"  # what may not be shown is not


async def test_an_arm_with_the_order_of_the_caller_wants_one_from_everybody(place: Place, engine: Engine) -> None:
    arms = [ArmSpec("ours", 0.5, {"shows": "order"}), ArmSpec("learned", 0.5, {"algorithm": "RankUCB1"})]
    shop, experiment = await _begun(engine, arms)
    with pytest.raises(UnprocessableError, match="send `order`"):
        await engine.rank(shop, "owl")
    for number in range(20):
        _, documents = await engine.rank(shop, "owl", RankOptions(order=["d200", "d100", "d000"], visitor=str(number)))
        if experiment.arm_of(visitor_digest(experiment.salt, str(number))) == 0:
            assert [one["id"] for one in documents] == ["d200", "d100", "d000"]


async def test_nobody_is_counted_before_it_is_known_what_became_of_those_before(
    place: Place, clock: Clock, engine: Engine
) -> None:
    everybody = [ArmSpec("now", 0.5, None), ArmSpec("fixed", 0.5, {"shows": FIXED})]  # the first counts for sure
    shop, experiment = await _begun(engine, everybody)
    first, _ = await engine.rank(shop, "owl")
    clock.pass_by(61)
    for _ in range(10):
        name, _ = await engine.rank(shop, "owl")
        await engine.feedback(name, None)
    counted = sum(arm["counted"] for arm in _told(engine, experiment)["arms"])
    assert counted == 0
    await engine.feedback(first, None)
    told = _told(engine, experiment)
    assert sum(arm["counted"] for arm in told["arms"]) == sum(arm["visitors"] for arm in told["arms"]) > 5
    assert all(arm["satisfied"] == 0 for arm in told["arms"])


@pytest.mark.store_contract
async def test_an_experiment_goes_on_after_a_crash(place: Place) -> None:
    clock = Clock()
    async with started(place, clock, crash=True) as engine:
        shop, experiment = await _begun(engine)
        await _visits(engine, shop, 1, 200)
    async with started(place, clock) as engine:
        shop = engine.collections.find("shop")
        again = engine.experiments.find(shop, "first")
        assert [arm.name for arm in again.arms] == ["now", "fixed"]
        assert again.salt == experiment.salt
        before = [arm["visitors"] for arm in _told(engine, again)["arms"]]
        await _visits(engine, shop, 1, 200)  # the same once more: nobody counts twice
        assert [arm["visitors"] for arm in _told(engine, again)["arms"]] == before
        await _visits(engine, shop, 2, 200)
        clock.pass_by(4000)
        await engine.housekeep()
        told = _told(engine, again)
        assert sum(arm["counted"] for arm in told["arms"]) == sum(arm["visitors"] for arm in told["arms"])
        await audit(engine)


async def test_who_is_refused_for_want_of_a_store_does_not_count(
    place: Place, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, experiment = await _begun(engine)
    known, write = next(str(n) for n in range(99) if _arm(experiment, str(n)) == 1), Store.write

    def fail(store: Store, batch: Batch) -> None:
        raise StorageError("Nothing was written down: the disk is full.")

    monkeypatch.setattr(Store, "write", fail)
    with pytest.raises(StorageError):
        await engine.rank(shop, "owl", RankOptions(visitor=known))
    monkeypatch.setattr(Store, "write", write)
    await engine.rank(shop, "owl", RankOptions(visitor=known))
    await engine.rank(shop, "owl", RankOptions(visitor=known))
    assert _told(engine, experiment)["arms"][1]["visitors"] == 1


def _arm(experiment: CollectionExperiment, visitor: str) -> int | None:
    return experiment.arm_of(visitor_digest(experiment.salt, visitor))


async def test_what_is_void_counts_in_no_arm(place: Place, clock: Clock, engine: Engine) -> None:
    shop, experiment = await _begun(engine)
    await _visits(engine, shop, 1, 100)
    middle = clock()
    clock.pass_by(100)
    await _visits(engine, shop, 2, 100)
    before = sum(arm["visitors"] for arm in _told(engine, experiment)["arms"])
    impressions, queries = await engine.void(shop, ImpressionFilter(since=middle + 1))
    assert (impressions, queries) == (100, 1)
    after = sum(arm["visitors"] for arm in _told(engine, experiment)["arms"])
    assert 0 < after < before
    await audit(engine)
    await engine.void(shop, ImpressionFilter(query="owl"))
    assert sum(arm["visitors"] for arm in _told(engine, experiment)["arms"]) == 0
    await audit(engine)


async def test_a_stopped_arm_counts_no_more_and_its_visitors_meet_the_collection_as_it_is(
    place: Place, engine: Engine
) -> None:
    shop, experiment = await _begun(engine)
    await _visits(engine, shop, 1, 100)
    await engine.experiments.stop(experiment, "fixed")
    before = [arm["visitors"] for arm in _told(engine, experiment)["arms"]]
    await _visits(engine, shop, 2, 200)
    after = [arm["visitors"] for arm in _told(engine, experiment)["arms"]]
    assert after[0] > before[0]
    assert after[1] == before[1]
    await engine.experiments.stop(experiment)
    await _visits(engine, shop, 3, 50)
    assert [arm["visitors"] for arm in _told(engine, experiment)["arms"]] == after
    with pytest.raises(NotFoundError, match="has no arm"):
        await engine.experiments.stop(experiment, "another")


async def test_an_arm_that_is_promoted_serves_the_collection_with_what_it_has_learned(place: Place) -> None:
    clock = Clock()
    arms = [ArmSpec("now", 0.5, None), ArmSpec("seeded", 0.5, {"seed": 9})]
    async with started(place, clock) as engine:
        shop, experiment = await _begun(engine, arms)
        await _visits(engine, shop, 1, 200)
        learner = await engine.known(experiment.arms[1].served, "owl")
        before = learner.counts.impressions
        await engine.experiments.promote(experiment, "seeded")
        assert engine.collections.find("shop") is experiment.arms[1].served
        await _visits(engine, engine.collections.find("shop"), 2, 10)
        assert learner.counts.impressions == before + 10
    async with started(place, clock) as engine:
        shop = engine.collections.find("shop")
        assert shop.settings.seed == 9
        assert (await engine.known(shop, "owl")).counts.impressions == before + 10
        old = engine.experiments.find(shop, "first")
        await engine.updates.change(shop, [{"remove": "d322"}])
        assert (await engine.rank(shop, "owl"))[0]
        again = await engine.experiments.create(
            shop, "second", [ArmSpec("a", 0.5, None), ArmSpec("b", 0.5, {"seed": 3})]
        )
        await _visits(engine, shop, 3, 50)
        await engine.experiments.stop(again)
        await engine.experiments.remove(again)
        await engine.experiments.remove(old)
        assert [one.id for one in shop.family] == [shop.home.id, shop.id]
        await audit(engine)
    async with started(place, clock) as engine:
        await engine.updates.remove(engine.collections.find("shop"))
        assert not engine.collections.by_id
        assert engine.store.read.collections() == []


async def test_documents_come_and_go_in_all_arms(place: Place, engine: Engine) -> None:
    arms = [ArmSpec("now", 0.5, None), ArmSpec("alike", 0.5, {"similar": "words"})]
    shop, experiment = await _begun(engine, arms)
    await _visits(engine, shop, 1, 100)
    changes: list[dict[str, Any]] = [{"remove": "d000"}, {"add": "new", "path": ["All", "Branch 0", "Twig 00"]}]
    await engine.updates.change(shop, changes)
    await _visits(engine, shop, 2, 100)
    for arm in experiment.arms:
        learner = await engine.known(arm.served, "owl")
        assert learner.version.number == 1
        _, documents = await engine.rank(arm.served, "owl", RankOptions(eligible=["new", "d111", "d222"]))
        assert {one["id"] for one in documents} == {"new", "d111", "d222"}
    await audit(engine)


async def test_documents_stay_where_an_arm_could_not_follow(place: Place, engine: Engine) -> None:
    shop, experiment = await _begun(engine, [ArmSpec("a", 0.5, None), ArmSpec("b", 0.5, {"algorithm": "RankUCB1"})])
    with pytest.raises(UnprocessableError, match="shop~first~b"):
        await engine.updates.change(shop, [{"remove": "d000"}])
    await engine.experiments.stop(experiment)
    await engine.experiments.remove(experiment)
    await engine.updates.change(shop, [{"remove": "d000"}])
    assert shop.version.number == 1


@pytest.mark.parametrize("which", [0, 1])
def test_nothing_more_is_known_of_a_difference_when_one_of_its_arms_is_stopped(which: int) -> None:
    served: Any = SimpleNamespace(name="shop", settings=Settings())
    arms = [ExperimentArm(name, 0.4, served) for name in ("now", "new")] + [ExperimentArm("other", 0.2, served)]
    experiment = CollectionExperiment(1, "first", served, 0.0, "salt", arms)
    rows = [(minute, arm, outcome, 20 - 10 * outcome) for minute in range(40) for arm in range(3) for outcome in (0, 1)]
    rows += [(minute, arm, 2, 10) for minute in range(40) for arm in range(3)]
    before = result(experiment, [row for row in rows if row[0] < 20])
    arms[which].stopped = 20 * 60 + 30.0  # of those who came in that minute, some had no choice
    told = result(experiment, [row for row in rows if row[0] < 20 or row[1] != which])
    assert told["arms"][1]["difference"] == before["arms"][1]["difference"]
    assert told["points"][-1]["differences"][0] == before["points"][-1]["differences"][0]
    others = [one["arms"][2]["difference"] for one in (before, told)]
    widths = [one["high"] - one["low"] for one in others]
    assert widths[1] == widths[0] if which == 0 else widths[1] < 0.8 * widths[0]


@pytest.mark.parametrize(
    ("arms", "said"),
    [
        ([ArmSpec("a", 0.5, None)], "2 to 8 arms"),
        ([ArmSpec("a", 0.5, None), ArmSpec("a", 0.5, {"seed": 1})], "same name"),
        ([ArmSpec("a", 0.6, None), ArmSpec("b", 0.5, {"seed": 1})], "more than 1"),
        ([ArmSpec("a", 0.5, None), ArmSpec("b", 0.5, None)], "as it is"),
    ],
)
async def test_what_cannot_be_compared_is_refused(
    place: Place, engine: Engine, shop: ServedCollection, arms: list[ArmSpec], said: str
) -> None:
    with pytest.raises(UnprocessableError, match=said):
        await engine.experiments.create(shop, "first", arms)


async def test_one_experiment_at_a_time(place: Place, engine: Engine) -> None:
    shop, experiment = await _begun(engine)
    with pytest.raises(ExistsError, match="still running"):
        await engine.experiments.create(shop, "second", TWO)
    await engine.experiments.stop(experiment)
    with pytest.raises(ExistsError, match="another name"):
        await engine.experiments.create(shop, "first", TWO)
    await engine.experiments.create(shop, "second", TWO)


async def test_a_request_that_comes_twice_is_one_visitor(place: Place, engine: Engine) -> None:
    shop, experiment = await _begun(engine)
    for number in range(20):
        once = Caller(idempotency_key=str(number))
        both = await asyncio.gather(*(engine.rank(shop, "owl", caller=once) for _ in range(2)))
        assert both[0] == both[1]
    learners = [await engine.learners.find(arm.served, "owl") for arm in experiment.arms]
    assert sum(one.counts.impressions for one in learners if one is not None) == 20


async def test_over_http(place: Place, clock: Clock, engine: Engine, client: httpx.AsyncClient) -> None:
    await served(engine)
    base = "/v1/collections/shop/experiments"
    arms = [{"name": "now", "share": 0.5}, {"name": "new", "share": 0.5, "settings": {"shows": list(FIXED)}}]
    made = await client.post(base, json={"name": "first", "arms": arms})
    assert made.status_code == 201, made.text
    assert made.json()["says"] == ["Nothing is known yet about new compared with now."]
    wrong = [{"name": "now", "share": 0.5}, {"name": "new", "share": 0.5, "settings": {"slots": 4}}]
    refused = await client.post(base, json={"name": "other", "arms": wrong})
    assert refused.status_code == 422
    assert "an arm has the slots of its collection" in refused.json()["message"]
    unknown = [{"name": "a", "share": 0.5}, {"name": "b", "share": 0.5, "settings": {"algorithm": "Guessing"}}]
    refused = await client.post(base, json={"name": "other", "arms": unknown})
    assert refused.status_code in (409, 422)
    for number in range(400):
        clock.pass_by(1)
        body = {"query": "owl", "visitor": f"v{number}"}
        shown = (await client.post("/v1/collections/shop/rank", json=body)).json()
        fixed = tuple(one["id"] for one in shown["documents"]) == FIXED
        told = {"impression": shown["impression"], "clicked": FIXED[0] if fixed else None}
        assert (await client.post("/v1/feedback", json=told)).status_code == 200
    clock.pass_by(120)
    info = (await client.get(f"{base}/first")).json()
    assert sum(arm["counted"] for arm in info["arms"]) == 400
    assert info["arms"][1]["satisfied"] == info["arms"][1]["counted"]
    assert info["says"][0].startswith("new satisfies more visitors than now: between +")
    assert info["points"][-1]["differences"][0] == info["arms"][1]["difference"]
    about = (await client.get("/v1/collections/shop")).json()
    assert about["impressions"] == 400
    arm = info["arms"][1]["collection"]
    queries = (await client.get(f"/v1/collections/{arm}/queries")).json()["queries"]
    assert queries[0]["impressions"] == info["arms"][1]["visitors"]
    assert (await client.put(f"/v1/collections/{arm}", content=b"")).status_code == 422
    assert (await client.delete(f"/v1/collections/{arm}")).status_code == 422
    assert (await client.delete(f"{base}/first")).status_code == 422
    promoted = (await client.post(f"{base}/first/promote", json={"arm": "new"})).json()
    assert promoted["promoted"] == "new"
    listed = (await client.get("/v1/collections")).json()["collections"]
    assert [one["name"] for one in listed] == ["shop"]
    assert listed[0]["settings"]["shows"] == list(FIXED)
    assert (await client.delete(f"{base}/first")).json() == {"name": "first", "status": "removed"}
    assert (await client.get(base)).json() == {"experiments": []}
