"""Worlds of the early families: short candidate lists, as a search page has them, and a large uneven taxonomy.

A *shelf* is a lowest category of the tree. A visitor of a short list has a taste: a shelf or a part of it, and perhaps
strays from elsewhere; some visitors want nothing that is there.
"""

from __future__ import annotations

import numpy as np

from zoomrank.spaces import DocumentTree
from zoomrank.types import Array, Seed
from zoomrank.users import Independent, RelevanceTable


def tastes(
    tree: DocumentTree,
    *,
    count: int,
    part: float = 1.0,
    liked: tuple[float, float] = (1.0, 1.0),
    strays: int = 0,
    kinds: int = 1,
    nothing: float = 0.0,
    exponent: float = 1.0,
    seed: Seed = None,
) -> RelevanceTable:
    """Make visitors with tastes, which are about different shelves as long as there are enough.

    Parameters
    ----------
    tree
        The documents.
    count
        Number of tastes. The frequency of the r-th is proportional to 1 / r to the power of `exponent`.
    part
        The part of its shelf that a taste is about.
    liked
        Bounds of the probability that a document is relevant to a visitor of the taste, drawn uniformly for each.
    strays
        Number of documents from anywhere that the taste is about, too.
    kinds
        Number of kinds of visitors of a taste, each drawn once with these probabilities.
    nothing
        The share of visitors who want nothing.
    exponent
        Inequality of tastes; with 0 they are equal.
    seed
        The seed, which decides the shelves and the documents.
    """
    rng = np.random.default_rng(seed)
    shelves = np.unique(tree.shape.parent[tree.shape.leaf])
    rows: list[list[int]] = []
    for shelf in rng.choice(shelves, count, replace=count > len(shelves)):
        inside = np.arange(tree.shape.first_document[shelf], tree.shape.end_document[shelf])
        own = rng.choice(inside, max(1, round(part * len(inside))), replace=False)
        wanted = np.union1d(own, rng.choice(len(tree), strays, replace=False))
        relevant = rng.random((kinds, len(wanted))) < rng.uniform(*liked, size=len(wanted))
        rows += [tree.documents.at(wanted[row]) for row in relevant]
    weights = np.repeat(_zipf(count, exponent), kinds)
    weights *= (1 - nothing) / weights.sum()
    return RelevanceTable(tree, [*rows, []], [*weights, nothing])


def popular(tree: DocumentTree, *, top: float, exponent: float = 1.0, seed: Seed = None) -> Independent:
    """Make visitors who like documents independently; the mean of the r-th is `top` / r to the power of `exponent`, and
    ranks are anywhere in the tree.
    """
    return Independent(tree, np.random.default_rng(seed).permutation(top * _zipf(len(tree), exponent)))


def pleasing(tree: DocumentTree, *, liked: tuple[float, float], seed: Seed = None) -> Independent:
    """Make visitors who like documents independently, with means drawn uniformly between two bounds."""
    return Independent(tree, np.random.default_rng(seed).uniform(*liked, size=len(tree)))


def zipf_taxonomy(documents: int = 5_000, fan: int = 12) -> DocumentTree:
    """Make a taxonomy whose categories divide their documents by Zipf's law among up to `fan` children."""
    parents, unfinished = [-1], [(0, documents)]
    for node, size in unfinished:  # grows while it is read
        if size <= fan:
            parts = np.ones(size, int)
        else:
            parts = np.maximum(1, np.round(size * _zipf(fan, 1.0) / _zipf(fan, 1.0).sum()).astype(int))
        first = len(parents)
        parents += [node] * len(parts)
        unfinished += [(first + at, int(part)) for at, part in enumerate(parts) if part > 1]
    return DocumentTree.from_parents(parents)


def _zipf(ranks: int, exponent: float) -> Array:
    return np.asarray(np.arange(1, ranks + 1) ** -float(exponent))
