"""`ContextualZooming`: Algorithm 4 of the paper on pairs of a subtree and a context, with the correlation rule.

The context of a slot is the set of documents shown above it. A strategy is a pair of a subtree u and a *context
node*: an unordered tuple of nodes, one above each document of the context, as deep as u is. Active pairs partition
all (document, context) pairs; one whose confidence radius is smaller than its width is replaced by the pairs of
their children.

Given a context, the pairs that hold it form a zoom tree over subtrees like that of plain zooming: `pairs` keeps them,
`walk` chooses among them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from zoomrank.bandits.bandit import Choice, Strategy
from zoomrank.bandits.contextual_zooming.pairs import (
    ACTIVE,
    ContextDescription,
    PairCounts,
    PairParameters,
    find_pair,
    fresh_context_description,
    fresh_pairs,
    pairs_are_roomy,
    reset_pairs,
    update_pair,
    with_larger_pairs,
)
from zoomrank.bandits.contextual_zooming.walk import PairScratch, fresh_pair_scratch, odds_in_context, walk_context
from zoomrank.bandits.kernel_interface import Feedback, PhaseClock, endless_clock, register, reset_all
from zoomrank.bandits.tree_view import ContextScratch, TreeView, largest_context
from zoomrank.bandits.ucb1 import Exploration, ExplorationParameters, follow_horizon
from zoomrank.bandits.zooming import (
    ZoomCounts,
    Zooming,
    ZoomParameters,
    chance_of_walk,
    reset_zoom_tree,
    update_zoom,
    walk_best,
    with_larger_zoom_trees,
    zoom_trees_are_roomy,
)
from zoomrank.compiled import Scalar, flat
from zoomrank.errors import ParameterError
from zoomrank.spaces import DocumentId, DocumentTree
from zoomrank.types import Array, Seed

SCALE = 1.0

ContextualState = flat(
    "ContextualState",
    TreeView,
    ZoomCounts,
    ExplorationParameters,
    ZoomParameters,
    ContextScratch,
    PairCounts,
    PairParameters,
    PairScratch,
    ContextDescription,
    PhaseClock,
)


def _select(state: Any, slot: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> tuple[Scalar, Scalar]:
    if above == 0:  # no context: plain zooming
        node = np.int64(state.node[slot, walk_best(state, slot, 0, np.inf, rng)])
    else:
        node = walk_context(state, slot, shown, above, rng)
    return node, 1.0


def _odds(state: Any, slot: Scalar, shown: Array, above: Scalar, document: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    if above == 0:
        chance, entry = chance_of_walk(state, slot, 0, np.inf, document)
        node, hopeful = np.int64(state.node[slot, entry]), False
    else:
        chance, node, hopeful = odds_in_context(state, slot, shown, above, document)
    return chance, node, hopeful


def _subtree(state: Any, slot: Scalar, strategy: Scalar) -> Scalar:
    return strategy


def _update(state: Any, slot: Scalar, feedback: Feedback, shown: Array, above: Scalar) -> None:
    if above == 0:
        update_zoom(state, slot, 0, feedback.pick, feedback.reward)
    else:
        state.settled_for[slot] = 0  # counts change: the last walk may not be reused
        update_pair(state, slot, feedback, shown, above)


def _reset(state: Any, slot: Scalar, horizon: Scalar) -> None:
    state.settled_for[slot] = 0
    follow_horizon(state, slot, horizon)
    reset_zoom_tree(state, slot, 2.0 * np.sqrt(state.constant[slot]))
    reset_pairs(state, slot)


def _roomy(state: Any) -> Scalar:
    return zoom_trees_are_roomy(state) and pairs_are_roomy(state)


register(ContextualState, select=_select, odds=_odds, update=_update, subtree=_subtree, reset=_reset, roomy=_roomy)


class ContextualZooming(Zooming):
    """Contextual zooming: the value of a subtree depends on the documents shown above. Without a context: `Zooming`.

    Parameters
    ----------
    tree : DocumentTree
        Tree of the documents, of any shape.
    exploration : str or float
        C in the radius sqrt(C / (1 + n)): "optimistic" is 1, "pessimistic" is 4·log(horizon), or a positive number.
    horizon : int or None
        Number of visits to come; needed by a pessimistic learner only.
    scale : float
        Multiplies the widths of pairs; 1 is the paper's bound, a worst case.
    correlated : bool
        Cap indices by the distance to the documents shown above (the correlation rule).
    seed : int, numpy.random.Generator or None
        Seed of a bandit used on its own.

    Examples
    --------
    >>> bandit = ContextualZooming(DocumentTree.exponential(depth=3), scale=0.1, seed=0)
    >>> bandit.update(bandit.select(context=[5]), reward=1)
    >>> bandit.select(context=[5]).context
    (5,)

    References
    ----------
    Slivkins, Radlinski and Gollapudi, *Ranked bandits in metric spaces*, JMLR 14 (2013), Section 4: Algorithm 4; Eq.
    20 is the width of a pair, Eq. 23 the correlation rule.
    """

    not_saved = Zooming.not_saved | {*PairScratch._fields, *ContextDescription._fields}
    setting_names = ("exploration", "horizon", "scale", "correlated")

    def __init__(
        self,
        tree: DocumentTree,
        *,
        exploration: Exploration = "optimistic",
        horizon: int | None = None,
        scale: float = SCALE,
        correlated: bool = True,
        seed: Seed = None,
    ) -> None:
        super().__init__(tree, exploration=exploration, horizon=horizon, correlated=correlated, seed=seed)
        if not 0 < scale < np.inf:
            raise ParameterError(f"The scale of widths must be a positive number, not {scale}.")
        self.scale = scale
        self._context_size: int | None = None

    def select(self, context: Iterable[DocumentId] = ()) -> Choice:
        """Choose a document in a context.

        Parameters
        ----------
        context : iterable of DocumentId
            Documents above; all contexts of a bandit must have the same size, as those of a slot do.

        Returns
        -------
        Choice
            The document to show, to be given back to `update`.
        """
        above = tuple(context)
        if above and self._context_size not in (None, len(above)):
            raise ParameterError(
                f"A context of {len(above)} documents came after one of {self._context_size}; use one bandit per size."
            )
        self._context_size = len(above) or self._context_size
        return super().select(above)

    def fresh_state(self, slots: int) -> Any:
        """Return a state with the pair of roots in every slot."""
        widest = int(np.diff(self.tree.shape.child_start).max())
        levels = self.tree.depth + 1
        state = ContextualState(
            *self.zoom_parts(slots),
            *fresh_pairs(slots, levels, 2 + 2 * levels * max(widest, 1), 1 << (4 * levels).bit_length()),
            float(self.scale),
            *fresh_pair_scratch(self.tree, slots, widest),
            *fresh_context_description(levels, largest_context(slots)),
            *endless_clock(slots),
        )
        reset_all(state, 0.0)
        return state

    def larger(self, state: Any) -> Any:
        """Enlarge the arrays that are short of room."""
        if int(state.used.max()) + state.widest > state.node.shape[1]:
            state = with_larger_zoom_trees(state)
        return with_larger_pairs(state)

    def clear_caches(self, state: Any) -> None:
        """Clear the cached values of refined pairs."""
        for name in ("latest_context", "latest_family"):
            state.pair[name] = 0
        refined = state.pair["known_for"] != ACTIVE
        for name in ("value", "known_for", "known_level"):
            state.pair[name][refined] = 0

    def strategy_of(self, state: Any, slot: int, above: Array, document: int) -> Strategy:
        """Return the active pair that holds the document in this context."""
        if len(above) == 0:
            return super().strategy_of(state, slot, above, document)
        node, plays, clicks, width = find_pair(state, slot, np.asarray(above), document)
        radius = float(np.sqrt(state.constant[slot] / (1 + plays)))
        index = float(width + (clicks / plays if plays else 0.0) + radius)
        return Strategy(int(node), int(plays), int(clicks), radius, index, self.cap_of(node, above))
