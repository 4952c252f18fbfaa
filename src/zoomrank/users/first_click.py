"""Lazy draws of visitors, compiled: only the bits that decide the first click on a given ranking.

`first_click(state, ranking, rng)` returns the 0-based slot of the first relevant document, or the number of slots if
there is none. Each user model registers a body for its own kind of state.

A visitor costs one number of the generator, whatever the ranking, and all bits of the visitor follow from that number.
So two rankers with the same seed meet the same visitors one by one, and `lazy_relevance` and `whole_relevance` agree on
every visitor.
"""

from typing import Any, NamedTuple

import numpy as np

from zoomrank.compiled import compiled_for, generic, inlined
from zoomrank.types import Array


def _no_body(state: Any, *_: Any) -> int:
    raise TypeError(f"Clicks cannot be drawn from a {type(state).__name__}; register first_click for it.")


first_click, _register = generic(_no_body)


class ForestState(NamedTuple):
    """One or more tree networks over the same documents, numbered consecutively; a visitor belongs to one of them."""

    cumulative_share: Array  # of visitors, network by network
    root: Array  # of each network
    decider: Array  # decider[i, x] is the node of network i whose bit is the relevance of document x
    parent: Array  # of each node
    chance: Array  # chance[u, b] = P(π(u) = 1 | parent's bit b)
    mark: Array  # scratch: 2 · visitor + bit, for every node drawn for the visitor
    path: Array  # scratch: nodes on the way down to a document
    visitor: Array  # scratch: number of visitors so far, and the random number of the last one


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the constants of SplitMix64 (Steele, Lea and Flood 2014)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_WHOLE = 9007199254740992.0  # 2^53


@inlined
def _uniform(visitor: np.uint64, question: int) -> float:
    """Return a number in [0, 1) for a visitor and a question; the same question always gets the same number."""
    bits = visitor + (np.uint64(question) + np.uint64(1)) * _GOLDEN
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    bits = bits ^ (bits >> np.uint64(31))
    return np.float64(bits >> np.uint64(11)) / _WHOLE


@inlined
def _pick(cumulative: Array, luck: float) -> int:
    """Choose an index by cumulative probabilities; the last may be below 1 by a rounding error."""
    return min(int(np.searchsorted(cumulative, luck, side="right")), len(cumulative) - 1)


@inlined
def _inherit(p: float, visitor: np.uint64, node: int) -> int:
    """Draw a bit that is 1 with probability p. Most edges cannot flip in one direction and need no random number."""
    if p <= 0.0:
        return 0
    if p >= 1.0:
        return 1
    return 1 if _uniform(visitor, node) < p else 0


@inlined
def _arrive(state: ForestState, rng: np.random.Generator) -> int:
    """Draw a new visitor, whose number invalidates all marks: the network and its root's bit."""
    state.visitor[0] += np.uint64(1)
    state.visitor[1] = np.uint64(rng.random() * _WHOLE)
    network = 0
    if len(state.cumulative_share) > 1:
        network = _pick(state.cumulative_share, _uniform(state.visitor[1], len(state.parent)))
    root = state.root[network]
    state.mark[root] = 2 * np.int64(state.visitor[0]) + _inherit(state.chance[root, 0], state.visitor[1], root)
    return network


@inlined
def _is_relevant(state: ForestState, decider: int) -> bool:
    """Climb to the lowest ancestor whose bit is known, then descend from it (Algorithm 1)."""
    parent, chance, mark, path = state.parent, state.chance, state.mark, state.path
    visitor = np.int64(state.visitor[0])
    node = decider
    length = 0
    while mark[node] >> 1 != visitor:
        path[length] = node
        length += 1
        node = parent[node]
    bit = mark[node] & 1
    for at in range(length - 1, -1, -1):
        node = path[at]
        bit = _inherit(chance[node, bit], state.visitor[1], node)
        mark[node] = 2 * visitor + bit
    return bool(bit == 1)


@_register(ForestState)
def _first_click_in_forest(state: ForestState, ranking: Array, rng: np.random.Generator) -> int:
    network = _arrive(state, rng)
    for slot in range(len(ranking)):
        if _is_relevant(state, state.decider[network, ranking[slot]]):
            return slot
    return len(ranking)


class TableState(NamedTuple):
    """A weighted table of relevance vectors: a visitor is one of its rows."""

    cumulative_weight: Array
    row_start: Array  # the relevant documents of row i, ascending, are relevant[row_start[i] : row_start[i + 1]]
    relevant: Array


ClickState = ForestState | TableState  # states that clicks can be drawn from


@_register(TableState)
def _first_click_in_table(state: TableState, ranking: Array, rng: np.random.Generator) -> int:
    row = _pick(state.cumulative_weight, rng.random())
    relevant = state.relevant[state.row_start[row] : state.row_start[row + 1]]
    for slot in range(len(ranking)):
        at = np.searchsorted(relevant, ranking[slot])
        if at < len(relevant) and relevant[at] == ranking[slot]:
            return slot
    return len(ranking)


@compiled_for(lambda _, __, visitors, *___: 3e-5 * visitors)
def first_clicks(state: Any, ranking: Array, visitors: int, rng: np.random.Generator) -> Array:
    """Return the slot of each visitor's first click on a fixed ranking; the number of slots where there is none."""
    slots = np.empty(visitors, np.int32)
    for visitor in range(visitors):
        slots[visitor] = first_click(state, ranking, rng)
    return slots


@compiled_for(lambda _, __, visitors, *___: 3e-5 * visitors)
def count_clicks(state: Any, ranking: Array, visitors: int, rng: np.random.Generator) -> Array:
    """Count first clicks on each slot, and last the visitors without one: the time floor for benchmarks of learners."""
    counts = np.zeros(len(ranking) + 1, np.int64)
    for _ in range(visitors):
        counts[first_click(state, ranking, rng)] += 1
    return counts


@compiled_for(lambda _, documents, visitors, *__: 1e-5 * len(documents) * visitors)
def lazy_relevance(state: ForestState, documents: Array, visitors: int, rng: np.random.Generator) -> Array:
    """Return the relevance of documents to each of many visitors, drawn as in `first_click` without early stop."""
    relevance = np.zeros((visitors, len(documents)), np.bool_)
    for visitor in range(visitors):
        network = _arrive(state, rng)
        for at in range(len(documents)):
            relevance[visitor, at] = _is_relevant(state, state.decider[network, documents[at]])
    return relevance


@compiled_for(lambda state, visitors, *_: 3e-6 * len(state.parent) * visitors)
def whole_relevance(state: ForestState, visitors: int, rng: np.random.Generator) -> Array:
    """Return the relevance of every document to each of many visitors: Algorithm 1 as printed."""
    documents = state.decider.shape[1]
    relevance = np.empty((visitors, documents), np.bool_)
    bits = np.zeros(len(state.parent), np.uint8)
    for visitor in range(visitors):
        network = _arrive(state, rng)
        root = state.root[network]
        end = state.root[network + 1] if network + 1 < len(state.root) else len(state.parent)
        bits[root] = state.mark[root] & 1
        for node in range(root + 1, end):
            bits[node] = _inherit(state.chance[node, bits[state.parent[node]]], state.visitor[1], node)
        for document in range(documents):
            relevance[visitor, document] = bits[state.decider[network, document]]
    return relevance
