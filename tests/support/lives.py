"""An eventful life of a service: evictions, loans, restarts, crashes, late feedback, none, and feedback that waits."""

import random

from tests.support.services import Clock, Place, served, started

QUERIES = [f"snowy owl {number}" for number in range(6)]


async def live(place: Place, clock: Clock, lives: int = 3, visits: int = 90) -> list[tuple[str, str]]:
    """Impressions that wait at the end, each with a document that it shows."""
    random_ = random.Random(7)
    waiting: list[tuple[str, str]] = []
    for life in range(lives):
        async with started(place, clock, budget=(60_000, 2**30, 1)[life % 3], crash=life == 1) as engine:
            alike = await served(engine, similar="words", feedback_within=20)
            alone = await served(engine, "alone", no_feedback="unseen", feedback_within=20)
            for visit in range(visits):
                clock.pass_by(0.5)
                where = alone if visit % 4 == 3 else alike
                name, documents = await engine.rank(where, random_.choice(QUERIES))
                fate = random_.random()
                if fate < 0.5:
                    await engine.feedback(name, random_.choice(documents)["id"])
                elif fate < 0.7:
                    await engine.feedback(name, None)
                elif visit > visits - 20:
                    waiting.append((name, documents[0]["id"]))
                if visit % 10 == 0:
                    await engine.housekeep()
    return waiting[-5:]
