"""Details for the page: explanations of a ranking, learning curves, searches for documents,
queries of a document, and the part of a tree that visitors have shaped.

An explanation says in one or two sentences why this document is shown, given those above it. What was seen of a
document in its slot was seen by visitors who had skipped whatever was above it then. The estimate uses more than that:
other slots, similar documents, similar queries; and it is capped by what the documents above leave possible. A bound is
an optimistic estimate, so it is never below the estimate.
"""

from __future__ import annotations

import asyncio
import heapq
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from zoomrank.documents import Collection
from zoomrank.queries.loans import loan_to_bytes
from zoomrank.rankers import SlotExplanation
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.catalogue.served_version import ServedVersion
from zoomrank.service.engine import Engine
from zoomrank.service.learners.query_learner import QueryLearner
from zoomrank.service.storage.events import ABANDONED, TIMED_OUT, VOIDED, Outcome, is_satisfied
from zoomrank.service.storage.store import Store
from zoomrank.spaces.ids import PackedStrings
from zoomrank.types import Array

_NOTICEABLE = 0.05  # difference between observed and estimated satisfaction
_NAMED = 2  # documents above that are named
_LONGEST = 60  # characters of a title


class ExplanationContext(NamedTuple):
    """Context of a document that its slot does not know."""

    label: str  # of the subtree that is estimated as one
    above: Sequence[str]  # titles of the documents above, from the top
    nearest: str | None = None  # title of the most similar one among them
    lent: bool = False  # similar queries contribute


def percent(share: float) -> str:
    """Format a share for people; the page has the same rule.

    >>> [percent(share) for share in (0, 0.0004, 0.0123, 0.0996, 0.12345, 0.996, 1)]
    ['0 %', '< 0.1 %', '1.2 %', '10 %', '12 %', '> 99 %', '100 %']
    """
    if 0 < share < 0.0005:
        return "< 0.1 %"
    if 0.995 <= share < 1:
        return "> 99 %"
    return f"{100 * share:.1f} %" if 0 < share < 0.0995 else f"{100 * share:.0f} %"


def estimate_and_bound(reason: SlotExplanation) -> tuple[float, float]:
    """Return the estimated and the optimistic satisfaction of a document in its slot; the latter is never lower."""
    estimate = max(0.0, min(1.0, reason.estimate))
    return estimate, max(estimate, min(1.0, reason.index))


def why(reason: SlotExplanation, told: ExplanationContext) -> str:
    """Explain why a document is where it is."""
    seen = _seen(reason, told)
    if reason.trial:
        return f"On trial: {seen[0].lower()}{seen[1:]}; {_hope(reason)}."
    estimate, bound = estimate_and_bound(reason)
    if told.nearest is not None and reason.cap < 1 and estimate > reason.cap - 1e-6:
        most = f"so {percent(estimate)} is the most that is expected"
        return f"{seen}; it is like “{short(told.nearest)}”, which they skip, {most}."
    if reason.plays == 0 or abs(estimate - reason.mean) > _NOTICEABLE:
        others = "other slots, similar queries" if told.lent else "other slots"
        return f"{seen}; judging by {others} and similar documents, {percent(estimate)} will."
    if reason.trial is None and bound > estimate + 2 * _NOTICEABLE:
        return f"{seen}; it may be as good as {percent(bound)}, so it is worth finding out."
    return f"{seen}."


def _seen(reason: SlotExplanation, told: ExplanationContext) -> str:
    what = "it" if reason.documents == 1 else f"one of “{short(told.label)}” ({reason.documents:,} documents)"
    if reason.plays == 0:
        return f"No visitor has looked at {what.removeprefix('one of ')} in this slot yet"
    who = (
        f"skipped what stood above (now {_named(told.above)}) and saw {what}"
        if told.above
        else f"saw {what} at the top"
    )
    visitors = "1 visitor" if reason.plays == 1 else f"{reason.plays:,} visitors"
    return f"Of {visitors} who {who}, {reason.clicks:,} clicked ({percent(reason.mean)})"


def _named(titles: Sequence[str]) -> str:
    """Name a few titles.

    >>> _named(["Owls"]), _named(["Owls", "Pikes"]), _named(["Owls", "Pikes", "Oaks", "Elms"])
    ('“Owls”', '“Owls” and “Pikes”', '“Owls”, “Pikes” and 2 more')
    """
    quoted = [f"“{short(title)}”" for title in titles]
    if len(quoted) > _NAMED:
        quoted = [*quoted[:_NAMED], f"{len(quoted) - _NAMED} more"]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def short(title: str) -> str:
    """Shorten a title to fit into a sentence."""
    return title if len(title) <= _LONGEST else f"{title[: _LONGEST - 1].rstrip()}…"


def _hope(reason: SlotExplanation) -> str:
    """Explain why a document is tried."""
    _, bound = estimate_and_bound(reason)
    hope = f"it may be as good as {percent(bound)}"
    if reason.record is None:
        return f"{hope}, and nothing better is known"
    if percent(bound) == percent(reason.record):
        return f"{hope}, like the best that is known for this slot"
    if bound > reason.record:
        return f"{hope}, and the best that is known for this slot earns {percent(reason.record)}"
    return f"it replaces a similar one that earns {percent(reason.record)}, to see which is better"


# Learning curve of a query: the share of satisfied visitors in successive windows of its impressions. Windows grow as
# learning slows down: the first have 50 impressions each, later ones an eighth of all before them. At most 2,000
# impressions of a window are read, so a query with a million impressions is read quickly, too. The first 20 impressions
# estimate what a random ranking earns, unless they were imported. If the query began with a caller's order they
# estimate that order instead; the log does not say which.

FEWEST = 50  # impressions per window
_GROWTH = 8  # later windows have 1/8 of the impressions before them
_MOST_READ = 2_000  # impressions read per window
FIRST = 100
UNLEARNED = 20  # impressions before which hardly anything was learned
_REMEMBERED = 256  # cached curves

LoggedOutcomes = Iterable[tuple[int, Outcome]]  # (impression, outcome) of the log


class LearningCurves:
    """Learning curves, read from the log on demand and cached until it grows."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: OrderedDict[int, tuple[Any, dict[str, Any]]] = OrderedDict()

    async def curve(self, served: ServedCollection, query: str) -> dict[str, Any]:
        """Return the curve of a known query."""
        learner = await self._engine.known(served, query)
        made, counts = learner.ranker.made, learner.counts
        state = (made, counts.satisfied, counts.abandoned, counts.voided)
        found = self._known.get(learner.number)
        if found is None or found[0] != state:
            await self._engine.write_queue.flush()
            content = await asyncio.to_thread(_read, self._engine.store, learner.number, made)
            found = self._known[learner.number] = (state, content)
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        self._known.move_to_end(learner.number)
        begins_alone = served.neighbours is None  # otherwise it began with borrowed knowledge
        return {"query": query, **found[1], "unlearned": found[1]["unlearned"] if begins_alone else None}


def windows(impressions: int) -> Iterator[range]:
    """Yield the windows that partition a number of impressions.

    >>> [(len(window), window.stop) for window in windows(590)][-3:]
    [(50, 450), (56, 506), (84, 590)]
    """
    start = 0
    while start < impressions:
        end = start + max(FEWEST, start // _GROWTH)
        left = impressions - end
        if left < max(FEWEST, end // _GROWTH) / 2:  # too few for a window
            end = impressions
        yield range(start, end)
        start = end


def counted(lines: LoggedOutcomes) -> dict[str, int]:
    """Count answered impressions (clicked or left) and satisfied ones."""
    ends: dict[int, bool] = {}
    void = set()
    for number, outcome in lines:
        if outcome == VOIDED:
            void.add(number)
        elif is_satisfied(outcome) or outcome in (ABANDONED, TIMED_OUT):
            ends[number] = is_satisfied(outcome)
    answers = [clicked for number, clicked in ends.items() if number not in void]
    return {"answered": len(answers), "satisfied": sum(answers)}


def _read(store: Store, learner: int, impressions: int) -> dict[str, Any]:
    points = []
    for window in windows(impressions):
        read = window[:_MOST_READ]
        points.append(
            {"start": window.start, "end": window.stop, **counted(store.read.ends(learner, read.start, read.stop))}
        )
    first = list(store.read.ends(learner, 0, FIRST))
    early = counted((number, outcome) for number, outcome in first if number < UNLEARNED)
    unlearned = None if store.read.has_imported(learner, UNLEARNED) else _if_any(early)
    return {"points": points, "first": _if_any(counted(first)), "unlearned": unlearned}


def _if_any(counts: dict[str, int]) -> dict[str, int] | None:
    return counts if counts["answered"] else None


# Search for text in titles, ids and addresses of documents, ignoring case. Those of a large collection are stored as
# consecutive bytes and searched as such, in chunks, so that a million take a moment and other threads get their turn.
# Case folding beyond ASCII needs characters: such searches read every string.

_PIECE = 1 << 14  # strings


def search_documents(collection: Collection, text: str) -> Array:
    """Return the positions of documents with a text in their title, id or address.

    >>> owls = Collection.from_texts(["barn owl", "pike"], ids=["A1", "A2"], titles=["Barn owls", "Pikes"])
    >>> search_documents(owls, "OWL").tolist(), search_documents(owls, "a").tolist()
    ([0], [0, 1])
    """
    found = np.zeros(len(collection.tree), np.bool_)
    for strings in (collection.titles, collection.urls):
        if isinstance(strings, PackedStrings) and text.isascii():
            found[_in_bytes(strings, text.lower().encode())] = True
        elif strings is not None:
            found[_one_by_one(strings, text)] = True
    found[_ids_with(collection, text)] = True
    return np.flatnonzero(found)


def _one_by_one(strings: Iterable[str], text: str) -> Array:
    """Search in chunks, and string by string only in chunks that contain the text."""
    wanted = text.casefold()
    found: list[int] = []
    first, rest = 0, iter(strings)
    while piece := list(islice(rest, _PIECE)):
        if wanted in "".join(piece).casefold():
            found += [at for at, string in enumerate(piece, first) if wanted in string.casefold()]
        first += len(piece)
    return np.array(found, np.int64)


def _in_bytes(strings: PackedStrings, wanted: bytes) -> Array:
    """Return the strings that contain some bytes; a match across two strings does not count."""
    found: list[int] = []
    for first in range(0, len(strings), _PIECE):
        around = np.asarray(strings.ends[first : first + _PIECE + 1], np.int64)
        letters = bytes(strings.letters[around[0] : around[-1]]).lower()
        ends = (around - around[0]).tolist()
        string, at = 0, letters.find(wanted)
        while at >= 0:
            string = bisect_right(ends, at, string) - 1
            if at + len(wanted) <= ends[string + 1]:
                found.append(first + string)
                at = letters.find(wanted, ends[string + 1])  # continue with the next string
            else:
                at = letters.find(wanted, at + 1)
    return np.array(found, np.int64)


def _ids_with(collection: Collection, text: str) -> Array:
    """Search ids: substrings of strings, whole numbers for integers."""
    ids = collection.tree.documents
    if isinstance(ids[0], str):
        return _one_by_one(ids, text)
    wanted = int(text) if text.isascii() and text.lstrip("-").isdecimal() and len(text) < 20 else None
    return np.array([ids.position(wanted)] if wanted in ids else [], np.int64)


# The part of a learner's tree that visitors have shaped, in few enough nodes to draw.

_WIDEST = 24  # children drawn per node; the others are drawn as one


def zoom_tree(served: ServedCollection, state: Any, limit: int) -> list[dict[str, Any]]:
    """Return nodes, parents before children; the most visited parts are opened first."""
    if not hasattr(state, "gains") or not hasattr(state, "child"):  # a learner without counts along paths
        return [_node(served, None, 0, 0, 0)]
    widest = max(1, min(_WIDEST, limit - 2))
    nodes = [_node(served, None, 0, int(state.total[0]), int(state.gains[0]))]
    open_ones = [(-int(state.total[0]), 0, 0)]
    while open_ones:
        _, entry, parent = heapq.heappop(open_ones)
        first, fan = int(state.child[entry]), int(state.fan[entry])
        if first == 0:
            continue
        if len(nodes) + min(fan, widest + 1) > limit:
            break
        children = np.arange(first, first + fan)
        ranked = children[np.argsort(-state.total[children].astype(np.int64), kind="stable")]
        for child in np.sort(ranked[:widest]).tolist():
            visits, clicks = int(state.total[child]), int(state.gains[child])
            heapq.heappush(open_ones, (-visits, child, int(state.node[child])))
            nodes.append(_node(served, parent, int(state.node[child]), visits, clicks))
        if fan > widest:
            nodes.append(_others(served, parent, state, ranked[widest:]))
    return nodes


def _node(served: ServedCollection, parent: int | None, node: int, visits: int, clicks: int) -> dict[str, Any]:
    shape = served.tree.shape
    documents = int(shape.end_document[node]) - int(shape.first_document[node])
    leaf = bool(shape.child_start[node] == shape.child_start[node + 1])
    return _drawn(node, parent, served.label(node), documents, visits, clicks) | {"leaf": leaf}


def _others(served: ServedCollection, parent: int, state: Any, entries: Any) -> dict[str, Any]:
    shape, nodes = served.tree.shape, state.node[entries]
    documents = int((shape.end_document[nodes].astype(np.int64) - shape.first_document[nodes]).sum())
    visits, clicks = int(state.total[entries].sum()), int(state.gains[entries].sum())
    return _drawn(-1 - parent, parent, f"{len(entries)} others", documents, visits, clicks) | {"others": True}


def _drawn(number: int, parent: int | None, label: str, documents: int, visits: int, clicks: int) -> dict[str, Any]:
    return {
        "id": number,
        "parent": parent,
        "label": label,
        "documents": documents,
        "visits": visits,
        "clicks": clicks,
        "estimate": clicks / visits if visits else 0.0,
        "leaf": False,
        "others": False,
    }


# Queries of a document: those whose next ranking contains it, and those whose visitors have looked at it. Only learners
# in memory are inspected, most asked first, a few at a time, so that rankings continue meanwhile. Nothing is read from
# the store, and nothing changes.

MOST = 256  # learners that are inspected
_AT_ONCE = 8
_LISTED = 100
_NOTHING = np.zeros(0, np.int64)  # no documents above


async def standing(engine: Engine, served: ServedCollection, version: ServedVersion, position: int) -> dict[str, Any]:
    """Return the queries that show a document or have shown it, those that show it now and are asked most first."""
    here = [(key[1], learner) for key, learner in engine.learners if key[0] == served.id]
    here.sort(key=lambda one: -one[1].counts.impressions)
    rows = []
    for number, (query, learner) in enumerate(here[:MOST]):
        granted = engine.next_loan(served, learner) if version is served.version else None
        moved = learner.seen_from(version) if learner.version.number <= version.number else learner
        if moved.version is not version:  # documents were changed meanwhile
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
    version = learner.version
    for slot in range(learner.settings.slots):
        known = version.bandit.strategy_of(learner.ranker.state, slot, _NOTHING, position)
        if known.node == int(version.tree.shape.leaf[position]):
            visits, clicks = visits + known.plays, clicks + known.clicks
    return visits, clicks
