"""Best rankings that full information allows: the greedy optimum of Section 4.1, and the optimum itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zoomrank.errors import SearchTooLargeError
from zoomrank.spaces import DocumentId
from zoomrank.spaces.ids import Positions
from zoomrank.types import Array

if TYPE_CHECKING:
    from zoomrank.users.distribution import UserDistribution

TIE = 1e-12  # means that differ by less are equal


@dataclass(frozen=True)
class BestRanking:
    """A ranking found with full information.

    Attributes
    ----------
    documents : list of DocumentId
        The documents, from the top.
    satisfaction : float
        The share of visitors who click.
    every_tie : bool
        Whether all choices among ties were followed, so that no such ranking is worse (or better).

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 4.1.
    """

    documents: list[DocumentId]
    satisfaction: float
    every_tie: bool

    def __repr__(self) -> str:
        ties = "" if self.every_tie else ", not every tie followed"
        return f"BestRanking({self.documents}, satisfaction={self.satisfaction:.6f}{ties})"


def greedy(users: UserDistribution, slots: int, tie_budget: int) -> BestRanking:
    """Return the worst of all greedy rankings, as far as `tie_budget` evaluations can tell."""
    worst, ranking, every_tie = -np.inf, None, True
    pending: list[tuple[int, ...]] = [()]  # beginnings of greedy rankings, the next one last
    seen: set[frozenset[int]] = set()  # the continuation depends on the set alone
    budget = max(tie_budget, 1)
    while pending:
        chosen = pending.pop()
        if ranking is not None and budget <= 0:
            every_tie = False
            break
        if frozenset(chosen) in seen:
            continue
        seen.add(frozenset(chosen))
        budget -= 1
        log_skip, means = users.given_skipped(_positions(chosen))
        if log_skip == -np.inf or means.max() <= TIE:  # no visitor is left to satisfy, so the rest does not matter
            whole = (*chosen, *_others(chosen, slots - len(chosen)))
        else:
            tied = _tied(users, chosen, means, last=len(chosen) + 1 == slots)
            if len(chosen) + 1 < slots:
                room = max(budget, 0) + 1
                every_tie = every_tie and len(tied) <= room
                pending.extend((*chosen, int(document)) for document in reversed(tied[:room]))
                continue
            whole = (*chosen, int(tied[0]))
            with np.errstate(divide="ignore"):  # log 0: the last slot satisfies all remaining visitors
                log_skip += float(np.log1p(-means[tied[0]]))
        if ranking is None or log_skip > worst:
            worst, ranking = log_skip, whole
    assert ranking is not None  # noqa: S101  (slots never outnumber documents)
    return BestRanking(users.documents.at(ranking), satisfied(worst), every_tie)


def satisfied(log_skip: float) -> float:
    """Return the share of visitors who click, given the logarithm of the share who do not."""
    return max(float(-np.expm1(log_skip)), 0.0)


def _tied(users: UserDistribution, chosen: tuple[int, ...], means: Array, last: bool) -> Positions:
    """Return one document of each symmetry class among those with the highest mean; in the last slot, any one."""
    left = means.copy()
    left[list(chosen)] = -1.0
    tied = np.flatnonzero(left >= left.max() - TIE)
    if last or len(tied) == 1:
        return tied[:1]
    classes = users.symmetry_classes(_positions(chosen))
    return tied if classes is None else tied[np.sort(np.unique(classes[tied], return_index=True)[1])]


def optimum_bound(users: UserDistribution, documents: Sequence[DocumentId]) -> float:
    """Bound the satisfaction of any ranking of this length: that of a beginning S of this one, plus the largest gains.

    Satisfaction is submodular: the gain of a document only shrinks as others are shown. So the best ranking, shown
    below S, adds at most its documents' gains after S.
    """
    positions = users.documents.positions(documents)
    bound = 1.0
    for shown in range(len(positions) + 1):
        log_skip, means = users.given_skipped(positions[:shown])
        if log_skip > -np.inf:
            gains = np.partition(means, -len(positions))[-len(positions) :] * np.exp(log_skip)
            bound = min(bound, satisfied(log_skip) + float(gains.sum()))
    return bound


def optimum(users: UserDistribution, slots: int, limit: int) -> BestRanking:
    """Return the best set of documents: the greedy one if a bound proves it, else by branch and bound.

    The sum of the largest current gains bounds what the remaining slots can add.
    """
    evaluations = 0
    start = greedy(users, slots, tie_budget=1)
    best = start.satisfaction
    if optimum_bound(users, start.documents) <= best + TIE:
        return BestRanking(start.documents, best, every_tie=True)
    found = tuple(int(p) for p in users.documents.positions(start.documents))

    def extend(chosen: tuple[int, ...], allowed: Positions) -> None:
        nonlocal evaluations, best, found
        evaluations += 1
        if evaluations > limit:
            raise SearchTooLargeError(
                f"The optimum over {len(users)} documents takes more than {limit} evaluations; raise limit, or use "
                "greedy."
            )
        log_skip, means = users.given_skipped(_positions(chosen))
        already = satisfied(log_skip)
        if log_skip == -np.inf:
            best, found = 1.0, (*chosen, *_others(chosen, slots - len(chosen)))
            return
        gains = means[allowed] * np.exp(log_skip)
        order = np.argsort(-gains, kind="stable")
        left = slots - len(chosen)
        for rank, at in enumerate(order):
            if len(order) - rank < left or already + gains[order[rank : rank + left]].sum() <= best + TIE:
                return  # even the largest gains are too small
            document = int(allowed[at])
            if left == 1:
                best, found = float(already + gains[at]), (*chosen, document)
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
