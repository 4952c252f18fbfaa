"""Table of the theoretical guarantees for each experiment."""

from __future__ import annotations

from collections.abc import Mapping

from zoomrank.lab.catalogue import world
from zoomrank.lab.curves import Results
from zoomrank.lab.paper.theory import Facts, guarantee, regret, vacuous_until
from zoomrank.lab.recipes import Setting
from zoomrank.lab.reports.page_text import table

_INTRODUCTION = (
    "The bounds of Sections 4 and 5 and of Appendix A with every hidden constant and logarithm taken as 1 (but the "
    "log T that Appendix A prints), which is kinder than the truth: where even this promises nothing, it says "
    "*vacuous*. Dimensions are with α = 1; the regret bounds are those of the first instance.\n\n"
)
_HEADS = (
    "experiment",
    "greedy",
    "OPT",
    "covering dimension",
    "zooming dimension",
    "RankGridEXP3 is sure of",
    "vacuous until visit",
    "RankContextZoom's until",
    "regret per visit of UCB1 / GridUCB1 / zooming in one slot",
)


def theory_table(results: Results, known: Mapping[str, Facts]) -> str:
    """Return a table with a row per experiment whose properties are known."""
    firsts = {name: results.curve(name, results.curves(name)[0]).settings[0] for name in known}
    return _INTRODUCTION + table(_HEADS, (_row(one, firsts[name]) for name, one in known.items()))


def _row(one: Facts, run: Setting) -> tuple[str, ...]:
    dimension = one.covering_dimension
    sure = float(guarantee(one.optimum, run.slots, dimension, run.visits))
    return (
        run.experiment,
        f"{one.greedy:.4f}",
        f"{one.optimum:.4f}" if one.optimum_is_exact else f"≤ {one.optimum:.4f}",
        f"{dimension:.2f}",
        f"{one.zooming_dimension:.2f}",
        f"{sure:.3f}" if sure > 0 else "vacuous",
        f"{vacuous_until(one.optimum, run.slots, dimension):.2g}",
        f"{vacuous_until(one.optimum, run.slots, run.slots * dimension):.2g}",
        _regrets(run),
    )


def _regrets(run: Setting) -> str:
    tree, users = world(run)
    mean = users.mean()
    worst = float(mean.max() - mean.min())  # the most that any bandit can lose in a visit
    bounds = [regret(tree, mean, run.visits, kind) / run.visits for kind in ("UCB1", "GridUCB1", "zooming")]
    return " / ".join(f"{bound:.2f}" if bound < worst else "vacuous" for bound in bounds)
