"""An order that the caller has (a search engine's, last month's best sellers) leads a learner that is new.

The first visitors are shown its best documents, and what they click is learned as ever. So a learner that knows nothing
begins with the order instead of at random, and knows what it was good for when it goes on alone. Clicks overrule the
order at once: each of its documents is worth what was seen of it, beside a few visits that went as its rank promises.
The order leads until some more visitors have left than clicked, and for ten times as many at most: a wrong order costs
no more than that.

Nothing is remembered but what the learner has counted anyway, and nothing else is believed: the visits are real.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np

from zoomrank.bandits.state.visited import entry_of
from zoomrank.errors import ParameterError
from zoomrank.numbers import Array
from zoomrank.rankers.slot_bandits import SlotBandits, cannot
from zoomrank.spaces import DocumentId, DocumentIds, Eligible

BELIEVED = 10  # more visitors who left than clicked, before an order leads no more
LONGEST = 50  # documents of an order that count
_IN_ALL = 10  # times as many visitors as it is believed for
_PROMISED = 0.3  # of visitors click on the first document, as it were; on others less, by the logarithm of their rank
_VISITS = 4.0  # that went as promised


def places_of(documents: DocumentIds, order: Iterable[DocumentId]) -> list[int]:
    """Where the first documents of an order stand; those that the collection lacks are skipped."""
    known = (documents.position(one) for one in dict.fromkeys(order) if one in documents)
    return list(islice(known, LONGEST))


def is_led(ranker: SlotBandits, believed: float) -> bool:
    """Whether an order that is believed so far still leads a learner."""
    if not ranker.bandit.counts_visits:
        raise ParameterError(cannot(ranker.bandit, "learn from what an order shows", "counts_visits"))
    visits, clicks = int(ranker.state.plays[0, 0]), int(ranker.state.gains[0])
    return visits - 2 * clicks < believed and visits < _IN_ALL * believed


def best_of_order(ranker: SlotBandits, order: list[int], eligible: Eligible | None, exactly: bool = False) -> Array:
    """The documents of an order that stand at the top, from the best, by what is known of them or exactly as they are;
    slots below them choose, knowing that.
    """
    allowed = [place for place in order if eligible is None or eligible.chosen[place]]
    return np.array(allowed if exactly else _best(ranker, allowed), np.int64)


def _best(ranker: SlotBandits, order: list[int]) -> list[int]:
    """The documents of an order by what is known of them, and promised."""
    entries = [int(entry_of(ranker.state, place)) for place in order]
    promised = _PROMISED / np.log2(2 + np.arange(len(order)))
    plays, clicks = ranker.state.total[entries], ranker.state.gains[entries]
    worth: Array = (clicks + _VISITS * promised) / (plays + _VISITS)
    return [order[at] for at in np.argsort(-worth, kind="stable")]
