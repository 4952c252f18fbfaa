"""`PathZooming`: the slot learner of ZoomRank. Every click counts for all ancestors of the document, in every slot.

Why it needs so few visits:

1. *Path counting.* An examined document counts for itself and for all subtrees that hold it: nothing starts from zero
   when the view gets finer.
2. *Slots help each other.* What a subtree earned in other slots counts too, but for at most `borrow` visits: visitors
   of other slots had skipped other documents, so a slot's own evidence wins in the end.
3. *A bound that knows that clicks are rare.* With mean p of n visits, `p + a + sqrt(a² + 2pa)` with `a = c / n` bounds
   the chance of a click from above as KL-UCB does, in closed form. It shrinks like 1/n where nobody clicks; a
   confidence radius shrinks like 1/sqrt(n).
4. *Every ancestor is a witness.* The index of a subtree is its bound and `optimism` times its width, and nothing below
   a subtree is believed to be better than the subtree's own index. So the document found by walking down along the best
   is the one whose worst witness is best.
5. *The correlation rule* of RankCorrZoom, as it is.
6. *Nothing is locked out for ever.* c is `confidence · (1 + growth · log(2N / mn))` with N the visits of the parent
   and m its children: what bad luck made look poor is looked at again as its siblings are visited more and more, and
   one of forty children is not in want of visits before it has had less than its share.

After feedback only the root paths of the examined documents change, in the slot that learned; other slots, and siblings
along the path, are looked at each time visits have grown by an eighth.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.interface import (
    LARGEST_CONTEXT,
    Bandit,
    Clock,
    Feedback,
    Seed,
    Strategy,
    endless,
    on_reset,
    on_roomy,
    on_select,
    on_subtree,
    on_update,
)
from zoomrank.bandits.subtree import Grove
from zoomrank.bandits.visited import (
    Visited,
    count_visit,
    entry_of,
    fan_of,
    fresh_visited,
    is_roomy,
    more_visited,
    roomier,
    with_room,
)
from zoomrank.bandits.zooming import (
    Paths,
    correlation_cap,
    farthest_from,
    fresh_paths,
    one_of_the_best,
    remember_paths,
    share_out,
)
from zoomrank.compiled import Scalar, flat, inlined
from zoomrank.errors import ParameterError
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.topology import Array

TABLE = 4096  # logarithms that are looked up
LOG_2 = float(np.log(2.0))


class Bounds(NamedTuple):
    """What may be hoped for, beside the counts of `Visited`."""

    worth: Array  # [entry, slot]: I(u), as it was when it was last looked at
    bound: Array  # [entry, slot]: B(u), what is at most to be expected of its best document
    due: Array  # [entry]: the visits at which its children's bounds are computed again


class Taste(NamedTuple):
    """How to explore: the parameters of `PathZooming`."""

    confidence: float
    growth: float
    optimism: float
    borrow: float
    correlated: bool


class Limits(NamedTuple):
    """Scratch, beside the stack of `Paths`, and a table."""

    stack_limit: Array  # what the witnesses above an entry allow
    logarithm: Array  # of 1, 2, 3, …


PathState = flat("PathState", Grove, Visited, Bounds, Taste, Paths, Limits, Clock)


@inlined
def upper_bound(mean: Scalar, visits: Scalar, confidence: Scalar) -> Scalar:
    """Bound a chance of clicks from above; in closed form, from kl(p, q) ≥ (q - p)² / 2q."""
    a = confidence / visits
    return min(1.0, mean + a + np.sqrt(a * a + 2.0 * mean * a))


@inlined
def _evidence(state: Any, entry: Scalar, slot: Scalar) -> tuple[Scalar, Scalar]:
    """The visits and clicks that count in a slot: its own, and some that are lent by the others."""
    at, column = np.uint64(entry), np.uint64(slot)
    plays, clicks = np.float64(state.plays[at, column]), np.float64(state.clicks[at, column])
    others = np.float64(state.total[at]) - plays
    if others > 0.0:
        lent = min(state.borrow, others)
        clicks += lent * (np.float64(state.gains[at]) - clicks) / others
        plays += lent
    return plays, clicks


@inlined
def _logarithm(state: Any, visits: Scalar) -> Scalar:
    """The natural logarithm, of a number of visits, to three digits or more: by a table, which is much faster."""
    at, doublings = np.uint64(visits), 0.0
    while at >= np.uint64(TABLE):
        at >>= np.uint64(4)
        doublings += 4.0
    return state.logarithm[at] + LOG_2 * doublings


@inlined
def _index(state: Any, entry: Scalar, plays: Scalar, clicks: Scalar, around: Scalar) -> Scalar:
    """The index of an entry, by the evidence that counts in a slot and the visits of its parent: a bound and a share of
    its width.
    """
    bound = np.inf  # what only slots have shown that do not count is as good as unseen
    if plays >= 1.0:
        siblings = max(0.0, _logarithm(state, fan_of(state, state.up[np.uint64(entry)])) - LOG_2)
        surplus = max(0.0, _logarithm(state, around) - _logarithm(state, plays) - siblings)
        bound = upper_bound(clicks / plays, plays, state.confidence * (1.0 + state.growth * surplus))
    return bound + state.optimism * state.width[np.uint64(state.node[np.uint64(entry)])]


@inlined
def _best_child(state: Any, entry: Scalar, slot: Scalar) -> Scalar:
    """The best bound among the children of an entry; infinite while they are not told apart."""
    at, column = np.uint64(entry), np.uint64(slot)
    top = np.inf
    first = np.uint64(state.child[at])
    if first != 0:
        top = state.bound[first, column]
        fan = fan_of(state, at)
        for step in range(np.uint64(1), fan):
            top = max(top, state.bound[first + step, column])
    return top


@inlined
def _look_again(state: Any, entry: Scalar, slot: Scalar) -> None:
    """Compute the index of an entry in a slot from what is known now."""
    plays, clicks = _evidence(state, entry, slot)
    around, _ = _evidence(state, state.up[np.uint64(entry)], slot)
    state.worth[np.uint64(entry), np.uint64(slot)] = _index(state, entry, plays, clicks, around)


@inlined
def _is_due(state: Any, entry: Scalar) -> Scalar:
    """Whether an entry's visits have grown by an eighth since all slots looked at it."""
    return state.total[np.uint64(entry)] >= state.due[np.uint64(entry)]


@inlined
def _rebound_path(state: Any, entry: Scalar, own: Scalar) -> None:
    """Compute B(u) anew from an entry up to the root: in the slot that learned and, where visits have grown by an
    eighth, in all slots, for the entry and for its children.
    """
    for slot in range(np.uint64(state.bound.shape[1])):
        at, below = np.uint64(entry), np.uint64(0)
        changed, going = True, True
        while going:
            due = _is_due(state, at)
            first = np.uint64(state.child[at])
            if due and first != 0:
                fan = fan_of(state, at)
                for step in range(fan):
                    child = first + step
                    if state.total[child] > 0 and child != below:
                        _look_again(state, child, slot)
                        state.bound[child, slot] = min(state.worth[child, slot], _best_child(state, child, slot))
            if due or slot == np.uint64(own):
                _look_again(state, at, slot)
                changed = True
            if changed:
                value = min(state.worth[at, slot], _best_child(state, at, slot))
                changed = value != state.bound[at, slot]
                state.bound[at, slot] = value
            going = at != 0
            below = at
            at = np.uint64(state.up[at])
    at = np.uint64(entry)
    going = True
    while going:
        if _is_due(state, at):
            state.due[at] = state.total[at] + (state.total[at] >> np.uint32(3)) + np.uint32(1)
        going = at != 0
        at = np.uint64(state.up[at])


@on_update(PathState)
def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    _rebound_path(state, count_visit(state, slot, feedback.pick, feedback.reward), slot)


@inlined
def _walk_freely(state: Any, slot: Scalar, entry: Scalar, cap: Scalar, rng: np.random.Generator) -> Scalar:
    """Walk down along the best bound, capped by one number, to an entry that is not told apart."""
    column, at = np.uint64(slot), np.uint64(entry)
    while state.child[at] != 0:
        first = np.uint64(state.child[at])
        fan = fan_of(state, at)
        top, ties = min(state.bound[first, column], cap), 1
        at = first
        for step in range(np.uint64(1), fan):
            value = min(state.bound[first + step, column], cap)
            if value > top:
                top, ties = value, 1
                at = first + step
            elif value == top:
                ties += 1
        if ties > 1:
            skip = np.int64(rng.random() * ties)
            at = first
            while min(state.bound[at, column], cap) != top or skip > 0:
                if min(state.bound[at, column], cap) == top:
                    skip -= 1
                at += np.uint64(1)
    return np.int64(at)


@inlined
def _capped_bound(state: Any, slot: Scalar, entry: Scalar, depth: Scalar, mask: Scalar, threshold: Scalar) -> Scalar:
    """The best capped bound below an entry that holds documents of S; if below the threshold, anything below it.

    Witnesses count on the way down, too: nothing below an entry is worth more than its own bound.
    """
    found = -1.0
    column, size = np.uint64(slot), np.uint64(1)
    state.stack_entry[0], state.stack_depth[0], state.stack_mask[0] = entry, depth, mask
    state.stack_limit[0] = np.inf
    while size > 0:
        size -= np.uint64(1)
        at = np.uint64(state.stack_entry[size])
        level, here = state.stack_depth[size], state.stack_mask[size]
        node = np.uint64(state.node[at])
        width = state.width[node]
        limit = min(state.stack_limit[size], state.bound[at, column])
        bound = min(limit, width)
        if bound >= threshold and bound > found:
            first = np.uint64(state.child[at])
            if first == 0:
                found = max(found, min(limit, farthest_from(state, node, level, here)))
            else:
                share_out(state, state.inner, node, level, here)
                fan = fan_of(state, at)
                for step in range(fan):
                    if state.inner[step] == 0:
                        found = max(found, min(state.bound[first + step, column], bound))
                    else:
                        state.stack_entry[size] = first + step
                        state.stack_depth[size] = level + 1
                        state.stack_mask[size] = state.inner[step]
                        state.stack_limit[size] = limit
                        size += np.uint64(1)
    return found


@on_select(PathState)
def _select(state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> tuple[Scalar, Scalar]:
    if not state.correlated:
        above = 0
    remember_paths(state, shown, above)
    column, at = np.uint64(slot), np.uint64(0)
    depth, mask, cap = 0, (1 << above) - 1, np.inf
    while mask != 0 and state.child[at] != 0:
        first, node = np.uint64(state.child[at]), np.uint64(state.node[at])
        fan = fan_of(state, at)
        cap = state.width[node]
        share_out(state, state.below, node, depth, mask)
        top = -1.0
        for step in range(fan):  # first the children off the paths: what they are worth spares looks at the others
            if state.below[step] == 0:
                state.value[step] = min(state.bound[first + step, column], cap)
                top = max(top, state.value[step])
        start = np.uint64(state.child_start[node])
        for step in range(fan):
            if state.below[step] != 0:
                state.value[step] = -1.0
                if min(state.bound[first + step, column], state.width[start + step]) >= top:
                    state.value[step] = _capped_bound(state, slot, first + step, depth + 1, state.below[step], top)
                    top = max(top, state.value[step])
        chosen = one_of_the_best(state.value, fan, top, rng)
        at = first + chosen
        depth += 1
        mask = state.below[chosen]
    return _walk_freely(state, slot, at, cap, rng), 1.0


@on_subtree(PathState)
def _subtree(state: Any, slot: Scalar, strategy: Scalar) -> Scalar:
    return np.int64(state.node[strategy])


@on_reset(PathState)
def _reset(state: Any, slot: Scalar, horizon: Scalar) -> None:
    """Nothing is made afresh: confidence grows instead."""


@on_roomy(PathState)
def _roomy(state: Any) -> Scalar:
    return is_roomy(state)


class PathZooming(Bandit):
    """Counts along paths, shared by all slots; see the top of this file for what the parameters do.

    >>> bandit = PathZooming(DocumentTree.exponential(depth=4), seed=0)
    >>> for _ in range(100):
    ...     choice = bandit.select()
    ...     bandit.update(choice, reward=int(choice.document == 5))
    >>> bandit.select().document
    5
    """

    anytime = True

    def __init__(
        self,
        tree: DocumentTree,
        *,
        confidence: float = 0.5,
        growth: float = 1.0,
        optimism: float = 0.25,
        borrow: float = 30.0,
        correlated: bool = True,
        seed: Seed = None,
    ) -> None:
        super().__init__(tree, seed)
        for name, value in (("confidence", confidence), ("growth", growth), ("optimism", optimism), ("borrow", borrow)):
            if not 0 <= value < np.inf or (name == "confidence" and value == 0):
                raise ParameterError(f"{name} must be a number, 0 or more (confidence above 0), not {value}.")
        self.confidence, self.growth, self.optimism = float(confidence), float(growth), float(optimism)
        self.borrow, self.correlated = float(borrow), bool(correlated)

    not_saved = Bandit.not_saved | {*Paths._fields, *Limits._fields}

    @property
    def settings(self) -> dict[str, Any]:
        """What rebuilds this bandit."""
        return {
            "confidence": self.confidence,
            "growth": self.growth,
            "optimism": self.optimism,
            "borrow": self.borrow,
            "correlated": self.correlated,
        }

    def fresh_state(self, slots: int) -> Any:
        """Nothing seen but that there is a root."""
        visited = fresh_visited(self.tree, slots)
        hopes = np.full((len(visited.node), slots), np.inf)
        bounds = Bounds(hopes, hopes.copy(), np.zeros(len(visited.node), np.uint32))
        taste = Taste(self.confidence, self.growth, self.optimism, self.borrow, self.correlated)
        paths = fresh_paths(self.tree, LARGEST_CONTEXT if slots == 1 else slots, visited.widest)
        limits = Limits(np.zeros(len(paths.stack_entry)), np.log(np.maximum(np.arange(TABLE), 1)))
        return PathState(*self.grove, *visited, *bounds, *taste, *paths, *limits, *endless(slots))

    def larger(self, state: Any) -> Any:
        """Room for more entries, of which anything may be hoped."""
        room = roomier(state, self.tree)
        hopes = {name: with_room(getattr(state, name), room, np.inf) for name in ("worth", "bound")}
        return state._replace(**more_visited(state, room), **hopes, due=with_room(state.due, room))

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:
        """The finest subtree that was told apart and holds the document, with the visits that count in this slot."""
        entry = int(entry_of(state, document))
        plays, clicks = int(state.plays[entry, slot]), int(state.clicks[entry, slot])
        bound = float(state.bound[entry, slot])
        mean = clicks / plays if plays else 0.0
        cap = correlation_cap(self.tree, int(state.node[entry]), above if self.correlated else above[:0])
        return Strategy(int(state.node[entry]), plays, clicks, bound - mean, bound, cap)
