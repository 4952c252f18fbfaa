"""Targets that are fixed rankings, one for each query or one for all; and mixtures of targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from zoomrank.errors import ParameterError
from zoomrank.judging.impression_log import ImpressionLog
from zoomrank.judging.logged_rows import NOTHING
from zoomrank.judging.targets import Target
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentId

_NOWHERE = -2  # a document that the log never shows


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
