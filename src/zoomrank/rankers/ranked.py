"""`Ranked`: one bandit per slot, composed as in Section 4.1 of the paper, with bookkeeping of its rankings.

Every ranking has a number; feedback comes in any order and is accepted once; a ranking from before a change of the
collection can still be learned from.
"""

from __future__ import annotations

import copy
import os
import uuid
from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeVar

import numpy as np

from zoomrank.bandits import Bandit
from zoomrank.documents.click_log import Impression
from zoomrank.errors import FeedbackError, ParameterError, SlotsError
from zoomrank.rankers.explanation import SlotExplanation
from zoomrank.rankers.feedback import FeedbackReceived, VisitReader, clicked_slots, in_batches
from zoomrank.rankers.forecast import VISITS, Forecast, simulate_trials
from zoomrank.rankers.ranking import Ranking, RankingArrays, Rankings
from zoomrank.rankers.slot_bandits import (
    BELIEVED,
    SlotBandits,
    best_of_order,
    order_leads,
    order_positions,
    unsupported,
)
from zoomrank.spaces import DocumentId, DocumentTree, Eligible, Remap
from zoomrank.spaces.document_tree import growth_remap
from zoomrank.types import Array, Seed, whole_number

Kind = TypeVar("Kind", bound="Ranked")


class Ranked(SlotBandits):
    """A ranker with a fresh copy of one bandit in each of its slots.

    Parameters
    ----------
    bandit : Bandit
        The learner of each slot.
    slots : int
        Number of documents in a ranking, from 1 to 60.
    seed : int, numpy.random.Generator or None
        Seed; the same seed gives the same rankings.
    duplicates : bool
        Allow a document twice in a ranking, as in the paper.

    Examples
    --------
    >>> from zoomrank.bandits import Zooming
    >>> ranker = Ranked(Zooming(DocumentTree.exponential(depth=10)), slots=5, seed=7)
    >>> ranking = ranker.rank()
    >>> len(set(ranking.documents))
    5
    >>> ranker.learn(ranking, click=2)

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4.1; first in
    Radlinski, Kleinberg and Joachims, *Learning diverse rankings with multi-armed bandits*, ICML 2008.
    """

    bandit_kind: ClassVar[type[Bandit]]  # bandit of a named ranker's slots

    def __init__(self, bandit: Bandit, slots: int, *, seed: Seed = None, duplicates: bool = False) -> None:
        super().__init__(bandit, slots, seed=seed, duplicates=duplicates)
        self.name = uuid.uuid4().hex  # identifies this ranker's rankings
        self.made = 0  # rankings
        self.recomputed = False  # whether an earlier version saved it, so that its bounds were recomputed
        self.answered = FeedbackReceived()
        self.moves: list[Array] = []  # current positions of the documents of each earlier version of the collection

    def rank(
        self,
        eligible: Eligible | Iterable[DocumentId] | None = None,
        order: Iterable[DocumentId] | None = None,
        believed: float = BELIEVED,
        explore: float = 0.0,
    ) -> Ranking:
        """Choose a ranking for one visitor.

        Parameters
        ----------
        eligible : Eligible, iterable of DocumentId or None
            Documents that may be shown to this visitor; None: all. Rankers that cannot be restricted raise an error.
        order : iterable of DocumentId or None
            Prior order of documents, best first: shown to the first visitors, as far as clicks do not overrule it.
            Unknown documents are skipped. Bandits that do not count visits raise an error.
        believed : float
            Excess of visitors who left over those who clicked at which the order is dropped; it leads ten times as many
            visitors at most.
        explore : float
            Share of rankings in which one random slot shows a document drawn from all, for off-policy evaluation of
            other rankings. The slots below choose given that document.

        Returns
        -------
        Ranking
            The ranking; show its `documents`, and pass it to `learn` with the click.

        Examples
        --------
        >>> import zoomrank as zr
        >>> ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> sorted(ranker.rank(eligible=[3, 9]).documents)
        [3, 9]
        >>> ranker.rank(order=[7, 2, 5]).documents
        [7, 2]
        >>> ranker.rank(eligible=[3, 9], explore=0.1).propensities
        [0.5, 1.0]
        """
        lead = None
        if order is not None and order_leads(self, believed):
            places, allowed = order_positions(self.tree.documents, order), self._allowed(eligible, self.slots)
            lead = best_of_order(self, places, allowed)
        return self._made(self.rank_arrays(1, eligible, explore=explore, lead=lead))[0]

    def rank_many(
        self, count: int, eligible: Eligible | Iterable[DocumentId] | None = None, explore: float = 0.0
    ) -> Rankings:
        """Choose rankings for many visitors at once, without learning in between.

        Parameters
        ----------
        count : int
            Number of rankings.
        eligible : Eligible, iterable of DocumentId or None
            Documents that may be shown to these visitors; None: all.
        explore : float
            Share of rankings in which one slot is replaced, as for `rank`.

        Returns
        -------
        Rankings
            Sequence of `Ranking`s; pass it to `learn_many`, or its items to `learn`.
        """
        count = whole_number(count, "count")
        if count < 0:
            raise SlotsError(f"count must be 0 or more, not {count}.")
        return self._made(self.rank_arrays(count, eligible, explore=explore))

    def _made(self, arrays: RankingArrays) -> Rankings:
        first = self.made
        self.made += len(arrays.shown)
        return Rankings(self.tree.documents, first, self.name, arrays, len(self.moves))

    def learn(self, ranking: Ranking, click: int | None) -> None:
        """Learn from the feedback to a ranking, in any order and however late.

        Parameters
        ----------
        ranking : Ranking
            A ranking of this ranker without feedback.
        click : int or None
            Slot of the first click, from 0 at the top; None if there was none.
        """
        self._check_made(ranking.ranker, ranking.number, 1)
        self.answered.reject_repeated(ranking.number)
        slots = clicked_slots([click], self.slots)
        self.learn_arrays(self._up_to_date(ranking.arrays, ranking.edition), slots)
        self.answered.add(ranking.number)

    def learn_many(self, rankings: Rankings, clicks: Sequence[int | None] | Array) -> None:
        """Learn from the feedback to many rankings, in their order; if one is rejected, from none.

        Parameters
        ----------
        rankings : Rankings
            Result of `rank_many`.
        clicks : sequence of int or None, or array of int
            Clicked slot of each. In an array of integers the number of slots means no click, as in `users.clicks`.
        """
        if len(clicks) != len(rankings):
            raise FeedbackError(f"{len(clicks)} clicks were given for {len(rankings)} rankings: pass one each.")
        slots = clicked_slots(clicks, self.slots)
        first, count = rankings.first_number, len(rankings)
        self._check_made(rankings.ranker, first, count)
        self.answered.reject_repeated(first, count)
        self.learn_arrays(self._up_to_date(rankings.arrays, rankings.edition), slots)
        self.answered.add(first, count)

    def learn_log(self, impressions: Iterable[Impression], unknown: str = "refuse") -> int:
        """Learn from the log of another ranker, impression by impression: a warm start.

        Each examined document counts in its slot, as if this ranker had shown it.

        Parameters
        ----------
        impressions : iterable of tuple
            For each impression its query (ignored), the documents shown, from the top, and the first one clicked, or
            None, as read by `zoomrank.documents.read_impressions`. Longer rankings are cut to the number of slots.
        unknown : {"refuse", "skip"}
            Raise an error on unknown documents, or skip them.

        Returns
        -------
        int
            Number of impressions.

        Examples
        --------
        >>> import zoomrank as zr
        >>> ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> ranker.learn_log([("", [3, 9], 9), ("", [9, 3], 9), ("", [9, 3], None)] * 10)
        30
        >>> ranker.rank().documents[0] > 7  # a document near 9, in its half of the tree
        True
        """
        if not self.bandit.counts_visits:
            raise ParameterError(unsupported(self.bandit, "learn from what another ranker showed", "counts_visits"))
        learned = 0
        visits = VisitReader(self.tree.documents, self.slots, unknown).visits(impressions)
        for rankings, clicks in in_batches(visits, self.slots):
            self.learn_arrays(rankings, clicks)
            learned += len(clicks)
        return learned

    def explain(
        self, ranking: Ranking, eligible: Eligible | Iterable[DocumentId] | None = None
    ) -> list[SlotExplanation]:
        """Explain each slot of a ranking with the current estimates of the slots' learners.

        Parameters
        ----------
        ranking : Ranking
            A ranking of this ranker, with or without feedback.
        eligible : Eligible, iterable of DocumentId or None
            Documents that it was chosen from; None: all.

        Returns
        -------
        list of SlotExplanation
            One for each slot.
        """
        self._check_made(ranking.ranker, ranking.number, 1)
        return self.explain_arrays(self._up_to_date(ranking.arrays, ranking.edition), eligible)

    def forecast(self, visits: int = VISITS) -> Forecast:
        """Forecast the trials of the next visits, slot by slot, and their cost. Changes nothing.

        A copy of the ranker runs for some visits, with simulated visitors who click as this ranker's records say.

        Parameters
        ----------
        visits : int
            Number of visits, at least 1.

        Returns
        -------
        Forecast
            Forecast slot by slot; deterministic for a given ranker. Rankers that keep no records raise an error.
        """
        visits = whole_number(visits, "visits")
        if visits < 1:
            raise ParameterError(f"visits must be 1 or more, not {visits}.")
        if not self.bandit.keeps_records:
            raise ParameterError(
                unsupported(self.bandit, "forecast trials, since it keeps no records", "keeps_records")
            )
        return simulate_trials(self, visits)

    def remove(self, documents: Iterable[DocumentId]) -> None:
        """Stop showing these documents until they are restored.

        Parameters
        ----------
        documents : iterable of DocumentId
            Documents to remove; enough to fill all slots must remain.
        """
        self._restrict((self.present or Eligible.everything(self.tree.documents)).without(documents))

    def restore(self, documents: Iterable[DocumentId]) -> None:
        """Show removed documents again; their counts were kept.

        Parameters
        ----------
        documents : iterable of DocumentId
            Documents to restore; others are left as they are.
        """
        if self.present is not None:
            chosen = self.present.chosen.copy()
            chosen[self.tree.documents.positions(documents)] = True
            self._restrict(Eligible(self.tree.documents, chosen))

    def grow(self, tree: DocumentTree) -> None:
        """Switch to a grown tree; everything learned is kept, and new documents join their subtrees.

        Feedback to earlier rankings still counts.

        Parameters
        ----------
        tree : DocumentTree
            Result of `grown()` of this ranker's tree.
        """
        check_grown(tree, self.tree)
        self.move(tree, growth_remap(tree))

    def move(self, tree: DocumentTree, movement: Remap) -> None:
        """Switch to another tree of the collection, in which documents were added, removed and moved.

        Counts follow their subtrees. The counts of a removed document stay with its category, as do most visits of a
        document that moves to another category. Feedback to earlier rankings still counts, except for removed
        documents.

        Parameters
        ----------
        tree : DocumentTree
            The new tree.
        movement : Remap
            Mapping from this ranker's tree to the new one (see `zoomrank.documents.CollectionVersion.remap_to`).

        Examples
        --------
        >>> import zoomrank as zr
        >>> from zoomrank.documents import Collection, CollectionVersion
        >>> first = CollectionVersion.first(Collection.from_taxonomy({"owl": "Birds", "hen": "Birds", "pike": "Fish"}))
        >>> ranker = zr.ZoomRank(first.collection.tree, slots=2, seed=0)
        >>> later = first.changed(first.placed([{"remove": "owl"}, {"category": "Birds", "to": "Poultry"}]))
        >>> ranker.move(later.collection.tree, first.remap_to(later))
        >>> sorted(ranker.rank().documents)
        ['hen', 'pike']
        """
        if not self.bandit.growable:
            raise ParameterError(f"{unsupported(self.bandit, 'move to another tree', 'growable')} Make a new ranker.")
        if (len(movement.node), len(movement.document)) != (self.tree.nodes, len(self.tree)):
            raise ParameterError("This remap does not start from the ranker's tree: compute it from that tree.")
        place = movement.document.astype(np.int64)
        present = None
        if self.present is not None:
            chosen = np.ones(len(tree), bool)
            chosen[place[place >= 0]] = self.present.chosen[place >= 0]
            present = None if chosen.all() else Eligible(tree.documents, chosen)
        if self.slots > (len(tree) if present is None else len(present)):
            raise SlotsError(f"{self.slots} slots cannot be filled from the documents that are left: keep more.")
        self.bandit = self.bandit.rebuilt(tree, self.bandit.settings)
        self.state = self.bandit.adopted(self.state, movement)
        self.moves = [np.where(move < 0, -1, place[move]) for move in self.moves] + [place]
        self.present, self.tree = present, tree

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the ranker to a file for `zoomrank.load`; the format is described in `ranker_file.py`.

        Parameters
        ----------
        path : str or path
            Path of the file; it is written atomically.
        """
        from zoomrank.rankers.ranker_file import save  # imports all rankers, so a top-level import would be circular

        save(self, path)

    def copied(self: Kind) -> Kind:
        """Return an independent copy."""
        twin = super().copied()
        twin.answered, twin.moves = copy.deepcopy(self.answered), [*self.moves]
        return twin

    def _up_to_date(self, rankings: RankingArrays, edition: int) -> RankingArrays:
        """Return rankings of an earlier version with the current positions of their documents."""
        if edition == len(self.moves):
            return rankings
        move = self.moves[edition]
        shown, pick = (np.where(old < 0, -1, move[old]) for old in (rankings.shown, rankings.pick))
        return rankings._replace(shown=shown, pick=pick)

    def _check_made(self, ranker: str, first: int, count: int) -> None:
        if ranker != self.name or first + count > self.made:
            raise FeedbackError("This ranking was made by another ranker: pass it to the ranker that made it.")


def check_grown(tree: DocumentTree, before: DocumentTree) -> None:
    """Raise an error unless the tree has grown from the one before."""
    if tree.grown_from is None or tree.grown_from.fingerprint != before.fingerprint:
        raise ParameterError("This tree did not grow from the ranker's: pass what its own tree's grown() returns.")
