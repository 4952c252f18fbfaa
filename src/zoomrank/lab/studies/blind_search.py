"""Limits of search: no ranker can know of a peak before a visitor has clicked near it.

So the worst instance of a study is compared with the probability that visitors who were shown random documents only
would never have clicked near some peak that matters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zoomrank.lab import catalogue
from zoomrank.lab.recipes import Setting
from zoomrank.spaces import DocumentId, DocumentTree
from zoomrank.users import UserDistribution


def blind_chances(tree: DocumentTree, users: UserDistribution, best: Sequence[DocumentId], visits: int) -> list[float]:
    """Return the probability, per best document, that visitors who are shown random documents never click on or near
    it.
    """
    mean, shape = users.mean(), tree.shape
    usual = float(np.median(mean))
    chances = []
    for document in best:
        place = tree.documents.position(document)
        node = int(shape.leaf[place])
        raised, inner = max(0.0, float(mean[place]) - usual), 1
        while node != 0:
            node = int(shape.parent[node])
            size = int(shape.end_document[node]) - int(shape.first_document[node])
            raised += (size - inner) * max(0.0, float(mean[place]) - float(tree.width[node]) - usual)
            inner = size
        chances.append(float(np.exp(-len(best) * visits * raised / len(tree))))
    return chances


def chance_to_miss(setting: Setting, visits: int, enough: float) -> float:
    """Return the probability that a blind search misses a document without which greedy falls below `enough`."""
    tree, users = catalogue.world(setting)
    best = users.greedy(setting.slots)
    chances = blind_chances(tree, users, best.documents, visits)
    needed = [
        chance
        for document, chance in zip(best.documents, chances, strict=True)
        if users.satisfaction([other for other in best.documents if other != document]) < enough * best.satisfaction
    ]
    return float(1 - np.prod([1 - chance for chance in needed]))
