"""Life-like visitors: their tastes are not smooth peaks, and the tree reflects them only in part, or not at all.

Shoppers want most of a category and some things from elsewhere, and a few intents are far more common than others
(`intents`); tastes cut across the categories (`scattered`); nearly all documents are ignored by nearly all visitors
(`needles`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zoomrank.errors import ParameterError
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array, Seed
from zoomrank.users.relevance_table import Independent, RelevanceTable


def intents(
    tree: DocumentTree,
    *,
    count: int = 40,
    sizes: tuple[int, int] = (4, 80),
    liked: tuple[float, float] = (0.2, 0.9),
    strays: int = 5,
    stray_chance: float = 0.5,
    kinds: int = 20,
    seed: Seed = None,
) -> RelevanceTable:
    """Make visitors with intents: most of a category of the tree is relevant to them, and a few strays.

    The popularity of intents follows Zipf's law: the second is half as frequent as the first, the third a third. The
    documents of a category differ in popularity.

    Parameters
    ----------
    tree : DocumentTree
        The documents.
    count : int
        Number of intents. They are about different categories, as long as there are enough of these.
    sizes : tuple of int
        The fewest and the most documents that a category may have.
    liked : tuple of float
        Bounds of the probability that a document of the category is relevant, drawn uniformly for each.
    strays : int
        Number of documents from elsewhere that are relevant to some visitors of an intent.
    stray_chance : float
        Probability that each of these is relevant to a visitor.
    kinds : int
        Number of kinds of visitors of an intent, each drawn once with these probabilities.
    seed : int, Generator or None
        The seed, which decides the categories and the tastes.

    Returns
    -------
    RelevanceTable
        The visitors, `kinds` rows for each intent, the most popular intent first.
    """
    rng = np.random.default_rng(seed)
    _at_least_one(count=count, kinds=kinds)
    _chances(liked=liked, stray_chance=[stray_chance])
    categories = _categories(tree, sizes)
    rows = []
    for node in rng.choice(categories, count, replace=count > len(categories)):
        inside = np.arange(tree.shape.first_document[node], tree.shape.end_document[node])
        outside = np.setdiff1d(np.arange(len(tree)), inside, assume_unique=True)
        elsewhere = rng.choice(outside, min(strays, len(outside)), replace=False)
        chance = np.concatenate([rng.uniform(*liked, size=len(inside)), np.full(len(elsewhere), stray_chance)])
        relevant = rng.random((kinds, len(chance))) < chance
        rows += [tree.documents.at(np.concatenate([inside, elsewhere])[row]) for row in relevant]
    return RelevanceTable(tree, rows, np.repeat(_zipf(count), kinds))


def scattered(
    tree: DocumentTree, *, groups: int = 25, size: int = 40, exponent: float = 0.7, seed: Seed = None
) -> RelevanceTable:
    """Make visitors in groups whose documents are anywhere: the tree does not reflect them.

    Parameters
    ----------
    tree : DocumentTree
        The documents.
    groups : int
        Number of groups of visitors. The frequency of the r-th is proportional to 1 / r to the power of `exponent`.
    size : int
        Number of documents, drawn at random, that are relevant to all visitors of a group.
    exponent : float
        Inequality of groups; with 0 they are equal.
    seed : int, Generator or None
        The seed, which decides which documents belong to a group.

    Returns
    -------
    RelevanceTable
        The visitors, a row for each group, the most frequent first.
    """
    rng = np.random.default_rng(seed)
    _at_least_one(groups=groups, size=size)
    _at_most_all(size, tree)
    rows = [tree.documents.at(np.sort(rng.choice(len(tree), size, replace=False))) for _ in range(groups)]
    return RelevanceTable(tree, rows, _zipf(groups, exponent))


def needles(
    tree: DocumentTree,
    *,
    count: int = 8,
    values: tuple[float, float] = (0.05, 0.08),
    background: float = 0.004,
    seed: Seed = None,
) -> Independent:
    """Make visitors who like a few documents somewhat and all others hardly, each independently of the others.

    Parameters
    ----------
    tree : DocumentTree
        The documents.
    count : int
        Number of documents that are liked, anywhere in the tree.
    values : tuple of float
        Bounds of the mean relevance of each of these, drawn uniformly.
    background : float
        The mean relevance of all others.
    seed : int, Generator or None
        The seed, which decides which documents are liked, and how much.

    Returns
    -------
    Independent
        The visitors.
    """
    rng = np.random.default_rng(seed)
    _at_least_one(count=count)
    _at_most_all(count, tree)
    _chances(values=values)
    mean = np.full(len(tree), background)
    mean[rng.choice(len(tree), count, replace=False)] = rng.uniform(*values, size=count)
    return Independent(tree, mean)


def _categories(tree: DocumentTree, sizes: tuple[int, int]) -> Array:
    """Return the nodes whose number of documents is within these sizes."""
    fewest, most = sizes
    shape = tree.shape
    documents = shape.end_document.astype(np.int64) - shape.first_document.astype(np.int64)
    nodes = np.flatnonzero((documents >= fewest) & (documents <= most))
    if len(nodes) == 0:
        raise ParameterError(f"No category of the tree has {fewest} to {most} documents for an intent to be about.")
    return nodes


def _zipf(ranks: int, exponent: float = 1.0) -> Array:
    return np.asarray(np.arange(1, ranks + 1) ** -float(exponent))


def _at_least_one(**counts: int) -> None:
    for name, value in counts.items():
        if value < 1:
            raise ParameterError(f"{name} is {value}; it must be at least 1.")


def _at_most_all(count: int, tree: DocumentTree) -> None:
    if count > len(tree):
        raise ParameterError(f"{count} documents cannot be drawn from {len(tree)}.")


def _chances(**chances: Sequence[float]) -> None:
    for name, values in chances.items():
        if not all(0 <= low <= high <= 1 for low, high in zip([0, *values], [*values, 1], strict=True)):
            raise ParameterError(f"{name} is {', '.join(map(str, values))}; these must lie between 0 and 1, in order.")
