"""`QueryRank`: one object that learns for all queries. Every query has a learner of its own, and similar ones lend.

Learners that were idle longest are packed into a few bytes, from which they go on exactly as if they had not been. So
there can be hundreds of thousands of queries.
"""

from __future__ import annotations

import json
import os
import struct
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zoomrank.bandits import LoanZooming
from zoomrank.errors import FeedbackError, ParameterError
from zoomrank.numbers import whole_number
from zoomrank.queries.lending import Lending, next_meeting
from zoomrank.queries.query_tree import Query, QueryTree
from zoomrank.queries.reports import report_of
from zoomrank.rankers import Ranked, Ranking, SlotExplanation
from zoomrank.rankers.ranked import check_grown
from zoomrank.rankers.ranker_file import from_bytes, to_bytes
from zoomrank.rankers.slot_bandits import SLOTS
from zoomrank.spaces import DocumentId, DocumentTree, Eligible, Movement
from zoomrank.spaces.movement import growth_of

LIVE = 2000  # learners that are not packed
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Support:
    """How far similar queries help a query.

    Attributes
    ----------
    visitors : float
        Their visits count as so many visitors of its own, at the top of the ranking.
    faith : float
        The share of the loan that is believed, from 0 to 1.
    lenders : list of str or int
        The queries that lend, the nearest first.

    Examples
    --------
    >>> Support(visitors=12.0, faith=0.6, lenders=["lion", "tiger"]).lenders[0]
    'lion'
    """

    visitors: float
    faith: float
    lenders: list[Query]


@dataclass
class _Learner:
    """The learner of one query."""

    ranker: Ranked
    answers: int = 0
    meets: int = 0  # at so many answers
    reports: int = 1
    lenders: tuple[int, ...] = ()


class QueryRank:
    """A ZoomRank for every query; similar queries lend each other what they have seen.

    Parameters
    ----------
    tree : DocumentTree
        Where the documents live.
    queries : QueryTree or None
        Which queries are alike; None: by their words.
    slots : int
        How many documents a ranking has, from 1 to 60.
    parameters : mapping, optional
        Those of `ZoomRank`, such as `{"optimism": 0.2}`.
    lend : bool
        Whether queries lend each other anything; without, each learns alone.
    live : int
        How many learners are kept at hand; the others are packed into less memory.
    seed : int
        Where chance begins: the same seed and the same visits, the same rankings.

    Examples
    --------
    >>> import zoomrank as zr
    >>> queries = zr.QueryTree.by_paths({"lion": "Animals > Cats", "tiger": "Animals > Cats"})
    >>> ranker = zr.QueryRank(zr.DocumentTree.exponential(depth=6), queries, slots=3, seed=0)
    >>> for _ in range(200):
    ...     ranking = ranker.rank("lion")
    ...     ranker.learn(ranking, click=ranking.documents.index(42) if 42 in ranking.documents else None)
    >>> 42 in ranker.rank("tiger").documents  # nobody has asked that before
    True

    References
    ----------
    Our own (docs/queries.md), after the last paragraph of Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric
    spaces*, JMLR 14 (2013), which asks for it.
    """

    def __init__(
        self,
        tree: DocumentTree,
        queries: QueryTree | None = None,
        slots: int = SLOTS,
        *,
        parameters: Mapping[str, Any] | None = None,
        lend: bool = True,
        live: int = LIVE,
        seed: int = 0,
    ) -> None:
        self.bandit = LoanZooming(tree, **(parameters or {}))
        self.queries = QueryTree.by_words() if queries is None else queries
        self.slots = whole_number(slots, "slots")
        self.lend, self.live, self.seed = bool(lend), whole_number(live, "live"), whole_number(seed, "seed")
        if self.live < 1:
            raise ParameterError(f"At least one learner has to be at hand, not {live}.")
        self.name = uuid.uuid4().hex
        self.lending = Lending(self.queries, tree, self.bandit.parameters.borrow)
        self._at_hand: OrderedDict[int, _Learner] = OrderedDict()
        self._packed: dict[int, bytes] = {}
        self._new(-1)  # refuses a wrong number of slots before anybody asks

    @property
    def tree(self) -> DocumentTree:
        """Where the documents live.

        Returns
        -------
        DocumentTree
            It may have grown.

        Examples
        --------
        >>> import zoomrank as zr
        >>> len(zr.QueryRank(zr.DocumentTree.exponential(depth=3), slots=1).tree)
        8
        """
        return self.bandit.tree

    def rank(
        self,
        query: Query,
        about: Any = None,
        *,
        beside: Query | None = None,
        eligible: Eligible | Iterable[DocumentId] | None = None,
    ) -> Ranking:
        """Choose a ranking for one visitor who asks a query.

        Parameters
        ----------
        query : str or int
            What she asks; it need not be known.
        about, beside : optional
            Where a query that is not known belongs (see `QueryTree.add`).
        eligible : Eligible, iterable of DocumentId or None
            The documents that may be shown to her; None: all.

        Returns
        -------
        Ranking
            To be given back to `learn` with her answer.

        Examples
        --------
        >>> import zoomrank as zr
        >>> ranker = zr.QueryRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> len(ranker.rank("how fast is a jaguar").documents)
        2
        """
        number = self.queries.add(query, about, beside=beside)
        learner = self._learner(number)
        if self.lend and learner.answers >= learner.meets:
            self._meet(number, learner)
        return learner.ranker.rank(eligible)

    def _meet(self, number: int, learner: _Learner) -> None:
        granted = self.lending.grant(number)
        if granted is not None:
            learner.ranker.state = self.bandit.with_loan(learner.ranker.state, granted.loan)
            learner.lenders = granted.lenders
            learner.meets = next_meeting(learner.answers)

    def learn(self, ranking: Ranking, click: int | None) -> None:
        """Learn from the answer to a ranking, in any order and however late it comes.

        Parameters
        ----------
        ranking : Ranking
            What `rank` returned.
        click : int or None
            The slot of the first click, counted from 0 at the top, or None if there was none.

        Examples
        --------
        >>> import zoomrank as zr
        >>> ranker = zr.QueryRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> ranker.learn(ranker.rank("lion"), click=1)
        """
        number = self._asked(ranking)
        learner = self._learner(number)
        learner.ranker.learn(ranking, click)
        learner.answers += 1
        if learner.answers >= learner.reports:
            learner.reports = next_meeting(learner.answers)
            if self.lend:
                self.lending.tell(number, report_of(learner.ranker.state), learner.answers)

    def explain(
        self, ranking: Ranking, eligible: Eligible | Iterable[DocumentId] | None = None
    ) -> list[SlotExplanation]:
        """Why each document of a ranking stands where it stands, as its query's learner sees it now.

        Parameters
        ----------
        ranking : Ranking
            What `rank` returned, answered or not.
        eligible : Eligible, iterable of DocumentId or None
            The documents that it was chosen among; None: all.

        Returns
        -------
        list of SlotExplanation
            One for each slot.

        Examples
        --------
        >>> import zoomrank as zr
        >>> ranker = zr.QueryRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> len(ranker.explain(ranker.rank("lion")))
        2
        """
        return self._learner(self._asked(ranking)).ranker.explain(ranking, eligible)

    def support(self, query: Query) -> Support:
        """How far similar queries help a query now.

        Parameters
        ----------
        query : str or int
            One that was asked.

        Returns
        -------
        Support
            What is lent, by whom, and how far it is believed.

        Examples
        --------
        >>> import zoomrank as zr
        >>> ranker = zr.QueryRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> for _ in range(20):
        ...     ranker.learn(ranker.rank("lion"), click=0)
        >>> _ = ranker.rank("lions")
        >>> ranker.support("lions").lenders
        ['lion']
        """
        learner = self._learner(self.queries.number(query))
        return support_of(learner.ranker.state, [self.queries.queries[lender] for lender in learner.lenders])

    def grow(self, tree: DocumentTree) -> None:
        """Go on with a tree of documents that has grown: all that was learned is kept.

        Parameters
        ----------
        tree : DocumentTree
            What `grown()` of this ranker's tree returned.

        Examples
        --------
        >>> import zoomrank as zr
        >>> ranker = zr.QueryRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> ranker.grow(ranker.tree.grown({"new": 5}))
        >>> "new" in ranker.tree.documents
        True
        """
        check_grown(tree, self.tree)
        self.move(tree, growth_of(tree))

    def move(self, tree: DocumentTree, movement: Movement) -> None:
        """Go on with another tree of the documents, in which some have come, gone and moved (see `Ranked.move`).

        Parameters
        ----------
        tree : DocumentTree
            The tree to go on with.
        movement : Movement
            Where everything of this ranker's tree is in it.

        Examples
        --------
        >>> import zoomrank as zr
        >>> from zoomrank.documents import Collection, Edition
        >>> edition = Edition.first(Collection.from_taxonomy({"owl": "Birds", "hen": "Birds", "pike": "Fish"}))
        >>> ranker = zr.QueryRank(edition.collection.tree, slots=2, seed=0)
        >>> ranker.learn(ranker.rank("wings"), click=0)
        >>> later = edition.changed(edition.placed([{"remove": "owl"}]))
        >>> ranker.move(later.collection.tree, edition.movement_to(later))
        >>> sorted(ranker.rank("wings").documents)
        ['hen', 'pike']
        """
        moved = {}
        for number, packed in self.learners().items():  # one at a time, and all of them share one bandit again
            learner = _unpacked(packed, self.bandit)
            learner.ranker.move(tree, movement)
            moved[number] = _packed(learner)
        self.lending.move(tree, movement)
        self.bandit = LoanZooming(tree, **self.bandit.settings)
        self.restore(self.name, moved)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file that `QueryRank.load` reads.

        Parameters
        ----------
        path : str or path
            Where to; the file appears whole or not at all.

        Examples
        --------
        >>> import tempfile, zoomrank as zr
        >>> ranker = zr.QueryRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ranker.save(f"{folder}/queries")
        """
        from zoomrank.queries.query_rank_file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], tree: DocumentTree | None = None) -> QueryRank:
        """Read a file that `save` wrote; everything goes on exactly as it would have.

        Parameters
        ----------
        path : str or path
            The file.
        tree : DocumentTree or None
            The tree of documents; one that `DocumentTree.exponential` made is made again if None is given.

        Returns
        -------
        QueryRank
            All learners, and the tree of queries.

        Examples
        --------
        >>> import tempfile, zoomrank as zr
        >>> ranker = zr.QueryRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> ranker.learn(ranker.rank("lion"), click=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ranker.save(f"{folder}/queries")
        ...     again = zr.QueryRank.load(f"{folder}/queries")
        >>> again.rank("lions").documents == ranker.rank("lions").documents
        True
        """
        from zoomrank.queries.query_rank_file import load

        return load(path, tree)

    def restore(self, name: str, learners: Mapping[int, bytes]) -> None:
        """Go on with learners that were packed.

        Parameters
        ----------
        name : str
            What their ranker went by.
        learners : mapping of int to bytes
            What `learners` returned.

        Examples
        --------
        >>> import zoomrank as zr
        >>> one, other = (zr.QueryRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0) for _ in range(2))
        >>> ranking = one.rank("lion")
        >>> _ = other.queries.add("lion")
        >>> other.restore(one.name, one.learners())
        >>> other.learn(ranking, click=None)
        """
        self.name = name
        self._at_hand.clear()
        self._packed = dict(learners)

    def learners(self) -> dict[int, bytes]:
        """The learner of every query that was asked, packed, by its number.

        Returns
        -------
        dict of int to bytes
            In the order of their numbers.

        Examples
        --------
        >>> import zoomrank as zr
        >>> ranker = zr.QueryRank(zr.DocumentTree.exponential(depth=4), slots=2, seed=0)
        >>> _ = ranker.rank("lion")
        >>> list(ranker.learners())
        [0]
        """
        at_hand = {number: _packed(learner) for number, learner in self._at_hand.items()}
        return dict(sorted({**self._packed, **at_hand}.items()))

    def _asked(self, ranking: Ranking) -> int:
        owner, _, number = ranking.ranker.rpartition("/")
        if owner != self.name:
            raise FeedbackError("This ranking was made by another ranker.")
        return int(number)

    def _learner(self, number: int) -> _Learner:
        """The learner of a query, at hand; whoever was idle longest makes room."""
        learner = self._at_hand.get(number)
        if learner is None:
            packed = self._packed.pop(number, None)
            learner = self._new(number) if packed is None else _unpacked(packed, self.bandit)
            self._at_hand[number] = learner
            if len(self._at_hand) > self.live:
                idle, least = self._at_hand.popitem(last=False)
                self._packed[idle] = _packed(least)
        self._at_hand.move_to_end(number)
        return learner

    def _new(self, number: int) -> _Learner:
        ranker = Ranked(self.bandit, self.slots, seed=np.random.default_rng([self.seed, number + 1]))
        ranker.name = f"{self.name}/{number}"
        return _Learner(ranker)


def support_of(state: Any, lenders: list[Query]) -> Support:
    """How far a learner is helped."""
    faith = float(state.faith[0])
    return Support(float(state.lent[0, 0]) * faith, faith if lenders else 0.0, lenders)


def _packed(learner: _Learner) -> bytes:
    about = json.dumps([learner.answers, learner.meets, learner.reports, learner.lenders]).encode()
    return _LENGTH.pack(len(about)) + about + to_bytes(learner.ranker)


def _unpacked(content: bytes, bandit: LoanZooming) -> _Learner:
    (length,) = _LENGTH.unpack_from(content)
    start = _LENGTH.size + length
    answers, meets, reports, lenders = json.loads(content[_LENGTH.size : start])
    return _Learner(from_bytes(content[start:], bandit), answers, meets, reports, tuple(lenders))
