"""A shop that keeps its log for two days and has a visitor every half hour; as a process, to be killed."""

from __future__ import annotations

import contextlib
import random
import sys
from pathlib import Path
from typing import Any

from tests.support.services import Clock, Place, run, served, started
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.errors import ExpiredError, VoidedError
from zoomrank.service.feedback import ImpressionFeedback
from zoomrank.service.learners.void import ImpressionFilter

DAY = 86_400.0
QUERIES = [f"snowy owl {number}" for number in range(4)]
LIFE: dict[str, Any] = {"similar": "words", "feedback_within": 600.0, "keep_events": 2 * DAY}


async def visits(engine: Engine, shop: ServedCollection, clock: Clock, random_: random.Random, count: int) -> None:
    """Visitors, half an hour or so apart; some say nothing, and some what they saw."""
    clicked: list[tuple[str, str]] = []
    for _ in range(count):
        if clicked and random_.random() < 0.5:  # something that was clicked before is bought
            name, bought = clicked.pop()
            with contextlib.suppress(ExpiredError, VoidedError):
                await engine.record_feedback(name, ImpressionFeedback(purchased=[bought]))
        clock.pass_by(random_.choice((20.0, 900.0, 3600.0)))
        name, documents = await engine.rank(shop, random_.choice(QUERIES))
        fate = random_.random()
        if fate < 0.5:
            ids = [one["id"] for one in random_.sample(documents, 2)]
            await engine.record_feedback(
                name, ImpressionFeedback(ids[:1], looked_at=random_.randint(0, 3), disliked=ids[1:])
            )
            if fate < 0.25:
                clicked.append((name, ids[0]))
        elif fate < 0.7:
            await engine.feedback(name, None)
        elif fate < 0.8:
            await engine.seen(name)
        if random_.random() < 0.2:
            await engine.housekeep()


async def retire(engine: Engine) -> None:
    """All that is due."""
    work = engine.housekeeper._retention
    work._next, work._after = 0.0, 0
    while engine.now() >= work._next:
        await work.turn()


async def get_old(engine: Engine, clock: Clock, days: float = 20.0) -> None:
    """Time passes; what waits ends in it, and what is due goes."""
    clock.pass_by(DAY / 2)
    await engine.housekeep()
    clock.pass_by(days * DAY)
    await retire(engine)


async def live_on(place: Place, seed: int) -> None:
    """Live until killed, from where the log ends."""
    random_, clock = random.Random(seed), Clock()
    async with started(place, clock, budget=random_.choice([2**30, 60_000])) as engine:
        clock.time += float(engine.store.database.query("SELECT COALESCE(MAX(time), 0) FROM events")[0][0]) % clock.time
        shop = await served(engine, **LIFE)
        print("ready", flush=True)
        while True:
            await visits(engine, shop, clock, random_, 20)
            if random_.random() < 0.2:
                since = clock() - DAY
                await engine.void(shop, ImpressionFilter(random_.choice(QUERIES), since, since + DAY / 8))
            await retire(engine)


if __name__ == "__main__":
    run(live_on(Place(Path(sys.argv[1]), sys.argv[2] or None), int(sys.argv[3])))
