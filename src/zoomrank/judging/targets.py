"""Targets that a log can judge: a ranking for each query, one for all, a ranker in its current state, or a mixture.

A target computes two things, with documents numbered as in the log: the probability of showing what the log shows, slot
by slot; and the expected worth of the next slot, given the worth of each document. Doubly robust estimates need the
second. `target_of` converts rankings and rankers into targets; `read_rankings` reads rankings from a table:

| a row is | columns |
|---|---|
| a ranking, in JSONL or Parquet | `query`, `shown`: a list of ids from the top |
| a document, in any table | `query`, `document`, and `position` if rows are not in order |

Without a column `query` there is one ranking, for all queries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from zoomrank.documents.click_log import positions_of
from zoomrank.documents.source_files import PathLike, chosen_columns, existing, read_rows
from zoomrank.errors import ParameterError, SearchTooLargeError, SourceError
from zoomrank.judging.impression_log import NOTHING, ImpressionLog
from zoomrank.spaces import DocumentId, DocumentTree
from zoomrank.types import Array

_NOWHERE = -2  # a document that the log never shows
_LARGEST = 4_000_000  # propensities computed by a ranker in one call
_USUAL_NAMES = {
    "query": ("query", "queryid", "topic"),
    "shown": ("shown", "ranking", "documents"),
    "document": ("document", "documentid", "docid", "doc", "id"),
    "position": ("position", "rank", "slot"),
}


class Target(ABC):
    """A policy to be judged by a log, with documents numbered as in the log.

    Parameters
    ----------
    slots : int
        The number of documents it shows.
    queries : collection of str or None
        The queries that it ranks; None: any.
    """

    def __init__(self, slots: int, queries: Iterable[str] | None = None) -> None:
        self.slots = slots
        self.queries = None if queries is None else list(queries)

    @abstractmethod
    def propensities(self, query: str, shown: Array) -> Array:
        """Return the probability that the target shows each document of the log's rankings, given those above.

        Parameters
        ----------
        query : str
            The query.
        shown : ndarray of int
            Rankings of the log, a row each, as many slots as the target has or fewer.

        Returns
        -------
        ndarray
            Probabilities, in the shape of `shown`.
        """

    @abstractmethod
    def expected(self, query: str, above: Array, worth: Array, otherwise: float) -> Array:
        """Return the expected worth of the next slot, below given documents.

        Parameters
        ----------
        query : str
            The query.
        above : ndarray of int
            The documents above, a row each; possibly without columns.
        worth : ndarray
            The worth of each document of the log.
        otherwise : float
            The worth of any other document.

        Returns
        -------
        ndarray
            A number for each row; arbitrary where the target never shows these documents above.
        """


class TargetRankings(Target):
    """A fixed ranking for each query.

    Parameters
    ----------
    log : ImpressionLog
        The log to judge by.
    rankings : mapping of str to sequence of DocumentId
        The documents of each query, from the top.
    everywhere : sequence of DocumentId, optional
        The ranking of all queries that have none of their own.
    """

    def __init__(
        self,
        log: ImpressionLog,
        rankings: Mapping[str, Sequence[DocumentId]],
        everywhere: Sequence[DocumentId] | None = None,
    ) -> None:
        known = {document: number for number, document in enumerate(log.documents)}
        given = [*rankings.values(), *([] if everywhere is None else [everywhere])]
        lengths = [len(ranking) for ranking in given]
        if not lengths or not min(lengths):
            raise ParameterError("The target has a query without documents; give at least one document per query.")
        self._length = max(lengths)
        self._rankings = {query: self._numbered(known, ranking) for query, ranking in rankings.items()}
        self._everywhere = None if everywhere is None else self._numbered(known, everywhere)
        super().__init__(self._length, None if everywhere is not None else self._rankings)

    def _numbered(self, known: Mapping[str, int], ranking: Sequence[DocumentId]) -> Array:
        names = [str(document) for document in ranking]
        if len(set(names)) < len(names):
            raise ParameterError(f"A ranking of the target shows a document twice: {', '.join(names)}.")
        numbers = [known.get(name, _NOWHERE) for name in names]
        return np.array(numbers + [NOTHING] * (self._length - len(numbers)))

    def _ranking(self, query: str) -> Array:
        ranking = self._rankings.get(query, self._everywhere)
        if ranking is None:
            raise ParameterError(f"The target has no ranking for {query!r}.")
        return ranking

    def propensities(self, query: str, shown: Array) -> Array:
        """Return 1 where the log shows the target's document, 0 elsewhere."""
        return np.asarray((shown == self._ranking(query)[: shown.shape[1]]).astype(float))

    def expected(self, query: str, above: Array, worth: Array, otherwise: float) -> Array:
        """Return the worth of the single document that comes next."""
        document = self._ranking(query)[above.shape[1]]
        value = 0.0 if document == NOTHING else otherwise if document == _NOWHERE else worth[document]
        return np.full(len(above), value)


class TargetMix(Target):
    """A mixture of targets, one of which is drawn for each visitor.

    Parameters
    ----------
    targets : sequence of Target
        The targets to mix.
    shares : sequence of float
        The probability of each target; their sum is 1.
    """

    def __init__(self, targets: Sequence[Target], shares: Sequence[float]) -> None:
        if len(targets) != len(shares) or min(shares) < 0 or abs(sum(shares) - 1) > 1e-9:
            raise ParameterError(f"The shares are {list(shares)}; there must be one for each target, with a sum of 1.")
        if len({target.slots for target in targets}) > 1:
            raise ParameterError("Targets that are mixed must have the same number of slots.")
        queries = [query for target in targets for query in target.queries or ()]
        super().__init__(targets[0].slots, dict.fromkeys(queries) or None)
        self._targets, self._shares = list(targets), np.array(shares)

    def propensities(self, query: str, shown: Array) -> Array:
        """Return the mixture's propensities by Bayes' rule: targets that cannot show those above weigh 0."""
        likely = self._likely(query, shown)
        before = np.concatenate([np.ones((1, len(shown), 1)) * self._shares[:, None, None], likely[:, :, :-1]], axis=2)
        return _divided(likely.sum(axis=0), before.sum(axis=0))

    def expected(self, query: str, above: Array, worth: Array, otherwise: float) -> Array:
        """Return the mean over the targets that could have shown those above."""
        likely = self._shares[:, None] * np.ones(len(above))
        if above.shape[1]:
            likely = self._likely(query, above)[:, :, -1]
        each = np.array([target.expected(query, above, worth, otherwise) for target in self._targets])
        return _divided((likely * each).sum(axis=0), likely.sum(axis=0))

    def _likely(self, query: str, shown: Array) -> Array:
        """Return the probability that each target is drawn and shows a ranking down to each slot."""
        each = [np.cumprod(target.propensities(query, shown), axis=1) for target in self._targets]
        return np.asarray(self._shares[:, None, None] * np.array(each))


def _divided(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)


@runtime_checkable
class KnowsPropensities(Protocol):
    """A ranker that can compute the propensities of its rankings: those of the library, and your own."""

    tree: DocumentTree
    slots: int

    def propensities(self, shown: Array, eligible: Any = None) -> Array:
        """Return the probability of each document in its slot, given those above.

        Parameters
        ----------
        shown : ndarray of int
            Rankings, a row each: the positions of their documents.
        eligible : Eligible, iterable of DocumentId or None
            The documents that may be shown; None: all.

        Returns
        -------
        ndarray
            Probabilities, in the shape of `shown`.
        """


class TargetRanker(Target):
    """A ranker in its current state, for all queries, or a ranker for each query; it does not learn meanwhile.

    Parameters
    ----------
    log : ImpressionLog
        The log to judge by.
    rankers : ranker, or mapping of str to ranker
        Those of the library, or any that have `propensities`.
    """

    def __init__(self, log: ImpressionLog, rankers: KnowsPropensities | Mapping[str, KnowsPropensities]) -> None:
        some: list[KnowsPropensities] = list(rankers.values()) if isinstance(rankers, Mapping) else [rankers]
        if len({ranker.slots for ranker in some}) > 1:
            raise ParameterError("The rankers of a target must have the same number of slots.")
        super().__init__(some[0].slots, list(rankers) if isinstance(rankers, Mapping) else None)
        self._rankers = rankers
        self._places: dict[int, Array] = {}
        self._documents = log.documents

    def propensities(self, query: str, shown: Array) -> Array:
        """Return the ranker's propensities; a document that the ranker lacks has 0, and so has every slot below it."""
        ranker = self._ranker(query)
        places = self._placed(ranker)[shown]
        known = np.logical_and.accumulate(places >= 0, axis=1)
        asked = complete_rankings(places, known.sum(axis=1), ranker.slots)
        return np.where(known, ranker.propensities(asked)[:, : shown.shape[1]], 0.0)

    def expected(self, query: str, above: Array, worth: Array, otherwise: float) -> Array:
        """Return the mean over all documents of the log, weighted by their propensities below those above."""
        prefixes, which = np.unique(above, axis=0, return_inverse=True)
        documents = np.flatnonzero(self._placed(self._ranker(query))[:-1] >= 0)
        if len(prefixes) * len(documents) > _LARGEST:
            raise SearchTooLargeError(
                f"A doubly robust estimate would ask the ranker about {len(prefixes):,} beginnings times "
                f'{len(documents):,} documents: ask for estimator="self-normalised" (--estimator self-normalised).'
            )
        means = np.empty(len(prefixes))
        for number, prefix in enumerate(prefixes):
            left = np.setdiff1d(documents, prefix)
            rows = np.column_stack([np.tile(prefix, (len(left), 1)), left])
            chances = self.propensities(query, rows)[:, -1]
            means[number] = chances @ worth[left] + max(0.0, 1.0 - chances.sum()) * otherwise
        return np.asarray(means[which.reshape(-1)])

    def _ranker(self, query: str) -> KnowsPropensities:
        return self._rankers[query] if isinstance(self._rankers, Mapping) else self._rankers

    def _placed(self, ranker: KnowsPropensities) -> Array:
        """Return the positions of the log's documents in the ranker's tree; -1 for missing ones and for NOTHING."""
        if id(ranker.tree) not in self._places:
            positions = positions_of(ranker.tree.documents)
            found = [positions.get(name, -1) for name in self._documents]
            self._places[id(ranker.tree)] = np.array([*found, -1])  # the last entry stands for NOTHING
        return self._places[id(ranker.tree)]


def complete_rankings(places: Array, lengths: Array, slots: int) -> Array:
    """Complete rankings of which only the first documents are known with arbitrary others below.

    >>> complete_rankings(np.array([[1, -1], [4, 0]]), np.array([1, 2]), 3).tolist()
    [[1, 0, 2], [4, 0, 1]]
    """
    asked = np.full((len(places), slots), -1)
    asked[:, : places.shape[1]] = places
    for slot in range(slots):
        rows = np.flatnonzero(lengths <= slot)
        others = np.arange(slots)  # at least one of them is not above
        free = (asked[rows, :slot, None] != others).all(axis=1)
        asked[rows, slot] = others[free.argmax(axis=1)]
    return asked


def target_of(log: ImpressionLog, given: Any) -> Target:
    """Convert a ranking or a ranker into a target for a log.

    Parameters
    ----------
    log : ImpressionLog
        The log to judge by.
    given : Target, ranker, sequence or mapping
        A target; a ranker that has `propensities`; a ranking, which is for all queries; or rankings or rankers by their
        queries.

    Returns
    -------
    Target
        The target, with documents numbered as in the log.
    """
    if isinstance(given, Target):
        return given
    if isinstance(given, Mapping) and given and all(isinstance(one, KnowsPropensities) for one in given.values()):
        return TargetRanker(log, given)
    if isinstance(given, Mapping):
        return TargetRankings(log, given)
    if isinstance(given, KnowsPropensities):
        return TargetRanker(log, given)
    if isinstance(given, Sequence) and not isinstance(given, str):
        return TargetRankings(log, {}, given)
    raise ParameterError(f"{given!r} is no target: give a ranking, rankings by query, or a ranker with propensities.")


def read_rankings(path: PathLike) -> list[str] | dict[str, list[str]]:
    """Read the rankings of a target from a table (CSV, TSV, JSONL or Parquet).

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    list of str, or dict of str to list of str
        One ranking for all queries, or a ranking for each: ids from the top, as texts.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "rankings.jsonl")
    ...     with open(file, "w") as text:
    ...         _ = text.write('{"query": "owls", "shown": ["snow", "barn"]}')
    ...     read_rankings(file)
    {'owls': ['snow', 'barn']}
    """
    file = existing(path)
    table = read_rows(file, file.suffix.lower())
    found = chosen_columns(str(path), table.names, {}, _USUAL_NAMES, needs=())
    if not {"shown", "document"} & found.keys():
        raise SourceError(f"{path} has no rankings: it needs a column shown, with lists, or a column document.")
    rows = [dict(zip(found, row, strict=True)) for row in table.rows(list(found.values()))]
    rankings = _whole(str(path), rows) if "shown" in found else _by_document(rows)
    return rankings if "query" in found else rankings[""]


def _whole(path: str, rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    rankings: dict[str, list[str]] = {}
    for number, row in enumerate(rows, start=1):
        query = str(row.get("query", ""))
        if not isinstance(row["shown"], list) or not row["shown"]:
            raise SourceError(f"{path} has no list of documents in row {number}.")
        if query in rankings:
            raise SourceError(f"{path} has two rankings for {query!r}; the second is in row {number}.")
        rankings[query] = [str(document) for document in row["shown"]]
    return rankings


def _by_document(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    if rows and "position" in rows[0]:
        rows = sorted(rows, key=lambda row: float(row["position"]))
    rankings: dict[str, list[str]] = {}
    for row in rows:
        rankings.setdefault(str(row.get("query", "")), []).append(str(row["document"]))
    return rankings
