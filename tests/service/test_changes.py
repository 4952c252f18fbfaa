"""Documents come and go while learners learn: nothing that was learned is lost, and the log makes the same again."""

import asyncio
import contextlib
import json
import random
from typing import Any

import httpx
import pytest

from tests.support.services import Clock, Place, as_json, audit, client_of, look_at, served, started
from zoomrank.service import catalogue_updates
from zoomrank.service.catalogue import version_history
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.errors import ExpiredError, NotFoundError, StorageError, UnprocessableError, VoidedError
from zoomrank.service.learners.void import ImpressionFilter
from zoomrank.service.verification import verify

SHOP = "/v1/collections/shop"
LINES = {"Content-Type": "application/x-ndjson"}


async def _visits(engine: Engine, shop: ServedCollection, count: int, wanted: str, query: str = "owl") -> int:
    """Visitors who click a document whose id begins so; says how many did."""
    satisfied = 0
    for _ in range(count):
        name, documents = await engine.rank(shop, query)
        liked = next((one["id"] for one in documents if one["id"].startswith(wanted)), None)
        await engine.feedback(name, liked)
        satisfied += liked is not None
    return satisfied


async def test_a_learner_that_moved_is_written_down_by_the_next_sweep(
    place: Place, engine: Engine, shop: ServedCollection
) -> None:
    await _visits(engine, shop, 3, "d11")
    await engine.updates.change(shop, [{"add": "new", "path": _in(1, 1)}])
    await _visits(engine, shop, 3, "d11")
    assert (await engine.known(shop, "owl")).version is shop.version
    known = engine.store.read.find(shop.id, "owl")
    assert known is not None
    assert known.version == 0  # who asked need not wait for more than the log
    await engine.housekeep()
    await engine.write_queue.wait_durable()
    known = engine.store.read.find(shop.id, "owl")
    assert known is not None
    assert known.version == 1
    await audit(engine)


def _in(branch: int, twig: int) -> list[str]:
    return ["All", f"Branch {branch}", f"Twig {branch}{twig}"]


@pytest.mark.store_contract
async def test_documents_come_and_go_and_learners_keep_what_they_know(place: Place) -> None:
    async with started(place) as engine:
        shop = await served(engine)
        await _visits(engine, shop, 150, "d11")
        learner = await engine.known(shop, "owl")
        before = learner.counts.satisfied
        await engine.updates.change(shop, [{"add": "new", "path": _in(1, 1), "title": "A new one"}])
        await engine.updates.change(shop, [{"remove": "d322"}])
        await engine.updates.change(shop, [{"category": "All > Branch 1", "to": "All > Owls"}])
        await engine.updates.change(shop, [{"category": "All > Owls > Twig 11", "to": "All > Branch 2 > Small"}])
        assert shop.version.number == 4
        assert learner.counts.satisfied == before
        assert await _visits(engine, shop, 30, "d11") >= 27  # they are shown where they were
        assert learner.version is shop.version
        assert "new" in shop.tree.documents
        assert "d322" not in shop.tree.documents
        assert shop.version.path(shop.tree.documents.position("d110")) == ["All", "Branch 2", "Small"]
        await audit(engine)
    async with started(place) as engine:
        shop = engine.collections.find("shop")
        assert shop.version.number == 4
        assert shop.version.document(shop.tree.documents.position("new"))["title"] == "A new one"
        assert await _visits(engine, shop, 30, "d11") >= 27
        await audit(engine)


async def test_answers_to_earlier_rankings_count(place: Place) -> None:
    async with started(place, crash=True) as engine:
        shop = await served(engine)
        waiting = [await engine.rank(shop, "owl") for _ in range(6)]
        gone = waiting[0][1][1]["id"]
        await engine.updates.change(shop, [{"remove": gone}, {"add": "first", "path": ["All", "Another"]}])
        assert await engine.feedback(waiting[0][0], gone) == "learned"
        assert await engine.feedback(waiting[0][0], gone) == "repeated"
        kept = next(one["id"] for one in waiting[1][1] if one["id"] != gone)
        assert await engine.feedback(waiting[1][0], kept) == "learned"
        await engine.rank(shop, "owl")  # it moves on
        assert await engine.feedback(waiting[2][0], waiting[2][1][0]["id"]) == "learned"
        assert (await engine.known(shop, "owl")).counts.satisfied == 3
        await audit(engine)
    async with started(place) as engine:
        assert await engine.feedback(waiting[3][0], waiting[3][1][2]["id"]) == "learned"
        assert await engine.feedback(waiting[4][0], None) == "learned"
        await audit(engine)


def _some_changes(random_: random.Random, shop: ServedCollection, life: int) -> list[dict[str, Any]]:
    ids = list(shop.tree.documents)
    changes: list[dict[str, Any]] = []
    for number in range(random_.randint(1, 4)):
        fate = random_.random()
        one = random_.choice(ids)
        if fate < 0.4:
            new = f"n{life}-{shop.version.number}-{number}"
            changes.append({"put": new, "path": _in(random_.randrange(5), random_.randrange(3))})
        elif fate < 0.6 and len(ids) > 12:
            changes.append({"remove": one})
            ids.remove(one)
        elif fate < 0.8:
            changes.append({"change": one, "path": _in(random_.randrange(5), random_.randrange(3))})
        elif fate < 0.9:
            changes.append({"change": one, "title": f"{one} at {life}"})
        else:
            to = f"All > Moved {life}-{shop.version.number}-{number}"
            changes.append({"category": f"All > Branch {random_.randrange(4)}", "to": to})
    return changes


@pytest.mark.parametrize("similar", ["off", "words"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2))])
async def test_whatever_happens_learners_are_what_the_log_makes_of_them(
    place: Place, similar: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rankings, answers, changes, voids, evictions, sweeps and crashes, in any order."""
    monkeypatch.setattr(catalogue_updates, "_MOST_REVISIONS", 3)  # files of editions are kept now and then
    monkeypatch.setattr(version_history, "_BUDGET", 20_000)
    random_, clock = random.Random(seed), Clock()
    queries = [f"snowy owl {number}" for number in range(4)]
    waiting: list[tuple[str, list[str]]] = []

    async def one_thing(engine: Engine, shop: ServedCollection, life: int) -> None:
        clock.pass_by(0.5)
        fate = random_.random()
        if fate < 0.5:
            name, documents = await engine.rank(shop, random_.choice(queries))
            waiting.append((name, [one["id"] for one in documents]))
        elif fate < 0.85 and waiting:
            name, ids = waiting.pop(random_.randrange(len(waiting)))
            with contextlib.suppress(ExpiredError, VoidedError):
                await engine.feedback(name, random_.choice([None, *ids]))
        elif fate < 0.92:
            with contextlib.suppress(UnprocessableError):  # a category that is gone, say
                await engine.updates.change(shop, _some_changes(random_, shop, life))
        elif fate < 0.95:
            await engine.housekeep()
        elif fate < 0.97:
            await engine.void(
                shop, ImpressionFilter(query=random_.choice(queries), since=clock() - 10, until=clock() - 5)
            )
        elif fate < 0.98:
            await engine.updates.remake(shop)

    for life in range(4):
        budget = (60_000, 2**30, 1)[life % 3]
        async with started(place, clock, budget=budget, crash=life % 2 == 1) as engine:
            shop = await served(engine, similar=similar, feedback_within=40)
            for _ in range(120):
                await one_thing(engine, shop, life)
            await audit(engine)
    async with started(place, clock) as engine:
        await audit(engine)
        assert engine.collections.find("shop").version.number > 8


async def test_many_changes_at_once_and_one_that_cannot_be(place: Place) -> None:
    async with started(place) as engine:
        shop = await served(engine)
        path = ["All", "Branch 0"]
        good = [engine.updates.change(shop, [{"add": f"n{number}", "path": path}]) for number in range(10)]
        bad = engine.updates.change(shop, [{"add": "n10", "path": path}, {"remove": "nobody"}])
        results = await asyncio.gather(*good[:5], bad, *good[5:], return_exceptions=True)
        assert [type(one) for one in results].count(UnprocessableError) == 1
        assert isinstance(results[5], UnprocessableError)
        assert "nobody" in str(results[5])
        assert {f"n{number}" for number in range(10)} <= set(shop.tree.documents)
        assert "n10" not in shop.tree.documents
        assert len(shop.tree) == 46
    async with started(place) as engine:
        assert len(engine.collections.find("shop").tree) == 46


@pytest.mark.store_contract
async def test_a_change_that_is_not_kept_has_not_happened(
    place: Place, engine: Engine, shop: ServedCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = engine.store.add_version

    def refuse(*_: Any) -> None:
        raise StorageError("The disk is full.")

    def keep_and_fail(*given: Any) -> None:
        add(*given)
        raise StorageError("The connection was lost.")

    with monkeypatch.context() as patched:
        patched.setattr(engine.store, "add_version", refuse)
        with pytest.raises(StorageError):
            await engine.updates.change(shop, [{"remove": "d000"}])
    assert "d000" in shop.tree.documents
    with monkeypatch.context() as patched:
        patched.setattr(engine.store, "add_version", keep_and_fail)
        await engine.updates.change(shop, [{"remove": "d000"}])
    assert "d000" not in shop.tree.documents
    with monkeypatch.context() as patched:  # it comes true only after somebody has looked
        patched.setattr(engine.store, "add_version", keep_and_fail)
        patched.setattr(engine.store.read, "last_version", lambda _: 1)
        with pytest.raises(StorageError):
            await engine.updates.change(shop, [{"remove": "d001"}])
    await engine.updates.change(shop, [{"remove": "d002"}])
    assert not {"d000", "d001", "d002"} & set(shop.tree.documents)
    await engine.rank(shop, "owl")
    await audit(engine)


async def test_over_http(place: Place, engine: Engine, client: httpx.AsyncClient) -> None:
    await served(engine)
    new = {"id": "a/b c", "path": "All > Branch 9", "title": "Slashed"}
    told = as_json(await client.post(f"{SHOP}/documents", json={"documents": [new]}))
    assert told == {
        "edition": 1, "documents": 37, "added": 1, "changed": 0, "removed": 0, "categories": 0,
    }  # fmt: skip
    again = await client.post(f"{SHOP}/documents", json={"documents": [new]})
    assert (again.status_code, "there" in again.json()["message"]) == (422, True)
    assert (await client.post(f"{SHOP}/documents?there=change", json={"documents": [new]})).status_code == 200
    patched = await client.patch(f"{SHOP}/documents/a%2Fb%20c", json={"title": "Better", "near": "d000"})
    assert patched.status_code == 200, patched.text
    listed = as_json(await client.get(f"{SHOP}/documents?limit=100"))["documents"]
    found = next(one for one in listed if one["id"] == "a/b c")
    assert (found["title"], found["path"]) == ("Better", _in(0, 0))
    assert as_json(await client.delete(f"{SHOP}/documents/a%2Fb%20c"))["documents"] == 36
    assert (await client.delete(f"{SHOP}/documents/a%2Fb%20c")).status_code == 404
    moved = {"changes": [{"category": "All > Branch 1", "to": "Elsewhere"}, {"remove": "d000"}]}
    assert as_json(await client.post(f"{SHOP}/changes", json=moved))["categories"] == 1
    lines = "\n".join(json.dumps({"remove": name}) for name in ("d001", "nobody", "d002"))
    refused = await client.post(f"{SHOP}/changes", content=lines, headers=LINES)
    assert (refused.status_code, "nobody" in refused.json()["message"]) == (422, True)
    skipped = await client.post(f"{SHOP}/changes?unknown=skip", content=lines, headers=LINES)
    assert as_json(skipped)["documents"] == 33
    assert (await client.post(f"{SHOP}/remake")).status_code == 200
    for wrong in ({"add": 1, "remove": 2}, {"category": "A"}, {}, {"title": "x"}):
        assert (await client.post(f"{SHOP}/changes", json={"changes": [wrong]})).status_code == 422
    assert (await client.post(f"{SHOP}/changes", content="x", headers=LINES)).status_code == 422
    assert (await client.post(f"{SHOP}/documents?there=what", json={"documents": [new]})).status_code == 422
    text = {"Content-Type": "text/plain"}
    assert (await client.post(f"{SHOP}/documents", content="{}", headers=text)).status_code == 415
    await audit(engine)


async def test_many_lines_are_taken_part_by_part(
    engine: Engine, shop: ServedCollection, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zoomrank.service.http.builder.MOST_AT_ONCE", 10)
    lines = [json.dumps({"id": f"n{number}", "path": ["All", f"New {number % 3}"]}) for number in range(35)]
    told = as_json(await client.post(f"{SHOP}/documents", content="\n".join(lines), headers=LINES))
    assert (told["added"], told["edition"], told["documents"]) == (35, 4, 71)
    lines = [json.dumps({"remove": f"n{number}"}) for number in range(25)] + ['{"remove": "nobody"}']
    refused = await client.post(f"{SHOP}/changes", content="\n".join(lines), headers=LINES)
    assert refused.status_code == 422
    assert "The first 20 changes are made, those from line 21 on are not" in refused.json()["message"]
    assert len(shop.tree) == 51
    await audit(engine)


@pytest.mark.store_contract
async def test_a_collection_that_is_removed_leaves_nothing(place: Place) -> None:
    async with started(place) as engine, client_of(engine) as client:
        shop, other = await served(engine), await served(engine, "other")
        await _visits(engine, shop, 20, "d0")
        await _visits(engine, other, 5, "d0")
        waits, _ = await engine.rank(shop, "owl")
        await engine.updates.change(shop, [{"remove": "d000"}])
        assert as_json(await client.delete(SHOP)) == {"name": "shop", "status": "removed"}
        assert (await client.delete(SHOP)).status_code == 404
        with pytest.raises(NotFoundError):
            await engine.feedback(waits, None)
        assert {row[0] for row in engine.store.database.query("SELECT collection FROM learners")} == {other.id}
        for table in ("activity", "contents", "editions"):
            assert {row[0] for row in engine.store.database.query(f"SELECT collection FROM {table}")} == {other.id}  # noqa: S608
        await engine.housekeep()
        await audit(engine)
        anew = await served(engine)
        assert anew.id > other.id
        await _visits(engine, anew, 5, "d0")
        await audit(engine)
    async with started(place) as engine:
        assert engine.collections.find("shop").id == anew.id
        await audit(engine)


async def test_a_removal_that_was_broken_off_is_ended_at_the_next_start(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(place, crash=True) as engine:
        shop = await served(engine)
        await _visits(engine, shop, 5, "d0")

        def fail(*_: Any) -> None:
            raise StorageError("The connection was lost.")

        with monkeypatch.context() as patched:
            patched.setattr(engine.store, "_remove", fail)
            with pytest.raises(StorageError):
                await engine.updates.remove(shop)
    async with started(place) as engine:
        assert engine.collections.by_name == {}
        with contextlib.closing(look_at(engine.store)) as view:
            assert verify(view).findings == []
        assert engine.store.database.query("SELECT COUNT(*) FROM events")[0][0] == 0


async def test_learners_that_cannot_move_refuse_another_tree(engine: Engine) -> None:
    shop = await served(engine, algorithm="RankUCB1")
    await _visits(engine, shop, 10, "d0")
    with pytest.raises(UnprocessableError, match="cannot move"):
        await engine.updates.change(shop, [{"remove": "d000"}])
    await engine.updates.change(shop, [{"change": "d000", "title": "Another"}])
    assert shop.version.document(shop.tree.documents.position("d000"))["title"] == "Another"
    await _visits(engine, shop, 10, "d0")
    await audit(engine)


async def test_earlier_editions_are_let_go_of(engine: Engine, shop: ServedCollection) -> None:
    for number in range(20):
        await engine.rank(shop, f"owl {number}")
    for number in range(5):
        await engine.updates.change(shop, [{"remove": f"d0{number % 3}{number // 3}"}])
        await engine.housekeep()
    assert {learner.version.number for _, learner in engine.learners} == {5}
    assert list(shop.versions._known) == [5]
    await audit(engine)
