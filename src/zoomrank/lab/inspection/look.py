"""Summary of a collection's tree, level by level, and of how labels or clicks agree with its distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zoomrank.documents.click_log import ClickLog
from zoomrank.documents.label_calibration import RelevanceRows
from zoomrank.lab.inspection.agreement import MetricVerdict, verdict_of_clicks, verdict_of_labels
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentTree, covering_dimension
from zoomrank.spaces.trees.shape import node_depths


@dataclass(frozen=True)
class Level:
    """All nodes of one depth."""

    depth: int
    nodes: int
    documents: int  # that end here
    branching: float  # mean number of children of inner nodes
    widest_branching: int
    width: float  # of those, on average


@dataclass(frozen=True)
class Inspection:
    """Summary of a tree."""

    documents: int
    nodes: int
    depth: int
    mean_depth: float
    dimension: float  # covering dimension
    levels: tuple[Level, ...]
    verdict: MetricVerdict | None = None


def inspect_tree(
    tree: DocumentTree,
    topics: Sequence[tuple[RelevanceRows, Sequence[float]]] = (),
    seed: int = 0,
    *,
    clicks: ClickLog | None = None,
    unknown: str = "refuse",
) -> Inspection:
    """Summarise a tree and, if labels or clicks are given, whether relevance follows its distances.

    Parameters
    ----------
    tree
        The tree of the collection.
    topics
        For each topic the documents that each kind of visitor likes, and the weights of these kinds.
    seed
        The seed of the sample of pairs.
    clicks
        A log, instead of topics.
    unknown
        Whether to "refuse" or "skip" documents of the log that the tree does not have.

    Returns
    -------
    Inspection
        Levels of the tree, and a verdict if labels or clicks were given.
    """
    depths = node_depths(tree.shape.parent)
    leaves = depths[tree.shape.leaf]
    verdict = verdict_of_labels(tree, depths, topics, seed) if topics else None
    if clicks is not None:
        verdict = verdict_of_clicks(tree, depths, clicks, seed, unknown)
    return Inspection(
        documents=len(tree),
        nodes=tree.nodes,
        depth=int(leaves.max()),
        mean_depth=float(leaves.mean()),
        dimension=covering_dimension(tree).value,
        levels=tuple(_level(tree, depths, depth) for depth in range(int(depths.max()) + 1)),
        verdict=verdict,
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
