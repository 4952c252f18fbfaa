"""Events get old and leave the log; learners, counts and all that is made of the log are as if they were there."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.services import Clock, Place, audit, look_at, served, started
from tests.support.short_log import DAY, LIFE, QUERIES, get_old, retire, visits
from zoomrank.cli import main
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.engine import Engine
from zoomrank.service.learners.void import ImpressionFilter
from zoomrank.service.storage.events import WAITING
from zoomrank.service.verification import verify

ROOT = Path(__file__).parents[2]
EVENTS = "SELECT shown FROM events"
KILLS = int(os.environ.get("ZOOMRANK_KILLS", "5"))


def learned(engine: Engine) -> dict[str, bytes]:
    return {key[1]: learner.snapshot() for key, learner in engine.learners}


def lines(engine: Engine) -> int:
    return int(engine.store.database.query("SELECT COUNT(*) FROM events")[0][0])


async def lived(place: Place, clock: Clock, keeps: bool, seed: int = 3) -> dict[str, bytes]:
    """Weeks in the life of a shop, with crashes, restarts and voids; what its learners are at the end."""
    random_ = random.Random(seed)
    for life in range(6):
        async with started(place, clock, budget=(2**30, 60_000)[life % 2], crash=life % 3 == 1) as engine:
            shop = await served(engine, **{**LIFE, "keep_events": None if keeps else 3 * DAY})
            for _ in range(4):
                await visits(engine, shop, clock, random_, 40)
                if random_.random() < 0.4:
                    since = clock() - 2 * DAY
                    await engine.void(shop, ImpressionFilter(random_.choice(QUERIES), since, since + DAY / 2))
                await retire(engine)
    async with started(place, clock) as engine:
        await audit(engine)
        for query in QUERIES:
            await engine.known(await served(engine), query)
        return learned(engine)


@pytest.mark.store_contract
async def test_learners_are_the_same_bit_for_bit(place: Place, tmp_path: Any) -> None:
    clock = Clock()
    dropped = await lived(place, clock, keeps=False)
    async with started(place, clock) as engine:
        bases = engine.store.database.query("SELECT learner, event FROM bases")
        assert len(bases) == len(QUERIES)
        shown = engine.outcomes[1][WAITING]
        assert lines(engine) < shown  # of some two lines for each
    whole = Place(tmp_path / "whole")
    assert await lived(whole, Clock(), keeps=True) == dropped
    whole.close()


@pytest.mark.full
async def test_killed_while_events_retire(place: Place) -> None:
    """`kill -9` at random moments: nothing is there twice, and nothing is missing."""
    random_, retired = random.Random(5), 0
    for life in range(KILLS):
        command = [sys.executable, "-m", "tests.support.short_log", str(place.folder), place.address or "", str(life)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:  # noqa: S603
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == b"ready\n"
                time.sleep(random_.random() * 2.0)
            finally:
                process.kill()
        async with started(place, Clock(2e9)) as engine:
            await audit(engine)
            retired = sum(count for _, outcome, count in engine.store.read.folded(1) if outcome == WAITING)
    print(f"{KILLS} kills, {retired} impressions retired")
    assert retired > 0


async def test_the_log_keeps_what_it_should(sqlite: Place) -> None:
    clock, random_ = Clock(), random.Random(1)
    async with started(sqlite, clock) as engine:
        shop = await served(engine, **LIFE)
        await visits(engine, shop, clock, random_, 300)
        last = engine.store.read.last("events")
        await retire(engine)
        oldest = engine.store.database.query("SELECT MIN(time) FROM events")[0][0]
        assert clock() - 2.25 * DAY - 3600 < oldest
        assert clock() - 2.25 * DAY < engine.store.read.whole_since(shop.id) <= clock() - 2 * DAY
        since = "SELECT COUNT(*) FROM events WHERE time >= ?", (clock() - 2 * DAY,)
        young = engine.store.database.query(*since)[0][0]
        assert young > 10
        await retire(engine)
        assert engine.store.database.query("SELECT MIN(time) FROM events")[0][0] == oldest  # nothing is due any more
        assert engine.store.database.query(*since)[0][0] == young
        assert engine.store.read.last("events") == last
        await get_old(engine, clock)
        assert lines(engine) == 0
        await audit(engine)
    async with started(sqlite, clock) as engine:  # places in the log are not given twice
        shop = await served(engine)
        assert engine.store.read.last("events") >= last
        name, _ = await engine.rank(shop, QUERIES[0])
        assert await engine.feedback(name, None) == "learned"
        await audit(engine)


async def test_a_collection_that_keeps_everything_and_one_that_does_not(sqlite: Place) -> None:
    clock, random_ = Clock(), random.Random(1)
    async with started(sqlite, clock) as engine:
        ever = await served(engine, "ever", **{**LIFE, "keep_events": None})
        shop = await served(engine, **LIFE)
        for where in (ever, shop, ever, shop):
            await visits(engine, where, clock, random_, 60)
        before = engine.outcomes[ever.id][WAITING], engine.outcomes[shop.id][WAITING]
        await get_old(engine, clock)
        await audit(engine)
        counted = "SELECT COUNT(*) FROM events e JOIN learners l ON l.id = e.learner WHERE l.collection = ?"
        assert engine.store.database.query(counted, (shop.id,))[0][0] == 0
        assert engine.store.database.query(counted, (ever.id,))[0][0] > 120
        assert (engine.outcomes[ever.id][WAITING], engine.outcomes[shop.id][WAITING]) == before == (120, 120)
        assert engine.store.read.whole_since(ever.id) == 0


async def test_what_is_still_open_stays_and_can_be_answered(sqlite: Place) -> None:
    """After an outage that was longer than anything is kept."""
    clock = Clock()
    async with started(sqlite, clock) as engine:
        shop = await served(engine, **LIFE)
        await visits(engine, shop, clock, random.Random(1), 30)
        name, documents = await engine.rank(shop, QUERIES[0])
    clock.pass_by(100 * DAY)
    async with started(sqlite, clock) as engine:
        await retire(engine)
        assert await engine.feedback(name, documents[1]["id"]) == "learned"
        await retire(engine)
        assert await engine.feedback(name, documents[1]["id"]) == "repeated"
        await audit(engine)
        clock.pass_by(10 * DAY)
        await retire(engine)
        assert lines(engine) == 0
        await audit(engine)


async def test_what_has_left_the_log_cannot_be_void_and_that_is_said(
    clock: Clock, engine: Engine, client: httpx.AsyncClient
) -> None:
    shop = await served(engine, **LIFE)
    await visits(engine, shop, clock, random.Random(1), 120)
    await get_old(engine, clock)
    await visits(engine, shop, clock, random.Random(2), 20)
    before = learned(engine)
    path = f"/v1/collections/{shop.name}/void"
    old = (await client.post(path, json={"until": clock() - 15 * DAY})).json()
    assert old == {"impressions": 0, "queries": 0, "retired": 120, "dry_run": False}
    assert learned(engine) == before
    of_one = (await client.post(path, json={"query": QUERIES[0], "since": 0})).json()
    assert 0 < of_one["impressions"] < 20
    assert 0 < of_one["retired"] < 120
    await audit(engine)
    assert (await client.post(path, json={"since": clock() - 10 * DAY})).json()["retired"] == 0


async def test_a_void_and_a_retirement_at_the_same_time(clock: Clock, engine: Engine) -> None:
    """What becomes void while a base is made is not in it: then the base is not kept."""
    shop = await served(engine, **LIFE)
    await visits(engine, shop, clock, random.Random(1), 80)
    clock.pass_by(DAY / 2)
    await engine.housekeep()
    clock.pass_by(20 * DAY)
    work = engine.housekeeper._retention
    due = work._find()
    assert due is not None
    base = work._made(due)
    query = engine.store.read.query_of(due.learner)
    assert query is not None
    assert base is not None
    assert (await engine.void(shop, ImpressionFilter(query[1], 0.0, clock() - 15 * DAY)))[0] > 0
    assert engine.store.retire(shop.id, *base) is False
    await audit(engine)
    await retire(engine)
    assert lines(engine) > 0  # that some are void was said only now
    await audit(engine)
    await get_old(engine, clock)
    assert lines(engine) == 0
    await audit(engine)
    await engine.remove_query(shop, query[1])
    assert engine.store.retire(shop.id, *base) is False
    await audit(engine)


async def test_an_export_says_from_when_on_the_log_is_whole(
    sqlite: Place, clock: Clock, engine: Engine, client: httpx.AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = await served(engine, **LIFE)
    await visits(engine, shop, clock, random.Random(1), 20)
    path = f"/v1/collections/{shop.name}/export"
    assert "log-whole-since" not in (await client.get(path)).headers
    await get_old(engine, clock)
    await visits(engine, shop, clock, random.Random(2), 10)
    exported = await client.get(path)
    assert float(exported.headers["log-whole-since"]) == engine.store.read.whole_since(shop.id) > 0
    assert len(exported.text.splitlines()) == 10
    file = sqlite.folder.parent / "some.jsonl"
    assert main(["export", str(file), *sqlite.options()]) == 0
    assert "Of “shop” the log has everything since 20" in capsys.readouterr().out
    assert main(["export", str(file), "--force", "--since", str(clock() - DAY), *sqlite.options()]) == 0
    assert "retired" not in capsys.readouterr().out


async def test_removed_queries_leave_no_base(clock: Clock, engine: Engine) -> None:
    shop = await served(engine, **LIFE)
    await visits(engine, shop, clock, random.Random(1), 80)
    await get_old(engine, clock)
    for query in QUERIES[:2]:
        await engine.remove_query(shop, query)
    assert len(engine.store.database.query("SELECT learner FROM bases")) == 2
    assert engine.outcomes[shop.id][WAITING] == 80
    await audit(engine)


@pytest.mark.store_contract
async def test_counts_of_long_ago_are_by_the_day(place: Place) -> None:
    clock, random_ = Clock(), random.Random(1)
    async with started(place, clock) as engine:
        shop = await served(engine, **{**LIFE, "keep_events": 30 * DAY})
        await visits(engine, shop, clock, random_, 100)
        rows = "SELECT COUNT(*) FROM activity"
        fine = engine.store.database.query(rows)[0][0]
        before = dict(engine.outcomes[shop.id])
        clock.pass_by(100 * DAY)
        await engine.housekeep()
        await retire(engine)
        coarse = engine.store.database.query(rows)[0][0]
        assert coarse < fine / 5
        assert all(engine.outcomes[shop.id][outcome] >= count for outcome, count in before.items())
        await audit(engine)
        await visits(engine, shop, clock, random_, 50)
        clock.pass_by(20 * DAY)
        await retire(engine)
        await audit(engine)


async def test_what_is_void_long_after_counts_no_more(clock: Clock, engine: Engine) -> None:
    """Also where counts are by the day already."""
    shop = await served(engine, **{**LIFE, "keep_events": None})
    await visits(engine, shop, clock, random.Random(1), 100)
    clock.pass_by(100 * DAY)
    await engine.housekeep()
    await retire(engine)
    assert (await engine.void(shop, ImpressionFilter(QUERIES[1], 0.0, None)))[0] > 5
    await audit(engine)
    await retire(engine)
    await audit(engine)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DELETE FROM bases WHERE learner = (SELECT MIN(id) FROM learners)", "not numbered one after the other"),
        (
            "UPDATE bases SET event = event + 1000000 WHERE learner = (SELECT MIN(id) FROM learners)",
            "already in its base",
        ),
        (
            "UPDATE bases SET content = (SELECT content FROM bases WHERE learner = (SELECT MAX(id) FROM learners)) "
            "WHERE learner = (SELECT MIN(id) FROM learners)",
            "(learner ",
        ),
        ("UPDATE bases SET content = X'00' WHERE learner = (SELECT MIN(id) FROM learners)", "cannot be read"),
        ("UPDATE bases SET counts = '{}' WHERE learner = (SELECT MIN(id) FROM learners)", "counts beside its base"),
        (
            "UPDATE bases SET first = first - 1 WHERE learner = (SELECT MIN(id) FROM learners)",
            "its base names impression",
        ),
        (
            "DELETE FROM events WHERE id = (SELECT MIN(id) FROM events WHERE learner = (SELECT MIN(id) FROM learners))",
            "(learner ",
        ),
        ("UPDATE folded SET count = count + 1", "activity counts differ from the log"),
        ("INSERT INTO bases SELECT 99, edition, event, first, waiting, counts, content FROM bases LIMIT 1", "bases of"),
    ],
)
async def test_damage_is_still_found(sqlite: Place, damage: str, said: str) -> None:
    clock = Clock()
    async with started(sqlite, clock) as engine:
        shop = await served(engine, **LIFE)
        await visits(engine, shop, clock, random.Random(1), 300)
        await retire(engine)
        assert lines(engine) > 20
    store = sqlite.open()
    with closing(look_at(store)) as view:
        assert verify(view).findings == []
    store.database.writer.execute(damage)
    with closing(look_at(store)) as view:
        assert any(said in found for found in verify(view).findings), verify(view).findings


async def test_a_log_that_cannot_be_replayed_is_left_alone(sqlite: Place, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    async with started(sqlite, clock) as engine:
        shop = await served(engine, **LIFE)
        await visits(engine, shop, clock, random.Random(1), 60)
        engine.store.database.writer.execute(
            "UPDATE events SET shown = X'01' WHERE learner = (SELECT MIN(id) FROM learners) AND number = 3"
        )
        await get_old(engine, clock)
        left = engine.store.database.query("SELECT DISTINCT learner FROM events")
        assert left == engine.store.database.query("SELECT MIN(id) FROM learners")
    assert "cannot be replayed" in caplog.text


@pytest.mark.parametrize("wrong", [0, -5.0, 1000.0])
def test_what_can_still_be_answered_has_to_be_kept(wrong: float) -> None:
    with pytest.raises(ValueError, match="keep_events"):
        Settings(keep_events=wrong, feedback_within=600.0)
    assert Settings(keep_events=None).keep_events is None


async def test_a_store_stays_as_large_as_what_it_keeps(sqlite: Place) -> None:
    """A month; `python -m research bench retention` has a year."""

    async def month(place: Place, **settings: Any) -> list[int]:
        clock, random_, sizes = Clock(), random.Random(1), []
        async with started(place, clock) as engine:
            shop = await served(engine, **{**LIFE, **settings})
            for _ in range(5):
                await visits(engine, shop, clock, random_, 340)  # six days
                await retire(engine)
                sizes.append(sum(len(bytes(shown or b"")) + 40 for (shown,) in engine.store.database.query(EVENTS)))
            await audit(engine)
        return sizes

    bounded = await month(sqlite)
    whole = Place(sqlite.folder / "whole")
    growing = await month(whole, keep_events=None)
    whole.close()
    print(f"bytes of the log after six days each: {bounded} with two days of it, {growing} with all")
    assert max(bounded[1:]) < 1.3 * bounded[0]
    assert growing[-1] > 4 * growing[0]
    assert growing[-1] > 6 * bounded[-1]
