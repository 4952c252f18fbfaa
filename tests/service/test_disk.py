"""Stores that refuse: a full disk, a server that went away. Nothing is half done, and it goes on when it can."""

import asyncio
import contextlib
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.services import Clock, Place, as_json, audit, client_of, key_of, served, started
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.engine import Engine
from zoomrank.service.errors import StorageError
from zoomrank.service.http import page_data
from zoomrank.service.learners.query_learner import QueryLearner
from zoomrank.service.storage import postgres_store
from zoomrank.service.storage.events import WAITING, Batch, Event, StoredLearner
from zoomrank.service.storage.store import Store

pytestmark = pytest.mark.store_contract


def _fill_up(store: Store) -> None:
    """As if the disk had no room left."""
    pages = store.database.writer.execute("PRAGMA page_count").fetchone()[0]
    store.database.writer.execute(f"PRAGMA max_page_count = {pages}")


def _make_room(store: Store) -> None:
    store.database.writer.execute("PRAGMA max_page_count = 1000000")


async def test_a_full_disk_is_said_and_nothing_is_corrupted(sqlite: Place) -> None:
    async with started(sqlite) as engine, client_of(engine) as client:
        shop = await served(engine)
        told: dict[str, str | None] = {}
        refused: list[int] = []

        async def visit(number: int) -> None:
            asked = await client.post("/v1/collections/shop/rank", json={"query": f"query {number % 7}"})
            if asked.status_code != 200:
                refused.append(asked.status_code)
                assert asked.status_code == 503
                assert asked.json()["error"] == "storage"
                assert "full" in asked.json()["message"]
                assert asked.headers["retry-after"]
                return
            shown = asked.json()
            clicked = shown["documents"][number % 3]["id"] if number % 4 else None
            taken = await client.post("/v1/feedback", json={"impression": shown["impression"], "clicked": clicked})
            if taken.status_code == 200:
                told[shown["impression"]] = clicked
            else:
                refused.append(taken.status_code)
                assert taken.status_code == 503

        for _ in range(4):
            await asyncio.gather(*(visit(number) for number in range(40)))
            _fill_up(engine.store)
            for _ in range(200):
                await asyncio.gather(*(visit(number) for number in range(20)))
                if len(refused) >= 40:
                    break
            assert len(refused) >= 40, "the disk never was full"
            refused.clear()
            assert (await client.get("/v1/collections/shop")).status_code == 200  # reading goes on
            for _ in range(2):
                assert as_json(await client.get("/v1/ready")) == {"status": "storage"}
                with pytest.raises(StorageError):
                    await engine.housekeep()
            await audit(engine)
            _make_room(engine.store)
            await engine.housekeep()
            assert (await client.get("/v1/ready")).status_code == 200
            await asyncio.gather(*(visit(number) for number in range(40)))
            assert not refused
        found = await audit(engine)
        assert found.closed == len(told)
        assert {key for key, outcome in found.outcomes.items() if outcome != WAITING} == set(map(key_of, told))
        assert page_data.about(engine, shop)["impressions"] == len(found.outcomes)
        assert (await client.get("/metrics")).text.count("zoomrank_failed_writes_total") >= 1
    async with started(sqlite) as engine:
        assert (await audit(engine)).outcomes == found.outcomes


async def test_the_disk_is_full_when_it_stops(sqlite: Place) -> None:
    async with started(sqlite) as engine:
        shop = await served(engine)
        for number in range(30):
            name, _ = await engine.rank(shop, f"query {number}")
            await engine.feedback(name, None)
        _fill_up(engine.store)
    async with started(sqlite) as engine:
        assert (await audit(engine)).closed == 30


async def test_a_full_disk_refuses_collections(sqlite: Place) -> None:
    async with started(sqlite) as engine:
        await served(engine)
        _fill_up(engine.store)
        with pytest.raises(StorageError):
            await served(engine, "other")
        assert list(engine.collections.by_name) == ["shop"]
        _make_room(engine.store)
        await engine.rank(await served(engine, "other"), "owl")
        await audit(engine)
    async with started(sqlite) as engine:
        assert list(engine.collections.by_name) == ["shop", "other"]
        await audit(engine)


class Moody:
    """Lets a store fail as often as a test wants, as stores do or in a way that nobody expects."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fail = ""
        self.writes = 0
        write = store.write

        def moody(batch: Batch) -> None:
            self.writes += 1
            if self.fail == "before":
                raise StorageError("Nothing was written down: the store is moody.")
            if self.fail == "strange":
                raise ValueError("nobody expects this")
            write(batch)

        monkeypatch.setattr(store, "write", moody)


@pytest.mark.parametrize("how", ["before", "strange"])
async def test_what_could_not_be_written_never_happened(
    place: Place, clock: Clock, engine: Engine, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    moody = Moody(engine.store, monkeypatch)
    shop = await served(engine, feedback_within=60)
    impression, documents = await engine.rank(shop, "owl")
    waits, _ = await engine.rank(shop, "owl")
    moody.fail = how
    for query in ("owl", "new"):
        with pytest.raises(StorageError):
            await engine.rank(shop, query)
    with pytest.raises(StorageError):
        await engine.feedback(impression, documents[0]["id"])
    both = await asyncio.gather(
        engine.feedback(impression, documents[0]["id"]),
        engine.feedback(impression, documents[0]["id"]),
        return_exceptions=True,
    )
    assert all(isinstance(one, StorageError) for one in both), both
    assert page_data.about(engine, shop)["queries"] == 1
    clock.pass_by(61)
    with pytest.raises(StorageError):
        await engine.housekeep()
    moody.fail = ""
    clock.pass_by(-61)
    await audit(engine)
    assert await engine.feedback(impression, documents[1]["id"]) == "learned"  # something else than was refused
    clock.pass_by(61)
    await engine.housekeep()
    assert page_data.about(engine, shop)["abandoned"] == 1
    found = await audit(engine)
    assert found.outcomes[key_of(impression)] == 1
    assert found.outcomes[key_of(waits)] != WAITING
    assert len(found.outcomes) == 2


async def test_repeated_feedback_is_not_acknowledged_when_the_first_was_lost(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of two equal reports comes while the first is being written, and that write fails."""
    moody = Moody(engine.store, monkeypatch)
    shop = await served(engine)
    impression, documents = await engine.rank(shop, "owl")
    lines = engine.store.read.impression

    def slowly(learner: int, number: int) -> list[Event]:
        found = lines(learner, number)
        while not engine.write_queue.failures:
            time.sleep(0.001)
        moody.fail = ""  # the store has recovered before the second report is looked at
        return found

    monkeypatch.setattr(engine.store.read, "impression", slowly)
    moody.fail = "before"
    told = await asyncio.gather(
        *(engine.feedback(impression, documents[0]["id"]) for _ in range(2)), return_exceptions=True
    )
    found = await audit(engine)
    assert "repeated" not in told or found.outcomes[key_of(impression)] == 0


async def test_requests_in_flight_when_writing_fails_now_and_then(
    place: Place, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    moody = Moody(engine.store, monkeypatch)
    shop = await served(engine)
    told: dict[str, Any] = {}

    async def visit(number: int) -> None:
        for turn in range(10):
            moody.fail = "before" if (number + turn) % 5 == 0 else ""
            try:
                impression, documents = await engine.rank(shop, f"query {number % 5}")
                await engine.feedback(impression, documents[0]["id"])
            except StorageError:
                continue
            told[impression] = 0

    await asyncio.gather(*(visit(number) for number in range(40)))
    moody.fail = ""
    found = await audit(engine)
    assert told
    assert {key for key, outcome in found.outcomes.items() if outcome != WAITING} == set(map(key_of, told))


def _cut_off(place: Place) -> None:
    """End all connections of the service, as a restart of the server does."""
    import psycopg

    assert place.address is not None
    with psycopg.connect(place.address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


async def test_postgres_went_away_and_came_back(on_postgres: Place) -> None:
    async with started(on_postgres) as engine:
        shop = await served(engine)
        closed = 0
        for _ in range(3):
            impression, _ = await engine.rank(shop, "owl")
            _cut_off(on_postgres)
            try:
                await engine.feedback(impression, None)
            except StorageError:
                await asyncio.sleep(0)
            assert await _patiently(engine, impression) in ("learned", "repeated")
            closed += 1
        assert (await audit(engine)).closed == closed
        await served(engine, "other")


async def _patiently(engine: Engine, impression: str) -> str:
    for _ in range(50):
        try:
            return await engine.feedback(impression, None)
        except StorageError:
            await asyncio.sleep(0.02)
    raise AssertionError("it never came back")


async def test_postgres_was_taken_over_meanwhile(on_postgres: Place) -> None:
    """Two services never write into one database, not even after a connection was lost."""
    async with started(on_postgres, crash=True) as first:
        shop = await served(first)
        impression, _ = await first.rank(shop, "owl")
        _cut_off(on_postgres)
        async with started(on_postgres) as second:
            await second.rank(second.collections.find("shop"), "owl")
            for _ in range(3):
                with pytest.raises(StorageError):
                    await first.feedback(impression, None)
            assert await second.feedback(impression, None) == "learned"
        for _ in range(3):
            with pytest.raises(StorageError):
                await first.rank(shop, "owl")
    async with started(on_postgres) as third:
        found = await audit(third)
        assert (len(found.outcomes), found.closed) == (2, 1)


def test_only_one_service_at_a_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_store, "_PATIENCE", 0.0)
    store = place.open()
    with pytest.raises(StorageError, match="Another zoomrank service"):
        place.open()
    store.close()
    place.open()


def test_a_store_of_another_layout_is_refused(place: Place) -> None:
    store = place.open()
    store.database.writer.execute("UPDATE about SET value = '99' WHERE name = 'layout'")
    store.close()
    with pytest.raises(StorageError, match="layout 99"):
        place.open()


def test_a_store_of_an_earlier_layout_is_refused_in_words(place: Place) -> None:
    """Its tables are others, and nothing but its layout is looked at."""
    store = place.open()
    store.database.writer.execute("DROP INDEX events_impression")
    store.database.writer.execute("ALTER TABLE events RENAME COLUMN outcome TO answer")
    store.database.writer.execute("UPDATE about SET value = '2' WHERE name = 'layout'")
    store.close()
    with pytest.raises(StorageError, match="layout 2; this zoomrank reads layout 8"):
        place.open()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "zoomrank.sqlite").write_bytes(b"nothing that SQLite would read" * 100)
    with pytest.raises(StorageError, match="cannot be"):
        Place(tmp_path).open()


async def test_a_batch_is_written_whole_or_not_at_all(place: Place, engine: Engine, shop: ServedCollection) -> None:
    await engine.rank(shop, "owl")
    [(owl, *_)] = engine.store.read.learners(shop.id)
    taken = next(iter(engine.store.read.events(owl)))
    clash = Batch(learners=[StoredLearner(77, shop.id, "new", 0.0)], events=[taken])
    clash.activity[shop.id, 0, WAITING] += 5
    with pytest.raises(StorageError):
        engine.store.write(clash)
    assert engine.store.read.query_of(77) is None
    await audit(engine)
    await engine.rank(shop, "owl")
    await audit(engine)


async def test_a_learner_that_missed_something_is_refused_and_read_again(
    place: Place, engine: Engine, shop: ServedCollection
) -> None:
    """It should never be there; if it is, it shows and closes what the log has already."""
    missed, documents = await engine.rank(shop, "owl")
    learner = await engine.known(shop, "owl")
    fresh = QueryLearner(learner.number, shop.versions, shop.settings)
    engine.learners._here[shop.id, "owl"] = fresh
    with pytest.raises(StorageError):
        await engine.rank(shop, "owl")
    assert await engine.feedback(missed, documents[0]["id"]) == "learned"
    fresh.replay([event for _, event in engine.store.read.events(learner.number)][:1])
    engine.learners._here[shop.id, "owl"] = fresh
    with pytest.raises(StorageError):
        await engine.feedback(missed, documents[1]["id"])
    assert await engine.feedback(missed, documents[0]["id"]) == "repeated"
    await audit(engine)


async def test_settings_come_back_as_they_were(place: Place) -> None:
    wanted = Settings(algorithm="RankThompson", parameters={"prior": 2, "correlated": False}, slots=2, seed=2**62)
    async with started(place) as engine:
        await served(engine, **wanted.model_dump())
    async with started(place) as engine:
        assert engine.collections.find("shop").settings == wanted
    assert sqlite3.sqlite_version_info >= (3, 24)  # upserts


def test_a_store_can_be_closed_while_it_is_tidied_and_read(sqlite: Place) -> None:
    store = sqlite.open()
    closed = threading.Event()

    def use() -> None:
        while not closed.is_set():
            store.database.tidy()
            with contextlib.suppress(StorageError):
                store.read.last("events")

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    store.close()
    store.database.tidy()
    closed.set()
    for thread in threads:
        thread.join()
