"""`Ranked`: one bandit per slot, as Section 4.1 of the paper composes them, with an account of its rankings.

Every ranking has a number, feedback comes in any order and is taken once, and a ranking that was made before the
collection grew is still understood.
"""

from __future__ import annotations

import copy
import os
import uuid
from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeVar

import numpy as np

from zoomrank.bandits import Bandit
from zoomrank.documents.logged_impressions import Impression
from zoomrank.errors import FeedbackError, ParameterError, SlotsError
from zoomrank.numbers import Array, Seed, whole_number
from zoomrank.rankers.explanation import SlotExplanation
from zoomrank.rankers.feedback import Answered, clicked_slots
from zoomrank.rankers.forecast import VISITS, Forecast, dry_run
from zoomrank.rankers.leading import BELIEVED, best_of_order, is_led, places_of
from zoomrank.rankers.logged_visits import VisitReader, in_batches
from zoomrank.rankers.ranking import Ranking, Rankings
from zoomrank.rankers.ranking_arrays import RankingArrays
from zoomrank.rankers.slot_bandits import SlotBandits, cannot
from zoomrank.spaces import DocumentId, DocumentTree, Eligible, Movement
from zoomrank.spaces.movement import growth_of

Kind = TypeVar("Kind", bound="Ranked")


class Ranked(SlotBandits):
    """A ranker with a fresh copy of one bandit in each of its slots.

    Parameters
    ----------
    bandit : Bandit
        The learner of each slot.
    slots : int
        How many documents a ranking has, from 1 to 60.
    seed : int, numpy.random.Generator or None
        Where chance begins: the same seed, the same rankings.
    duplicates : bool
        Whether a document may be shown twice in a ranking, as in the paper.

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

    bandit_kind: ClassVar[type[Bandit]]  # what is in the slots of a ranker with a name

    def __init__(self, bandit: Bandit, slots: int, *, seed: Seed = None, duplicates: bool = False) -> None:
        super().__init__(bandit, slots, seed=seed, duplicates=duplicates)
        self.name = uuid.uuid4().hex  # rankings of other rankers are told apart by it
        self.made = 0  # rankings
        self.answered = Answered()
        self.moves: list[Array] = []  # where the documents of each earlier edition of the collection stand now

    def rank(
        self,
        eligible: Eligible | Iterable[DocumentId] | None = None,
        order: Iterable[DocumentId] | None = None,
        believed: float = BELIEVED,
        explore: float = 0.0,
    ) -> Ranking:
        """Choose a ranking to show to one visitor.

        Parameters
        ----------
        eligible : Eligible, iterable of DocumentId or None
            The documents that may be shown to this visitor; None: all. Rankers that cannot be restricted refuse it.
        order : iterable of DocumentId or None
            An order that you have, from the best: what the first visitors are shown, as far as clicks do not overrule
            it. Documents that are not here are skipped. Bandits that do not count visits refuse it.
        believed : float
            The order leads until so many more visitors have left than clicked, and ten times as many have come at most.
        explore : float
            In this share of rankings one slot, any, shows a document that is drawn from all, so that a log can tell
            what other rankings would have earned. Slots below it choose, knowing that.

        Returns
        -------
        Ranking
            Its `documents` are what to show; give it back to `learn` with the answer.

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
        if order is not None and is_led(self, believed):
            places, allowed = places_of(self.tree.documents, order), self._allowed(eligible, self.slots)
            lead = best_of_order(self, places, allowed)
        return self._made(self.rank_arrays(1, eligible, explore=explore, lead=lead))[0]

    def rank_many(
        self, count: int, eligible: Eligible | Iterable[DocumentId] | None = None, explore: float = 0.0
    ) -> Rankings:
        """Choose rankings for many visitors at once, without learning in between.

        Parameters
        ----------
        count : int
            How many.
        eligible : Eligible, iterable of DocumentId or None
            The documents that may be shown to these visitors; None: all.
        explore : float
            The share of rankings of which one slot is replaced, as for `rank`.

        Returns
        -------
        Rankings
            A sequence of `Ranking`s, to be given back to `learn_many` as one, or to `learn` one by one.

        Examples
        --------
        >>> import zoomrank as zr
        >>> rankings = zr.ZoomRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0).rank_many(10)
        >>> len(rankings), len(rankings[0].documents)
        (10, 2)
        """
        count = whole_number(count, "count")
        if count < 0:
            raise SlotsError(f"{count} rankings cannot be made.")
        return self._made(self.rank_arrays(count, eligible, explore=explore))

    def _made(self, arrays: RankingArrays) -> Rankings:
        """Rankings with their numbers."""
        first = self.made
        self.made += len(arrays.shown)
        return Rankings(self.tree.documents, first, self.name, arrays, len(self.moves))

    def learn(self, ranking: Ranking, click: int | None) -> None:
        """Learn from the answer to a ranking, in any order and however late it comes.

        Parameters
        ----------
        ranking : Ranking
            A ranking of this ranker that has not had its answer.
        click : int or None
            The slot of the first click, counted from 0 at the top, or None if there was none.

        Examples
        --------
        >>> import zoomrank as zr
        >>> ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> first, second = ranker.rank(), ranker.rank()
        >>> ranker.learn(second, click=1)
        >>> ranker.learn(first, click=None)
        """
        self._check_made(ranking.ranker, ranking.number, 1)
        self.answered.refuse_again(ranking.number)
        slots = clicked_slots([click], self.slots)
        self.learn_arrays(self._up_to_date(ranking.arrays, ranking.edition), slots)
        self.answered.add(ranking.number)

    def learn_many(self, rankings: Rankings, clicks: Sequence[int | None] | Array) -> None:
        """Learn from the answers to many rankings, in their order; all of them or, if one is refused, none.

        Parameters
        ----------
        rankings : Rankings
            What `rank_many` returned.
        clicks : sequence of int or None, or array of int
            The clicked slot of each. An array of integers says "no click" by the number of slots, as `users.clicks`
            does.

        Examples
        --------
        >>> import zoomrank as zr
        >>> ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> ranker.learn_many(ranker.rank_many(3), [None, 0, 1])
        """
        if len(clicks) != len(rankings):
            raise FeedbackError(f"{len(clicks)} answers were given to {len(rankings)} rankings.")
        slots = clicked_slots(clicks, self.slots)
        first, count = rankings.first_number, len(rankings)
        self._check_made(rankings.ranker, first, count)
        self.answered.refuse_again(first, count)
        self.learn_arrays(self._up_to_date(rankings.arrays, rankings.edition), slots)
        self.answered.add(first, count)

    def learn_log(self, impressions: Iterable[Impression], unknown: str = "refuse") -> int:
        """Learn from the log of another ranker, impression by impression: a warm start.

        Each document that a visitor has looked at counts in the slot in which it stood, as if this ranker had shown it.

        Parameters
        ----------
        impressions : iterable of tuple
            Of each impression its query, which is ignored here, the documents that were shown, from the top, and the
            one that was clicked first, or None: what `zoomrank.documents.read_impressions` reads. Of longer rankings
            the first slots count.
        unknown : {"refuse", "skip"}
            What to do with documents that the collection lacks.

        Returns
        -------
        int
            How many impressions there were.

        Examples
        --------
        >>> import zoomrank as zr
        >>> ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> ranker.learn_log([("", [3, 9], 9), ("", [9, 3], 9), ("", [9, 3], None)] * 10)
        30
        >>> ranker.rank().documents[0] > 7  # something beside document 9, in its half of the tree
        True
        """
        if not self.bandit.counts_visits:
            raise ParameterError(cannot(self.bandit, "learn from what another ranker showed", "counts_visits"))
        learned = 0
        visits = VisitReader(self.tree.documents, self.slots, unknown).visits(impressions)
        for rankings, clicks in in_batches(visits, self.slots):
            self.learn_arrays(rankings, clicks)
            learned += len(clicks)
        return learned

    def explain(
        self, ranking: Ranking, eligible: Eligible | Iterable[DocumentId] | None = None
    ) -> list[SlotExplanation]:
        """Why each document of a ranking stands where it stands, as the slots' learners see it now.

        Parameters
        ----------
        ranking : Ranking
            A ranking of this ranker, answered or not.
        eligible : Eligible, iterable of DocumentId or None
            The documents that it was chosen among; None: all.

        Returns
        -------
        list of SlotExplanation
            One for each slot.

        Examples
        --------
        >>> import zoomrank as zr
        >>> ranker = zr.RankCorrZoom(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> ranking = ranker.rank()
        >>> ranker.learn(ranking, click=0)
        >>> [slot.plays for slot in ranker.explain(ranking)]
        [0, 0]
        """
        self._check_made(ranking.ranker, ranking.number, 1)
        return self.explain_arrays(self._up_to_date(ranking.arrays, ranking.edition), eligible)

    def forecast(self, visits: int = VISITS) -> Forecast:
        """What the next visitors will be shown on trial, in which slots, and what that costs. Changes nothing.

        A copy of the ranker goes on for some visits, with visitors who click as this ranker's records say.

        Parameters
        ----------
        visits : int
            How many, from 1 on.

        Returns
        -------
        Forecast
            Slot by slot; the same for the same ranker. Rankers that keep no records refuse.

        Examples
        --------
        >>> import zoomrank as zr
        >>> ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> ranker.forecast(visits=10).slots[0].share  # nothing is known yet
        1.0
        """
        visits = whole_number(visits, "visits")
        if visits < 1:
            raise ParameterError(f"A forecast is for 1 visit or more, not {visits}.")
        if not self.bandit.keeps_records:
            raise ParameterError(cannot(self.bandit, "tell what is known from what is hoped", "keeps_records"))
        return dry_run(self, visits)

    def remove(self, documents: Iterable[DocumentId]) -> None:
        """Never show these documents again, until they are restored.

        Parameters
        ----------
        documents : iterable of DocumentId
            What to remove; enough to fill all slots must be left.

        Examples
        --------
        >>> import zoomrank as zr
        >>> ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=2), slots=2, seed=0)
        >>> ranker.remove([0, 1])
        >>> sorted(ranker.rank().documents)
        [2, 3]
        >>> ranker.restore([0, 1])
        """
        self._restrict((self.present or Eligible.everything(self.tree.documents)).without(documents))

    def restore(self, documents: Iterable[DocumentId]) -> None:
        """Show removed documents again; what was known of them is known still.

        Parameters
        ----------
        documents : iterable of DocumentId
            What to restore; documents that were not removed stay as they are.

        Examples
        --------
        >>> import zoomrank as zr
        >>> ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=1), slots=1, seed=0)
        >>> ranker.remove([0])
        >>> ranker.restore([0])
        >>> sorted({ranker.rank().documents[0] for _ in range(20)})
        [0, 1]
        """
        if self.present is not None:
            chosen = self.present.chosen.copy()
            chosen[self.tree.documents.positions(documents)] = True
            self._restrict(Eligible(self.tree.documents, chosen))

    def grow(self, tree: DocumentTree) -> None:
        """Go on with a tree that has grown: all that was learned is kept, and new documents join their subtrees.

        Answers to rankings that were made before still count.

        Parameters
        ----------
        tree : DocumentTree
            What `grown()` of this ranker's tree returned.

        Examples
        --------
        >>> import zoomrank as zr
        >>> ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> ranker.grow(ranker.tree.grown({"new": 5}))  # a document beside document 5
        >>> "new" in ranker.tree.documents
        True
        """
        check_grown(tree, self.tree)
        self.move(tree, growth_of(tree))

    def move(self, tree: DocumentTree, movement: Movement) -> None:
        """Go on with another tree of the collection, in which documents have come, gone and moved.

        What was learned of a subtree goes along with it. What was learned of a document that is gone stays with the
        category that it was in, as do most visits of a document that leaves it for another one. Answers to rankings
        that were made before still count, but for documents that are gone.

        Parameters
        ----------
        tree : DocumentTree
            The tree to go on with.
        movement : Movement
            Where everything of this ranker's tree is in it (see `zoomrank.documents.Edition.movement_to`).

        Examples
        --------
        >>> import zoomrank as zr
        >>> from zoomrank.documents import Collection, Edition
        >>> edition = Edition.first(Collection.from_taxonomy({"owl": "Birds", "hen": "Birds", "pike": "Fish"}))
        >>> ranker = zr.ZoomRank(edition.collection.tree, slots=2, seed=0)
        >>> later = edition.changed(edition.placed([{"remove": "owl"}, {"category": "Birds", "to": "Poultry"}]))
        >>> ranker.move(later.collection.tree, edition.movement_to(later))
        >>> sorted(ranker.rank().documents)
        ['hen', 'pike']
        """
        if not self.bandit.growable:
            raise ParameterError(f"{cannot(self.bandit, 'move to another tree', 'growable')} Make a new ranker.")
        if (len(movement.node), len(movement.document)) != (self.tree.nodes, len(self.tree)):
            raise ParameterError("This movement is that of another tree.")
        place = movement.document.astype(np.int64)
        present = None
        if self.present is not None:
            chosen = np.ones(len(tree), bool)
            chosen[place[place >= 0]] = self.present.chosen[place >= 0]
            present = None if chosen.all() else Eligible(tree.documents, chosen)
        if self.slots > (len(tree) if present is None else len(present)):
            raise SlotsError(f"{self.slots} slots cannot be filled from the documents that are left.")
        self.bandit, self.state = self.bandit.transplanted(self.state, tree, movement)
        self.moves = [np.where(move < 0, -1, place[move]) for move in self.moves] + [place]
        self.present, self.tree = present, tree

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ranker to a file that `zoomrank.load` reads; the format is described in `ranker_file.py`.

        Parameters
        ----------
        path : str or path
            Where to; the file appears whole or not at all.

        Examples
        --------
        >>> import tempfile, zoomrank as zr
        >>> ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ranker.save(f"{folder}/ranker")
        """
        from zoomrank.rankers.ranker_file import save  # the file knows all rankers, so it cannot be imported above them

        save(self, path)

    def copied(self: Kind) -> Kind:
        """The same once more: what becomes of the one changes nothing in the other."""
        twin = super().copied()
        twin.answered, twin.moves = copy.deepcopy(self.answered), [*self.moves]
        return twin

    def _up_to_date(self, rankings: RankingArrays, edition: int) -> RankingArrays:
        """Rankings of an earlier edition, with their documents where they stand now."""
        if edition == len(self.moves):
            return rankings
        move = self.moves[edition]
        shown, pick = (np.where(old < 0, -1, move[old]) for old in (rankings.shown, rankings.pick))
        return rankings._replace(shown=shown, pick=pick)

    def _check_made(self, ranker: str, first: int, count: int) -> None:
        if ranker != self.name or first + count > self.made:
            raise FeedbackError("This ranking was made by another ranker.")


def check_grown(tree: DocumentTree, before: DocumentTree) -> None:
    """Refuse a tree that has not grown from the one before."""
    if tree.grown_from is None or tree.grown_from.fingerprint != before.fingerprint:
        raise ParameterError("A ranker can only move to a tree that was made by its own tree's grown().")
