"""Targets: what a log is asked about. A ranking for each query, one for all, a ranker as it is now, or a mix of those.

A target says two things of its rankings, in the numbers by which the log knows documents: how likely it would have been
to show what the log shows, slot by slot; and what the next slot is worth on average, for whom it is told what each
document is worth. The second is what a doubly robust estimate needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from zoomrank.documents.logged_impressions import positions_of
from zoomrank.errors import ParameterError, SearchTooLargeError
from zoomrank.judging.impression_log import NOTHING, ImpressionLog
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentId, DocumentTree

_NOWHERE = -2  # a document that the log never shows
_LARGEST = 4_000_000  # propensities that a ranker is asked for at once


@runtime_checkable
class KnowsPropensities(Protocol):
    """A ranker that can say how likely its rankings are: those of the library, and your own.

    Examples
    --------
    >>> class Stubborn:
    ...     tree, slots = DocumentTree.exponential(depth=2), 1
    ...     def propensities(self, shown, eligible=None):
    ...         return (shown == 3).astype(float)
    >>> isinstance(Stubborn(), KnowsPropensities)
    True
    """

    tree: DocumentTree
    slots: int

    def propensities(self, shown: Array, eligible: Any = None) -> Array:
        """How likely each document is in its slot, given those above.

        Parameters
        ----------
        shown : ndarray of int
            Rankings, a row each: the positions of their documents.
        eligible : Eligible, iterable of DocumentId or None
            What may be shown; None: all.

        Returns
        -------
        ndarray
            As many numbers, from 0 to 1.

        Examples
        --------
        >>> class Stubborn:
        ...     tree, slots = DocumentTree.exponential(depth=2), 1
        ...     def propensities(self, shown, eligible=None):
        ...         return (shown == 3).astype(float)
        >>> Stubborn().propensities(np.array([[3], [2]])).tolist()
        [[1.0], [0.0]]
        """


class Target(ABC):
    """What a log is asked about, in the numbers by which the log knows documents.

    Parameters
    ----------
    slots : int
        How many documents it shows.
    queries : collection of str or None
        The queries that it ranks; None: any.

    Examples
    --------
    >>> row = {"query": "owls", "shown": ["barn", "snow"], "propensity": [0.5, 1.0], "clicked": "snow"}
    >>> isinstance(target_of(ImpressionLog.from_rows([row]), ["snow"]), Target)
    True
    """

    def __init__(self, slots: int, queries: Iterable[str] | None = None) -> None:
        self.slots = slots
        self.queries = None if queries is None else list(queries)

    @abstractmethod
    def propensities(self, query: str, shown: Array) -> Array:
        """How likely the target would have been to show what was shown, slot by slot, given those above.

        Parameters
        ----------
        query : str
            What was asked.
        shown : ndarray of int
            Rankings of the log, a row each, as many slots as the target has or fewer.

        Returns
        -------
        ndarray
            As many numbers, from 0 to 1.

        Examples
        --------
        >>> row = {"query": "owls", "shown": ["barn", "snow"], "propensity": [0.5, 1.0], "clicked": "snow"}
        >>> target_of(ImpressionLog.from_rows([row]), ["barn", "barred"]).propensities("owls", np.array([[0, 1]]))
        array([[1., 0.]])
        """

    @abstractmethod
    def expected(self, query: str, above: Array, worth: Array, otherwise: float) -> Array:
        """What the next slot is worth on average, below given documents.

        Parameters
        ----------
        query : str
            What was asked.
        above : ndarray of int
            The documents above, a row each; maybe without columns.
        worth : ndarray
            What each document of the log is worth.
        otherwise : float
            What any other document is worth.

        Returns
        -------
        ndarray
            A number for each row; anything, where the target never has these documents above.

        Examples
        --------
        >>> row = {"query": "owls", "shown": ["barn", "snow"], "propensity": [0.5, 1.0], "clicked": "snow"}
        >>> target = target_of(ImpressionLog.from_rows([row]), ["snow", "barred"])
        >>> target.expected("owls", np.zeros((1, 0), int), np.array([0.1, 0.2]), 0.5).tolist()
        [0.2]
        """


class TargetRankings(Target):
    """A fixed ranking for each query.

    Parameters
    ----------
    log : ImpressionLog
        What is asked.
    rankings : mapping of str to sequence of DocumentId
        The documents of each query, from the top.
    everywhere : sequence of DocumentId, optional
        The ranking of all queries that have none of their own.

    Examples
    --------
    >>> row = {"query": "owls", "shown": ["barn", "snow"], "propensity": [0.5, 1.0], "clicked": "snow"}
    >>> TargetRankings(ImpressionLog.from_rows([row]), {"owls": ["snow", "barn"]}).slots
    2
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
            raise ParameterError("A target shows at least one document: this one has a query without any.")
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
        """1 where the log shows what the target does."""
        return np.asarray((shown == self._ranking(query)[: shown.shape[1]]).astype(float))

    def expected(self, query: str, above: Array, worth: Array, otherwise: float) -> Array:
        """The worth of the one document that comes next."""
        document = self._ranking(query)[above.shape[1]]
        value = 0.0 if document == NOTHING else otherwise if document == _NOWHERE else worth[document]
        return np.full(len(above), value)


class TargetRanker(Target):
    """A ranker as it is now, for every query alike, or a ranker for each; it learns nothing on the way.

    Parameters
    ----------
    log : ImpressionLog
        What is asked.
    rankers : ranker, or mapping of str to ranker
        Those of the library, or any that have `propensities`.

    Examples
    --------
    >>> class Stubborn:
    ...     tree, slots = DocumentTree.exponential(depth=2), 1
    ...     def propensities(self, shown, eligible=None):
    ...         return (shown == 3).astype(float)
    >>> row = {"query": "", "shown": [3, 1], "propensity": [0.5, 1.0], "clicked": 1}
    >>> TargetRanker(ImpressionLog.from_rows([row]), Stubborn()).propensities("", np.array([[0], [1]])).tolist()
    [[1.0], [0.0]]
    """

    def __init__(self, log: ImpressionLog, rankers: KnowsPropensities | Mapping[str, KnowsPropensities]) -> None:
        some: list[KnowsPropensities] = list(rankers.values()) if isinstance(rankers, Mapping) else [rankers]
        if len({ranker.slots for ranker in some}) > 1:
            raise ParameterError("The rankers of a target show equally many documents; these do not.")
        super().__init__(some[0].slots, list(rankers) if isinstance(rankers, Mapping) else None)
        self._rankers = rankers
        self._places: dict[int, Array] = {}
        self._documents = log.documents

    def propensities(self, query: str, shown: Array) -> Array:
        """What the ranker says; a document that it lacks is impossible, and so is all below one."""
        ranker = self._ranker(query)
        places = self._placed(ranker)[shown]
        known = np.logical_and.accumulate(places >= 0, axis=1)
        asked = filled_up(places, known.sum(axis=1), ranker.slots)
        return np.where(known, ranker.propensities(asked)[:, : shown.shape[1]], 0.0)

    def expected(self, query: str, above: Array, worth: Array, otherwise: float) -> Array:
        """The mean over all documents of the log, by the propensity of each below those above."""
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
        """Where the documents of the log stand in the ranker's tree; -1 where they do not, and for nothing at all."""
        if id(ranker.tree) not in self._places:
            positions = positions_of(ranker.tree.documents)
            found = [positions.get(name, -1) for name in self._documents]
            self._places[id(ranker.tree)] = np.array([*found, -1])  # the last is that of NOTHING
        return self._places[id(ranker.tree)]


class TargetMix(Target):
    """Several targets, one of which is drawn for each visitor.

    Parameters
    ----------
    targets : sequence of Target
        What is mixed.
    shares : sequence of float
        How often each is drawn; their sum is 1.

    Examples
    --------
    >>> row = {"query": "owls", "shown": ["barn", "snow"], "propensity": [0.5, 1.0], "clicked": "snow"}
    >>> log = ImpressionLog.from_rows([row])
    >>> mix = TargetMix([target_of(log, ["snow"]), target_of(log, ["barn"])], [0.75, 0.25])
    >>> mix.propensities("owls", np.array([[0], [1]])).tolist()
    [[0.25], [0.75]]
    """

    def __init__(self, targets: Sequence[Target], shares: Sequence[float]) -> None:
        if len(targets) != len(shares) or min(shares) < 0 or abs(sum(shares) - 1) > 1e-9:
            raise ParameterError(f"Shares of targets are one for each, and their sum is 1; these are {list(shares)}.")
        if len({target.slots for target in targets}) > 1:
            raise ParameterError("Targets that are mixed show equally many documents.")
        queries = [query for target in targets for query in target.queries or ()]
        super().__init__(targets[0].slots, dict.fromkeys(queries) or None)
        self._targets, self._shares = list(targets), np.array(shares)

    def propensities(self, query: str, shown: Array) -> Array:
        """By Bayes: whoever could not have shown those above does not choose the next."""
        likely = self._likely(query, shown)
        before = np.concatenate([np.ones((1, len(shown), 1)) * self._shares[:, None, None], likely[:, :, :-1]], axis=2)
        return _divided(likely.sum(axis=0), before.sum(axis=0))

    def expected(self, query: str, above: Array, worth: Array, otherwise: float) -> Array:
        """The mean over the targets that could have shown those above."""
        likely = self._shares[:, None] * np.ones(len(above))
        if above.shape[1]:
            likely = self._likely(query, above)[:, :, -1]
        each = np.array([target.expected(query, above, worth, otherwise) for target in self._targets])
        return _divided((likely * each).sum(axis=0), likely.sum(axis=0))

    def _likely(self, query: str, shown: Array) -> Array:
        """How likely each target is drawn and shows a ranking down to each slot."""
        each = [np.cumprod(target.propensities(query, shown), axis=1) for target in self._targets]
        return np.asarray(self._shares[:, None, None] * np.array(each))


def filled_up(places: Array, lengths: Array, slots: int) -> Array:
    """Rankings whose first documents alone are known, with others below: a ranker is asked about whole rankings.

    >>> filled_up(np.array([[1, -1], [4, 0]]), np.array([1, 2]), 3).tolist()
    [[1, 0, 2], [4, 0, 1]]
    """
    asked = np.full((len(places), slots), -1)
    asked[:, : places.shape[1]] = places
    for slot in range(slots):
        rows = np.flatnonzero(lengths <= slot)
        others = np.arange(slots)  # of so many one is not above
        free = (asked[rows, :slot, None] != others).all(axis=1)
        asked[rows, slot] = others[free.argmax(axis=1)]
    return asked


def target_of(log: ImpressionLog, given: Any) -> Target:
    """The target that somebody means, for a log.

    Parameters
    ----------
    log : ImpressionLog
        What is asked.
    given : Target, ranker, sequence or mapping
        A target; a ranker that has `propensities`; a ranking, which is for all queries; or rankings or rankers by their
        queries.

    Returns
    -------
    Target
        The same, in the numbers of the log.

    Examples
    --------
    >>> row = {"query": "owls", "shown": ["barn", "snow"], "propensity": [0.5, 1.0], "clicked": "snow"}
    >>> target_of(ImpressionLog.from_rows([row]), {"owls": ["snow"]}).queries
    ['owls']
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


def _divided(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)
