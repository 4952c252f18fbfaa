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
6. *Children take after their parents.* A subtree starts as if it had had `prior` visits that went as those of its
   parent did. So an unseen child is tried soon where things go well, late where they do not.
7. *Nothing is locked out for ever.* c is `confidence · (1 + growth · log(2sN / n))` with N the visits of the parent and
   s the share of its documents that this subtree has: what bad luck made look poor is looked at again as its siblings
   are visited more and more, and a small subtree is not in want of visits before it has had less than its share.

After feedback only counts along the root paths of the examined documents change. Indices are computed again where
visits have grown by an eighth: at first at every visit, later rarely. So a round costs little, and ranking is a walk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.interface import (
    LARGEST_CONTEXT,
    Bandit,
    Clock,
    Feedback,
    Strategy,
    endless,
    on_reset,
    on_roomy,
    on_select,
    on_subtree,
    on_update,
)
from zoomrank.bandits.state.tree_view import Grove, size_of
from zoomrank.bandits.state.visited import (
    Visited,
    count_visit,
    entry_of,
    fresh_visited,
    growth,
    is_roomy,
    more_visited,
    roomier,
    transplant,
    widest_of,
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
from zoomrank.compiled import Scalar, compiled, flat, inlined, separate
from zoomrank.errors import ParameterError
from zoomrank.numbers import Array, Seed, whole_number
from zoomrank.spaces import DocumentTree

LONGEST_PATIENCE = 15  # visits without a click before a subtree's children are told apart, in a large collection
TABLE = 4096  # logarithms that are looked up
LOG_2 = float(np.log(2.0))


class Bounds(NamedTuple):
    """What may be hoped for, beside the counts of `Visited`."""

    worth: Array  # [entry, slot]: I(u), as it was when it was last looked at
    bound: Array  # [entry, slot]: B(u), what is at most to be expected of its best document
    favourite: Array  # [entry, slot]: the child with the best bound; 0 if there are several
    due: Array  # [entry]: the visits at which its children's bounds are computed again


class Taste(NamedTuple):
    """How to explore: the parameters of `PathZooming`."""

    confidence: float
    growth: float
    optimism: float
    borrow: float
    prior: float
    correlated: bool


class Trail(NamedTuple):
    """Scratch: the entries that hold documents of S, parents before children, beside the stack of `Paths`; a table."""

    limit: Array  # what the witnesses above an entry allow; then what it is worth itself
    best: Array  # the best capped bound among its children
    origin: Array  # the place of its parent in this list
    inside: Array  # the place of the first of its children that is in it
    search_entry: Array  # a stack of entries yet to be searched
    search_limit: Array  # and what those above them allow
    logarithm: Array  # of 1, 2, 3, …


PathState = flat("PathState", Grove, Visited, Bounds, Taste, Paths, Trail, Clock)


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
def _documents(state: Any, node: Scalar) -> Scalar:
    """How many documents a node has below it, eligible or not."""
    return np.uint64(state.end_document[np.uint64(node)]) - np.uint64(state.first_document[np.uint64(node)])


@inlined
def _look_again(
    state: Any, entry: Scalar, slot: Scalar, evidence: tuple[Scalar, Scalar], around: tuple[Scalar, Scalar]
) -> None:
    """Compute I(u), a bound and a share of the width, from the visits that count and those of its parent."""
    at, column = np.uint64(entry), np.uint64(slot)
    plays, clicks = evidence
    if at != 0:
        plays += state.prior
        clicks += state.prior * around[1] / max(around[0], 1.0)
    bound = np.inf  # what only slots have shown that do not count is as good as unseen
    if plays >= 1.0:
        above = state.node[np.uint64(state.up[at])]
        part = (
            _logarithm(state, _documents(state, above)) - _logarithm(state, _documents(state, state.node[at])) - LOG_2
        )
        surplus = max(0.0, _logarithm(state, around[0]) - _logarithm(state, plays) - part)
        bound = upper_bound(clicks / plays, plays, state.confidence * (1.0 + state.growth * surplus))
    state.worth[at, column] = bound + state.optimism * state.width[np.uint64(state.node[at])]


@inlined
def _rebound(state: Any, entry: Scalar, slot: Scalar) -> Scalar:
    """Compute B(u) of an entry from what is known of it and its children; says whether that was news."""
    at, column = np.uint64(entry), np.uint64(slot)
    top, favourite = np.inf, np.uint64(0)
    first = np.uint64(state.child[at])
    if first != 0:
        top, favourite = state.bound[first, column], first
        for step in range(np.uint64(1), np.uint64(state.fan[at])):
            value = state.bound[first + step, column]
            if value > top:
                top, favourite = value, first + step
            elif value == top:
                favourite = np.uint64(0)
        state.favourite[at, column] = favourite
    value = min(state.worth[at, column], top)
    changed = value != state.bound[at, column]
    state.bound[at, column] = value
    return changed


@inlined
def _rebound_path(state: Any, entry: Scalar) -> None:
    """Compute B(u) anew from an entry up to the root: of those, and the children of those, whose visits have grown by
    an eighth since that was last done, and of whatever is above a change.
    """
    at, last, some, going = np.uint64(entry), np.uint64(0), False, True
    while going:
        if state.total[at] >= state.due[at]:
            last, some = at, True
        going = at != 0
        at = np.uint64(state.up[at])
    if some:
        for slot in range(np.uint64(state.bound.shape[1])):
            at, waiting, going = np.uint64(entry), True, True
            while going:
                if waiting and state.total[at] >= state.due[at]:
                    evidence = _evidence(state, at, slot)
                    _look_below(state, at, slot, evidence)
                    _look_again(state, at, slot, evidence, _evidence(state, state.up[at], slot))
                waiting = waiting and at != last
                changed = _rebound(state, at, slot)
                going = at != 0 and (waiting or changed)
                at = np.uint64(state.up[at])
        at, going = np.uint64(entry), True
        while going:
            if state.total[at] >= state.due[at]:
                state.due[at] = state.total[at] + (state.total[at] >> np.uint32(3)) + np.uint32(1)
            going = at != last
            at = np.uint64(state.up[at])


@inlined
def _look_below(state: Any, entry: Scalar, slot: Scalar, around: tuple[Scalar, Scalar]) -> None:
    """Look again at the children of an entry."""
    first = np.uint64(state.child[np.uint64(entry)])
    if first != 0:
        for child in range(first, first + np.uint64(state.fan[np.uint64(entry)])):
            _look_again(state, child, slot, _evidence(state, child, slot), around)
            _rebound(state, child, slot)


@on_update(PathState)
def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    _rebound_path(state, count_visit(state, slot, feedback.pick, feedback.reward))


@separate
def _best_eligible(state: Any, slot: Scalar, entry: Scalar, cap: Scalar, threshold: Scalar) -> Scalar:
    """The best bound, capped by one number, of the eligible documents below an entry; if below the threshold, anything
    below it.

    A search that turns back where witnesses allow no more than was found already. It goes down along the favourites
    first, so that it finds much of what there is at once.
    """
    found, column, size = -1.0, np.uint64(slot), np.uint64(1)
    state.search_entry[0], state.search_limit[0] = entry, cap
    while size > 0:
        size -= np.uint64(1)
        at = np.uint64(state.search_entry[size])
        most = min(state.search_limit[size], state.bound[at, column])
        if most < threshold or most <= found or size_of(state, state.node[at]) == 0:
            continue
        first = np.uint64(state.child[at])
        if first == 0:
            found = most
            continue
        favourite = np.uint64(state.favourite[at, column])
        for turn in range(2):
            for child in range(first, first + np.uint64(state.fan[at])):
                if (child == favourite) == (turn == 1):
                    state.search_entry[size], state.search_limit[size] = child, most
                    size += np.uint64(1)
    return found


@inlined
def _hope(state: Any, slot: Scalar, entry: Scalar, cap: Scalar, threshold: Scalar) -> Scalar:
    """What may be hoped for below an entry that holds no document of S: exactly, unless it is below the threshold."""
    value = min(state.bound[np.uint64(entry), np.uint64(slot)], cap)
    if len(state.eligible) > 0 and value >= threshold:
        value = _best_eligible(state, slot, entry, cap, threshold)
    return value


@inlined
def _walk_along_favourites(state: Any, slot: Scalar, entry: Scalar, cap: Scalar) -> Scalar:
    """Walk down as long as one child is better than all others and the cap does not matter."""
    at, going = np.uint64(entry), True
    while going:
        favourite = np.uint64(state.favourite[at, np.uint64(slot)])
        going = state.child[at] != 0 and favourite != 0 and state.bound[favourite, np.uint64(slot)] <= cap
        if going:
            at = favourite
    return at


@inlined
def _walk_freely(
    state: Any, slot: Scalar, entry: Scalar, cap: Scalar, known: Scalar, rng: np.random.Generator
) -> Scalar:
    """Walk down along the best bound, capped by one number, to an entry whose children are not told apart.

    What is known to be below the entry spares the search for eligible documents everything that is worth less.
    """
    at = np.uint64(entry)
    while state.child[at] != 0:
        ahead = _walk_along_favourites(state, slot, at, cap)
        if len(state.eligible) == 0 or (state.child[ahead] == 0 and size_of(state, state.node[ahead]) > 0):
            at = ahead
        if state.child[at] != 0:
            first, fan, top = np.uint64(state.child[at]), np.uint64(state.fan[at]), -1.0
            for step in range(fan):
                state.value[step] = _hope(state, slot, first + step, cap, max(top, known))
                top = max(top, state.value[step])
            known = top
            at = first + one_of_the_best(state.value, fan, top, rng)
    return np.int64(at)


@inlined
def _follow_paths(state: Any, slot: Scalar, above: Scalar) -> Scalar:
    """List the entries that hold documents of S, and compute what is to be expected of their best documents under the
    cap; returns how many there are. Those that cannot hold the best of all are worth -1.

    Witnesses count on the way down, too: nothing below an entry is worth more than its own bound.
    """
    column, size, place = np.uint64(slot), np.uint64(1), np.uint64(0)
    found = -1.0
    state.stack_entry[0], state.stack_depth[0], state.stack_mask[0] = 0, 0, (1 << above) - 1
    state.limit[0] = state.bound[0, column]
    while place < size:
        at = np.uint64(state.stack_entry[place])
        node, first = np.uint64(state.node[at]), np.uint64(state.child[at])
        width, limit = state.width[node], state.limit[place]
        best = -1.0
        state.inside[place] = size
        if min(limit, width) >= found and (len(state.eligible) == 0 or size_of(state, node) > 0):
            level, mask = state.stack_depth[place], state.stack_mask[place]
            if first == 0:
                best = farthest_from(state, node, level, mask)
            else:
                share_out(state, state.below, node, level, mask)
                for step in range(np.uint64(state.fan[at])):
                    if state.below[step] == 0:
                        best = max(best, _hope(state, slot, first + step, width, max(best, found)))
                    else:
                        state.stack_entry[size] = first + step
                        state.stack_depth[size] = level + 1
                        state.stack_mask[size] = state.below[step]
                        state.limit[size] = min(limit, state.bound[first + step, column])
                        state.origin[size] = place
                        size += np.uint64(1)
            found = max(found, min(limit, best))
        state.best[place] = best
        place += np.uint64(1)
    for back in range(np.uint64(1), size):
        place = size - back
        value = min(state.bound[np.uint64(state.stack_entry[place]), column], state.best[place])
        above_it = np.uint64(state.origin[place])
        state.limit[place] = value
        state.best[above_it] = max(state.best[above_it], value)
    return size


@on_select(PathState)
def _select(state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> tuple[Scalar, Scalar]:
    at, cap, known = np.uint64(0), np.inf, -1.0
    if state.correlated and above > 0:
        remember_paths(state, shown, above)
        size = _follow_paths(state, slot, above)
        place, on_path = np.uint64(0), True
        while on_path and state.child[at] != 0:
            first, fan, listed = np.uint64(state.child[at]), np.uint64(state.fan[at]), np.uint64(state.inside[place])
            cap = state.width[np.uint64(state.node[at])]
            for step in range(fan):
                if listed < size and np.uint64(state.stack_entry[listed]) == first + step:
                    state.value[step] = state.limit[listed]
                    state.below[step] = listed
                    listed += np.uint64(1)
                else:
                    state.value[step] = _hope(state, slot, first + step, cap, state.best[place])
                    state.below[step] = 0
            known = state.best[place]
            chosen = one_of_the_best(state.value, fan, known, rng)
            at = first + chosen
            place = np.uint64(state.below[chosen])
            on_path = place != 0
    return _walk_freely(state, slot, at, cap, known, rng), 1.0


@on_subtree(PathState)
def _subtree(state: Any, slot: Scalar, strategy: Scalar) -> Scalar:
    return np.int64(state.node[strategy])


@on_reset(PathState)
def _reset(state: Any, slot: Scalar, horizon: Scalar) -> None:
    """Nothing is made afresh: confidence grows instead."""


@on_roomy(PathState)
def _roomy(state: Any) -> Scalar:
    return is_roomy(state)


@compiled
def _rebound_all(state: Any) -> None:
    """Compute every B(u) anew, children before parents."""
    for back in range(state.filled[0]):
        for slot in range(state.bound.shape[1]):
            _rebound(state, state.filled[0] - 1 - back, slot)


def _fresh_trail(room: int) -> Trail:
    limit, best = np.zeros(room), np.zeros(room)
    origin, inside = np.zeros(room, np.int64), np.zeros(room, np.int64)
    search_entry, search_limit = np.zeros(room, np.int64), np.zeros(room)
    table = np.log(np.maximum(np.arange(TABLE), 1))
    return Trail(limit, best, origin, inside, search_entry, search_limit, table)


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
    restrictable = True

    def __init__(
        self,
        tree: DocumentTree,
        *,
        confidence: float = 0.5,
        growth: float = 1.0,
        optimism: float = 0.125,
        borrow: float = 30.0,
        prior: float = 2.0,
        correlated: bool = True,
        patience: int | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(tree, seed)
        if patience is None:  # in a small collection waiting saves little memory, and what is forgotten is missed
            patience = max(1, min(LONGEST_PATIENCE, len(tree) // 1000))
        self.patience = whole_number(patience, "patience")
        if not 1 <= self.patience < 2**31:
            raise ParameterError(f"patience must be 1 or more, not {patience}.")
        parameters = {
            "confidence": confidence,
            "growth": growth,
            "optimism": optimism,
            "borrow": borrow,
            "prior": prior,
        }
        for name, value in parameters.items():
            if not 0 <= value < np.inf or (name == "confidence" and value == 0):
                raise ParameterError(f"{name} must be a number, 0 or more (confidence above 0), not {value}.")
        self.confidence, self.growth, self.optimism = float(confidence), float(growth), float(optimism)
        self.borrow, self.prior, self.correlated = float(borrow), float(prior), bool(correlated)
        self._scratches: dict[int, tuple[Any, ...]] = {}

    not_saved = Bandit.not_saved | {*Paths._fields, *Trail._fields}

    @property
    def settings(self) -> dict[str, Any]:
        """What rebuilds this bandit."""
        return {
            "confidence": self.confidence,
            "growth": self.growth,
            "optimism": self.optimism,
            "borrow": self.borrow,
            "prior": self.prior,
            "correlated": self.correlated,
            "patience": self.patience,
        }

    def transplanted(self, state: Any, tree: DocumentTree) -> tuple[Bandit, Any]:
        """The same counts and bounds. Of new documents anything may be hoped, so each of them is soon tried where its
        subtree is.
        """
        moved = PathZooming(tree, **self.settings)
        fresh = moved.fresh_state(state.plays.shape[1], len(state.node) + len(tree) - len(self.tree))
        origin = transplant(state, fresh, growth(tree))
        known = np.flatnonzero(origin >= 0)
        fresh.worth[known], fresh.due[known] = state.worth[origin[known]], state.due[origin[known]]
        _rebound_all(fresh)
        return moved, fresh

    def fresh_state(self, slots: int, more: int = 0) -> Any:
        """Nothing seen but that there is a root."""
        visited = fresh_visited(self.tree, slots, self.patience, more)
        hopes = np.full((len(visited.node), slots), np.inf, np.float32)
        favourite, due = np.zeros(hopes.shape, np.uint32), np.zeros(len(hopes), np.uint32)
        bounds = Bounds(hopes, hopes.copy(), favourite, due)
        taste = Taste(self.confidence, self.growth, self.optimism, self.borrow, self.prior, self.correlated)
        return PathState(*self.grove, *visited, *bounds, *taste, *self._scratch(slots), *endless(slots))

    def _scratch(self, slots: int) -> tuple[Any, ...]:
        """Room to work in, which all learners of this bandit share."""
        if slots not in self._scratches:
            widest = widest_of(self.tree)
            paths = fresh_paths(self.tree, LARGEST_CONTEXT if slots == 1 else slots, widest)
            room = max(len(paths.stack_entry), (self.tree.depth + 1) * widest + 1)
            stack = {name: np.zeros(room, np.int64) for name in ("stack_entry", "stack_depth", "stack_mask")}
            self._scratches[slots] = (*paths._replace(**stack), *_fresh_trail(room))
        return self._scratches[slots]

    def larger(self, state: Any) -> Any:
        """Room for more entries, of which anything may be hoped."""
        room = roomier(state)
        hopes = {name: with_room(getattr(state, name), room, np.inf) for name in ("worth", "bound")}
        others = {name: with_room(getattr(state, name), room) for name in ("favourite", "due")}
        return state._replace(**more_visited(state, room), **hopes, **others)

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:
        """The finest subtree that was told apart and holds the document, with the visits that count in this slot."""
        entry = int(entry_of(state, document))
        plays, clicks = int(state.plays[entry, slot]), int(state.clicks[entry, slot])
        bound = float(state.bound[entry, slot])
        mean = clicks / plays if plays else 0.0
        cap = correlation_cap(self.tree, int(state.node[entry]), above if self.correlated else above[:0])
        return Strategy(int(state.node[entry]), plays, clicks, bound - mean, bound, cap)
