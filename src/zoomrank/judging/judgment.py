"""`judge`: estimate how another ranking or ranker would have done, from a log with propensities.

First it is checked that the log suffices; each error says what is missing and what to do about it:

- Propensities are unknown: for imported impressions, and those of an earlier zoomrank.
- The log is deterministic and differs from the target: a log needs exploration.
- The target shows documents that the log never shows: support is missing.
- The effective sample is below 100, or a single impression has more than a hundredth of the total weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zoomrank.errors import CannotTellError, ParameterError
from zoomrank.judging import intervals
from zoomrank.judging.estimators import (
    ESTIMATORS,
    NEED_A_MODEL,
    WeightedLog,
    by_query,
    effective_sample,
    heaviest_count,
    missing_support,
    observed_share,
    predicted,
    weight_log,
)
from zoomrank.judging.impression_log import ImpressionLog
from zoomrank.judging.intervals import Share
from zoomrank.judging.targets import Target, target_of
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array, whole_number

DEFAULT = "doubly-robust"
LEAST_SAMPLE = 100
_CERTAIN = 3.5  # standard errors
_EXPLORE = "Let the log explore (the setting `explore` of a collection, such as 0.1)"


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
    if unknown not in ("refuse", "skip"):
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


def judged_part(log: ImpressionLog, target: Target, slots: int, unknown: str) -> tuple[ImpressionLog, int]:
    """Return the part of a log that a target ranks, cut to `slots`, and the number of impressions of other queries."""
    if slots > log.slots:
        raise CannotTellError(
            f"The target shows {slots} documents, but the log at most {log.slots}. Judge "
            f"its first {log.slots}: slots={log.slots} (--slots {log.slots})."
        )
    whole, others = len(log), 0
    if target.queries is not None:
        log = _ranked_queries(log, target.queries)
        others = whole - len(log)
    log = log.cut(slots)
    known = _known(log)
    if unknown == "skip" and known.any():
        log = log.only(known)
    check_known(log)
    return log, others


def check_known(log: ImpressionLog) -> None:
    """Raise an error for a log with impressions whose propensities are unknown."""
    known = _known(log)
    if not known.all():
        raise CannotTellError(_without_propensities(len(known), int((~known).sum())))


def _known(log: ImpressionLog) -> Array:
    return np.asarray(~np.isnan(log.propensity).any(axis=1))


def _ranked_queries(log: ImpressionLog, queries: list[str]) -> ImpressionLog:
    wanted = set(queries)
    asked = {log.queries[number] for number in np.unique(log.query)}
    never = [query for query in queries if query not in asked]
    if never:
        raise CannotTellError(
            f"The target ranks {len(never)} queries that are not in the log, such as {never[0]!r}, so nothing can "
            "be estimated for them. Leave them out of the target, or wait until visitors ask them."
        )
    among = np.array([query in wanted for query in log.queries])
    return log.only(among[log.query])


def _without_propensities(impressions: int, unknown: int) -> str:
    rest = "" if unknown == impressions else ' Say unknown="skip" (--unknown skip) to judge by the others only.'
    return (
        f"Of {impressions:,} impressions {unknown:,} have no propensities: they were imported, come from an "
        "earlier zoomrank, or from a ranker without propensities. Without them a log only tells about itself. "
        f"Export a log of later impressions.{rest}"
    )


def check_support(log: ImpressionLog, seen: WeightedLog) -> float:
    """Return the effective sample; raise an error if the log does not suffice."""
    looked_at = seen.looked
    if np.isnan(seen.weight).any():
        raise CannotTellError("The target is a ranker without propensities. Judge one of its rankings instead.")
    if (log.propensity[looked_at] == 1.0).all() and (seen.weight[looked_at] != 1.0).any():
        raise CannotTellError(
            "The log is deterministic: every ranking was certain, so it only tells about itself. "
            f"{_EXPLORE}, and judge by later impressions."
        )
    sample = effective_sample(seen)
    if sample == 0:
        raise CannotTellError(
            f"The log never shows the target's rankings: none of {len(log):,} impressions begins like one of the "
            f"target's down to a slot that matters. {_EXPLORE}, or judge a target that is closer to the log."
        )
    if sample < LEAST_SAMPLE:
        raise CannotTellError(_too_few(len(log), sample))
    _check_support(seen)
    _check_heaviest(len(log), heaviest_count(seen))
    return sample


def _too_few(impressions: int, sample: float) -> str:
    more = impressions * (LEAST_SAMPLE / sample - 1.0)
    return (
        f"The effective sample is {sample:.0f}: {impressions:,} impressions are as informative about the target as "
        f"that many visits to it; at least {LEAST_SAMPLE} are needed. Wait for about {_round(more):,} more "
        "impressions, let the log explore more, or judge a target that is closer to the log."
    )


def _check_heaviest(impressions: int, times: float) -> None:
    """Reject a mean that depends on few heavy impressions: its interval would be too short."""
    if times < LEAST_SAMPLE:
        more = impressions * (LEAST_SAMPLE / times - 1.0)
        raise CannotTellError(
            f"The total weight is only {times:.0f} times that of the heaviest impression; at least {LEAST_SAMPLE} is "
            "needed: documents that the target shows often are rare in the log. Wait for about "
            f"{_round(more):,} more impressions, let the log explore more, or judge a target that is closer to the "
            "log."
        )


def _round(count: float) -> int:
    """Round up to two significant digits.

    >>> _round(1234.5), _round(12)
    (1300, 12)
    """
    digits = max(0, int(np.log10(max(count, 1.0))) - 1)
    unit = int(10**digits)
    return int(np.ceil(count / unit)) * unit


def _check_support(seen: WeightedLog) -> None:
    slot, share, error = missing_support(seen)
    if share > _CERTAIN * error:
        raise CannotTellError(
            f"Support is missing: about {share:.1%} of the target's visitors would see a document in slot {slot} that "
            f"the log never shows there (± {error:.1%}), so their clicks cannot be estimated. {_EXPLORE}, or judge a "
            "target that is closer to the log."
        )
