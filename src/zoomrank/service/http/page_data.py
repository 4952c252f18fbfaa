"""What a page shows: collections, queries, why documents stand where they stand, and what happened when."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np

from zoomrank.service.engine import Engine
from zoomrank.service.http.zoom_tree import zoom_tree
from zoomrank.service.query_learner import Counts
from zoomrank.service.served_collection import Served
from zoomrank.service.storage import store as stored_as


def about(engine: Engine, served: Served) -> dict[str, Any]:
    """A collection in few words."""
    return {
        "name": served.name,
        "documents": len(served.tree),
        "depth": served.tree.depth,
        "queries": engine.learners.queries.get(served.id, 0),
        "settings": served.settings.model_dump(),
        "impressions": engine.totals.get((served.id, stored_as.SHOWN), 0),
        "satisfied": engine.totals.get((served.id, stored_as.SATISFIED), 0),
        "abandoned": engine.totals.get((served.id, stored_as.ABANDONED), 0),
        "created": served.stored.created,
    }


def documents(served: Served, offset: int, limit: int) -> dict[str, Any]:
    """Some documents, in the order of the tree."""
    positions = np.arange(min(offset, len(served.tree)), min(offset + limit, len(served.tree)))
    rows = [dict(row) for row in served.describe(positions)]
    for at, row in zip(positions.tolist(), rows, strict=True):
        row["path"] = served.path(at)
    return {"documents": rows, "total": len(served.tree)}


async def queries(engine: Engine, served: Served, offset: int, limit: int) -> dict[str, Any]:
    """The queries of a collection with what became of their impressions."""
    rows, total = await asyncio.to_thread(engine.store.queries, served.id, offset, limit)
    here = {row.id: engine.learners.get((served.id, row.query)) for row in rows}  # though they may leave meanwhile
    away = [number for number, learner in here.items() if learner is None]
    since = await asyncio.to_thread(engine.store.since_snapshots, away)
    listed = []
    for row in rows:
        live = here[row.id]
        counts = live.counts if live is not None else Counts(**row.counts) if row.counts else Counts()
        if live is None and row.id in since:
            shown, satisfied, abandoned, last = since[row.id]
            counts.impressions += shown
            counts.satisfied += satisfied
            counts.abandoned += abandoned
            counts.last = max(counts.last, last)
        listed.append({"query": row.query, **_numbers(counts)})
    listed.sort(key=lambda one: -one["impressions"])
    return {"queries": listed, "total": total}


async def query(engine: Engine, served: Served, query: str) -> dict[str, Any]:
    """One query: what became of its impressions, and what the next visitor will see."""
    learner = await engine.known(served, query)
    ranking = learner.next_ranking(served.settings.slots)
    reasons = learner.ranker.explain_arrays(ranking)
    documents = [dict(row) for row in served.describe(ranking.shown[0])]
    for slot, (document, reason, at) in enumerate(zip(documents, reasons, ranking.shown[0].tolist(), strict=True)):
        label = reason.subtree if served.tree.names is not None else f"{reason.documents} like it"
        document |= {
            "path": served.path(at),
            "why": served.why(slot, reason, label.rpartition(" > ")[2] or served.name),
            "subtree": reason.subtree,
            "documents_in_subtree": reason.documents,
            "visits": reason.plays,
            "clicks": reason.clicks,
            "estimate": reason.mean,
            "bound": _finite(min(reason.index, 1.0)),
            "cap": _finite(reason.cap),
        }
    counts = learner.counts
    return {
        "query": query,
        **_numbers(counts),
        "waiting": counts.waiting,
        "unseen": counts.unseen,
        "clicks_by_slot": counts.clicks,
        "examined_by_slot": counts.examined,
        "ranking": documents,
    }


async def tree(engine: Engine, served: Served, query: str, limit: int) -> dict[str, Any]:
    """The zoom tree of a query."""
    learner = await engine.known(served, query)
    return {"nodes": zoom_tree(served, learner.ranker.state, limit)}


async def activity(engine: Engine, served: Served | None, seconds: int, points: int) -> dict[str, Any]:
    """What became of impressions over time."""
    step = max(stored_as.STEP, -(-seconds // points // stored_as.STEP) * stored_as.STEP)
    count = max(1, min(points, seconds // step))
    end = int(engine.now()) // step * step + step
    start = end - count * step
    rows = await asyncio.to_thread(
        engine.store.activity, None if served is None else served.id, start // stored_as.STEP
    )
    slots = max((each.settings.slots for each in engine.served.values()), default=0)
    if served is not None:
        slots = served.settings.slots
    outcomes = (stored_as.SHOWN, stored_as.SATISFIED, stored_as.ABANDONED)
    series: dict[int, list[int]] = {what: [0] * count for what in (*outcomes, *range(slots))}
    for at, what, number in rows:
        place = (at * stored_as.STEP - start) // step
        if 0 <= place < count and what in series:
            series[what][place] += number
    return {
        "start": start,
        "step": step,
        "impressions": series[stored_as.SHOWN],
        "satisfied": series[stored_as.SATISFIED],
        "abandoned": series[stored_as.ABANDONED],
        "clicks_by_slot": [series[slot] for slot in range(slots)],
    }


def _numbers(counts: Counts) -> dict[str, Any]:
    return {
        "impressions": counts.impressions,
        "answered": counts.satisfied + counts.abandoned,
        "satisfied": counts.satisfied,
        "abandoned": counts.abandoned,
        "last": counts.last,
    }


def _finite(number: float) -> float | None:
    return number if number < float("inf") else None
