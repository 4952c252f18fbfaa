"""What a log cannot tell, and what to do about it: each is said in words, and nothing is guessed.

- Propensities are not known: of imported impressions, and of those that an earlier zoomrank wrote.
- The log is deterministic, and the target is something else: chance must have played a part.
- The target shows what the log does not: support is missing.
- The effective sample is below 100; or few heavy impressions decide, so that a hundredth of all is one of them.
"""

from __future__ import annotations

import numpy as np

from zoomrank.errors import CannotTellError
from zoomrank.judging.impression_log import ImpressionLog
from zoomrank.judging.targets import Target
from zoomrank.judging.weighing import Weighed, as_heavy, effective_sample, missing
from zoomrank.numbers import Array

LEAST_SAMPLE = 100
_CERTAIN = 3.5  # standard errors
_EXPLORE = "Let the log explore (the setting `explore` of a collection, such as 0.1)"


def comparable(log: ImpressionLog, target: Target, slots: int, unknown: str) -> tuple[ImpressionLog, int]:
    """The part of a log that the first slots of a target are about, and how many impressions are of other queries."""
    if slots > log.slots:
        raise CannotTellError(
            f"The target shows {slots} documents, the log {log.slots} at most; nobody looked further down. Ask about "
            f"its first {log.slots}: slots={log.slots} (--slots {log.slots})."
        )
    whole, others = len(log), 0
    if target.queries is not None:
        log = _of_queries(log, target.queries)
        others = whole - len(log)
    log = log.cut(slots)
    known = _known(log)
    if unknown == "skip" and known.any():
        log = log.only(known)
    check_known(log)
    return log, others


def check_known(log: ImpressionLog) -> None:
    """Refuse a log that does not say how likely its rankings were."""
    known = _known(log)
    if not known.all():
        raise CannotTellError(_without_propensities(len(known), int((~known).sum())))


def _known(log: ImpressionLog) -> Array:
    return np.asarray(~np.isnan(log.propensity).any(axis=1))


def _of_queries(log: ImpressionLog, queries: list[str]) -> ImpressionLog:
    wanted = set(queries)
    asked = {log.queries[number] for number in np.unique(log.query)}
    never = [query for query in queries if query not in asked]
    if never:
        raise CannotTellError(
            f"The target ranks {len(never)} queries that were never asked, such as {never[0]!r}: nobody knows how they "
            "would go. Leave them out of the target, or wait until they are asked."
        )
    among = np.array([query in wanted for query in log.queries])
    return log.only(among[log.query])


def _without_propensities(impressions: int, unknown: int) -> str:
    rest = "" if unknown == impressions else ' Say unknown="skip" (--unknown skip) to judge by the others alone.'
    return (
        f"Of {impressions:,} impressions {unknown:,} do not say how likely they were: they were imported, come from an "
        "earlier zoomrank, or from a ranker that cannot tell. Without propensities a log tells of nothing but itself. "
        f"Export a log of what was shown since.{rest}"
    )


def check_told(log: ImpressionLog, seen: Weighed) -> float:
    """Refuse what the log cannot tell; or say how large the effective sample is."""
    looked_at = seen.looked
    if np.isnan(seen.weight).any():
        raise CannotTellError(
            "The target is a ranker that cannot say how likely its rankings are. Ask about a ranking of it instead."
        )
    if (log.propensity[looked_at] == 1.0).all() and (seen.weight[looked_at] != 1.0).any():
        raise CannotTellError(
            "The log is deterministic: what it showed was certain, every time, so it tells of nothing but itself. "
            f"{_EXPLORE}, and judge what was shown since."
        )
    sample = effective_sample(seen)
    if sample == 0:
        raise CannotTellError(
            f"The log never shows what the target does: of {len(log):,} impressions none begins like a ranking of the "
            f"target down to a slot that matters. {_EXPLORE}, or ask for a target that is nearer to what was shown."
        )
    if sample < LEAST_SAMPLE:
        raise CannotTellError(_too_few(len(log), sample))
    _check_support(seen)
    _check_heaviest(len(log), as_heavy(seen))
    return sample


def _too_few(impressions: int, sample: float) -> str:
    more = impressions * (LEAST_SAMPLE / sample - 1.0)
    return (
        f"The effective sample is {sample:.0f}: {impressions:,} impressions tell as much of the target as that many "
        f"visits to it would, and {LEAST_SAMPLE} is the least. Wait for about {_round(more):,} impressions more, let "
        "the log explore more, or ask for a target that is nearer to what was shown."
    )


def _check_heaviest(impressions: int, times: float) -> None:
    """A mean that hangs on few heavy impressions looks surer than it is."""
    if times < LEAST_SAMPLE:
        more = impressions * (LEAST_SAMPLE / times - 1.0)
        raise CannotTellError(
            f"Of {times:.0f} impressions as heavy as the heaviest all would consist, and {LEAST_SAMPLE} is the least: "
            "something that the target shows often is rare in the log. Wait for about "
            f"{_round(more):,} impressions more, let the log explore more, or ask for a target that is nearer to what "
            "was shown."
        )


def _round(count: float) -> int:
    """Two digits, upwards.

    >>> _round(1234.5), _round(12)
    (1300, 12)
    """
    digits = max(0, int(np.log10(max(count, 1.0))) - 1)
    unit = int(10**digits)
    return int(np.ceil(count / unit)) * unit


def _check_support(seen: Weighed) -> None:
    slot, share, error = missing(seen)
    if share > _CERTAIN * error:
        raise CannotTellError(
            f"Support is missing: of the target's visitors about {share:.1%} would find something in slot {slot} that "
            f"the log never shows there (± {error:.1%}), and nobody knows how they would go. {_EXPLORE}, or ask for a "
            "target that is nearer to what was shown."
        )
