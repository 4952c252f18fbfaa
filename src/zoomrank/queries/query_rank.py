"""`QueryRank`: one object that learns for all queries. Every query has its own learner, and similar queries lend.

The learners idle longest are packed into a few bytes, from which they continue exactly. So there can be hundreds of
thousands of queries. All of them are saved in one file, verified by checksum before use. Never a pickle.

| bytes | what |
|---|---|
| 8 | `zoomqrys` |
| 4 | format version, little-endian like all numbers here |
| 8 | length of the header |
| … | header: JSON with the settings, the tree of queries, the queries that reported, the lengths of the parts below |
| … | the vectors of groups, then for each query its learner and its report |
| 32 | SHA-256 of everything before |

The tree of documents is not in the file (see `rankers/ranker_file.py`).
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from zoomrank.bandits import LoanZooming
from zoomrank.errors import FeedbackError, FileFormatError, ParameterError
from zoomrank.files import atomic_file
from zoomrank.queries.loans import LoanRegistry, next_exchange_at, report_from_bytes, report_of, report_to_bytes
from zoomrank.queries.query_tree import PLACERS, Query, QueryGroups, QueryPlacer, QueryTree
from zoomrank.rankers import Ranked, Ranking, SlotExplanation
from zoomrank.rankers.ranked import check_grown
from zoomrank.rankers.ranker_file import PREFIX, checked_header, from_bytes, to_bytes, tree_of
from zoomrank.rankers.slot_bandits import SLOTS
from zoomrank.spaces import DocumentId, DocumentTree, Eligible, Remap
from zoomrank.spaces.document_tree import growth_remap
from zoomrank.types import whole_number

LIVE = 2000  # most unpacked learners
MAGIC = b"zoomqrys"
VERSION = 1
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Support:
    """Support of a query by similar queries.

    Attributes
    ----------
    visitors : float
        Worth of their visits in visitors of its own, at the top of the ranking.
    faith : float
        Trust: the share of the loan that counts, from 0 to 1.
    lenders : list of str or int
        Queries that lend, the nearest first.
    """

    visitors: float
    faith: float
    lenders: list[Query]


@dataclass
class _QueryLearner:
    ranker: Ranked
    answers: int = 0
    next_loan: int = 0  # feedback count at which it takes a new loan
    next_report: int = 1  # and at which it reports again
    lenders: tuple[int, ...] = ()


class QueryRank:
    """A ZoomRank for every query; similar queries lend each other their visits.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents.
    queries : QueryTree or None
        Similarity of queries; None: by their words.
    slots : int
        Number of documents in a ranking, from 1 to 60.
    parameters : mapping, optional
        Parameters of `ZoomRank`, such as `{"optimism": 0.2}`.
    lend : bool
        Let queries lend each other visits; otherwise each learns alone.
    live : int
        Number of learners kept unpacked; the others are packed into less memory.
    seed : int
        Seed; the same seed and visits give the same rankings.

    Examples
    --------
    >>> import zoomrank as zr
    >>> queries = zr.QueryTree.by_paths({"lion": "Animals > Cats", "tiger": "Animals > Cats"})
    >>> ranker = zr.QueryRank(zr.DocumentTree.exponential(depth=6), queries, slots=3, seed=0)
    >>> for _ in range(200):
    ...     ranking = ranker.rank("lion")
    ...     ranker.learn(ranking, click=ranking.documents.index(42) if 42 in ranking.documents else None)
    >>> 42 in ranker.rank("tiger").documents  # never asked before
    True

    References
    ----------
    Our own (docs/explanation/similar-queries.md), after the last paragraph of
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric
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
            raise ParameterError(f"live must be 1 or more, not {live}.")
        self.name = uuid.uuid4().hex
        self.lending = LoanRegistry(self.queries, tree, self.bandit.parameters.borrow)
        self._unpacked_learners: OrderedDict[int, _QueryLearner] = OrderedDict()
        self._packed: dict[int, bytes] = {}
        self._new(-1)  # rejects a wrong number of slots early

    @property
    def tree(self) -> DocumentTree:
        """Current tree of the documents.

        Returns
        -------
        DocumentTree
            The tree after all growth.
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
        """Choose a ranking for one visitor's query.

        Parameters
        ----------
        query : str or int
            The query, known or new.
        about, beside : optional
            Place of a new query (see `QueryTree.add`).
        eligible : Eligible, iterable of DocumentId or None
            Documents that may be shown to this visitor; None: all.

        Returns
        -------
        Ranking
            The ranking to show; pass it to `learn` with the click.
        """
        number = self.queries.add(query, about, beside=beside)
        learner = self._learner(number)
        if self.lend and learner.answers >= learner.next_loan:
            self._borrow(number, learner)
        return learner.ranker.rank(eligible)

    def _borrow(self, number: int, learner: _QueryLearner) -> None:
        granted = self.lending.grant(number)
        if granted is not None:
            learner.ranker.state = self.bandit.with_loan(learner.ranker.state, granted.loan)
            learner.lenders = granted.lenders
            learner.next_loan = next_exchange_at(learner.answers)

    def learn(self, ranking: Ranking, click: int | None) -> None:
        """Learn from the feedback to a ranking, in any order and however late.

        Parameters
        ----------
        ranking : Ranking
            A ranking of this ranker.
        click : int or None
            Slot of the first click, from 0 at the top; None if there was none.
        """
        number = self._asked(ranking)
        learner = self._learner(number)
        learner.ranker.learn(ranking, click)
        learner.answers += 1
        if learner.answers >= learner.next_report:
            learner.next_report = next_exchange_at(learner.answers)
            if self.lend:
                self.lending.tell(number, report_of(learner.ranker.state), learner.answers)

    def explain(
        self, ranking: Ranking, eligible: Eligible | Iterable[DocumentId] | None = None
    ) -> list[SlotExplanation]:
        """Explain each slot of a ranking with the current estimates of its query's learner.

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
        return self._learner(self._asked(ranking)).ranker.explain(ranking, eligible)

    def support(self, query: Query) -> Support:
        """Return the current support of a query by similar queries.

        Parameters
        ----------
        query : str or int
            A query that was asked before.

        Returns
        -------
        Support
            Worth of the loan, the trust in it, and the lenders.
        """
        learner = self._learner(self.queries.number(query))
        return support_of(learner.ranker.state, [self.queries.queries[lender] for lender in learner.lenders])

    def grow(self, tree: DocumentTree) -> None:
        """Switch to a grown tree of the documents; everything learned is kept.

        Parameters
        ----------
        tree : DocumentTree
            Result of `grown()` of this ranker's tree.
        """
        check_grown(tree, self.tree)
        self.move(tree, growth_remap(tree))

    def move(self, tree: DocumentTree, movement: Remap) -> None:
        """Switch to another tree, in which documents were added, removed and moved (see `Ranked.move`).

        Parameters
        ----------
        tree : DocumentTree
            The new tree.
        movement : Remap
            Mapping from this ranker's tree to the new one.
        """
        moved = {}
        for number, packed in self.learners().items():  # one at a time; all share one bandit again
            learner = _unpacked(packed, self.bandit)
            learner.ranker.move(tree, movement)
            moved[number] = _packed(learner)
        self.lending.move(tree, movement)
        self.bandit = LoanZooming(tree, **self.bandit.settings)
        self.restore(self.name, moved)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save everything to a file for `QueryRank.load`.

        Parameters
        ----------
        path : str or path
            Path of the file; it is written atomically.
        """
        queries, learners = self.queries, self.learners()
        reports = {number: report_to_bytes(report) for number, report in self.lending.reports.items()}
        leaders = queries.placing.leaders
        header = json.dumps(
            {
                "parameters": self.bandit.settings,
                "slots": self.slots,
                "lend": self.lend,
                "live": self.live,
                "seed": self.seed,
                "name": self.name,
                "tree": {"fingerprint": self.tree.fingerprint, "recipe": self.tree.recipe},
                "placing": {"kind": queries.placing.kind, **queries.placing.settings},
                "groups": [queries.groups.parent, queries.groups.label],
                "leaders": list(leaders.shape),
                "queries": [queries.queries, queries.group],
                "known": [[group, list(known.items())] for group, known in self.lending.known.items()],
                "learners": [[number, len(content)] for number, content in learners.items()],
                "reports": [[number, len(content)] for number, content in reports.items()],
            }
        ).encode()
        parts = (PREFIX.pack(MAGIC, VERSION, len(header)), header, leaders.astype("<f4").tobytes())
        digest = hashlib.sha256()
        with atomic_file(path) as file:
            for part in (*parts, *learners.values(), *reports.values()):
                digest.update(part)
                file.write(part)
            file.write(digest.digest())

    @classmethod
    def load(cls, path: str | os.PathLike[str], tree: DocumentTree | None = None) -> QueryRank:
        """Load a file that `save` wrote; the ranker continues exactly where it was.

        Parameters
        ----------
        path : str or path
            Path of the file.
        tree : DocumentTree or None
            Tree of the documents; None rebuilds a tree of `DocumentTree.exponential`.

        Returns
        -------
        QueryRank
            The ranker with all learners and the tree of queries.
        """
        content = Path(path).read_bytes()
        header, start = checked_header(content, MAGIC, VERSION, path)
        strange = set(header["parameters"]) ^ set(LoanZooming(DocumentTree.exponential(depth=1)).settings)
        if strange:
            raise FileFormatError(f"{path} was saved by another version of zoomrank with other parameters: {strange}.")
        ranker = cls(
            tree_of(header["tree"], tree),
            _queries(header, content, start),
            header["slots"],
            parameters=header["parameters"],
            lend=header["lend"],
            live=header["live"],
            seed=header["seed"],
        )
        start += 4 * header["leaders"][0] * header["leaders"][1]
        learners, start = _pieces(content, start, header["learners"])
        reports, _ = _pieces(content, start, header["reports"])
        ranker.lending.reports = {number: report_from_bytes(report) for number, report in reports.items()}
        ranker.lending.known = {group: dict(known) for group, known in header["known"]}
        ranker.restore(header["name"], learners)
        return ranker

    def restore(self, name: str, learners: Mapping[int, bytes]) -> None:
        """Restore packed learners.

        Parameters
        ----------
        name : str
            Name of their ranker.
        learners : mapping of int to bytes
            Result of `learners`.
        """
        self.name = name
        self._unpacked_learners.clear()
        self._packed = dict(learners)

    def learners(self) -> dict[int, bytes]:
        """Return the packed learner of every query that was asked, by its number.

        Returns
        -------
        dict of int to bytes
            Packed learners in the order of their numbers.
        """
        unpacked = {number: _packed(learner) for number, learner in self._unpacked_learners.items()}
        return dict(sorted({**self._packed, **unpacked}.items()))

    def _asked(self, ranking: Ranking) -> int:
        owner, _, number = ranking.ranker.rpartition("/")
        if owner != self.name:
            raise FeedbackError("This ranking was made by another ranker: pass it to the ranker that made it.")
        return int(number)

    def _learner(self, number: int) -> _QueryLearner:
        """Return the unpacked learner of a query; the learner idle longest is packed if there are too many."""
        learner = self._unpacked_learners.get(number)
        if learner is None:
            packed = self._packed.pop(number, None)
            learner = self._new(number) if packed is None else _unpacked(packed, self.bandit)
            self._unpacked_learners[number] = learner
            if len(self._unpacked_learners) > self.live:
                idle, least = self._unpacked_learners.popitem(last=False)
                self._packed[idle] = _packed(least)
        self._unpacked_learners.move_to_end(number)
        return learner

    def _new(self, number: int) -> _QueryLearner:
        ranker = Ranked(self.bandit, self.slots, seed=np.random.default_rng([self.seed, number + 1]))
        ranker.name = f"{self.name}/{number}"
        return _QueryLearner(ranker)


def support_of(state: Any, lenders: list[Query]) -> Support:
    """Compute the support of a learner."""
    trust = float(state.faith[0])
    return Support(float(state.lent[0, 0]) * trust, trust if lenders else 0.0, lenders)


def _packed(learner: _QueryLearner) -> bytes:
    about = json.dumps([learner.answers, learner.next_loan, learner.next_report, learner.lenders]).encode()
    return _LENGTH.pack(len(about)) + about + to_bytes(learner.ranker)


def _unpacked(content: bytes, bandit: LoanZooming) -> _QueryLearner:
    (length,) = _LENGTH.unpack_from(content)
    start = _LENGTH.size + length
    answers, next_loan, next_report, lenders = json.loads(content[_LENGTH.size : start])
    return _QueryLearner(from_bytes(content[start:], bandit), answers, next_loan, next_report, tuple(lenders))


# The file.


def _pieces(content: bytes, start: int, sizes: Iterable[tuple[int, int]]) -> tuple[dict[int, bytes], int]:
    """Read one piece of bytes per query; return them and the end of the last."""
    found = {}
    for number, size in sizes:
        found[number] = content[start : start + size]
        start += size
    return found, start


def _queries(header: dict[str, Any], content: bytes, start: int) -> QueryTree:
    about = dict(header["placing"])
    kind = about.pop("kind")
    groups = QueryGroups()
    groups.parent, groups.label = header["groups"]
    rows, dimensions = header["leaders"]
    leaders = np.frombuffer(content, "<f4", rows * dimensions, start).reshape(rows, dimensions).copy()
    placing: QueryPlacer = PLACERS[kind](**about) if kind in PLACERS else QueryPlacer(groups)
    placing.restore(groups, leaders)
    queries = QueryTree(placing)
    for query, group in zip(*header["queries"], strict=True):
        queries.put(query, group)
    return queries
