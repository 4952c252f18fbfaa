"""Outcome of an impression, as one number: the slot that was clicked, or one of the constants below.

An impression begins as `WAITING` and ends once. So the log has two events of it, the first with `WAITING`, and counts
of `WAITING` count what was shown. Two more may be added: the page reported it as `SEEN`, and it was `VOIDED`, which
undoes what it taught. An event `MOVED` says that the learner moved to another version of the catalogue before the
impression; it is no outcome of a visitor. All of them fit into a byte, since a learner keeps one per impression that
may still get feedback.

Besides, there are notes: a slot was clicked, disliked or purchased without ending the impression, or a number of slots
was looked at. Each is a constant below plus the slot or the number. The log holds each of them once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

Outcome = int

MOVED: Final = 240  # to another version of the catalogue
VOIDED: Final = 250  # does not count, whatever other events say
SEEN: Final = 251  # the page reports it on screen: without feedback the visitor has left without a click
ABANDONED: Final = 252  # the visitor or the page reported that there was no click
TIMED_OUT: Final = 253  # no feedback in time, which the collection counts as leaving
UNSEEN: Final = 254  # no feedback in time, which the collection counts as not looking
WAITING: Final = 255  # shown, outcome unknown

CLICKED: Final = 300  # plus a slot, besides the one that satisfied
DISLIKED: Final = 400
PURCHASED: Final = 500
LOOKED_AT: Final = 600  # plus a number of slots
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
    """Return whether the visitor was satisfied; then the outcome is the slot."""
    return outcome < MOVED


def is_note(outcome: Outcome) -> bool:
    """Return whether it is a note, which neither begins nor ends an impression."""
    return outcome > WAITING


def note_of(outcome: Outcome) -> tuple[Outcome, int]:
    """Split a note into its kind and its slot or number.

    >>> note_of(CLICKED + 7) == (CLICKED, 7)
    True
    """
    return outcome - outcome % _HUNDRED, outcome % _HUNDRED


def is_end(outcome: Outcome) -> bool:
    """Return whether it ends or voids an impression."""
    return is_satisfied(outcome) or outcome in (VOIDED, ABANDONED, TIMED_OUT, UNSEEN)


def word_of(outcome: Outcome) -> str:
    """Return its name on pages and in metrics.

    >>> [word_of(outcome) for outcome in (0, 7, VOIDED, SEEN, ABANDONED, TIMED_OUT, UNSEEN, WAITING, PURCHASED + 2)]
    ['satisfied', 'satisfied', 'voided', 'seen', 'abandoned', 'abandoned', 'unseen', 'shown', 'purchased']
    """
    if is_note(outcome):
        return _NOTES[note_of(outcome)[0]]
    return _WORDS.get(outcome, "satisfied")


def by_word(counts: Mapping[Outcome, int]) -> Counter[str]:
    """Sum outcome counts by name: shown, satisfied, abandoned, unseen and so on."""
    found: Counter[str] = Counter()
    for outcome, count in counts.items():
        found[word_of(outcome)] += count
    return found
