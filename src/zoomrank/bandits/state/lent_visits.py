"""A loan: visits that similar queries lend, how far they are believed, and how that is found out.

A loan says for some subtrees, slot by slot, that so many visits of other queries brought so many clicks. They count
beside the learner's own, times its *faith* in them. Faith follows from a score. Before every answer two believers say
how likely a click on the document is: one by what was seen here, the other by what was lent of it as well. What the
second has got better than the first, in logarithms, is added up for all subtrees that hold the document. A subtree
believes its own score and, of what was found out around it, a share. So a loan that is wrong everywhere is soon given
up, and one that is wrong somewhere, there. A new loan is scored by all that was seen before it came, and begins with a
share of what the loans before it have earned: who was misled again and again becomes careful.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.state.path_bounds import own_evidence, rebound_subtree
from zoomrank.bandits.state.visited import tell_apart, with_room
from zoomrank.compiled import Scalar, compiled, inlined
from zoomrank.numbers import Array

UNKNOWN = 0.1  # the chance of a click on a document of which nobody knows anything
MOST_NEWS = 2.0  # what one answer can change a score by
FIRMEST = 6.0  # no score goes beyond: faith can be lost and won again
HEARSAY = 0.9  # the share of what was found out elsewhere that counts, per level
HABIT = 0.75  # the share of the score of earlier loans that a new one begins with
MOST_HABIT = 5.0
MOVED = 0.5  # how far the score of a subtree has to move before all within it is looked at again


class LentVisits(NamedTuple):
    """What was lent, beside the counts of `VisitCounts`."""

    lent: Array  # [entry, slot]: visits
    lent_clicks: Array  # [entry, slot]: clicks among them
    score: Array  # [entry]: how much better the loan has predicted what was seen below
    weight: Array  # [entry]: that, with what was found out around it, as it was when it was last looked at
    faith: Array  # [entry]: the share of the loan that counts, from 0 to 1
    credit: Array  # what the score of a loan begins at; and what this learner's earlier loans have to do with that


def no_loan(room: int, slots: int) -> LentVisits:
    """Nothing is lent."""
    lent, clicks = (np.zeros((room, slots), np.float32) for _ in range(2))
    score, weight, faith = (np.zeros(room, np.float32) for _ in range(3))
    return LentVisits(lent, clicks, score, weight, faith, np.zeros(2))


def more_lent(state: Any, room: int) -> dict[str, Array]:
    """The same loan with room for more entries."""
    return {name: with_room(getattr(state, name), room) for name in LentVisits._fields if name != "credit"}


@inlined
def evidence_with_loan(state: Any, entry: Scalar, slot: Scalar) -> tuple[Scalar, Scalar]:
    """The visits and clicks that count in a slot: those of the learner, and the loan as far as it is believed."""
    at, column = np.uint64(entry), np.uint64(slot)
    plays, clicks = own_evidence(state, at, column)
    lent, clicked = np.float64(state.lent[at, column]), np.float64(state.lent_clicks[at, column])
    faith = np.float64(state.faith[at])
    return plays + faith * lent, clicks + faith * clicked


@inlined
def _weigh(state: Any, entry: Scalar) -> Scalar:
    """How far the score of an entry reaches, with that of all around it."""
    at = np.uint64(entry)
    own = np.float64(state.score[at])
    if at == 0:
        return own + state.credit[0]
    return own + HEARSAY * (np.float64(state.weight[np.uint64(state.up[at])]) - own)


@inlined
def _prior(state: Any) -> Scalar:
    """As many visits as what is expected of the unseen counts for: nobody is sure of anything after one."""
    return max(state.prior, 1.0)


@inlined
def judge(state: Any, slot: Scalar, document: Scalar, reward: Scalar) -> None:
    """Score what the loan says of a document, before the answer is counted.

    Where the document is not told apart, it is the smallest subtree that holds it. What is expected of one that nobody
    has seen is the same to both: what was seen here around it. Otherwise the loan would be blamed for that.
    """
    at, column, going, alone, prior = np.uint64(0), np.uint64(slot), True, UNKNOWN, _prior(state)
    around = alone
    while going:
        plays, clicks = own_evidence(state, at, column)
        around, alone = alone, (clicks + prior * alone) / (plays + prior)
        going = state.child[at] != 0
        if going:
            at = np.uint64(state.child[at])
            while state.end_document[state.node[at]] <= document:
                at += np.uint64(1)
    plays, clicks = own_evidence(state, at, column)
    seen = plays + np.float64(state.lent[at, column])
    together = (clicks + np.float64(state.lent_clicks[at, column]) + prior * around) / (seen + prior)
    news = np.log(together / alone) if reward == 1 else np.log((1.0 - together) / (1.0 - alone))
    news = max(-MOST_NEWS, min(MOST_NEWS, news))
    if news != 0.0:
        going = True
        while going:
            state.score[at] = max(-FIRMEST, min(FIRMEST, np.float64(state.score[at]) + news))
            going = at != 0
            at = np.uint64(state.up[at])


@inlined
def _believe(state: Any, entry: Scalar) -> None:
    """Work out anew how far the loan is believed at an entry."""
    at = np.uint64(entry)
    weight = _weigh(state, at)
    state.weight[at] = weight
    state.faith[at] = 1.0 / (1.0 + np.exp(-weight))


@inlined
def reconsider(state: Any, entry: Scalar) -> None:
    """Look again at all below the largest subtree that holds an entry and whose score has moved."""
    at, moved, some, going = np.uint64(entry), np.uint64(0), False, True
    while going:
        if abs(_weigh(state, at) - np.float64(state.weight[at])) >= MOVED:
            moved, some = at, True
        going = at != 0
        at = np.uint64(state.up[at])
    if some:
        _believe_below(state, moved)
        rebound_subtree(state, moved)


@inlined
def _believe_below(state: Any, entry: Scalar) -> None:
    """Work out anew how far the loan is believed in a subtree."""
    size = np.uint64(1)
    state.search_entry[0] = entry
    while size > 0:
        size -= np.uint64(1)
        at = np.uint64(state.search_entry[size])
        _believe(state, at)
        first = np.uint64(state.child[at])
        if first != 0:
            for child in range(first, first + np.uint64(state.fan[at])):
                state.search_entry[size] = np.int64(child)
                size += np.uint64(1)


@compiled
def believe_at(state: Any, anew: Array) -> None:
    """Work out anew how far the loan is believed at some entries, parents before children."""
    for entry in range(state.filled[0]):
        if anew[entry]:
            _believe(state, entry)


@inlined
def _luck(plays: Scalar, clicks: Scalar, strength: Scalar, mean: Scalar) -> Scalar:
    """The logarithm of the chance of so many clicks, to one who has seen `strength` visits with this mean before."""
    found, seen = 0.0, strength
    expected = strength * mean
    for _ in range(np.int64(clicks)):
        found += np.log(expected / seen)
        expected += 1.0
        seen += 1.0
    expected = strength * (1.0 - mean)
    for _ in range(np.int64(plays) - np.int64(clicks)):
        found += np.log(expected / seen)
        expected += 1.0
        seen += 1.0
    return found


@inlined
def _judge_all(state: Any) -> None:
    """Score a new loan by all that was seen before it came."""
    prior = _prior(state)
    overall = (np.float64(state.gains[0]) + prior * UNKNOWN) / (np.float64(state.total[0]) + prior)
    for entry in range(state.filled[0]):
        state.score[entry] = 0.0
    for entry in range(state.filled[0]):
        if state.child[entry] == 0 and state.total[entry] > 0:
            news = 0.0
            for slot in range(state.lent.shape[1]):
                plays, lent = np.float64(state.plays[entry, slot]), np.float64(state.lent[entry, slot])
                if plays > 0.0 and lent > 0.0:
                    clicks = np.float64(state.clicks[entry, slot])
                    mean = (np.float64(state.lent_clicks[entry, slot]) + prior * overall) / (lent + prior)
                    news += _luck(plays, clicks, lent + prior, mean) - _luck(plays, clicks, prior, overall)
            at, going = np.uint64(entry), news != 0.0
            while going:
                state.score[at] += news
                going = at != 0
                at = np.uint64(state.up[at])
    for entry in range(state.filled[0]):
        state.score[entry] = max(-FIRMEST, min(FIRMEST, np.float64(state.score[entry])))


@compiled
def most_entries(parent: Array, child_start: Array, node: Array) -> Scalar:
    """How many entries a loan makes at most: those of all children of its parents."""
    found, last = np.int64(0), np.int64(-1)
    for place in range(1, len(node)):
        above = np.int64(parent[node[place]])
        if above != last:  # parents ascend as their children do
            found += np.int64(child_start[above + 1]) - np.int64(child_start[above])
            last = above
    return found


@compiled
def take(state: Any, node: Array, lent: Array, clicks: Array, credit: Scalar) -> Scalar:
    """Take a loan instead of the one before: nodes in ascending order, with the root, each with its parent.

    Says whether there was room for it; if not, it can be taken again where there is.
    """
    for old in range(state.filled[0]):
        for slot in range(lent.shape[1]):
            state.lent[old, slot], state.lent_clicks[old, slot] = 0.0, 0.0
    entry_of_node = np.zeros(len(node), np.uint64)
    above = 0
    for place in range(len(node)):
        entry: Scalar = np.uint64(0)
        if place > 0:
            parent = state.parent[node[place]]
            while node[above] < parent:  # parents ascend as their children do
                above += 1
            over = entry_of_node[above]
            if state.child[over] == 0:
                if state.filled[0] + np.int64(state.fan[over]) > len(state.node):
                    return False
                tell_apart(state, over)
            entry = np.uint64(state.child[over]) + np.uint64(node[place]) - np.uint64(state.child_start[parent])
        entry_of_node[place] = entry
        for slot in range(lent.shape[1]):
            state.lent[entry, slot], state.lent_clicks[entry, slot] = lent[place, slot], clicks[place, slot]
    habit = HABIT * (state.credit[1] + np.float64(state.score[0]))
    state.credit[1] = max(-MOST_HABIT, min(MOST_HABIT, habit))
    state.credit[0] = credit + state.credit[1]
    _judge_all(state)
    _believe_below(state, 0)
    rebound_subtree(state, 0)
    return True
