"""`PathZooming`: the slot learner of ZoomRank. Every click counts for all ancestors of the document, in every slot.

Why it needs so few visits:

1. *Path counting.* An examined document counts for itself and for all subtrees that hold it: no subtree starts from
   zero when its parent is split.
2. *Slots help each other.* What a subtree earned in other slots counts too, but for at most `borrow` visits: visitors
   of other slots had skipped other documents, so a slot's own evidence wins in the end.
3. *A bound for rates near 0 and 1.* With mean p of n visits, the upper end of Wilson's score interval bounds the click
   probability from above: the q with `n (q - p)² = 2c q (1 - q)`. It shrinks like 1/n without clicks; a confidence
   radius shrinks like 1/sqrt(n). Where all clicked, it is 1: nothing can be better, and the slot stays with that.
4. *Every ancestor is a witness.* The index of a subtree is its bound and `optimism` times its width, less the fewer
   documents it has, and nothing below a subtree may have a higher index than the subtree itself. So the walk down along
   the best index finds the document whose lowest ancestor index is highest. Observations are not limited in this way:
   the record of a single document, its mean, counts in full.
5. *The correlation rule* of RankCorrZoom, unchanged, for records and bounds alike.
6. *Children take after their parents.* A subtree starts with `prior` pseudo-visits at the click rate of its parent. So
   an unseen child is tried early below a good parent, late below a poor one.
7. *What looks poor is tried again.* c is `confidence · (1 + g · neglect)` in the lowest slot, and smaller in higher
   ones, in proportion to their place from the top: what the top shows, all others build on. The neglect of a subtree is
   `log(2sN / n)`, with N the visits of its parent and s its share of the parent's documents; so a subtree that looks
   poor by bad luck is tried again as its siblings are visited more and more. Neglect beyond `log 4` (less than half of
   the fair share) is passed down to all subtrees within it. g is `growth` times `v / (v + 300)`, with v the visits of
   the slot: at first, what was found is used, and what was unlucky waits.
8. *A trial must promise enough.* At first a twentieth is taken off all bounds, and less as visits come in: the slot
   stays with what is about as good as anything may be, such as what similar queries have found.
9. *Slots add to each other.* In a subtree that holds documents shown above, their own clicks do not count, each of
   them counts as `prior` visits without a click, and clicks lent by other slots count by a tenth. So the slots of a
   ranking explore different subtrees, and learn what to add to what stands above.

`bounds` keeps records and bounds up to date and `walk` chooses by them: a visit costs little, and ranking is a walk.

The learner also tells what a ranking is expected to gain, slot by slot (`slot_prospects`). A document is *proven* in a
slot if it has the best record there and was clicked. Any other is *on trial*: it is shown for its bound. The cost of a
trial is the expected loss compared with the best record.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from zoomrank.bandits.bandit import Prospects
from zoomrank.bandits.kernel_interface import Feedback, PhaseClock, endless_clock, register
from zoomrank.bandits.path_zooming.bounds import (
    NO_RECORD,
    PathBounds,
    estimated_mean,
    fresh_bounds,
    on_evidence,
    own_evidence,
    refresh_all_bounds,
    refresh_entries,
    refresh_path,
)
from zoomrank.bandits.path_zooming.state import (
    VisitCountingBandit,
    VisitCounts,
    count_visit,
    entries_fit,
    entry_of,
    fresh_visited,
    subtree_of_entry,
)
from zoomrank.bandits.path_zooming.walk import (
    LastWalks,
    PathScratch,
    best_of_all,
    best_of_eligible,
    forget_walks,
    fresh_path_scratch,
    no_walks,
    odds_along_paths,
    odds_of_eligible,
    on_best_of,
    rates_given,
    select_along_paths,
    select_eligible,
)
from zoomrank.bandits.tree_view import ContextScratch, TreeView, fresh_context_scratch, shown_below
from zoomrank.compiled import Function, Scalar, compiled, flat, inlined
from zoomrank.errors import ParameterError
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array, Seed, whole_number

CONFIDENCE, GROWTH, OPTIMISM, BORROW, PRIOR = 0.25, 2.0, 0.125, 30.0, 4.0  # docs/explanation/zoomrank.md
LONGEST_PATIENCE = 15  # most visits without a click before a subtree is split, in a large collection


class PathParameters(NamedTuple):
    """Parameters of `PathZooming`."""

    confidence: float
    growth: float
    optimism: float
    borrow: float
    prior: float
    correlated: bool


PARTS = (TreeView, VisitCounts, PathBounds, PathParameters, ContextScratch, PathScratch, LastWalks, PhaseClock)
PathState = flat("PathState", *PARTS)
# The same state for rankings restricted to eligible documents. It is a type of its own because the search for eligible
# documents would slow down all rankings and takes as long to compile as the rest; it is compiled on first use.
EligiblePathState = flat("EligiblePathState", *PARTS)


def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    entry = count_visit(state, slot, feedback.pick, feedback.reward)
    forget_walks(state, slot, feedback.pick, entry, refresh_path(state, entry))


_OF_ALL_PATHS: dict[str, Any] = {"subtree": subtree_of_entry, "roomy": entries_fit}


def register_paths(kind: Any, eligible: Any, evidence: Function, update: Function) -> None:
    """Register the kernels of two state types that count along paths: one for all documents, and one for eligible
    documents.

    The state types differ in the evidence that counts in a slot and in the update.
    """
    kinds = (
        (kind, select_along_paths, odds_along_paths, best_of_all),
        (eligible, select_eligible, odds_of_eligible, best_of_eligible),
    )
    for each, select, odds, best in kinds:
        on_best_of(each)(best)
        on_evidence(each)(evidence)
        register(each, select=select, odds=odds, update=update, **_OF_ALL_PATHS)


register_paths(PathState, EligiblePathState, own_evidence, _update)


class PathZooming(VisitCountingBandit):
    """Path zooming: a visit counts for all subtrees that hold the document, and in every slot.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents, of any shape.
    confidence : float
        Width of bounds: c in n (q - p)² = 2c q (1 - q), whose larger solution q is the bound; above 0.
    growth : float
        Extra width for a subtree that is visited less than its siblings, and for all within it: c is multiplied by `1 +
        growth · neglect` in the long run, and by less in the first hundreds of visits.
    optimism : float
        Share of a subtree's width that is added to its bound, in full with 32,768 documents; it grows like the square
        root of the logarithm of their number.
    borrow : float
        Most visits that the evidence of the other slots counts for.
    prior : float
        Number of pseudo-visits, at the click rate of its parent, that a subtree starts with; and of those without a
        click that a document shown above counts as.
    correlated : bool
        Take the documents shown above into account: cap bounds by the distance to them (the correlation rule), and
        leave out what they earned.
    patience : int or None
        Visits without a click after which a subtree is split into its children (after a click, at once); higher values
        use less memory. None: one per thousand documents, from 1 to 15. A subtree with fewer documents is split after
        one visit per document.
    seed : int, numpy.random.Generator or None
        Seed of a bandit used on its own.

    Examples
    --------
    >>> bandit = PathZooming(DocumentTree.exponential(depth=4), seed=0)
    >>> for _ in range(100):
    ...     choice = bandit.select()
    ...     bandit.update(choice, reward=int(choice.document == 5))
    >>> bandit.select().document
    5

    References
    ----------
    Our own, in the frame of Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013): the
    correlation rule is its Eq. 23. The bound is the score interval of Wilson, JASA 22 (1927).
    """

    keeps_records = True
    rule = 3
    derived = frozenset(PathBounds._fields)
    not_saved = VisitCountingBandit.not_saved | frozenset(PathScratch._fields + LastWalks._fields)
    per_entry: ClassVar[dict[str, float]] = {
        **VisitCountingBandit.per_entry,
        **dict.fromkeys(PathBounds._fields, 0),
        **{"worth": np.inf, "bound": np.inf, "record": NO_RECORD},
    }

    def __init__(
        self,
        tree: DocumentTree,
        *,
        confidence: float = CONFIDENCE,
        growth: float = GROWTH,
        optimism: float = OPTIMISM,
        borrow: float = BORROW,
        prior: float = PRIOR,
        correlated: bool = True,
        patience: int | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(tree, seed)
        if patience is None:  # in a small collection waiting saves little memory but loses counts
            patience = max(1, min(LONGEST_PATIENCE, len(tree) // 1000))
        self.patience = whole_number(patience, "patience")
        if not 1 <= self.patience < 2**31:
            raise ParameterError(f"patience must be 1 or more, not {patience}.")
        numbers = confidence, growth, optimism, borrow, prior
        for name, value in zip(PathParameters._fields, numbers, strict=False):
            if not 0 <= value < np.inf or (name == "confidence" and value == 0):
                raise ParameterError(f"{name} must be a number, 0 or more (confidence above 0), not {value}.")
        self.correlated = bool(correlated)
        confidence, growth, optimism, borrow, prior = map(float, numbers)
        self.parameters = PathParameters(confidence, growth, optimism, borrow, prior, self.correlated)
        self._scratches: dict[int, tuple[Any, ...]] = {}

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters that rebuild this bandit."""
        return {**self.parameters._asdict(), "patience": self.patience}

    def fresh_state(self, slots: int, more: int = 0) -> Any:
        """Return a state with only the root, and room for `more` entries."""
        visited = fresh_visited(self.tree, slots, self.patience, more)
        bounds = fresh_bounds(len(visited.node), slots)
        scratch = *self._scratch(slots), *no_walks(slots)
        return PathState(*self.view, *visited, *bounds, *self.parameters, *scratch, *endless_clock(slots))

    def restricted(self, state: Any, allowed: Array) -> Any:
        """Return the state for rankings of eligible documents, a type with kernels of its own."""
        return EligiblePathState(*state)._replace(eligible=allowed)

    def _scratch(self, slots: int) -> tuple[Any, ...]:
        """Allocate scratch space, shared by all learners of this bandit."""
        if slots not in self._scratches:
            widest = self.tree.widest
            context = fresh_context_scratch(self.tree, slots, widest)
            room = max(len(context.stack_entry), (self.tree.depth + 1) * (widest + 1) + 1)
            stack = {name: np.zeros(room, np.int64) for name in ("stack_entry", "stack_depth", "stack_mask")}
            self._scratches[slots] = (*context._replace(**stack), *fresh_path_scratch(room))
        return self._scratches[slots]

    def carry_over(self, state: Any, moved: Any, origin: Array, anew: Array) -> None:
        """Carry over records and bounds, or recompute them where counts changed. Bounds of new documents are infinite,
        so they are tried soon.
        """
        known = np.flatnonzero((origin >= 0) & ~anew)
        for name in ("worth", "record", "want", "due"):
            getattr(moved, name)[known] = getattr(state, name)[origin[known]]
        refresh_entries(moved, anew)
        refresh_all_bounds(moved)

    def recompute(self, state: Any) -> None:
        """Recompute records and bounds from the counts; bounds of new documents stay infinite."""
        refresh_entries(state, np.isfinite(state.worth).any(axis=1) | (state.total > 0))
        refresh_all_bounds(state)

    def belief(self, state: Any, entry: int, slot: int) -> tuple[float, float]:
        """Return the uncertainty and index of an entry: its record or the bound its ancestors allow, whichever is
        better.
        """
        plays, clicks = int(state.plays[entry, slot]), int(state.clicks[entry, slot])
        hope, at = float(state.bound[entry, slot]), entry
        while at != 0:
            at = int(state.up[at])
            hope = min(hope, float(state.bound[at, slot]))
        index = max(float(state.record[entry, slot]), hope)
        return max(0.0, index - (clicks / plays if plays else 0.0)), index

    def prospects(self, state: Any, before: Any, shown: Array, pick: Array, duplicates: bool) -> Prospects:
        """Return records, trials and their costs, slot by slot."""
        return slot_prospects(state, before, shown, pick, duplicates)


# Estimates for a ranking. The walk ignores records once it has a better bound, so the best record is searched here.


@inlined
def _distance_above(state: Any, document: Scalar, shown: Array, above: Scalar) -> Scalar:
    """Return the cap of a single document: its distance to the nearest of those above."""
    distance = np.inf
    if state.correlated and above > 0:
        node = np.uint64(state.leaf[np.uint64(document)])
        while shown_below(state, node, shown, above) == 0 and node != 0:
            node = np.uint64(state.parent[node])
        distance = state.width[node]
    return distance


@inlined
def _estimate(state: Any, slot: Scalar, shown: Array) -> tuple[Scalar, Scalar, Scalar]:
    """Return the best record in a slot; and the entry and the click rate of the document shown there, given those
    above.
    """
    entry = entry_of(state, shown[slot])
    best, given = rates_given(state, slot, shown, slot, entry)
    cap = _distance_above(state, shown[slot], shown, slot)
    return best, entry, min(cap, given, estimated_mean(state, entry, slot))


@inlined
def _is_trial(state: Any, slot: Scalar, entry: Scalar, rate: Scalar, best: Scalar) -> Scalar:
    """Return whether a document, with the entry that holds it, is on trial in a slot."""
    at, column = np.uint64(entry), np.uint64(slot)
    unknown = state.record[at, column] < 0.0 or (state.gains[at] == 0 and state.bound[at, column] > rate)
    return unknown or rate < best


@compiled
def slot_prospects(state: Any, before: Any, shown: Array, pick: Array, duplicates: Scalar) -> Prospects:
    """Compute the prospects of a ranking; an earlier state, or the same, gives the click rates."""
    slots = len(shown)
    record, cost, chance, trial = np.empty(slots), np.zeros(slots), np.empty(slots), np.zeros(slots, np.bool_)
    examined = 1.0
    for slot in range(slots):
        record[slot], entry, rate = _estimate(state, slot, shown)
        if _is_trial(state, slot, entry, rate, record[slot]):
            trial[slot] = True
            cost[slot] = examined * max(0.0, record[slot] - rate)
        _, _, chance[slot] = _estimate(before, slot, shown)
        examined *= 1.0 - chance[slot]
    return Prospects(record, trial, cost, chance)
