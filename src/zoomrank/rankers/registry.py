"""Registry of all rankers by name: simulations, the service, the command line and files of rankers find them here.

| ranker | slots are filled by |
|---|---|
| `ZoomRank` | our own learner, which counts along paths and shares between slots |
| `RankUCB1`, `RankEXP3` | bandits that ignore distances |
| `RankGridUCB1`, `RankGridEXP3` | the same over ever finer parts of the tree |
| `RankZoom` | the zooming algorithm |
| `RankCorrZoom` | zooming, with indices capped by the distance to the documents above |
| `RankContextZoom` | contextual zooming with the documents above as context, capped likewise |
| `RankKLUCB`, `CascadeKLUCB` | KL-UCB over documents: a learner per slot, or one for all slots |
| `RankExploreCommit` | one slot after the other: every document equally often, then the best for ever |
| `RankThompson` | Thompson sampling along the tree, capped as in RankCorrZoom |
| `RankRandom` | no learner at all |
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from zoomrank.bandits import Bandit
from zoomrank.errors import ParameterError
from zoomrank.rankers.arm_rankers import RankEXP3, RankGridEXP3, RankGridUCB1, RankUCB1
from zoomrank.rankers.baseline_rankers import (
    CascadeKLUCB,
    FixedRanking,
    RankExploreCommit,
    RankKLUCB,
    RankRandom,
    RankThompson,
)
from zoomrank.rankers.ranked import Ranked
from zoomrank.rankers.zoom_rank import ZoomRank
from zoomrank.rankers.zooming_rankers import RankContextZoom, RankCorrZoom, RankZoom
from zoomrank.spaces import DocumentTree

RANKERS: Mapping[str, type[Ranked]] = {
    kind.__name__: kind
    for kind in (
        ZoomRank,
        RankThompson,
        RankRandom,
        RankCorrZoom,
        RankZoom,
        RankContextZoom,
        RankUCB1,
        RankKLUCB,
        CascadeKLUCB,
        RankGridUCB1,
        RankGridEXP3,
        RankEXP3,
        RankExploreCommit,
    )
}
ON_DISK: Mapping[str, type[Ranked]] = {**RANKERS, "FixedRanking": FixedRanking, "Ranked": Ranked}
WITHOUT_HORIZON = tuple(name for name, kind in RANKERS.items() if not kind.bandit_kind.needs_horizon)
_OF_EVERY_RANKER = {"tree", "slots", "seed", "duplicates", "anytime"}


def rankers_that_are(able: str) -> str:
    """List the rankers whose bandits are `restrictable`, `growable`, `counts_visits` or `anytime`, in words.

    >>> rankers_that_are("restrictable")
    'ZoomRank, RankThompson and RankRandom'
    """
    *names, last = [name for name, kind in RANKERS.items() if getattr(kind.bandit_kind, able)]
    return f"{', '.join(names)} and {last}"


def learning_parameters(name: str) -> tuple[str, ...]:
    """Return the names of a ranker's learning parameters.

    >>> learning_parameters("RankThompson")
    ('prior', 'correlated')
    """
    return tuple(each for each in inspect.signature(RANKERS[name]).parameters if each not in _OF_EVERY_RANKER)


def anytime_bandit(name: str, tree: DocumentTree, parameters: Mapping[str, Any]) -> Bandit:
    """Return the bandit of a ranker's slots in a version that needs no horizon: its anytime version if necessary."""
    known = learning_parameters(name)
    for each in parameters:
        if each not in known:
            takes = ", ".join(known) or "none"
            raise ParameterError(f"{name} does not take the parameter {each!r}; its parameters are {takes}.")
    kind: Any = RANKERS[name]
    phases = {} if kind.bandit_kind.anytime else {"anytime": True}
    try:
        ranker: Ranked = kind(tree, 1, **parameters, **phases)
    except TypeError as error:
        raise ParameterError(f"{name} does not take these parameters: {error}.") from error
    return ranker.bandit
