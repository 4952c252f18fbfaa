"""`QueryZooming`: the paper's contextual zooming over the product of both trees, with queries as contexts: a baseline.

Every slot has active pairs of a subtree of documents and a group of queries, which partition the product space. A query
is shown a document of the pair with the best index among those that contain the query. A pair that was played often
enough is refined: each child of its subtree with each narrower group. A context at some level is the widest group
around the query that is no wider than subtrees of documents are there, so both get narrower together.

The choice does not depend on the documents above. Ties go to the first in the order of the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zoomrank.compiled import Scalar, compiled, inlined, separate
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.tree_shape import node_depths
from zoomrank.types import Array

EXPLORATION, SCALE, CLOSENESS = 0.02, 0.05, 0.1  # tuned on traffic of another seed
ROOM = 1024  # initial capacity


class Pairs(NamedTuple):
    """The pairs of one slot. Those that refine a pair in one context are a family, stored contiguously."""

    node: Array
    width: Array  # of both parts together
    plays: Array
    clicks: Array
    refined: Array
    family: Array  # first of its families; 0 if there is none
    context: Array  # [family]
    child: Array  # [family]: its first pair
    sibling: Array  # [family]: the next family of the same pair; 0 if there is none
    filled: Array  # pairs and families in use


class ZoomingRanking(NamedTuple):
    """A ranking, and the pairs that chose it."""

    documents: list[Any]
    pairs: list[int]  # -1 for a slot whose documents were all shown above it


def _fresh(width: float) -> Pairs:
    node, plays, clicks, family, context, child, sibling = (np.zeros(ROOM, np.int64) for _ in range(7))
    widths = np.zeros(ROOM)
    widths[0] = width
    return Pairs(
        node, widths, plays, clicks, np.zeros(ROOM, np.bool_), family, context, child, sibling, np.ones(2, int)
    )


def _larger(pairs: Pairs) -> Pairs:
    return Pairs._make([*(np.concatenate((array, np.zeros_like(array))) for array in pairs[:-1]), pairs.filled])


class QueryZooming:
    """Contextual zooming with queries as contexts, one bandit per slot.

    Parameters
    ----------
    tree : DocumentTree
        The tree of documents.
    slots : int
        Number of documents in a ranking.
    exploration : float
        C in the radius sqrt(C / (1 + n)).
    scale : float
        Multiplies the widths of pairs.
    closeness : float
        The width of a group relative to its parent's; the root has width 1, a query 0.
    seed : int
        The seed of the random numbers.

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4: Algorithm 4.
    """

    def __init__(
        self,
        tree: DocumentTree,
        slots: int,
        *,
        exploration: float = EXPLORATION,
        scale: float = SCALE,
        closeness: float = CLOSENESS,
        seed: int = 0,
    ) -> None:
        self.tree, self.exploration, self.scale, self.closeness = tree, exploration, scale, closeness
        self.slots = [_fresh(2.0 * scale) for _ in range(slots)]
        self.rng = np.random.default_rng(seed)
        self._reference = np.zeros(tree.depth + 2)
        np.maximum.at(self._reference, node_depths(tree.shape.parent), tree.width)
        self._number: dict[tuple[Any, ...], int] = {}
        self._contexts: dict[Any, tuple[Array, Array]] = {}

    def rank(self, query: Any, about: str = "") -> ZoomingRanking:
        """Return the ranking for the next visitor who asks a query.

        Parameters
        ----------
        query : str or int
            The query.
        about : str
            The path of its group, used when the query is new.

        Returns
        -------
        Shown
            The ranking, to be passed to `learn`.
        """
        if query not in self._contexts:
            self._contexts[query] = self._context(query, [step for step in about.split(" > ") if step])
        context, width = self._contexts[query]
        shown: list[int] = []
        chosen = []
        for slot in range(len(self.slots)):
            best = self._select(slot, context, width)
            position = self._drawn(int(self.slots[slot].node[best]), shown)
            chosen.append(best if position is not None else -1)
            shown.append(self._drawn(0, shown) if position is None else position)  # type: ignore[arg-type]
        return ZoomingRanking(self.tree.documents.at(shown), chosen)

    def learn(self, shown: ZoomingRanking, click: int | None) -> None:
        """Learn from the visitor's feedback: slots below the click learn nothing.

        Parameters
        ----------
        shown : Shown
            The value that `rank` returned.
        click : int or None
            The slot of the first click, or None if there was none.
        """
        for slot in range(len(self.slots) if click is None else click + 1):
            if shown.pairs[slot] >= 0:
                _count(self.slots[slot], shown.pairs[slot], int(slot == click), self.exploration)

    def _context(self, query: Any, steps: Sequence[str]) -> tuple[Array, Array]:
        """Return the group of a query at each level of the tree of documents, and its width."""
        groups = [("group", *steps[:depth]) for depth in range(len(steps) + 1)] + [("query", query)]
        numbers = [self._number.setdefault(group, len(self._number)) for group in groups]
        widths = np.array([*(self.closeness**depth for depth in range(len(steps) + 1)), 0.0])
        at = [int(np.argmax(widths <= reference)) for reference in self._reference]
        at[0], at[-1] = 0, len(groups) - 1
        return np.array([numbers[place] for place in at]), widths[at]

    def _select(self, slot: int, context: Array, width: Array) -> int:
        view = self.tree.width, self.tree.shape.child_start
        best = _best(self.slots[slot], context, width, *view, self.exploration, self.scale)
        while best < 0:
            self.slots[slot] = _larger(self.slots[slot])
            best = _best(self.slots[slot], context, width, *view, self.exploration, self.scale)
        return int(best)

    def _drawn(self, node: int, shown: Sequence[int]) -> int | None:
        """Draw a document of a subtree that is not shown yet; None if there is none."""
        first, end = (int(array[node]) for array in (self.tree.shape.first_document, self.tree.shape.end_document))
        hidden = sorted(position for position in shown if first <= position < end)
        if len(hidden) == end - first:
            return None
        position = first + int(self.rng.integers(end - first - len(hidden)))
        for other in hidden:
            position += position >= other
        return position


@inlined
def _index(pairs: Pairs, at: Scalar, exploration: Scalar) -> Scalar:
    plays = pairs.plays[at]
    mean = pairs.clicks[at] / plays if plays > 0 else 0.0
    return pairs.width[at] + mean + np.sqrt(exploration / (1.0 + plays))


@inlined
def _fan(node: Scalar, child_start: Array) -> Scalar:
    """Return the number of children of a node; a document counts as its own only child, while contexts get narrower."""
    fan: Scalar = np.int64(child_start[node + 1]) - np.int64(child_start[node])
    return max(fan, np.int64(1))


@compiled
def _best(
    pairs: Pairs, context: Array, wide: Array, width: Array, child_start: Array, exploration: Scalar, scale: Scalar
) -> Scalar:
    """Return the active pair with the best index among those that contain a query; -1 if the arrays must grow first."""
    best, top = np.int64(-1), -np.inf
    todo: list[tuple[Scalar, Scalar]] = [(np.int64(0), np.int64(0))]
    while len(todo) > 0:
        at, level = todo.pop()
        if pairs.refined[at]:
            below: Scalar = min(level + 1, len(context) - 1)
            first = _children(pairs, at, context[below], wide[below], width, child_start, scale)
            if first < 0:
                return np.int64(-1)
            fan = _fan(pairs.node[at], child_start)
            for step in range(fan):
                todo.append((first + fan - 1 - step, below))
        else:
            index = _index(pairs, at, exploration)
            if index > top:
                best, top = at, index
    return best


@separate
def _children(
    pairs: Pairs, at: Scalar, context: Scalar, wide: Scalar, width: Array, child_start: Array, scale: Scalar
) -> Scalar:
    """Return the first pair that refines a pair in a context, creating them at the first visit."""
    family = pairs.family[at]
    while family != 0 and pairs.context[family] != context:
        family = pairs.sibling[family]
    if family == 0:
        node, (first, family) = pairs.node[at], pairs.filled
        fan = _fan(node, child_start)
        if first + fan > len(pairs.node) or family >= len(pairs.node):
            return np.int64(-1)
        is_inner = child_start[node + 1] > child_start[node]
        for step in range(fan):
            pairs.node[first + step] = np.int64(child_start[node]) + step if is_inner else node
            pairs.width[first + step] = scale * (width[pairs.node[first + step]] + wide)
        pairs.context[family], pairs.child[family], pairs.sibling[family] = context, first, pairs.family[at]
        pairs.family[at] = family
        pairs.filled[0] += fan
        pairs.filled[1] += 1
    return pairs.child[family]


@compiled
def _count(pairs: Pairs, at: Scalar, reward: Scalar, exploration: Scalar) -> None:
    pairs.plays[at] += 1
    pairs.clicks[at] += reward
    if np.sqrt(exploration / (1.0 + pairs.plays[at])) < pairs.width[at]:
        pairs.refined[at] = True
