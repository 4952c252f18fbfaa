"""What became of an impression, as one number: the slot that was clicked, or one of the names below.

An impression begins by waiting and ends by something else, once. So the log has two lines of it, with `WAITING` in the
first, and counts of `WAITING` are counts of what was shown. All of them fit into a byte, since a learner keeps one for
each of its impressions that feedback may still come for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

Outcome = int

ABANDONED: Final = 252  # she said, or her page did, that there was no click
TIMED_OUT: Final = 253  # nobody said anything in time, which the collection takes for leaving
UNSEEN: Final = 254  # nobody said anything in time, which the collection takes for not looking
WAITING: Final = 255  # shown, and nothing is known yet


def is_satisfied(outcome: Outcome) -> bool:
    """Whether somebody clicked; then the outcome is her slot."""
    return outcome < ABANDONED


def is_abandoned(outcome: Outcome) -> bool:
    """Whether it was learned that she left without a click."""
    return outcome in (ABANDONED, TIMED_OUT)


def word_of(outcome: Outcome) -> str:
    """What pages and metrics call it.

    >>> [word_of(outcome) for outcome in (0, 7, ABANDONED, TIMED_OUT, UNSEEN, WAITING)]
    ['satisfied', 'satisfied', 'abandoned', 'abandoned', 'unseen', 'shown']
    """
    if is_satisfied(outcome):
        return "satisfied"
    if is_abandoned(outcome):
        return "abandoned"
    return "unseen" if outcome == UNSEEN else "shown"


def by_word(counts: Mapping[Outcome, int]) -> Counter[str]:
    """How many impressions were shown, and how many of them were satisfied, abandoned and unseen."""
    found: Counter[str] = Counter()
    for outcome, count in counts.items():
        found[word_of(outcome)] += count
    return found
