"""The rankers that ZoomRank is compared with, each with the constants that suit it best.

The constants are the same in all worlds. They were chosen by `python -m research study tuning` on instances that are
not among those reported, with about as many candidates for every ranker: see docs/efficiency/tuning.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from zoomrank.lab.recipes import Recipe, recipe

OURS = "ZoomRank"
PUBLISHED = "RankCorrZoom"  # the best of the paper, as published
RIVAL = "RankUCB1-tuned"  # the best that does not use the tree

COMPETITORS: Mapping[str, Recipe] = {
    OURS: recipe("ZoomRank"),
    PUBLISHED: recipe("RankCorrZoom"),
    "RankCorrZoom-tuned": recipe("RankCorrZoom", exploration=0.12),
    "RankZoom-tuned": recipe("RankZoom", exploration=0.06),
    "RankContextZoom-tuned": recipe("RankContextZoom", exploration=0.25, scale=0.05),
    RIVAL: recipe("RankUCB1", exploration=0.003),
    "RankKLUCB-tuned": recipe("RankKLUCB", exploration=0.001),
    "CascadeKLUCB-tuned": recipe("CascadeKLUCB", exploration=0.003),
    "RankThompson-tuned": recipe("RankThompson", prior=0.1),
    "RankRandom": recipe("RankRandom"),
}
