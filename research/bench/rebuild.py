"""Cost in clicks of rebuilding a tree: `python -m research.bench.rebuild`.

Half of the documents of a collection of vectors were added after its tree was built. A learner has had 20,000 visitors.
Then it continues for 2,000 more: in the old tree, remapped to the rebuilt one, and as a new learner there. Visitors are
the same for all three: each has a taste, and likes documents that are near it.
"""

from __future__ import annotations

import argparse

import numpy as np

import zoomrank as zr
from zoomrank.documents import Collection, CollectionVersion
from zoomrank.types import Array

DOCUMENTS, DIMENSIONS, TOPICS, VISITORS = 600, 16, 30, 400


def world(seed: int) -> tuple[CollectionVersion, Array]:
    """Return a version whose second half was added to the tree of the first, and the tastes of visitors, by number."""
    rng = np.random.default_rng(seed)
    topics = rng.normal(size=(TOPICS, DIMENSIONS))
    vectors = topics[rng.integers(TOPICS, size=DOCUMENTS)] + 0.5 * rng.normal(size=(DOCUMENTS, DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    half = DOCUMENTS // 2
    first = CollectionVersion.first(Collection.from_vectors(vectors[:half], ids=np.arange(half)))
    added = [{"add": number, "vector": vectors[number].tolist()} for number in range(half, DOCUMENTS)]
    popular = rng.choice(TOPICS, size=VISITORS, p=np.arange(TOPICS, 0, -1) / (TOPICS * (TOPICS + 1) / 2))
    taste = topics[popular] + 0.4 * rng.normal(size=(VISITORS, DIMENSIONS))
    likeness = (taste / np.linalg.norm(taste, axis=1, keepdims=True)) @ vectors.T
    return first.changed(first.placed(added)), rng.random(likeness.shape) < 1 / (1 + np.exp(-20 * (likeness - 0.8)))


def users(edition: CollectionVersion, liked: Array) -> zr.users.RelevanceTable:
    """Return the same visitors, for the tree of this version."""
    return zr.users.RelevanceTable(edition.collection.tree, [np.flatnonzero(row).tolist() for row in liked])


def clicks(ranker: zr.Ranked, visitors: zr.users.RelevanceTable, visits: int, seed: int) -> int:
    """Return the number of clicks of the next visitors."""
    return int(zr.simulate(ranker, visitors, visits, seed=seed, windows=1).satisfied.sum())


def main() -> None:
    """Print the clicks of each."""
    parser = argparse.ArgumentParser("python -m research.bench.rebuild", description=__doc__)
    parser.add_argument("--instances", type=int, default=30)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first instance")
    parser.add_argument("--before", type=int, default=20_000)
    parser.add_argument("--after", type=int, default=2_000)
    asked = parser.parse_args()
    rows = []
    for seed in range(asked.first, asked.first + asked.instances):
        edition, liked = world(seed)
        remade = edition.remade(seed=seed)
        old, new = users(edition, liked), users(remade, liked)
        ranker = zr.ZoomRank(edition.collection.tree, slots=5, seed=seed)
        clicks(ranker, old, asked.before, seed)
        stayed = ranker.copied()
        ranker.move(remade.collection.tree, edition.remap_to(remade))
        fresh = zr.ZoomRank(remade.collection.tree, slots=5, seed=seed)
        pairs = ((stayed, old), (ranker, new), (fresh, new))
        rows.append([clicks(each, meets, asked.after, seed + 1000) for each, meets in pairs])
    found = np.array(rows, float)
    for name, column in zip(
        ("not remapped", "remapped to the rebuilt tree", "new learner there"), found.T, strict=True
    ):
        error = column.std(ddof=1) / np.sqrt(len(column))
        print(f"{name:28} {column.mean():7.1f} clicks of {asked.after} visits, ± {error:.1f}")
    ratio = found[:, 1] / found[:, 0] - 1
    print(f"remapped against not remapped: {ratio.mean():+.2%} ± {ratio.std(ddof=1) / np.sqrt(len(ratio)):.2%}")


if __name__ == "__main__":
    main()
