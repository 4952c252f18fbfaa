"""Rankings: the kernels that choose, weigh and learn from them, and `Ranking`, what a ranker returns.

Slots choose from the top down. A click on slot i is a reward of 1 for slot i and 0 for the slots above; the slots below
do not learn. Without a click every slot gets 0. A slot whose pick is below 0 is left out.

To weigh a ranking is to compute the propensity of each of its documents: its probability in its slot, given those
above. Exploration replaces one random slot of some rankings: its document is drawn from the whole tree, and the slots
below choose given that document.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.kernel_interface import Feedback, propensity, roomy, select, subtree, update_slot
from zoomrank.bandits.tree_view import chance_to_draw, draw_document
from zoomrank.compiled import Scalar, compiled_for, inlined, separate
from zoomrank.rng import rng_from_handle
from zoomrank.spaces import DocumentId, DocumentIds
from zoomrank.types import Array

SECONDS_A_RANKING = 0.002  # with its feedback, in plain Python, about


class RankingArrays(NamedTuple):
    """Rankings, a row each, with a column per slot."""

    shown: Array  # documents; -1 for one that was removed
    # the document that the strategy picked: the one shown unless that is shown above already; -1 if the slot must
    # not learn
    pick: Array
    strategy: Array
    chance: Array  # probability of the strategy, if its learner needs it
    propensity: Array  # of the document, given those above; NaN if unknown; no columns if not requested


class RankingParameters(NamedTuple):
    """Options of ranking."""

    duplicates: bool  # a document may be shown twice
    explore: float = 0.0  # share of rankings with a replaced slot
    counts: bool = False  # slots learn from documents that they did not choose
    weighs: bool = True  # compute propensities, which may take longer than ranking
    lead: Array = np.zeros(0, np.int64)  # documents of a prior order, best first


def empty_rankings(rows: int, slots: int, weighed: bool = True) -> RankingArrays:
    """Allocate this many rankings."""
    shown, pick, strategy = (np.zeros((rows, slots), np.int64) for _ in range(3))
    return RankingArrays(shown, pick, strategy, np.zeros((rows, slots)), np.zeros((rows, slots if weighed else 0)))


def given_rankings(shown: Array) -> RankingArrays:
    """Build rankings that no slot chose, such as those of another ranker, from their documents."""
    return RankingArrays(shown, shown, np.zeros_like(shown), np.ones(shown.shape), np.full(shown.shape, np.nan))


@inlined
def _choose(
    state: Any, out: RankingArrays, row: Scalar, slot: Scalar, duplicates: Scalar, rng: np.random.Generator
) -> None:
    """Let a slot choose its document."""
    shown = out.shown[row]
    strategy, chance = select(state, slot, shown, slot, rng)
    node = subtree(state, slot, strategy)
    pick = np.int64(state.first_document[node])
    document = np.int64(-1)
    own = True
    while document < 0:  # a second time only if all its documents are shown above: another document, without reward
        document = draw_document(state, node, shown, 0 if duplicates else slot, rng)
        if own and document >= 0:
            pick = document
        own = False
        node = 0
    shown[slot] = document
    out.pick[row, slot] = pick
    out.strategy[row, slot] = strategy
    out.chance[row, slot] = chance


@inlined
def rank_row(state: Any, out: RankingArrays, row: Scalar, duplicates: Scalar, rng: np.random.Generator) -> None:
    """Rank without propensities: choose slot by slot, from the top down."""
    for slot in range(out.shown.shape[1]):
        _choose(state, out, row, slot, duplicates, rng)


@inlined
def _give(out: RankingArrays, row: Scalar, slot: Scalar, document: Scalar, counts: Scalar) -> None:
    """Fill a slot with a document that it did not choose; it learns from that if its learner counts any visit."""
    out.shown[row, slot] = document
    out.pick[row, slot] = document if counts else -1
    out.strategy[row, slot] = 0
    out.chance[row, slot] = 1.0


@inlined
def _next_of(lead: Array, shown: Array, slot: Scalar) -> Scalar:
    """Return the best document of an order that is not shown above; -1 if there is none."""
    for document in lead:
        above = False
        for place in range(slot):
            above = above or shown[place] == document
        if not above:
            return np.int64(document)
    return np.int64(-1)


@inlined
def _own_chance(state: Any, shown: Array, slot: Scalar, how: RankingParameters) -> Scalar:
    """Compute the probability of a document in a slot that is not replaced."""
    leading = _next_of(how.lead, shown, slot)
    if leading >= 0:
        return 1.0 if shown[slot] == leading else 0.0
    return propensity(state, slot, shown, shown[slot], how.duplicates)


@separate
def _weigh(state: Any, shown: Array, weights: Array, how: RankingParameters) -> None:
    """Compute the propensities of a ranking in slot order; 0 from the first document on that may not be shown.

    Sums over the cases of no replaced slot, a replaced slot still to come, and each replaced slot so far.
    """
    slots, chosen, replaced, going = len(shown), 1.0, 0.0, True
    for slot in range(slots):
        weights[slot] = 0.0
        going = going and 0 <= shown[slot] < len(state.leaf)
        if going:
            anyway = chance_to_draw(state, 0, shown[slot], shown, 0 if how.duplicates else slot)
            going = anyway > 0.0
        if going:
            own = _own_chance(state, shown, slot, how)
            weights[slot] = own
            if how.explore > 0.0:
                replaced = replaced * own + chosen * anyway
                chosen *= own
                now = chosen - how.explore / slots * ((slot + 1) * chosen - replaced)
                weights[slot], going = now, now != 0.0
                if going:  # the next slot depends on this one
                    chosen, replaced = chosen / now, replaced / now


@inlined
def _fill(state: Any, out: RankingArrays, row: Scalar, how: RankingParameters, rng: np.random.Generator) -> None:
    """Fill a ranking from the top down: slots choose, unless they are replaced or a prior order leads."""
    shown, slots, replaced = out.shown[row], out.shown.shape[1], np.int64(-1)
    if how.explore > 0.0 and rng.random() < how.explore:
        replaced = np.int64(rng.random() * slots)
    for slot in range(slots):
        document = _next_of(how.lead, shown, slot)
        if slot == replaced:
            document = draw_document(state, 0, shown, 0 if how.duplicates else slot, rng)
        if document >= 0:
            _give(out, row, slot, document, how.counts)
        else:
            _choose(state, out, row, slot, how.duplicates, rng)


@compiled_for(lambda _, out, start, *__: SECONDS_A_RANKING * (len(out.shown) - start))
def rank_rows(state: Any, out: RankingArrays, start: Scalar, how: RankingParameters, handle: Any) -> Scalar:
    """Rank and weigh row after row; stop where there is no room, and return the row."""
    rng = rng_from_handle(handle)
    for row in range(start, len(out.shown)):
        if not roomy(state):
            return row
        _fill(state, out, row, how, rng)
        if how.weighs:
            _weigh(state, out.shown[row], out.propensity[row], how)
        else:
            out.propensity[row] = np.nan
    return len(out.shown)


@compiled_for(lambda _, shown, *__: SECONDS_A_RANKING * len(shown))
def weigh_rows(state: Any, shown: Array, weights: Array, how: RankingParameters) -> None:
    """Compute the propensities of rankings as if slots had chosen them in this order."""
    for row in range(len(shown)):
        _weigh(state, shown[row], weights[row], how)


@inlined
def learn_row(state: Any, seen: RankingArrays, row: Scalar, click: Scalar) -> None:
    """Learn: every slot down to the click, or all of them."""
    shown = seen.shown[row]
    for slot in range(min(click + 1, seen.shown.shape[1])):
        pick = seen.pick[row, slot]
        if pick < 0:  # the slot is unknown, or its document was removed
            continue
        reward = 1 if slot == click and pick == shown[slot] else 0
        update_slot(state, slot, Feedback(seen.strategy[row, slot], pick, seen.chance[row, slot], reward), shown, slot)


@compiled_for(lambda _, __, clicks, start: SECONDS_A_RANKING * (len(clicks) - start))
def learn_rows(state: Any, seen: RankingArrays, clicks: Array, start: Scalar) -> Scalar:
    """Learn row after row; stop where there is no room, and return the row."""
    for row in range(start, len(clicks)):
        if not roomy(state):
            return row
        learn_row(state, seen, row, clicks[row])
    return len(clicks)


# What a ranker returns.


@dataclass(frozen=True, slots=True)
class Ranking:
    """A ranking to show, with what its ranker needs to learn from the feedback.

    Attributes
    ----------
    documents : list of DocumentId
        Documents to show, best first.
    number : int
        Number of the ranking among those of its ranker.
    ranker : str
        Name of the ranker that made it; no other ranker learns from it.
    arrays : RankingArrays
        The ranking as an array for kernels: one row.
    edition : int
        Version of the ranker's collection, which may have changed since.
    """

    documents: list[DocumentId]
    number: int
    ranker: str
    arrays: RankingArrays
    edition: int = 0

    @property
    def propensities(self) -> list[float]:
        """Probability of each document in its slot, given those above.

        Returns
        -------
        list of float
            Slot by slot; their product is the probability of the ranking. NaN for `RankThompson`, whose integrals take
            longer than its rankings: call its `propensities`.

        Examples
        --------
        >>> import zoomrank as zr
        >>> zr.ZoomRank(zr.DocumentTree.exponential(depth=2), slots=3, seed=0).rank().propensities
        [0.25, 0.25, 0.5]
        """
        weights: list[float] = self.arrays.propensity[0].tolist()
        return weights


@dataclass(frozen=True)
class Rankings:
    """Many rankings, made without learning in between; a sequence of `Ranking`s.

    Attributes
    ----------
    ids : DocumentIds
        Documents of the ranker's tree.
    first_number : int
        Number of the first ranking; the others follow.
    ranker : str
        Name of the ranker that made them.
    arrays : RankingArrays
        The rankings as arrays for kernels: a row each.
    edition : int
        Version of the ranker's collection, which may have changed since.
    """

    ids: DocumentIds
    first_number: int
    ranker: str
    arrays: RankingArrays
    edition: int = 0

    @cached_property
    def documents(self) -> list[list[DocumentId]]:
        """Documents of each ranking; their positions in the tree are `arrays.shown`.

        Returns
        -------
        list of list of DocumentId
            Documents, best first.
        """
        return [self.ids.at(shown) for shown in self.arrays.shown.tolist()]

    def __len__(self) -> int:
        return len(self.arrays.shown)

    def __getitem__(self, row: int) -> Ranking:
        at = range(len(self))[row]
        part = RankingArrays(*(array[at : at + 1] for array in self.arrays))
        return Ranking(self.ids.at(part.shown[0]), self.first_number + at, self.ranker, part, self.edition)
