"""Checks that a log suffices for a judgment; each error says what is missing and what to do about it.

- Propensities are unknown: for imported impressions, and those of an earlier zoomrank.
- The log is deterministic and differs from the target: a log needs exploration.
- The target shows documents that the log never shows: support is missing.
- The effective sample is below 100, or a single impression has more than a hundredth of the total weight.
"""

from __future__ import annotations

import numpy as np

from zoomrank.errors import CannotTellError
from zoomrank.judging.impression_log import ImpressionLog
from zoomrank.judging.targets import Target
from zoomrank.judging.weighing import WeightedLog, effective_sample, heaviest_count, missing_support
from zoomrank.numbers import Array

LEAST_SAMPLE = 100
_CERTAIN = 3.5  # standard errors
_EXPLORE = "Let the log explore (the setting `explore` of a collection, such as 0.1)"


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
