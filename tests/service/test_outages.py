"""Time in which nobody could report a click is not held against anybody."""

import asyncio
import logging
import time
from dataclasses import dataclass

import pytest

from tests.support.services import START, Clock, Place, audit, client_of, served, started
from zoomrank.service import logs
from zoomrank.service.engine import Engine
from zoomrank.service.errors import ExpiredError, StorageError
from zoomrank.service.learners import housekeeping
from zoomrank.service.learners.limits import FeedbackDeadline
from zoomrank.service.storage.events import TIMED_OUT, Batch


async def _five(engine: Engine) -> list[tuple[str, str]]:
    """Five impressions, and what will be clicked in each."""
    shop = await served(engine, feedback_within=60)
    shown = [await engine.rank(shop, query) for query in ("owl", "pike", "oak", "owl", "pike")]
    return [(name, documents[0]["id"]) for name, documents in shown]


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("swept", [False, True])
async def test_clicks_that_could_not_be_reported_while_it_was_down(place: Place, crash: bool, swept: bool) -> None:
    clock = Clock()
    async with started(place, clock, crash=crash) as engine:
        five = await _five(engine)
        clock.pass_by(59)
    clock.pass_by(10_000)
    async with started(place, clock) as engine:
        if swept:
            await engine.housekeep()
        clock.pass_by(59)
        for name, clicked in five[:4]:
            assert await engine.feedback(name, clicked) == "learned"
        clock.pass_by(2)
        with pytest.raises(ExpiredError):
            await engine.feedback(*five[4])
        await engine.housekeep()
        assert (engine.outcomes[1][0], engine.outcomes[1][TIMED_OUT]) == (4, 1)
        await audit(engine)


async def test_clicks_that_could_not_be_written_down(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    clock = Clock()
    async with started(place, clock) as engine, client_of(engine) as client:

        def refuse(_: Batch) -> None:
            engine.store.database.away = True
            raise StorageError("The disk is away.")

        def no_probe() -> None:
            raise StorageError("The disk is away.")

        five = await _five(engine)
        with monkeypatch.context() as patched:
            patched.setattr(engine.store, "write", refuse)
            patched.setattr(engine.store, "probe", no_probe)
            for name, clicked in five * 3:
                with pytest.raises(StorageError):
                    await engine.feedback(name, clicked)
            clock.pass_by(1000)
            with pytest.raises(StorageError):
                await engine.housekeep()
            assert (await client.get("/v1/ready")).json() == {"status": "storage"}
        assert await engine.feedback(*five[0]) == "learned"  # though nobody has noticed yet that it is back
        await engine.housekeep()
        assert (await client.get("/v1/ready")).status_code == 200
        for name, clicked in five[1:]:
            assert await engine.feedback(name, clicked) == "learned"
        await engine.housekeep()
        assert (engine.outcomes[1][0], engine.outcomes[1][TIMED_OUT]) == (5, 0)
        await audit(engine)
    assert caplog.text.count("The disk is away.") == 1  # of fifteen


async def test_failed_writes_are_said_again_after_a_while(
    sqlite: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    monkeypatch.setattr(logs, "SELDOM", 0.0)

    def refuse(_: Batch) -> None:
        raise StorageError("The disk is away.")

    async with started(sqlite) as engine:
        shop = await served(engine)
        monkeypatch.setattr(engine.store, "write", refuse)
        for _ in range(3):
            with pytest.raises(StorageError):
                await engine.rank(shop, "owl")
    assert caplog.text.count("The disk is away.") >= 3


async def test_a_store_that_nobody_writes_to_is_tried_now_and_then(
    sqlite: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, probes = Clock(), 0
    async with started(sqlite, clock) as engine:
        probe = engine.store.probe

        def counted() -> None:
            nonlocal probes
            probes += 1
            probe()

        monkeypatch.setattr(engine.store, "probe", counted)
        for _ in range(60):
            clock.pass_by(1)
            await engine.housekeep()
        assert 4 <= probes <= 7


@dataclass
class TwoClocks:
    """The time of day, which jumps, and one that does not."""

    day: float = START
    steady: float = 0.0

    def pass_by(self, seconds: float) -> None:
        self.day += seconds
        self.steady += seconds


@pytest.mark.parametrize("jump", [100_000.0, -100_000.0])
async def test_a_clock_that_jumps_abandons_nobody(sqlite: Place, jump: float) -> None:
    clocks = TwoClocks()
    engine = Engine(sqlite.open(), sqlite.folder, 2**30, lambda: clocks.day, lambda: clocks.steady)
    await engine.start()
    engine._stop_housekeeping()
    five = await _five(engine)
    clocks.pass_by(30)
    await engine.housekeep()
    clocks.day += jump
    clocks.pass_by(31)
    await engine.housekeep()
    for name, clicked in five[:4]:
        assert await engine.feedback(name, clicked) == "learned"
    assert engine.outcomes[1][TIMED_OUT] == 0
    clocks.pass_by(61 - min(jump, 0))
    await engine.housekeep()
    assert engine.outcomes[1][TIMED_OUT] == 1
    await engine.stop()


def test_clocks_that_drift_apart_are_no_jump() -> None:
    clocks = TwoClocks()
    patience = FeedbackDeadline(lambda: clocks.day, lambda: clocks.steady)
    for _ in range(1000):
        clocks.pass_by(1)
        clocks.day += 0.1
        patience.began(60)
    assert patience.since == START
    assert patience.began(60) == clocks.day - 60


async def test_a_process_that_was_stopped(sqlite: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by SIGSTOP, or on a machine that was moved: both clocks went on, and nobody was served."""
    monkeypatch.setattr(housekeeping, "SWEEP_EVERY", 0.01)
    monkeypatch.setattr(housekeeping, "_ASLEEP", 0.2)
    clock = Clock()
    engine = Engine(sqlite.open(), sqlite.folder, 2**30, clock)
    await engine.start()
    five = await _five(engine)
    await asyncio.sleep(0.05)
    clock.pass_by(1000)
    time.sleep(0.4)  # nothing of the loop goes on
    await asyncio.sleep(0.1)
    assert engine.outcomes[1][TIMED_OUT] == 0
    assert await engine.feedback(*five[0]) == "learned"
    await engine.stop()
