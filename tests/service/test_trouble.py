"""What can go wrong while others go on: nobody is lost, nobody waits for ever, and the next sweep comes."""

import asyncio
import gc
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.support.services import Clock, Place, audit, client_of, key_of, served, small_collection, started
from zoomrank.documents import Collection
from zoomrank.service import write_queue as journal_module
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.engine import Engine
from zoomrank.service.errors import ExistsError, NotFoundError, ServiceError, StorageError
from zoomrank.service.http import page_data
from zoomrank.service.http.routes import operations
from zoomrank.service.learners import housekeeping
from zoomrank.service.storage import postgres_store, sqlite_store
from zoomrank.service.storage.events import WAITING, Batch, Event
from zoomrank.service.storage.store_reader import StoredCollection


def _write_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the disk is slow."""
    monkeypatch.setattr(journal_module.WriteQueue, "_is_quick", lambda _: False)


def _refuse(_: Batch) -> None:
    raise StorageError("no")


# Sweeping.


async def test_one_damaged_learner_does_not_end_all_sweeping(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    monkeypatch.setattr(housekeeping, "SWEEP_EVERY", 0.02)
    clock = Clock()
    async with started(place, clock) as engine:
        await engine.rank(await served(engine, feedback_within=60), "bad")
        engine.learners.write(await engine.known(engine.collections.find("shop"), "bad"))
        engine.write_queue.batch.snapshots[-1] = engine.write_queue.batch.snapshots[-1]._replace(content=b"\0")
        await engine.write_queue.wait_durable()
        (await engine.known(engine.collections.find("shop"), "bad")).written = 10**9  # as a crash would have it
    engine = Engine(place.open(), place.folder, 2**30, clock)
    await engine.start()
    shop = engine.collections.find("shop")
    await engine.rank(shop, "good")
    clock.pass_by(61)
    while (await engine.known(shop, "good")).counts.abandoned == 0:
        await asyncio.sleep(0.02)
    await engine.stop()
    assert "'bad'" in caplog.text


async def test_it_sweeps_and_stops_though_a_sweep_was_broken_off(
    sqlite: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    monkeypatch.setattr(housekeeping, "SWEEP_EVERY", 0.01)
    swept = 0

    def fails() -> None:
        nonlocal swept
        swept += 1
        raise MemoryError

    engine = Engine(sqlite.open(), sqlite.folder)
    await engine.start()
    monkeypatch.setattr(engine.learners, "list_all", fails)
    while swept < 3:
        await asyncio.sleep(0.01)
    await engine.stop()
    assert not engine.write_queue._thread.is_alive()
    assert "Housekeeping failed." in caplog.text
    sqlite.open()  # nobody has it any more


async def test_making_room_ends_while_all_are_busy(sqlite: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_in_a_thread(monkeypatch)
    async with started(sqlite, budget=1) as engine:
        shop = await served(engine)
        asking = True

        async def ask(query: str) -> None:
            while asking:
                await engine.rank(shop, query)

        visitors = [asyncio.create_task(ask(f"query {number % 3}")) for number in range(12)]
        await asyncio.sleep(0.1)
        before = engine.write_queue.batches
        await engine.housekeep()
        assert engine.write_queue.batches < before + 20
        asking = False
        await asyncio.gather(*visitors)
        await audit(engine)


async def test_a_sweep_that_is_refused_leaves_no_failures_that_nobody_asked_for(
    sqlite: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: said.append(about["message"]))
    clock = Clock()
    async with started(sqlite, clock) as engine:
        shop = await served(engine, feedback_within=60)
        for _ in range(20):
            await engine.rank(shop, "owl")
        clock.pass_by(61)
        with monkeypatch.context() as patched:
            patched.setattr(engine.store, "write", _refuse)
            with pytest.raises(StorageError):
                await engine.housekeep()
        gc.collect()
    gc.collect()
    assert not said


async def test_new_queries_that_are_refused_leave_nothing_behind(
    engine: Engine, shop: ServedCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(engine.store, "write", _refuse)
        asked = (engine.rank(shop, f"query {number}") for number in range(500))
        assert all(isinstance(one, StorageError) for one in await asyncio.gather(*asked, return_exceptions=True))
    assert not engine.learners._away
    assert len(engine.learners) == 0


async def test_an_impression_from_the_future_does_not_keep_others_open(clock: Clock, engine: Engine) -> None:
    shop = await served(engine, feedback_within=60)
    clock.pass_by(86_400)
    await engine.rank(shop, "owl")
    clock.pass_by(-86_400)  # somebody has put it right
    for _ in range(5):
        await engine.rank(shop, "owl")
    clock.pass_by(600)
    await engine.housekeep()
    assert (await engine.known(shop, "owl")).counts.abandoned == 5


async def test_lists_are_right_while_a_learner_leaves(
    engine: Engine, shop: ServedCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for query in ("owl", "owl", "owl", "other"):
        await engine.rank(shop, query)
    since, loop = engine.store.read.since_snapshots, asyncio.get_running_loop()

    def leave_meanwhile(learners: Any) -> Any:
        engine.learners.budget = 1
        asyncio.run_coroutine_threadsafe(engine.learners.make_room(), loop).result(10)
        return since(learners)

    monkeypatch.setattr(engine.store.read, "since_snapshots", leave_meanwhile)
    rows = (await page_data.queries(engine, shop, 0, 10))["queries"]
    assert len(engine.learners) == 1
    assert {row["query"]: row["impressions"] for row in rows} == {"owl": 3, "other": 1}


# Learning.


async def test_feedback_that_could_not_be_learned_was_not_heard(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: Any) -> None:
        raise MemoryError

    async with started(place, crash=True) as engine:
        shop = await served(engine)
        name, documents = await engine.rank(shop, "owl")
        learner = await engine.known(shop, "owl")
        with monkeypatch.context() as patched:
            patched.setattr(learner.ranker, "learn_arrays", no_memory)
            with pytest.raises(MemoryError):
                await engine.feedback(name, documents[0]["id"])
        assert await engine.feedback(name, documents[0]["id"]) == "learned"
    async with started(place) as engine:
        assert (await audit(engine)).outcomes[key_of(name)] == 0


async def test_who_wants_to_rank_is_not_kept_waiting_by_those_who_look(engine: Engine, shop: ServedCollection) -> None:
    """Pages look at a query that nobody has asked yet, again and again; then somebody asks it."""
    looking = True

    async def look() -> None:
        while looking:
            try:
                await engine.known(shop, "owl")
                await asyncio.sleep(0)
            except NotFoundError:
                continue

    looks = [asyncio.create_task(look()) for _ in range(2)]
    await asyncio.sleep(0)
    try:
        await asyncio.wait_for(engine.rank(shop, "owl"), 10)
    finally:
        looking = False
        await asyncio.gather(*looks)


# Stopping.


@pytest.mark.parametrize("slow", [False, True])
async def test_a_request_in_flight_when_it_stops_hears_of_it(
    place: Place, monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    if slow:
        _write_in_a_thread(monkeypatch)
    engine = Engine(place.open(), place.folder)
    await engine.start()
    shop = await served(engine)
    find, go = engine.store.read.find, threading.Event()

    def slowly(collection: int, query: str) -> Any:
        found = find(collection, query)
        go.wait(10)
        return found

    monkeypatch.setattr(engine.store.read, "find", slowly)
    asking = asyncio.create_task(engine.rank(shop, "owl"))
    await asyncio.sleep(0.05)
    await engine.stop()
    go.set()
    with pytest.raises(ServiceError):
        await asyncio.wait_for(asking, 10)


def test_a_closed_store_stays_closed(place: Place) -> None:
    store = place.open()
    store.close()
    for use in (lambda: store.read.last("events"), lambda: store.write(Batch()), lambda: store.read.find(1, "owl")):
        with pytest.raises(StorageError):
            use()
    place.open()  # nobody holds it


# Collections.


async def test_collections_in_the_making_do_not_keep_rankings_waiting(engine: Engine, shop: ServedCollection) -> None:
    go = threading.Event()

    def make() -> Collection:
        go.wait(30)
        return small_collection()

    many = (os.cpu_count() or 1) + 8
    making = [asyncio.create_task(engine.collections.add(f"c{n}", make, Settings(slots=3))) for n in range(many)]
    await asyncio.sleep(0.05)
    try:
        await asyncio.wait_for(engine.rank(shop, "owl"), 10)
    finally:
        go.set()
        await asyncio.gather(*making)
    assert len(engine.collections.by_name) == many + 1


async def test_a_collection_that_is_written_does_not_stop_the_loop(engine: Engine, shop: ServedCollection) -> None:
    await engine.rank(shop, "owl")
    with engine.store.database._writing:  # as it is held while a large one is written
        asking = asyncio.create_task(engine.rank(shop, "owl"))
        await asyncio.sleep(0.05)  # comes back: nobody waits for that lock here
        assert not asking.done()
    await asking


async def test_a_collection_whose_keeping_was_reported_as_failed_can_be_had(
    place: Place, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = engine.store.add_collection

    def keep_and_fail(stored: StoredCollection, digest: str, content: Iterable[bytes]) -> None:
        add(stored, digest, content)
        raise StorageError("The connection was lost.")

    with monkeypatch.context() as patched:
        patched.setattr(engine.store, "add_collection", keep_and_fail)
        shop = await served(engine)
        del engine.collections.by_name["shop"]  # as if that had come true only after somebody had looked
        with pytest.raises(ExistsError):
            await served(engine, slots=2)
        assert engine.collections.find("shop").id == shop.id
        await engine.rank(engine.collections.find("shop"), "owl")
    await audit(engine)


async def test_a_collection_is_there_though_nobody_waited_for_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, inside, go = engine.store.add_collection, threading.Event(), threading.Event()

    def slowly(stored: StoredCollection, digest: str, content: Iterable[bytes]) -> None:
        inside.set()
        go.wait(10)
        add(stored, digest, content)

    monkeypatch.setattr(engine.store, "add_collection", slowly)
    making = asyncio.create_task(served(engine))
    while not inside.is_set():
        await asyncio.sleep(0.005)
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    with pytest.raises(ExistsError):
        await served(engine)
    go.set()
    while "shop" not in engine.collections.by_name:
        await asyncio.sleep(0.005)
    await engine.rank(engine.collections.find("shop"), "owl")


# The stores themselves.


def test_the_log_of_sqlite_begins_anew_under_load(sqlite: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something is written whenever it is tidied, so it is never empty by itself."""
    monkeypatch.setattr(sqlite_store, "_LONG_LOG", 100)
    store = sqlite.open()
    log = sqlite.folder / "zoomrank.sqlite-wal"
    stop = threading.Event()

    def tidy() -> None:
        while not stop.wait(0.05):
            store.database.tidy()

    tidying = threading.Thread(target=tidy)
    tidying.start()
    place, sizes = 0, []
    for _ in range(4):
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            place += 1
            store.write(Batch(events=[(place, Event(place % 300, place, 1.0, WAITING, b"x" * 1000))]))
        sizes.append(log.stat().st_size)
    stop.set()
    tidying.join()
    assert sizes[-1] < 2 * sizes[0] + 2**20
    assert store.read.last("events") == place


async def test_a_commit_of_postgres_that_comes_true_after_the_connection_was_lost(on_postgres: Place) -> None:
    """The server is at COMMIT when the network goes: the service hears that it failed, somebody looks at the learner,
    and then it is committed.
    """
    clock = Clock()
    async with started(on_postgres, clock) as engine:
        shop = await served(engine, feedback_within=60)
        name, documents = await engine.rank(shop, "owl")
        undo = await asyncio.to_thread(_slow_commits, on_postgres)
        telling = asyncio.create_task(engine.feedback(name, documents[0]["id"]))
        await asyncio.sleep(0.4)  # it is there
        lost = socket.socket(fileno=os.dup(engine.store.database.writer.pgconn.socket))
        lost.shutdown(socket.SHUT_RDWR)
        lost.close()
        with pytest.raises(StorageError):
            await telling
        with pytest.raises(StorageError):  # nobody can know yet
            await engine.known(shop, "owl")
        await asyncio.sleep(1.2)
        await asyncio.to_thread(undo)
        assert await engine.feedback(name, documents[0]["id"]) == "repeated"
        await engine.rank(shop, "owl")
        await engine.housekeep()
        await audit(engine)
        clock.pass_by(100)
        await engine.housekeep()
        assert (await engine.known(shop, "owl")).counts.abandoned == 1
        await audit(engine)


def _slow_commits(place: Place) -> Callable[[], None]:
    """Let the server take a second to commit feedback; returns what undoes that."""
    import psycopg

    def execute(*statements: str) -> None:
        with psycopg.connect(place.address or "", autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    execute(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_sleep(1.0); RETURN NULL; END $$",
        "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED "
        f"FOR EACH ROW WHEN (NEW.outcome <> {WAITING}) EXECUTE FUNCTION slow()",
    )
    return lambda: execute("DROP TRIGGER slow ON events", "DROP FUNCTION slow")


async def test_nobody_waits_for_ever_for_a_lock_of_postgres(
    on_postgres: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    monkeypatch.setitem(postgres_store._LIMITS, "options", "-c lock_timeout=200ms")
    async with started(on_postgres) as engine:
        shop = await served(engine)
        await engine.rank(shop, "owl")
        with psycopg.connect(on_postgres.address or "") as other:
            other.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(StorageError):
                await asyncio.wait_for(engine.rank(shop, "owl"), 20)
        await engine.rank(shop, "owl")
        await audit(engine)


async def test_a_service_whose_store_hangs_is_not_ready(sqlite: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_in_a_thread(monkeypatch)
    monkeypatch.setattr(operations, "_LONGEST_WRITE", 0.05)
    async with started(sqlite) as engine, client_of(engine) as client:
        shop = await served(engine)
        write, go = engine.store.write, threading.Event()

        def slowly(batch: Batch) -> None:
            go.wait(30)
            write(batch)

        monkeypatch.setattr(engine.store, "write", slowly)
        assert (await client.get("/v1/ready")).status_code == 200
        asking = asyncio.create_task(engine.rank(shop, "owl"))
        await asyncio.sleep(0.2)
        assert (await client.get("/v1/ready")).json() == {"status": "storage"}
        go.set()
        await asking
        assert (await client.get("/v1/ready")).status_code == 200
