"""Explanations: why this document, given those above it, in one or two sentences with consistent numbers.

What was seen of a document in its slot was seen by visitors who had skipped whatever was above it then. The estimate
uses more than that: other slots, similar documents, similar queries; and it is capped by what the documents above leave
possible. A bound is an optimistic estimate, so it is never below the estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from zoomrank.rankers import SlotExplanation

_NOTICEABLE = 0.05  # difference between observed and estimated satisfaction
_NAMED = 2  # documents above that are named
_LONGEST = 60  # characters of a title


class ExplanationContext(NamedTuple):
    """Context of a document that its slot does not know."""

    label: str  # of the subtree that is estimated as one
    above: Sequence[str]  # titles of the documents above, from the top
    nearest: str | None = None  # title of the most similar one among them
    lent: bool = False  # similar queries contribute


def percent(share: float) -> str:
    """Format a share for people; the page has the same rule.

    >>> [percent(share) for share in (0, 0.0004, 0.0123, 0.0996, 0.12345, 0.996, 1)]
    ['0 %', '< 0.1 %', '1.2 %', '10 %', '12 %', '> 99 %', '100 %']
    """
    if 0 < share < 0.0005:
        return "< 0.1 %"
    if 0.995 <= share < 1:
        return "> 99 %"
    return f"{100 * share:.1f} %" if 0 < share < 0.0995 else f"{100 * share:.0f} %"


def estimate_and_bound(reason: SlotExplanation) -> tuple[float, float]:
    """Return the estimated and the optimistic satisfaction of a document in its slot; the latter is never lower."""
    estimate = max(0.0, min(1.0, reason.estimate))
    return estimate, max(estimate, min(1.0, reason.index))


def why(reason: SlotExplanation, told: ExplanationContext) -> str:
    """Explain why a document is where it is."""
    seen = _seen(reason, told)
    if reason.trial:
        return f"On trial: {seen[0].lower()}{seen[1:]}; {_hope(reason)}."
    estimate, bound = estimate_and_bound(reason)
    if told.nearest is not None and reason.cap < 1 and estimate > reason.cap - 1e-6:
        most = f"so {percent(estimate)} is the most that is expected"
        return f"{seen}; it is like “{short(told.nearest)}”, which they skip, {most}."
    if reason.plays == 0 or abs(estimate - reason.mean) > _NOTICEABLE:
        others = "other slots, similar queries" if told.lent else "other slots"
        return f"{seen}; judging by {others} and similar documents, {percent(estimate)} will."
    if reason.trial is None and bound > estimate + 2 * _NOTICEABLE:
        return f"{seen}; it may be as good as {percent(bound)}, so it is worth finding out."
    return f"{seen}."


def _seen(reason: SlotExplanation, told: ExplanationContext) -> str:
    what = "it" if reason.documents == 1 else f"one of “{short(told.label)}” ({reason.documents:,} documents)"
    if reason.plays == 0:
        return f"No visitor has looked at {what.removeprefix('one of ')} in this slot yet"
    who = (
        f"skipped what stood above (now {_named(told.above)}) and saw {what}"
        if told.above
        else f"saw {what} at the top"
    )
    return f"Of {_visitors(reason.plays)} who {who}, {reason.clicks:,} clicked ({percent(reason.mean)})"


def _visitors(count: int) -> str:
    return "1 visitor" if count == 1 else f"{count:,} visitors"


def _named(titles: Sequence[str]) -> str:
    """Name a few titles.

    >>> _named(["Owls"]), _named(["Owls", "Pikes"]), _named(["Owls", "Pikes", "Oaks", "Elms"])
    ('“Owls”', '“Owls” and “Pikes”', '“Owls”, “Pikes” and 2 more')
    """
    quoted = [f"“{short(title)}”" for title in titles]
    if len(quoted) > _NAMED:
        quoted = [*quoted[:_NAMED], f"{len(quoted) - _NAMED} more"]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def short(title: str) -> str:
    """Shorten a title to fit into a sentence."""
    return title if len(title) <= _LONGEST else f"{title[: _LONGEST - 1].rstrip()}…"


def _hope(reason: SlotExplanation) -> str:
    """Explain why a document is tried."""
    _, bound = estimate_and_bound(reason)
    hope = f"it may be as good as {percent(bound)}"
    if reason.record is None:
        return f"{hope}, and nothing better is known"
    if percent(bound) == percent(reason.record):
        return f"{hope}, like the best that is known for this slot"
    if bound > reason.record:
        return f"{hope}, and the best that is known for this slot earns {percent(reason.record)}"
    return f"it replaces a similar one that earns {percent(reason.record)}, to see which is better"
