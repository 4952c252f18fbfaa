"""Queries of a document: those whose next ranking contains it, and those whose visitors have looked at it.

Only learners in memory are inspected, most asked first, a few at a time, so that rankings continue meanwhile. Nothing
is read from the store, and nothing changes.
"""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np

from zoomrank.queries.lending import loan_to_bytes
from zoomrank.service.engine import Engine
from zoomrank.service.query_learner import QueryLearner
from zoomrank.service.served_collection import ServedCollection
from zoomrank.service.served_edition import ServedVersion

MOST = 256  # learners that are inspected
_AT_ONCE = 8
_LISTED = 100
_NOTHING = np.zeros(0, np.int64)  # no documents above


async def standing(engine: Engine, served: ServedCollection, edition: ServedVersion, position: int) -> dict[str, Any]:
    """Return the queries that show a document or have shown it, those that show it now and are asked most first."""
    here = [(key[1], learner) for key, learner in engine.learners if key[0] == served.id]
    here.sort(key=lambda one: -one[1].counts.impressions)
    rows = []
    for number, (query, learner) in enumerate(here[:MOST]):
        granted = engine.next_loan(served, learner) if edition is served.edition else None
        moved = learner.seen_from(edition) if learner.edition.number <= edition.number else learner
        if moved.edition is not edition:  # documents were changed meanwhile
            continue
        row = _usage_in(moved, position, None if granted is None else loan_to_bytes(granted))
        if row["slot"] is not None or row["visits"]:
            rows.append({"query": query, "impressions": learner.counts.impressions, **row})
        if number % _AT_ONCE == _AT_ONCE - 1:
            await asyncio.sleep(0)  # let other tasks run
    rows.sort(key=lambda row: row["slot"] is None)
    return {
        "queries": rows[:_LISTED],
        "queries_looked_at": min(len(here), MOST),
        "queries_total": engine.learners.queries.get(served.id, 0),
    }


def _usage_in(learner: QueryLearner, position: int, loan: bytes | None) -> dict[str, Any]:
    shown = learner.chooser(loan).rank_arrays(1, None, learner.settings.slots).shown[0].tolist()
    visits, clicks = _looked_at(learner, position)
    return {"slot": shown.index(position) if position in shown else None, "visits": visits, "clicks": clicks}


def _looked_at(learner: QueryLearner, position: int) -> tuple[int, int]:
    """Return how many visitors looked at a document in any slot, and clicked; 0 where it is not distinguished from
    others.
    """
    visits = clicks = 0
    edition = learner.edition
    for slot in range(learner.settings.slots):
        known = edition.bandit.strategy_of(learner.ranker.state, slot, _NOTHING, position)
        if known.node == int(edition.tree.shape.leaf[position]):
            visits, clicks = visits + known.plays, clicks + known.clicks
    return visits, clicks
