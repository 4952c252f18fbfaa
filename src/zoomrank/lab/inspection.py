"""Inspection of a collection: its tree, level by level, and whether its distances agree with labels or clicks.

Rankers assume that documents at distance D differ by at most D in the share of visitors who like them. With labels or
clicks this can be checked: pair by pair, level by level; and whether close documents please the same visitors at all.

That describes the metric, but does not say which ranker collects more. Where all that visitors like is in one corner of
the tree and spread evenly there, closeness says nothing about which of them like the same, and still leads a learner to
that corner. So the advice comes from a trial: ZoomRank and RankUCB1, which ignores the tree, learn from simulated
visitors, and ZoomRank also on the same tree with its documents shuffled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from zoomrank.documents.calibration import (
    Comparisons,
    RelevanceRows,
    comparisons,
    mean_relevance,
    predictive_power_from_clicks,
    predictive_power_from_labels,
    scale_from_labels,
    true_steepness,
)
from zoomrank.documents.click_log import ClickLog, Counts
from zoomrank.errors import ParameterError
from zoomrank.lab.curves import estimate
from zoomrank.lab.simulator import simulate
from zoomrank.rankers import RankUCB1, ZoomRank
from zoomrank.rankers.slot_bandits import SLOTS
from zoomrank.spaces import DocumentTree, covering_dimension
from zoomrank.spaces.tree_shape import node_depths
from zoomrank.types import Array
from zoomrank.users import Independent, RelevanceTable, UserDistribution

World = Callable[[DocumentTree], UserDistribution]  # visitors over any tree of the same documents
LABELS, CLICKS = "labels", "clicks"
RIVAL_EXPLORATION = 0.003  # of RankUCB1, as tuned for `zoomrank evaluate`
TRIAL_VISITS = 3_000
LEVEL = 0.02  # shares of greedy's clicks that differ by less are called equal
_LEAST_RUNS, _MOST_RUNS = 40, 60  # of a trial: topics take turns
LEAST_SCALE = 0.01  # labels may suggest less, even 0, but rankers need some width
_SAMPLE = 2_000  # relevant documents per topic
_DOUBT = 2.0  # standard errors that a difference of click rates may be off by


@dataclass(frozen=True)
class Agreement:
    """Agreement of relevance and distance among the pairs that part at one depth."""

    depth: int
    pairs: int
    width: float  # how far apart they are, on average
    difference: float  # how much their relevance differs, on average; of click rates the root mean square, less noise
    violations: float  # the share of pairs whose difference exceeds their distance, beyond noise
    worst: float  # the largest excess, as a factor
    shared: float | None  # the share of pairs with a visitor who likes both; unknown from clicks


@dataclass(frozen=True)
class Trial:
    """Clicks in simulated visits, as shares of greedy's: one number per run, the same visitors for all three."""

    slots: int
    ours: Array  # ZoomRank
    rival: Array  # RankUCB1
    shuffled: Array  # ZoomRank on a tree whose closeness means nothing

    @property
    def words(self) -> str:
        """Advice on the choice of a ranker, and whether closeness helps."""
        lead, gain = estimate(self.ours - self.rival), estimate(self.ours - self.shuffled)
        advice = "ZoomRank and RankUCB1 are not clearly apart: take either."
        if lead.low > 0 and lead.mean > LEVEL:
            advice = "Take ZoomRank."
        elif lead.high < 0 and lead.mean < -LEVEL:
            advice = f"RankUCB1 with `exploration={RIVAL_EXPLORATION}` is ahead for as many visits as these."
        use = "closeness makes no clear difference, and other texts or vectors might"
        if gain.low > 0 and gain.mean > LEVEL:
            use = "closeness helps"
        elif gain.high < 0 and gain.mean < -LEVEL:
            use = "closeness misleads, and other texts or vectors may do better"
        return (
            f"{advice} In {len(self.ours)} runs of {TRIAL_VISITS:,} simulated visits with {self.slots} slots, ZoomRank "
            f"collected {self.ours.mean():.2f} of greedy's clicks and RankUCB1 {self.rival.mean():.2f}, a lead of "
            f"{lead}. With the documents shuffled in the tree, ZoomRank collected {self.shuffled.mean():.2f}: {use}."
        )


@dataclass(frozen=True)
class MetricVerdict:
    """Verdict of labels or clicks on a tree."""

    topics: int
    power: float | None  # AUC of closeness for shared relevance, or of neighbours' clicks; None if unknown
    scale: float | None  # factor on the widths with which 95 % of pairs would agree; None if unknown
    levels: tuple[Agreement, ...]
    source: str = LABELS
    trial: Trial | None = None

    @property
    def words(self) -> str:
        """Advice on the choice of a ranker."""
        return self._widths if self.trial is None else f"{self.trial.words} {self._widths}"

    @property
    def _widths(self) -> str:
        if self.scale is None:
            return f"These {self.source} are too few to tell whether the widths are right."
        if self.scale > 2:
            return f"Widths are too small: multiply them by about {self.scale:.2g} (`collection.scaled`)."
        if self.scale < 0.5:
            return f"Widths are larger than they need be: a factor of {max(self.scale, LEAST_SCALE):.2g} would do."
        return "The widths are about right as they are."


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
    slots: int = SLOTS,
) -> Inspection:
    """Summarise a tree and, if labels or clicks are given, whether relevance follows its distances.

    Parameters
    ----------
    tree
        The tree of the collection.
    topics
        For each topic the documents that each kind of visitor likes, and the weights of these kinds.
    seed
        The seed of the sample of pairs, and of the simulated visits.
    clicks
        A log, instead of topics.
    unknown
        Whether to "refuse" or "skip" documents of the log that the tree does not have.
    slots
        Length of the rankings in simulated visits.

    Returns
    -------
    Inspection
        Levels of the tree, and a verdict if labels or clicks were given.
    """
    depths = node_depths(tree.shape.parent)
    leaves = depths[tree.shape.leaf]
    verdict, worlds = None, list[World]()
    if topics:
        verdict = verdict_of_labels(tree, depths, topics, seed)
        worlds = [partial(RelevanceTable, rows=rows, weights=weights) for rows, weights in topics]
    if clicks is not None:
        verdict = verdict_of_clicks(tree, depths, clicks, seed, unknown)
        worlds = _worlds_of_clicks(tree, clicks.counted(tree.documents, unknown))
    if verdict is not None:
        verdict = replace(verdict, trial=try_rankers(tree, worlds, min(slots, len(tree)), seed))
    return Inspection(
        documents=len(tree),
        nodes=tree.nodes,
        depth=int(leaves.max()),
        mean_depth=float(leaves.mean()),
        dimension=covering_dimension(tree).value,
        levels=tuple(_level(tree, depths, depth) for depth in range(int(depths.max()) + 1)),
        verdict=verdict,
    )


def try_rankers(tree: DocumentTree, worlds: Sequence[World], slots: int, seed: int) -> Trial:
    """Let rankers learn from the visitors of one topic after the other, some of them again if there are few."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(worlds))
    shares = []
    for run in range(min(max(_LEAST_RUNS, len(worlds)), _MOST_RUNS)):
        make = worlds[order[run % len(worlds)]]
        shuffled = tree.with_documents([tree.documents[at] for at in rng.permutation(len(tree))])
        users = make(tree)
        best = users.greedy(slots).satisfaction
        rankers = (
            ZoomRank(tree, slots, seed=run),
            RankUCB1(tree, slots, exploration=RIVAL_EXPLORATION, seed=run),
            ZoomRank(shuffled, slots, seed=run),
        )
        visitors = users, users, make(shuffled)
        rates = (
            simulate(*pair, TRIAL_VISITS, seed=seed + 1_000 * run).rate for pair in zip(rankers, visitors, strict=True)
        )
        shares.append([rate / best for rate in rates])
    return Trial(slots, *np.array(shares).T)


def _worlds_of_clicks(tree: DocumentTree, counts: Counts) -> list[World]:
    """Return the visitors of the queries that have the most clicks."""
    clicks = np.bincount(counts.query, counts.clicks)
    queries = np.argsort(-clicks, kind="stable")[: min(np.count_nonzero(clicks), _MOST_RUNS)]
    return [partial(_visitors_of_query, tree=tree, counts=counts, query=int(query)) for query in queries]


def _visitors_of_query(space: DocumentTree, *, tree: DocumentTree, counts: Counts, query: int) -> Independent:
    """Return visitors who like each document, independently, at its click rate.

    A document of few looks is taken to be clicked like the others of the query: as if one more click had been seen, and
    as many more looks as a click takes on average.
    """
    here = counts.query == query
    clicks, looks = counts.clicks[here], counts.looks[here]
    mean = clicks.sum() / looks.sum()
    rates = np.full(len(tree), mean)
    rates[counts.document[here]] = (clicks + 1) / (looks + 1 / mean)
    return Independent(space, dict(zip(tree.documents, rates.tolist(), strict=True)))


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


def verdict_of_labels(
    tree: DocumentTree, depths: Array, topics: Sequence[tuple[RelevanceRows, Sequence[float]]], seed: int
) -> MetricVerdict:
    """Judge a tree by topics: rows of relevant documents with their weights; `depths` are those of the nodes."""
    rng = np.random.default_rng(seed)
    powers, scales, pairs = [], [], []
    for rows, weights in topics:
        with suppress(ParameterError):  # no visitor likes two documents, or all like the same: nothing to predict
            powers.append(predictive_power_from_labels(tree, rows, weights, seed=seed))
        with suppress(ParameterError):  # no two documents are apart
            scales.append(suggested_scale(tree, rows, weights, seed))
        pairs.append(_pairs(tree, depths, rows, weights, rng))
    found = np.concatenate(pairs)
    levels = tuple(_agreement(found[found[:, 0] == depth]) for depth in np.unique(found[:, 0]))
    power = float(np.mean(powers)) if powers else None
    return MetricVerdict(len(topics), power, float(np.median(scales)) if scales else None, levels)


def suggested_scale(tree: DocumentTree, rows: RelevanceRows, weights: Sequence[float], seed: int = 0) -> float:
    """Suggest the factor on all widths that labels require: the largest that any of several samples requires.

    Usually close pairs require the most. But where only distant documents differ in popularity, the factor of
    close pairs would make the whole collection too narrow, so all pairs are used as well. And each slot learns from
    visitors who skipped the documents above; among these, documents of equal popularity may differ a lot. So the
    samples are repeated without the visitors who like the most popular document, and so on down to half of them.
    """
    left = [(frozenset(row), weight) for row, weight in zip(rows, weights, strict=True)]
    enough = sum(weights) / 2
    asked = []
    while sum(weight for _, weight in left) >= enough and any(row for row, _ in left):
        those, shares = [row for row, _ in left], [weight for _, weight in left]
        asked.append(scale_from_labels(tree, those, shares, close=1.0, seed=seed))
        with suppress(ParameterError):  # no two documents are close without being equal
            asked.append(scale_from_labels(tree, those, shares, seed=seed))
        popular = tree.documents[int(np.argmax(mean_relevance(tree, those, shares)))]
        left = [(row, weight) for row, weight in left if popular not in row]
    if not asked:
        raise ParameterError("No document is relevant to any visitor.")
    return max(asked)


def verdict_of_clicks(tree: DocumentTree, depths: Array, log: ClickLog, seed: int, unknown: str) -> MetricVerdict:
    """Judge a tree by a log of clicks."""
    power, scale, levels = None, None, []
    counts = log.counted(tree.documents, unknown)
    with suppress(ParameterError):  # too few visits
        power = predictive_power_from_clicks(tree, log, seed=seed, unknown=unknown)
    with suppress(ParameterError):  # too few visits
        found = comparisons(tree, counts, seed=seed)
        depth = depths[found.parting]
        levels = [_agreement_of_clicks(here, found, depth == here) for here in np.unique(depth).tolist()]
        scale = true_steepness(tree, found)
    return MetricVerdict(len(log.queries), power, scale, tuple(levels), CLICKS)


def _agreement_of_clicks(depth: int, found: Comparisons, here: Array) -> Agreement:
    """Measure differences of click rates, with the noise subtracted."""
    _, width, difference, noise = (column[here] for column in found)
    surely = np.abs(difference) - _DOUBT * noise
    return Agreement(
        depth=depth,
        pairs=len(width),
        width=float(width.mean()),
        difference=float(np.sqrt(max(0.0, (difference**2 - noise**2).mean()))),
        violations=float((surely > width).mean()),
        worst=float(max(1.0, (surely / width).max())),
        shared=None,
    )


def _pairs(
    tree: DocumentTree, depths: Array, rows: RelevanceRows, weights: Sequence[float], rng: np.random.Generator
) -> Array:
    """Pair relevant documents, each with one other from every subtree around it.

    Columns: depth where they part, distance, difference of relevance, whether some visitor likes both.
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
