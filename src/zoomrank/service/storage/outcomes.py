"""What became of an impression, as one number: the slot that was clicked, or one of the names below.

An impression begins by waiting and ends by something else, once. So the log has two lines of it, with `WAITING` in the
first, and counts of `WAITING` are counts of what was shown. Two more may stand beside them: that somebody has `SEEN`
it, and that it is `VOIDED`, which takes back all that it taught. And a learner may have `MOVED` on to another edition
of its collection before the impression, which is a line of the log and nothing that became of anybody. All of them fit
into a byte, since a learner keeps one for each of its impressions that feedback may still come for.

Besides, there are notes: that a slot was clicked, disliked or purchased, where that is not the end itself, and how many
slots were looked at. Each is a number, too: one of the names below and the slot, or how many. The log has room for each
of them once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

Outcome = int

MOVED: Final = 240  # on to another edition of the collection
VOIDED: Final = 250  # it counts no more, whatever else was said of it
SEEN: Final = 251  # the page says that it was on the screen: she who says nothing now has left without a click
ABANDONED: Final = 252  # she said, or her page did, that there was no click
TIMED_OUT: Final = 253  # nobody said anything in time, which the collection takes for leaving
UNSEEN: Final = 254  # nobody said anything in time, which the collection takes for not looking
WAITING: Final = 255  # shown, and nothing is known yet

CLICKED: Final = 300  # a slot, besides the one that satisfied
DISLIKED: Final = 400
PURCHASED: Final = 500
LOOKED_AT: Final = 600  # so many slots
_HUNDRED = 100

_NOTES = {CLICKED: "clicked", DISLIKED: "disliked", PURCHASED: "purchased", LOOKED_AT: "looked_at"}
_WORDS = {
    MOVED: "moved",
    VOIDED: "voided",
    SEEN: "seen",
    ABANDONED: "abandoned",
    TIMED_OUT: "abandoned",
    UNSEEN: "unseen",
    WAITING: "shown",
}


def is_satisfied(outcome: Outcome) -> bool:
    """Whether somebody clicked; then the outcome is her slot."""
    return outcome < MOVED


def is_note(outcome: Outcome) -> bool:
    """Whether it says something more of an impression, and neither begins nor ends it."""
    return outcome > WAITING


def note_of(outcome: Outcome) -> tuple[Outcome, int]:
    """What a note says, and of which slot or of how many.

    >>> note_of(CLICKED + 7) == (CLICKED, 7)
    True
    """
    return outcome - outcome % _HUNDRED, outcome % _HUNDRED


def is_end(outcome: Outcome) -> bool:
    """Whether an impression ends by it, or is taken back."""
    return is_satisfied(outcome) or outcome in (VOIDED, ABANDONED, TIMED_OUT, UNSEEN)


def word_of(outcome: Outcome) -> str:
    """What pages and metrics call it.

    >>> [word_of(outcome) for outcome in (0, 7, VOIDED, SEEN, ABANDONED, TIMED_OUT, UNSEEN, WAITING, PURCHASED + 2)]
    ['satisfied', 'satisfied', 'voided', 'seen', 'abandoned', 'abandoned', 'unseen', 'shown', 'purchased']
    """
    if is_note(outcome):
        return _NOTES[note_of(outcome)[0]]
    return _WORDS.get(outcome, "satisfied")


def by_word(counts: Mapping[Outcome, int]) -> Counter[str]:
    """How many impressions were shown, and how many of them were satisfied, abandoned, unseen and so on."""
    found: Counter[str] = Counter()
    for outcome, count in counts.items():
        found[word_of(outcome)] += count
    return found
