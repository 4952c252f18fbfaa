"""Rankings that do not learn, because they are given what learning rankers must find out.

The greedy optimum, the documents in the order of their popularity, and the same re-ranked for diversity by maximal
marginal relevance; and random ones, which are given nothing. Ties are broken at random, by instance: in tree order,
similar documents are neighbours.

References
----------
Carbonell and Goldstein, The use of MMR, diversity-based reranking for reordering documents and producing summaries,
SIGIR 1998.
"""

from __future__ import annotations

import numpy as np

from zoomrank.lab.catalogue import GREEDY
from zoomrank.lab.kept_worlds import kept_users
from zoomrank.lab.recipes import Recipe, recipe
from zoomrank.numbers import Array, rounded_for_ties
from zoomrank.rankers import FixedRanking
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.ids import Positions

TRADEOFF = 0.5  # λ of maximal marginal relevance
POPULARITY, DIVERSIFIED, CHANCE = "Popularity", "MMR", "RankRandom"
GIVEN = (GREEDY, POPULARITY, DIVERSIFIED, CHANCE)  # part of every evaluation


def given_rankings(file: str) -> dict[str, Recipe]:
    """Return the recipes of these rankings on the topic that is stored in this file."""
    return {
        GREEDY: recipe(GREEDY),
        POPULARITY: recipe(most_popular, file=file),
        DIVERSIFIED: recipe(diversified, file=file, tradeoff=TRADEOFF),
        CHANCE: recipe(CHANCE),
    }


def most_popular(tree: DocumentTree, slots: int, *, seed: np.random.Generator, file: str) -> FixedRanking:
    """Rank by popularity."""
    chosen = by_popularity(kept_users(tree, file=file).mean(), slots, seed)
    return FixedRanking(tree, tree.documents.at(chosen))


def diversified(
    tree: DocumentTree, slots: int, *, seed: np.random.Generator, file: str, tradeoff: float
) -> FixedRanking:
    """Rank by popularity and distance from the documents above."""
    chosen = marginally_relevant(tree, kept_users(tree, file=file).mean(), slots, tradeoff, seed)
    return FixedRanking(tree, tree.documents.at(chosen))


def by_popularity(mean: Array, slots: int, rng: np.random.Generator) -> Positions:
    """Return the positions of the documents that are relevant to most visitors, the most popular first."""
    luck = rng.permutation(len(mean))
    return np.lexsort((luck, -rounded_for_ties(mean)))[:slots]


def marginally_relevant(
    tree: DocumentTree, mean: Array, slots: int, tradeoff: float, rng: np.random.Generator
) -> Positions:
    """Choose slot by slot what maximises λ · popularity - (1 - λ) · the largest similarity to the documents above.

    Both are within [0, 1]: popularity is divided by the largest, and similarity is 1 - distance / the largest distance.
    """
    popularity = mean / max(float(mean.max()), np.finfo(float).tiny)
    # In a tree metric, the largest distance from any one document is the largest distance of all.
    diameter = max(float(tree.distances(tree.documents[0]).max()), np.finfo(float).tiny)
    luck = rng.permutation(len(mean))
    alike = np.zeros(len(mean))
    left = np.ones(len(mean), bool)
    chosen: list[int] = []
    for _ in range(slots):
        score = np.where(left, rounded_for_ties(tradeoff * popularity - (1 - tradeoff) * alike), -np.inf)
        best = int(np.lexsort((luck, -score))[0])
        chosen.append(best)
        left[best] = False
        alike = np.maximum(alike, 1 - tree.distances(tree.documents[best]) / diameter)
    return np.array(chosen, np.int64)
