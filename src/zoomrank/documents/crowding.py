"""Crowded places of a tree: too many documents were added in one place, without any order among them."""

from __future__ import annotations

import numpy as np

from zoomrank.documents.editions import LATE, CollectionVersion, CrowdedPlace
from zoomrank.numbers import Array

CROWD = 32  # additions that are too many, if they are most of the documents there
GROWN = 4  # a category that has grown by this factor no longer fits


def crowded(edition: CollectionVersion) -> list[CrowdedPlace]:
    """Return the crowded places, the one with the most additions first."""
    tree = edition.collection.tree
    shape, late = tree.shape, (edition.marks & LATE) > 0
    before = np.concatenate([[0], np.cumsum(late)])
    below = before[shape.end_document] - before[shape.first_document]
    documents = (shape.end_document - shape.first_document).astype(np.int64)
    if tree.names is None:
        beside = np.bincount(shape.parent[shape.leaf[late]], minlength=tree.nodes)
        full: Array = (beside >= CROWD) & (2 * beside > documents)
    else:
        beside = below
        full = (below >= CROWD) & (documents > below) & (documents > GROWN * (documents - below))
    full[shape.leaf] = False
    smallest = full.copy()
    smallest[shape.parent[1:][full[1:]]] = False  # where a subtree is crowded, report the subtree
    places = np.flatnonzero(smallest)
    places = places[np.argsort(-beside[places], kind="stable")]
    return [_crowd(edition, int(node), int(documents[node]), int(beside[node])) for node in places]


def _crowd(edition: CollectionVersion, node: int, documents: int, added: int) -> CrowdedPlace:
    tree = edition.collection.tree
    if tree.names is not None:
        name = tree.name(node) or "the whole collection"
        says = f"{name} had {documents - added} documents when the tree was made, and has {documents} now."
    else:
        first = tree.documents[int(tree.shape.first_document[node])]
        name = f"around {first!r}"
        says = (
            f"{added} of the {documents} documents {name} were added beside each other, without any order among them."
        )
    return CrowdedPlace(node, name, documents, added, says)
