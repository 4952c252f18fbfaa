"""Data for the page: collections, their documents and tree, queries, explanations of rankings, activity over time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np

from zoomrank.queries.loans import loan_to_bytes
from zoomrank.queries.query_rank import support_of
from zoomrank.rankers import Ranked, SlotExplanation
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.catalogue.served_version import ServedVersion
from zoomrank.service.copies import Copies
from zoomrank.service.engine import Engine
from zoomrank.service.http.page_details import (
    ExplanationContext,
    estimate_and_bound,
    search_documents,
    standing,
    why,
    zoom_tree,
)
from zoomrank.service.learners.query_learner import QueryCounts, QueryLearner
from zoomrank.service.storage.events import STEP, Outcome, by_word, word_of

_DAY = 86_400  # seconds
_LONG = 600  # seconds; steps from this length on are cached


def about(engine: Engine, served: ServedCollection) -> dict[str, Any]:
    """Return the head data of a collection."""
    counts = by_word(engine.outcomes_of(served))
    return {
        "name": served.name,
        "documents": len(served.tree),
        "depth": served.tree.depth,
        "edition": served.version.number,
        "crowded": served.version.crowded,
        "queries": engine.learners.queries.get(served.id, 0),
        "settings": served.settings.model_dump(),
        "impressions": counts["shown"],
        "satisfied": counts["satisfied"],
        "abandoned": counts["abandoned"],
        "created": served.stored.created,
    }


def documents(served: ServedCollection, offset: int, limit: int, search: str = "") -> dict[str, Any]:
    """Return documents in tree order, optionally those with some text in their title, id or address."""
    text, version = search.strip(), served.version
    total = len(version.tree)
    if text:
        found = search_documents(version.collection, text)
        positions, total = found[offset : offset + limit], len(found)
    else:
        positions = np.arange(min(offset, total), min(offset + limit, total))
    return {"documents": [_placed(version, at) for at in positions.tolist()], "total": total}


def _placed(version: ServedVersion, position: int) -> dict[str, Any]:
    return {**version.document(position), "path": version.path(position)}


async def document(engine: Engine, served: ServedCollection, asked: str) -> dict[str, Any]:
    """Return one document and the queries that show it."""
    version, position = served.version, served.position_of(asked)
    return {**_placed(version, position), **await standing(engine, served, version, position)}


async def queries(
    engine: Engine, served: ServedCollection, offset: int, limit: int, search: str = "", sort: str = "asked"
) -> dict[str, Any]:
    """Return queries of a collection with their outcome counts."""
    text = served.folded(search)
    rows, total = await asyncio.to_thread(engine.store.read.queries, served.id, offset, limit, text, sort)
    here = {
        row.id: engine.learners.get((served.id, row.query)) for row in rows
    }  # looked up once: they may be evicted meanwhile
    away = [number for number, learner in here.items() if learner is None]
    since = await asyncio.to_thread(engine.store.read.since_snapshots, away)
    listed = []
    for row in rows:
        live = here[row.id]
        counts = live.counts if live is not None else QueryCounts(**row.counts) if row.counts else QueryCounts()
        if live is None and row.id in since:
            shown, satisfied, abandoned, last = since[row.id]
            counts.impressions += shown
            counts.satisfied += satisfied
            counts.abandoned += abandoned
            counts.last = max(counts.last, last)
        listed.append({"query": row.query, "created": row.created, **_numbers(counts)})
    if sort == "asked":  # the stored counts may lag behind
        listed.sort(key=lambda one: -one["impressions"])
    return {"queries": listed, "total": total}


async def query(
    engine: Engine, served: ServedCollection, asked: str, copies: Copies | None = None, copy: str | None = None
) -> dict[str, Any]:
    """Return one query, or a copy of it: its outcome counts, and what the next visitor will see."""
    query = served.folded(asked)
    learner = await _learner(engine, served, query, copies, copy)
    granted = engine.next_loan(served, learner)
    chooser = learner.chooser(None if granted is None else loan_to_bytes(granted))
    counts = learner.counts
    found: dict[str, Any] = {
        "query": query,
        **_numbers(counts),
        "waiting": counts.waiting,
        "unseen": counts.unseen,
        "clicks_by_slot": [*counts.clicks],
        "examined_by_slot": [*counts.examined],
        "ranking": _next_ranking(served, chooser),
    }
    twin = chooser.copied()  # before any await: the learner continues to learn
    lenders = learner.lenders if granted is None else granted.lenders
    found["support"] = await _support(engine, served, twin.state, lenders)
    found["forecast"] = await _trials(engine, served, twin, counts.impressions)
    return found


def _next_ranking(served: ServedCollection, chooser: Ranked) -> list[dict[str, Any]]:
    """Return the next ranking with its explanations."""
    ranking = chooser.rank_arrays(1, None, served.settings.slots)
    reasons = chooser.explain_arrays(ranking)
    documents = [dict(row) for row in served.version.describe(ranking.shown[0])]
    for slot, (document, reason, at) in enumerate(zip(documents, reasons, ranking.shown[0].tolist(), strict=True)):
        estimate, bound = estimate_and_bound(reason)
        document |= {
            "path": served.version.path(at),
            "why": why(reason, _told(served, reason, ranking.shown[0, : slot + 1].tolist())),
            "subtree": reason.subtree,
            "documents_in_subtree": reason.documents,
            "visits": reason.plays,
            "clicks": reason.clicks,
            "estimate": estimate,
            "bound": bound,
            "cap": reason.cap if reason.cap < float("inf") else None,
            "record": reason.record,
            "trial": reason.trial,
        }
    return documents


def _told(served: ServedCollection, reason: SlotExplanation, shown: list[int]) -> ExplanationContext:
    """Return the context of an explanation: the documents above, and the most similar of them."""
    *above, at = shown
    label = reason.subtree if served.tree.names is not None else f"{reason.documents:,} like it"
    titles = [served.version.title(other) for other in above]
    ids = served.tree.documents
    distances = [served.tree.distance(ids[at], ids[other]) for other in above]
    nearest = titles[distances.index(min(distances))] if distances else None
    return ExplanationContext(label.rpartition(" > ")[2] or served.name, titles, nearest, served.neighbours is not None)


async def _support(
    engine: Engine, served: ServedCollection, state: Any, lenders: Sequence[int]
) -> dict[str, Any] | None:
    """Return how much similar queries contribute, and which; None where queries learn alone."""
    if served.neighbours is None:
        return None
    support = support_of(state, [*lenders])
    asked = await asyncio.to_thread(engine.store.read.asked, lenders)
    rows = []
    for query, impressions in (asked[lender] for lender in lenders if lender in asked):
        here = engine.learners.get((served.id, query))
        rows.append({"query": query, "impressions": impressions if here is None else here.counts.impressions})
    return {"visitors": support.visitors, "faith": support.faith, "lenders": rows}


async def _trials(engine: Engine, served: ServedCollection, twin: Ranked, impressions: int) -> dict[str, Any] | None:
    """Return the exploration planned for the next visitors, and its cost; None if the ranker cannot tell."""
    if not served.bandit.keeps_records:
        return None
    share = impressions / max(1, by_word(engine.outcomes_of(served))["shown"])
    found = await asyncio.to_thread(twin.forecast)
    recent = await asyncio.to_thread(engine.store.read.activity, [served.id], (int(engine.now()) - _DAY) // STEP)
    a_day = share * sum(count for _, outcome, count in recent if word_of(outcome) == "shown")
    return {
        "visits": found.visits,
        "impressions_per_day": a_day,
        "slots": [
            {
                "share": slot.share,
                "cost_per_100_visits": slot.cost,
                "cost_per_day": slot.cost / 100 * a_day,
                "tried": [
                    {"label": served.label(one.node), "documents": one.documents, "visits": one.visits}
                    for one in slot.tried
                ],
            }
            for slot in found.slots
        ],
    }


async def tree(
    engine: Engine,
    served: ServedCollection,
    asked: str,
    limit: int,
    copies: Copies | None = None,
    copy: str | None = None,
) -> dict[str, Any]:
    """Return the zoom tree of a query, or of a copy of it."""
    learner = await _learner(engine, served, served.folded(asked), copies, copy)
    return {"nodes": zoom_tree(served, learner.ranker.state, limit)}


async def _learner(
    engine: Engine, served: ServedCollection, query: str, copies: Copies | None, copy: str | None
) -> QueryLearner:
    found = copies.learner_of(copy, served, query) if copies is not None and copy is not None else None
    if found is None:
        found = await engine.known(served, query)
    return found.seen_from(served.version)


async def activity(engine: Engine, served: ServedCollection | None, seconds: int, points: int) -> dict[str, Any]:
    """Return outcome counts over time."""
    step = max(STEP, -(-seconds // points // STEP) * STEP)
    count = max(1, min(points, seconds // step))
    end = int(engine.now()) // step * step + step
    start = end - count * step
    whose = None if served is None else [one.id for one in engine.collections.resolve_name(served)]
    rows: list[tuple[int, Outcome, int]] = []
    at_once = max(step, _DAY // step * step)
    for first in range(start, end, at_once):  # a day at a time, so that other readers get their turn
        piece = (first // STEP, step // STEP, (first + at_once) // STEP)
        rows += await asyncio.to_thread(engine.store.read.activity, whose, *piece)
    slots = max((each.settings.slots for each in engine.collections.by_name.values()), default=0)
    if served is not None:
        slots = served.settings.slots
    series = _series(rows, range(start, end, step), slots)
    return {
        "start": start,
        "step": step,
        "impressions": series["shown"],
        "satisfied": series["satisfied"],
        "abandoned": series["abandoned"],
        "clicks_by_slot": [series[slot] for slot in range(slots)],
    }


class ActivityCache:
    """Cache of activity over long spans, which pages poll and which is slow to sum."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[tuple[int | None, int, int], tuple[float, dict[str, Any]]] = {}

    async def look(self, served: ServedCollection | None, seconds: int, points: int) -> dict[str, Any]:
        """Return activity that may be stale by a twentieth of a step, at most a minute."""
        key = (None if served is None else served.id, seconds, points)
        until, found = self._known.get(key, (0.0, {}))
        now = self._engine.now()
        if not now < until <= now + 60:
            found = await activity(self._engine, served, seconds, points)
            self._known = {one: kept for one, kept in self._known.items() if kept[0] > now}
            if found["step"] >= _LONG:
                self._known[key] = (now + min(60, found["step"] / 20), found)
        return found


def _series(rows: list[tuple[int, Outcome, int]], times: range, slots: int) -> dict[str | int, list[int]]:
    """Sum activity per time step, by outcome and, for clicks, by slot."""
    keys = ("shown", "satisfied", "abandoned", *range(slots))
    series: dict[str | int, list[int]] = {key: [0] * len(times) for key in keys}
    for at, outcome, count in rows:
        place = (at * STEP - times.start) // times.step
        if 0 <= place < len(times):
            for key in (word_of(outcome), outcome):
                if key in series:
                    series[key][place] += count
    return series


def _numbers(counts: QueryCounts) -> dict[str, Any]:
    return {
        "impressions": counts.impressions,
        "learned": counts.satisfied + counts.abandoned,
        "satisfied": counts.satisfied,
        "abandoned": counts.abandoned,
        "last": counts.last,
        "recent": counts.recent,
    }
