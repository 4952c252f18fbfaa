"""The best rankings that full information allows: the greedy optimum of Section 4.1, and the optimum itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zoomrank.errors import TooLargeError
from zoomrank.spaces import DocumentId
from zoomrank.spaces.ids import Positions
from zoomrank.spaces.topology import Array

if TYPE_CHECKING:
    from zoomrank.users.distribution import UserDistribution

TIE = 1e-12  # means that differ by less are equal


@dataclass(frozen=True)
class BestRanking:
    """A ranking found with full information."""

    documents: list[DocumentId]
    satisfaction: float  # the fraction of visitors who click
    every_tie: bool  # whether all choices among equals were followed, so that no such ranking is worse (or better)

    def __repr__(self) -> str:
        ties = "" if self.every_tie else ", not every tie followed"
        return f"BestRanking({self.documents}, satisfaction={self.satisfaction:.6f}{ties})"


@dataclass
class _Search:
    """What the greedy search carries along."""

    users: UserDistribution
    slots: int
    budget: int
    every_tie: bool = True

    def worst_from(
        self, chosen: tuple[int, ...], known: dict[frozenset[int], tuple[float, tuple[int, ...]]]
    ) -> tuple[float, tuple[int, ...]]:
        """The log-probability that nobody is satisfied by the worst greedy continuation, and that continuation."""
        key = frozenset(chosen)
        if key not in known:
            self.budget -= 1
            log_skip, means = self.users.given_skipped(_positions(chosen))
            if log_skip == -np.inf or means.max() <= TIE:  # nobody is left to win: whatever follows changes nothing
                known[key] = (log_skip, tuple(_others(chosen, self.slots - len(chosen))))
            else:
                tied = self._tied(chosen, means)
                if len(chosen) + 1 == self.slots:
                    with np.errstate(divide="ignore"):  # log 0: the last slot satisfies whoever was left
                        known[key] = (log_skip + float(np.log1p(-means[tied[0]])), (int(tied[0]),))
                else:
                    known[key] = self._worst_among(chosen, tied, known)
        return known[key]

    def _worst_among(
        self,
        chosen: tuple[int, ...],
        tied: Positions,
        known: dict[frozenset[int], tuple[float, tuple[int, ...]]],
    ) -> tuple[float, tuple[int, ...]]:
        worst: tuple[float, tuple[int, ...]] | None = None
        for document in tied:
            if worst is not None and self.budget <= 0:
                self.every_tie = False
                break
            value, rest = self.worst_from((*chosen, int(document)), known)
            if worst is None or value > worst[0]:
                worst = (value, (int(document), *rest))
        assert worst is not None  # noqa: S101  (slots never outnumber documents, so something is always left)
        return worst

    def _tied(self, chosen: tuple[int, ...], means: Array) -> Positions:
        """One document of each kind among those with the highest mean."""
        left = means.copy()
        left[list(chosen)] = -1.0
        tied = np.flatnonzero(left >= left.max() - TIE)
        if len(tied) > 1 and len(chosen) + 1 < self.slots:
            classes = self.users.symmetry_classes(_positions(chosen))
            if classes is not None:
                tied = tied[np.sort(np.unique(classes[tied], return_index=True)[1])]
        return tied


def greedy(users: UserDistribution, slots: int, tie_budget: int) -> BestRanking:
    """The worst of all greedy rankings, as far as `tie_budget` evaluations can tell."""
    search = _Search(users, slots, tie_budget)
    log_skip, ranking = search.worst_from((), {})
    return BestRanking(users.documents.at(ranking), float(-np.expm1(log_skip)), search.every_tie)


def optimum(users: UserDistribution, slots: int, limit: int) -> BestRanking:
    """The best set of documents, by branch and bound.

    Satisfaction is submodular: what a document adds only shrinks as others are shown. So the largest gains now,
    added up, bound what the remaining slots can still add.
    """
    evaluations = 0
    start = greedy(users, slots, tie_budget=1)
    best = start.satisfaction
    found = tuple(int(p) for p in users.documents.positions(start.documents))

    def extend(chosen: tuple[int, ...], allowed: Positions) -> None:
        nonlocal evaluations, best, found
        evaluations += 1
        if evaluations > limit:
            raise TooLargeError(f"The optimum over {len(users)} documents takes more than {limit} evaluations.")
        log_skip, means = users.given_skipped(_positions(chosen))
        satisfied = -np.expm1(log_skip)
        if log_skip == -np.inf:
            best, found = 1.0, (*chosen, *_others(chosen, slots - len(chosen)))
            return
        gains = means[allowed] * np.exp(log_skip)
        order = np.argsort(-gains, kind="stable")
        left = slots - len(chosen)
        for rank, at in enumerate(order):
            if len(order) - rank < left or satisfied + gains[order[rank : rank + left]].sum() <= best + TIE:
                return  # not even the largest gains would do
            document = int(allowed[at])
            if left == 1:
                best, found = float(satisfied + gains[at]), (*chosen, document)
                return
            extend((*chosen, document), allowed[order[rank + 1 :]])

    extend((), np.arange(len(users)))
    return BestRanking(users.documents.at(found), best, every_tie=True)


def _positions(chosen: tuple[int, ...]) -> Positions:
    return np.array(chosen, dtype=np.int64)


def _others(chosen: tuple[int, ...], count: int) -> list[int]:
    others: list[int] = []
    document = 0
    while len(others) < count:
        if document not in chosen:
            others.append(document)
        document += 1
    return others
