"""Experiments beyond the paper's: three documents, more documents, wrong metrics, late feedback, no duplicates.

Except for the three documents of its Section 5.1, no document is shown twice, which is zoomrank's default.
"""

from __future__ import annotations

from zoomrank.lab.catalogue import GREEDY
from zoomrank.lab.paper.published import BASELINES, CURVES, large
from zoomrank.lab.recipes import Curve, Experiment, recipe

_GREEDY = Curve(GREEDY, recipe(GREEDY))
_ZOOM, _CORR = "RankZoom", "RankCorrZoom"
_ZOOMING = tuple(curve for curve in CURVES if "Zoom" in curve.name)


def _size(depth: int) -> Experiment:
    names = ("RankUCB1", "RankGridUCB1", _ZOOM, _CORR, "RankRandom")
    return Experiment(
        name=f"size-{2**depth}",
        title=f"two peaks, {2**depth:,} documents",
        tree=recipe("exponential", depth=depth),
        users=recipe("two-peaks"),
        slots=5,
        visits=100_000,
        curves=(*(Curve(name, recipe(name)) for name in names), _GREEDY),
    )


_BELIEFS = (
    ("", None),
    ("-halved", recipe("scaled", factor=0.5)),
    ("-doubled", recipe("scaled", factor=2.0)),
    ("-shuffled-10", recipe("shuffled", share=0.1)),
    ("-shuffled-30", recipe("shuffled", share=0.3)),
)
_DELAYS = (0, 100, 1_000, 10_000)

BEYOND = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            name="three-documents",
            title="the three documents of Section 5.1",
            tree=recipe("three-documents"),
            users=recipe("three-documents"),
            slots=2,
            visits=1_000_000,
            curves=(*CURVES[:2], *_ZOOMING[:3], *BASELINES),
        ),
        *(_size(depth) for depth in (10, 12, 15, 18, 20)),
        large(
            "belief",
            "two peaks, with a metric that is wrong",
            (
                *(Curve(f"{name}{words}", recipe(name), belief=belief)
                  for name in (_ZOOM, _CORR) for words, belief in _BELIEFS),
                _GREEDY,
            ),
        ),
        large(
            "delay",
            "two peaks, feedback that comes late",
            (
                *(Curve(f"{name}-late-{delay}" if delay else name, recipe(name), delay=delay)
                  for name in (_ZOOM, _CORR) for delay in _DELAYS),
                _GREEDY,
            ),
        ),
        large(
            "distinct",
            "two peaks, no document shown twice",
            (
                *(Curve(curve.name, recipe(curve.ranker.name, **{**curve.ranker.given, "duplicates": False}))
                  for curve in (*CURVES, BASELINES[0])),
                _GREEDY,
            ),
        ),
    )
}  # fmt: skip
