"""`judge`: estimate how another ranking or ranker would have done, from a log with propensities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from zoomrank.errors import CannotTellError, ParameterError
from zoomrank.judging import intervals
from zoomrank.judging.asking import target_of
from zoomrank.judging.estimators import ESTIMATORS, NEED_A_MODEL, observed_share
from zoomrank.judging.impression_log import ImpressionLog
from zoomrank.judging.intervals import Share
from zoomrank.judging.refusals import check_support, judged_part
from zoomrank.judging.targets import Target
from zoomrank.judging.tree_model import predicted
from zoomrank.judging.weighing import by_query, weight_log
from zoomrank.numbers import whole_number
from zoomrank.spaces import DocumentTree

DEFAULT = "doubly-robust"
UNKNOWN = ("refuse", "skip")


@dataclass(frozen=True)
class Judgment:
    """Estimates of a target, made from a log.

    Attributes
    ----------
    log : Share
        The share of visitors who were satisfied by what was shown.
    target : Share
        The share that the target would have satisfied.
    difference : Share
        The target's share minus the log's; both come from the same visits.
    sample : float
        The effective sample: the number of visits to the target itself that would be as informative.
    impressions : int
        Number of impressions used.
    others : int
        Number of impressions of queries that the target does not rank.
    estimator : str
        The name of the estimator.
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
        """Return the numbers as a dict, for a JSON file.

        Returns
        -------
        dict
            JSON types only; a share has `value`, `low`, `high` and `error`.
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
        Impressions with propensities and feedback.
    target : ranking, rankings by query, ranker, rankers by query, or Target
        The target to judge. A ranking is a list of ids, from the top, used for all queries.
    slots : int, optional
        Judge this many slots from the top; by default all slots of the target.
    tree : DocumentTree, optional
        The similarity of documents, for the model of the doubly robust estimators; by default none are similar.
    estimator : {"doubly-robust", "self-normalised", "weighted", "self-normalised-doubly-robust"}
        The estimator.
    unknown : {"refuse", "skip"}
        Raise an error if an impression has no propensities, or skip such impressions.

    Returns
    -------
    Judgment
        Shares with 95 % intervals. A log that does not suffice raises `CannotTellError`, which says why and what to do.

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
    asked, part, others = _comparable(log, target, slots, estimator, unknown)
    return judge_with([estimator], part, asked, tree, others)[estimator]


def judge_by_query(
    log: ImpressionLog,
    target: Any,
    *,
    slots: int | None = None,
    tree: DocumentTree | None = None,
    estimator: str = DEFAULT,
    unknown: str = "refuse",
) -> Mapping[str, Judgment | CannotTellError]:
    """Judge each query separately.

    Parameters
    ----------
    log, target, slots, tree, estimator, unknown
        As for `judge`.

    Returns
    -------
    dict of str to Judgment or CannotTellError
        The judgment of each query, or the reason why there is none.
    """
    asked, part, _ = _comparable(log, target, slots, estimator, unknown)
    found: dict[str, Judgment | CannotTellError] = {}
    for query, rows in by_query(part):
        try:
            found[query] = judge_with([estimator], part.only(rows), asked, tree)[estimator]
        except CannotTellError as error:
            found[query] = error
    return found


def _comparable(
    log: ImpressionLog, target: Any, slots: int | None, estimator: str, unknown: str
) -> tuple[Target, ImpressionLog, int]:
    """Return the target, the impressions to judge by, and the number of impressions of other queries."""
    if estimator not in ESTIMATORS:
        raise ParameterError(f"Unknown estimator {estimator!r}; choose one of {', '.join(ESTIMATORS)}.")
    if unknown not in UNKNOWN:
        raise ParameterError(f"unknown is {unknown!r}; it must be 'refuse' or 'skip'.")
    if slots is not None and whole_number(slots, "slots") < 1:
        raise ParameterError(f"slots is {slots}; it must be at least 1.")
    asked = target_of(log, target)
    return asked, *judged_part(log, asked, asked.slots if slots is None else min(slots, asked.slots), unknown)


def judge_with(
    estimators: Iterable[str], log: ImpressionLog, target: Target, tree: DocumentTree | None, others: int = 0
) -> dict[str, Judgment]:
    """Judge a target by several estimators, on a log that has been checked."""
    seen = weight_log(log, target)
    sample = check_support(log, seen)
    wanted, itself = list(estimators), observed_share(seen)
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
