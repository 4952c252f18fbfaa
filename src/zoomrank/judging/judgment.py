"""`judge`: how another ranking or ranker would have done, told from a log with propensities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from zoomrank.errors import CannotTellError, ParameterError
from zoomrank.judging import intervals
from zoomrank.judging.asking import target_of
from zoomrank.judging.estimators import ESTIMATORS, NEED_A_MODEL, log_itself
from zoomrank.judging.impression_log import ImpressionLog
from zoomrank.judging.intervals import Share
from zoomrank.judging.refusals import check_told, comparable
from zoomrank.judging.targets import Target
from zoomrank.judging.tree_model import predicted
from zoomrank.judging.weighing import by_query, weighed
from zoomrank.numbers import whole_number
from zoomrank.spaces import DocumentTree

DEFAULT = "doubly-robust"
UNKNOWN = ("refuse", "skip")


@dataclass(frozen=True)
class Judgment:
    """What a log tells of a target.

    Attributes
    ----------
    log : Share
        The share of visitors who were satisfied by what was shown.
    target : Share
        The share that the target would have satisfied.
    difference : Share
        The second minus the first; both come from the same visits.
    sample : float
        The effective sample: how many visits to the target itself would have told as much.
    impressions : int
        How many were judged by.
    others : int
        How many are of queries that the target does not rank.
    estimator : str
        How it was estimated.

    Examples
    --------
    >>> log = ImpressionLog.from_rows(
    ...     {"query": "", "shown": [one], "propensity": [0.5], "clicked": one if one == "a" and i % 4 else None}
    ...     for i in range(400) for one in "ab"
    ... )
    >>> print(judge(log, ["a"]))
    satisfied by what was shown   0.375 [0.342, 0.409]
    by the target                 0.750 [0.705, 0.790]
    the difference               +0.375 [0.343, 0.407]
    effective sample              400 visits, of 800 impressions
    """

    log: Share
    target: Share
    difference: Share
    sample: float
    impressions: int
    others: int = 0
    estimator: str = DEFAULT

    def __str__(self) -> str:
        apart = self.difference
        lines = [
            f"satisfied by what was shown   {self.log}",
            f"by the target                 {self.target}",
            f"the difference               {apart.value:+.3f} [{apart.low:.3f}, {apart.high:.3f}]",
            f"effective sample              {self.sample:,.0f} visits, of {self.impressions:,} impressions",
        ]
        if self.others:
            lines.append(f"left out                      {self.others:,} impressions of queries that it does not rank")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Say the same as numbers, for a file.

        Returns
        -------
        dict
            What JSON can say: shares are `value`, `low`, `high`, `error`.

        Examples
        --------
        >>> Judgment(*[Share(0.5, 0.4, 0.6, 0.05)] * 3, sample=100.0, impressions=200).as_dict()["target"]["low"]
        0.4
        """
        shares = {name: getattr(self, name)._asdict() for name in ("log", "target", "difference")}
        rest = {name: getattr(self, name) for name in ("sample", "impressions", "others", "estimator")}
        return {**shares, **rest}


def judge(
    log: ImpressionLog,
    target: Any,
    *,
    slots: int | None = None,
    tree: DocumentTree | None = None,
    estimator: str = DEFAULT,
    unknown: str = "refuse",
) -> Judgment:
    """Estimate, from a log with propensities, how many visitors another ranking or ranker would have satisfied.

    Parameters
    ----------
    log : ImpressionLog
        What was shown, how likely that was, and what became of it.
    target : ranking, rankings by query, ranker, rankers by query, or Target
        What is asked about. A ranking is a list of ids, from the top, for all queries alike.
    slots : int, optional
        Ask about so many slots from the top only; all that the target has, unless said otherwise.
    tree : DocumentTree, optional
        Which documents are alike, for the model of the doubly robust estimators; without it none are.
    estimator : {"doubly-robust", "self-normalised", "weighted", "self-normalised-doubly-robust"}
        How to estimate.
    unknown : {"refuse", "skip"}
        What to do with impressions whose propensities are not known.

    Returns
    -------
    Judgment
        Shares with 95 % intervals. Where the log cannot tell, `CannotTellError` says why, and what to do.

    References
    ----------
    McInerney et al., *Counterfactual evaluation of slate recommendations with sequential reward interactions*, KDD
    2020; Kiyohara et al., *Doubly robust off-policy evaluation for ranking policies under the cascade behavior model*,
    WSDM 2022.

    Examples
    --------
    >>> log = ImpressionLog.from_rows(
    ...     {"query": "", "shown": [one], "propensity": [0.5], "clicked": one if one == "a" and i % 4 else None}
    ...     for i in range(400) for one in "ab"
    ... )
    >>> print(judge(log, ["a"]).target)
    0.750 [0.705, 0.790]
    """
    asked, part, others = _asked(log, target, slots, estimator, unknown)
    return judged_by([estimator], part, asked, tree, others)[estimator]


def judge_by_query(
    log: ImpressionLog,
    target: Any,
    *,
    slots: int | None = None,
    tree: DocumentTree | None = None,
    estimator: str = DEFAULT,
    unknown: str = "refuse",
) -> Mapping[str, Judgment | CannotTellError]:
    """Judge each query for itself.

    Parameters
    ----------
    log, target, slots, tree, estimator, unknown
        As for `judge`.

    Returns
    -------
    dict of str to Judgment or CannotTellError
        What the log tells of each query, or why it cannot tell.

    Examples
    --------
    >>> log = ImpressionLog.from_rows(
    ...     {"query": query, "shown": [one], "propensity": [0.5], "clicked": one if one == "a" and i % 4 else None}
    ...     for query, count in (("owls", 400), ("pikes", 20)) for i in range(count) for one in "ab"
    ... )
    >>> found = judge_by_query(log, ["a"])
    >>> print(found["owls"].target)
    0.750 [0.705, 0.790]
    >>> print(str(found["pikes"]).partition(":")[0])
    The effective sample is 20
    """
    asked, part, _ = _asked(log, target, slots, estimator, unknown)
    found: dict[str, Judgment | CannotTellError] = {}
    for query, rows in by_query(part):
        try:
            found[query] = judged_by([estimator], part.only(rows), asked, tree)[estimator]
        except CannotTellError as error:
            found[query] = error
    return found


def _asked(
    log: ImpressionLog, target: Any, slots: int | None, estimator: str, unknown: str
) -> tuple[Target, ImpressionLog, int]:
    """What is asked about, the impressions that may tell, and how many are of other queries."""
    if estimator not in ESTIMATORS:
        raise ParameterError(f"There is no estimator {estimator!r}; there are {', '.join(ESTIMATORS)}.")
    if unknown not in UNKNOWN:
        raise ParameterError(f"What to do with unknown propensities is 'refuse' or 'skip', not {unknown!r}.")
    if slots is not None and whole_number(slots, "slots") < 1:
        raise ParameterError(f"{slots} slots are too few to judge by: 1 will do.")
    asked = target_of(log, target)
    return asked, *comparable(log, asked, asked.slots if slots is None else min(slots, asked.slots), unknown)


def judged_by(
    estimators: Iterable[str], log: ImpressionLog, target: Target, tree: DocumentTree | None, others: int = 0
) -> dict[str, Judgment]:
    """What several estimators say of the part of a log that may tell."""
    seen = weighed(log, target)
    sample = check_told(log, seen)
    wanted, itself = list(estimators), log_itself(seen)
    model: Any = predicted(log, target, seen, tree) if {*wanted} & {*NEED_A_MODEL} else None
    found = {name: ESTIMATORS[name](seen, model) for name in wanted}
    return {
        name: Judgment(
            log=intervals.share(itself, len(log)),
            target=intervals.share(one, sample),
            difference=intervals.difference(one, itself),
            sample=sample,
            impressions=len(log),
            others=others,
            estimator=name,
        )
        for name, one in found.items()
    }
