"""Propensity: the probability of a document in a slot, given the documents above.

Only ties and draws inside a subtree are random, so there is a closed form, except for `TreeThompson`, whose draws take
integrals. Either the slot's strategy holds the document, which is then drawn from its subtree; or all documents of the
strategy are shown above, and then the document may be drawn from the whole tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zoomrank.bandits.registration import odds
from zoomrank.bandits.state.tree_view import chance_to_draw, is_exhausted
from zoomrank.compiled import Scalar, separate
from zoomrank.numbers import Array


@separate
def _odds(state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar) -> Any:
    return odds(state, slot, shown, above, document)


@separate
def _chance_of_none_left(state: Any, slot: Scalar, shown: Array, above: Scalar, sure: Scalar) -> Scalar:
    """Compute the probability of a strategy all of whose documents are shown above: one of those that hold them."""
    taken = 0.0
    for place in range(above):
        leaf = np.uint64(state.leaf[np.uint64(shown[place])])
        if not sure or is_exhausted(state, state.parent[leaf], shown, above):
            chance, node, _ = _odds(state, slot, shown, above, shown[place])
            if chance > 0.0 and is_exhausted(state, node, shown, above):
                first, end = state.first_document[np.uint64(node)], state.end_document[np.uint64(node)]
                counted = False
                for other in range(place):  # count a strategy once: by its first document
                    counted = counted or first <= shown[other] < end
                taken += 0.0 if counted else chance
    return taken


@separate
def propensity(state: Any, slot: Scalar, shown: Array, document: Scalar, duplicates: Scalar) -> Scalar:
    """Compute the probability of a document in a slot, given those that `shown` has above; NaN if unknown."""
    above = 0 if duplicates else slot  # documents that cannot be shown again
    anyway = chance_to_draw(state, 0, document, shown, above)
    found = 0.0
    if anyway > 0.0:
        chance, node, sure = _odds(state, slot, shown, slot, document)
        found = chance
        if chance > 0.0:
            found = chance * chance_to_draw(state, node, document, shown, above)
        if chance < 1.0 and (not sure or len(state.eligible) > 0):
            found += anyway * _chance_of_none_left(state, slot, shown, above, sure)
    return found
