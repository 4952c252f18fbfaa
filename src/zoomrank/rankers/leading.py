"""Start a new learner from a prior order of the caller (a search engine's, last month's best sellers).

The first visitors are shown its best documents, and the learner learns from their clicks as usual. So a new learner
starts with the order instead of at random, and has learned its value when it goes on alone. Clicks overrule the order
at once: each of its documents is valued by its visits, beside a few pseudo-visits at the rate its rank promises. The
order is used until a given number of visitors more have left than clicked, and for ten times as many visitors at most:
a wrong order costs no more than that.

The only memory is the learner's usual counts, and all counted visits are real.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np

from zoomrank.bandits.state.visited import entry_of
from zoomrank.errors import ParameterError
from zoomrank.numbers import Array
from zoomrank.rankers.slot_bandits import SlotBandits, unsupported
from zoomrank.spaces import DocumentId, DocumentIds, Eligible

BELIEVED = 10  # excess of visitors who left over those who clicked, at which an order is dropped
LONGEST = 50  # documents of an order that are used
_IN_ALL = 10  # most visitors led by an order, as a multiple of `believed`
_PROMISED = 0.3  # prior click rate of the first document; lower ranks have less, by the log of the rank
_VISITS = 4.0  # pseudo-visits at the prior rate


def order_positions(documents: DocumentIds, order: Iterable[DocumentId]) -> list[int]:
    """Return the positions of the first documents of an order; unknown documents are skipped."""
    known = (documents.position(one) for one in dict.fromkeys(order) if one in documents)
    return list(islice(known, LONGEST))


def order_leads(ranker: SlotBandits, believed: float) -> bool:
    """Return whether an order still leads a learner."""
    if not ranker.bandit.counts_visits:
        raise ParameterError(unsupported(ranker.bandit, "learn from what an order shows", "counts_visits"))
    visits, clicks = int(ranker.state.plays[0, 0]), int(ranker.state.gains[0])
    return visits - 2 * clicks < believed and visits < _IN_ALL * believed


def best_of_order(ranker: SlotBandits, order: list[int], eligible: Eligible | None, exactly: bool = False) -> Array:
    """Return the documents of an order for the top slots, ranked by the counts or exactly as given; the slots below
    choose given those.
    """
    allowed = [place for place in order if eligible is None or eligible.chosen[place]]
    return np.array(allowed if exactly else _best(ranker, allowed), np.int64)


def _best(ranker: SlotBandits, order: list[int]) -> list[int]:
    """Rank the documents of an order by their counts and prior."""
    entries = [int(entry_of(ranker.state, place)) for place in order]
    promised = _PROMISED / np.log2(2 + np.arange(len(order)))
    plays, clicks = ranker.state.total[entries], ranker.state.gains[entries]
    worth: Array = (clicks + _VISITS * promised) / (plays + _VISITS)
    return [order[at] for at in np.argsort(-worth, kind="stable")]
