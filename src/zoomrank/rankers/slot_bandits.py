"""`SlotBandits`: a bandit in each slot, and the documents it may show. Rankings are arrays, without bookkeeping.

A visitor is never shown a document twice. A slot draws its document among those of its subtree that are not shown
above; if none is left, it shows some other document instead, and is charged as if its own pick had been skipped. With
`duplicates=True` slots choose as in the paper, where a document may be shown again (and is skipped again).

A ranking can be restricted to eligible documents, and documents can be removed for good. Counts are kept: nothing
changes for the others, and a removed document that comes back has its old counts.

A new learner can start from a *prior order* of the caller (a search engine's, last month's best sellers) instead of at
random. The first visitors are shown its best documents, and the learner learns from their clicks as usual. Clicks
overrule the order at once: each of its documents is valued by its visits, beside a few pseudo-visits at the rate its
rank promises. The order is used until a given number of visitors more have left than clicked, and for ten times as many
visitors at most: a wrong order costs no more than that. The only memory is the learner's usual counts, and all counted
visits are real.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable
from typing import Any, TypeVar

import numpy as np

from zoomrank.bandits import Bandit
from zoomrank.bandits.kernel_interface import is_roomy
from zoomrank.bandits.path_zooming.state import entry_of
from zoomrank.bandits.tree_view import TreeView
from zoomrank.errors import ParameterError, SlotsError, UnknownDocumentError
from zoomrank.rankers.explanation import SlotExplanation, explain_slots
from zoomrank.rankers.ranking import RankingArrays, RankingParameters, empty_rankings, learn_rows, rank_rows, weigh_rows
from zoomrank.rng import KernelRng
from zoomrank.spaces import DocumentId, DocumentIds, DocumentTree, Eligible
from zoomrank.types import Array, Seed, whole_number

SLOTS = 5  # default number of slots
MOST_SLOTS = 60
Kind = TypeVar("Kind", bound="SlotBandits")


class SlotBandits:
    """A fresh copy of one bandit in each slot; `Ranked` adds bookkeeping."""

    def __init__(self, bandit: Bandit, slots: int, *, seed: Seed = None, duplicates: bool = False) -> None:
        self.slots = whole_number(slots, "slots")
        if not 1 <= self.slots <= min(len(bandit.tree), MOST_SLOTS):
            raise SlotsError(
                f"{self.slots} slots cannot be filled from {len(bandit.tree)} documents ({MOST_SLOTS} slots at most)."
            )
        self.bandit = bandit
        self.tree: DocumentTree = bandit.tree
        self.duplicates = bool(duplicates)
        self._kernel_rng = KernelRng(np.random.default_rng(seed))
        self.state = bandit.fresh_state(self.slots)
        self.present: Eligible | None = None  # documents that were not removed; None: all

    @property
    def rng(self) -> np.random.Generator:
        """Random generator of all draws."""
        return self._kernel_rng.generator

    def rank_arrays(
        self,
        count: int,
        eligible: Eligible | Iterable[DocumentId] | None = None,
        slots: int | None = None,
        explore: float = 0.0,
        lead: Array | None = None,
    ) -> RankingArrays:
        """Rank, possibly with fewer slots, without bookkeeping: for callers that track rankings and feedback
        themselves.

        `lead` are the positions of documents at the top, best first.
        """
        wanted = self.slots if slots is None else slots
        how = self._parameters(explore, lead)
        out = empty_rankings(count, wanted)
        allowed = self._allowed(eligible, wanted)
        row = 0
        while row < count:
            row = rank_rows(self.restricted(allowed), out, row, how, self._kernel_rng.handle)
            if row < count:
                self.make_room()
        return out

    def learn_arrays(self, rankings: RankingArrays, clicks: Array) -> None:
        """Learn from rankings and the clicked slots (the number of slots for none), without bookkeeping."""
        row = learn_rows(self.state, rankings, clicks, 0)
        while row < len(clicks):
            self.make_room()
            row = learn_rows(self.state, rankings, clicks, row)

    def propensities(
        self, shown: Array, eligible: Eligible | Iterable[DocumentId] | None = None, explore: float = 0.0
    ) -> Array:
        """Compute the probability that this ranker, in its current state, shows the documents of given rankings.

        Parameters
        ----------
        shown : ndarray
            A row for each ranking: the positions of its documents, from the top; at most as many slots as this ranker
            has.
        eligible : Eligible, iterable of DocumentId or None
            Documents that may be shown; None: all.
        explore : float
            Share of rankings in which one slot is replaced, as for `Ranked.rank`.

        Returns
        -------
        ndarray
            For each document its probability in its slot, given those above; 0 if it cannot be there, and below a
            document that may not be shown; NaN if unknown. The product along a row is the probability of the ranking.

        Examples
        --------
        >>> import numpy as np, zoomrank as zr
        >>> ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=2), slots=2, seed=0)
        >>> ranker.propensities(np.array([[0, 1], [2, 2]])).tolist()  # uniform at each branch
        [[0.25, 0.5], [0.25, 0.0]]
        """
        rankings = np.ascontiguousarray(shown, np.int64)
        weights, allowed = np.empty(rankings.shape), self._allowed(eligible, rankings.shape[1])
        weigh_rows(self.restricted(allowed), rankings, weights, self._parameters(explore, None))
        return weights

    def _parameters(self, explore: float, lead: Array | None) -> RankingParameters:
        if not 0.0 <= explore <= 1.0:
            raise ParameterError(f"explore must be a share, from 0 to 1, not {explore}.")
        how = RankingParameters(self.duplicates, float(explore), self.bandit.counts_visits, self.bandit.weighs)
        return how if lead is None else how._replace(lead=lead)

    def explain_arrays(
        self, ranking: RankingArrays, eligible: Eligible | Iterable[DocumentId] | None = None
    ) -> list[SlotExplanation]:
        """Explain a ranking whose documents are at their current positions."""
        state = self.restricted(self._allowed(eligible, ranking.shown.shape[1]))
        return explain_slots(self.bandit, state, ranking, self.duplicates)

    def restricted(self, allowed: Eligible | None) -> Any:
        """Return the state for kernels restricted to these documents; None: all."""
        return self.state if allowed is None else self.bandit.restricted(self.state, allowed.counts)

    def copied(self: Kind) -> Kind:
        """Return an independent copy with its own random numbers."""
        twin = copy.copy(self)
        twin._kernel_rng = KernelRng(copy.deepcopy(self.rng))
        own = self._arrays_without(TreeView._fields)
        twin.state = self.state._replace(**{name: array.copy() for name, array in own.items()})
        return twin

    def make_room(self) -> None:
        """Enlarge the state, when a kernel stops for lack of room."""
        self.state = self.bandit.larger(self.state)

    def prepare_room(self) -> None:
        """Make room for the next visit and clear search caches: the state then depends only on what was learned."""
        while not is_roomy(self.state):
            self.make_room()
        self.bandit.clear_caches(self.state)

    @property
    def learned(self) -> dict[str, Array]:
        """Learned arrays of the state, without the tree and without scratch space."""
        return self._arrays_without(self.bandit.not_saved)

    def _arrays_without(self, names: Collection[str]) -> dict[str, Array]:
        arrays = self.state._asdict().items()
        return {name: array for name, array in arrays if isinstance(array, np.ndarray) and name not in names}

    def _restrict(self, present: Eligible) -> None:
        check_eligible(self.bandit, present, self.slots)
        self.present = None if len(present) == len(self.tree) else present

    def _allowed(self, eligible: Eligible | Iterable[DocumentId] | None, slots: int) -> Eligible | None:
        """Return the eligible documents that are present; None if that is all."""
        if eligible is None:
            return self.present
        if not isinstance(eligible, Eligible):
            eligible = Eligible.only(self.tree.documents, eligible)
        elif eligible.documents is not self.tree.documents:
            raise UnknownDocumentError("The eligible documents belong to another collection: make them from this tree.")
        allowed = eligible if self.present is None else eligible & self.present
        check_eligible(self.bandit, allowed, slots)
        return allowed


def check_eligible(bandit: Bandit, allowed: Eligible, slots: int) -> None:
    """Raise an error if a bandit cannot choose among some documents only, or if they are fewer than the slots."""
    if not bandit.restrictable:
        raise ParameterError(unsupported(bandit, "choose among some documents only", "restrictable"))
    if len(allowed) < slots:
        raise SlotsError(f"{slots} slots cannot be filled: only {len(allowed)} documents may be shown.")


def unsupported(bandit: Bandit, do: str, able: str) -> str:
    """Return the error text for an unsupported operation, with the rankers that support it."""
    from zoomrank.rankers.registry import rankers_that_are

    return f"{type(bandit).__name__} cannot {do}; {rankers_that_are(able)} can."


# Prior orders.

BELIEVED = 10  # excess of visitors who left over those who clicked, at which an order is dropped
LONGEST = 50  # documents of an order that are used
_IN_ALL = 10  # most visitors led by an order, as a multiple of `believed`
_PROMISED = 0.3  # prior click rate of the first document; lower ranks have less, by the log of the rank
_VISITS = 4.0  # pseudo-visits at the prior rate


def order_positions(documents: DocumentIds, order: Iterable[DocumentId]) -> list[int]:
    """Return the positions of the first documents of an order; unknown documents are skipped."""
    places = documents.places(dict.fromkeys(order))
    return [int(place) for place in places[places >= 0][:LONGEST]]


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
    allowed = np.array([place for place in order if eligible is None or eligible.chosen[place]], np.int64)
    if exactly:
        return allowed
    entries = [int(entry_of(ranker.state, place)) for place in allowed]
    promised = _PROMISED / np.log2(2 + np.arange(len(allowed)))
    plays, clicks = ranker.state.total[entries], ranker.state.gains[entries]
    worth = (clicks + _VISITS * promised) / (plays + _VISITS)
    ranked: Array = allowed[np.argsort(-worth, kind="stable")]
    return ranked
