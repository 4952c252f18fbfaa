"""Is this similarity any good? What the tree of a collection looks like, and whether relevance follows its distances.

Rankers believe that documents at distance D differ by at most D in how many visitors like them. With labels at hand
that can be looked at: pair by pair, level by level; and whether close documents please the same people at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from zoomrank.documents.calibration import Rows, calibrated_scale, mean_relevance, predictive_power
from zoomrank.errors import ParameterError
from zoomrank.spaces import DocumentTree, covering_dimension
from zoomrank.spaces.topology import Array, node_depths

GOOD, POOR = 0.75, 0.55  # chances that a pair that shares visitors is closer than one that does not
_SAMPLE = 2_000  # relevant documents a topic


@dataclass(frozen=True)
class Level:
    """All nodes that are as deep."""

    depth: int
    nodes: int
    documents: int  # that end here
    branching: float  # children of those that have some, on average
    widest_branching: int
    width: float  # of those, on average


@dataclass(frozen=True)
class Agreement:
    """How relevance follows distance among the pairs that part at one depth."""

    depth: int
    pairs: int
    width: float  # how far apart they are, on average
    difference: float  # how much their relevance differs, on average
    violations: float  # the share that differs more than it is far apart
    worst: float  # the largest excess, as a factor
    shared: float  # the share of pairs with a visitor who likes both


@dataclass(frozen=True)
class Verdict:
    """What labels say of a tree."""

    topics: int
    power: float  # AUC of closeness for shared relevance
    scale: float  # factor on the widths with which 95 % of close pairs would agree
    levels: tuple[Agreement, ...]

    @property
    def words(self) -> str:
        """What it means for the choice of a ranker."""
        if self.power >= GOOD:
            sense = "Close documents please the same people: the metric is worth using, and ZoomRank will use it."
        elif self.power >= POOR:
            sense = (
                "Close documents please the same people a little more often than others. ZoomRank still gains from the "
                "metric; give it time, and try better vectors or texts."
            )
        else:
            sense = (
                "Closeness says next to nothing about who likes what. The metric will not help; ZoomRank with "
                "`correlated=False` or RankUCB1 do as well, and other vectors or texts may do better."
            )
        if self.scale > 2:
            return f"{sense} Widths are too small: multiply them by about {self.scale:.2g} (`collection.scaled`)."
        if self.scale < 0.5:
            return f"{sense} Widths are larger than they need be: a factor of {max(self.scale, 0.01):.2g} would do."
        return f"{sense} The widths are about right as they are."


@dataclass(frozen=True)
class Inspection:
    """All that can be said of a tree."""

    documents: int
    nodes: int
    depth: int
    mean_depth: float
    dimension: float  # covering dimension
    levels: tuple[Level, ...]
    verdict: Verdict | None = None


def inspect_tree(tree: DocumentTree, topics: Sequence[tuple[Rows, Sequence[float]]] = (), seed: int = 0) -> Inspection:
    """Look at a tree and, topic by topic, at the visitors: rows of relevant documents, with weights.

    >>> look = inspect_tree(DocumentTree.exponential(depth=3), [([[0, 1], [0, 1], [6, 7]], [1, 1, 2])])
    >>> look.depth, look.levels[1].nodes, look.verdict.power
    (3, 2, 1.0)
    """
    depths = node_depths(tree.shape.parent)
    leaves = depths[tree.shape.leaf]
    return Inspection(
        documents=len(tree),
        nodes=tree.nodes,
        depth=int(leaves.max()),
        mean_depth=float(leaves.mean()),
        dimension=covering_dimension(tree).value,
        levels=tuple(_level(tree, depths, depth) for depth in range(int(depths.max()) + 1)),
        verdict=_verdict(tree, depths, topics, seed) if topics else None,
    )


def _level(tree: DocumentTree, depths: Array, depth: int) -> Level:
    here = np.flatnonzero(depths == depth)
    fan = np.diff(tree.shape.child_start.astype(np.int64))[here]
    inner = fan > 0
    return Level(
        depth=depth,
        nodes=len(here),
        documents=int((~inner).sum()),
        branching=float(fan[inner].mean()) if inner.any() else 0.0,
        widest_branching=int(fan.max()),
        width=float(tree.width[here][inner].mean()) if inner.any() else 0.0,
    )


def _verdict(tree: DocumentTree, depths: Array, topics: Sequence[tuple[Rows, Sequence[float]]], seed: int) -> Verdict:
    rng = np.random.default_rng(seed)
    powers, scales, pairs = [], [], []
    for rows, weights in topics:
        with suppress(ParameterError):  # nobody likes two documents, or everybody the same: nothing to predict
            powers.append(predictive_power(tree, rows, weights, seed=seed))
        with suppress(ParameterError):  # no two documents are close, yet apart
            scales.append(calibrated_scale(tree, rows, weights, seed=seed))
        pairs.append(_pairs(tree, depths, rows, weights, rng))
    found = np.concatenate(pairs)
    levels = tuple(_agreement(found[found[:, 0] == depth]) for depth in np.unique(found[:, 0]))
    power = float(np.mean(powers)) if powers else 0.5
    return Verdict(len(topics), power, float(np.median(scales)) if scales else 1.0, levels)


def _pairs(tree: DocumentTree, depths: Array, rows: Rows, weights: Sequence[float], rng: np.random.Generator) -> Array:
    """Relevant documents, each with one other from every subtree around it: depth where they part, distance,
    difference of relevance, whether somebody likes both.
    """
    shape, mean = tree.shape, mean_relevance(tree, rows, weights)
    likers: dict[int, set[int]] = {}
    for visitor, row in enumerate(rows):
        for document in row:
            likers.setdefault(tree.documents.position(document), set()).add(visitor)
    liked = np.array(sorted(likers))
    found = []
    for place in rng.permutation(liked)[:_SAMPLE].tolist():
        node = int(shape.leaf[place])
        while node != 0:
            inside, node = node, int(shape.parent[node])
            first, end = int(shape.first_document[node]), int(shape.end_document[node])
            low, high = int(shape.first_document[inside]), int(shape.end_document[inside])
            others = (end - first) - (high - low)
            if others > 0:
                other = first + int(rng.integers(others))
                other += (high - low) if other >= low else 0
                both = not likers[place].isdisjoint(likers.get(other, ()))
                found.append((depths[node], tree.width[node], abs(mean[place] - mean[other]), both))
    return np.array(found, dtype=np.float64).reshape(-1, 4)


def _agreement(found: Array) -> Agreement:
    depth, width, difference, both = found.T
    broken = difference > width + 1e-12
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(broken, difference / width, 1.0)
    return Agreement(
        depth=int(depth[0]),
        pairs=len(found),
        width=float(width.mean()),
        difference=float(difference.mean()),
        violations=float(broken.mean()),
        worst=float(excess.max()),
        shared=float(both.mean()),
    )
