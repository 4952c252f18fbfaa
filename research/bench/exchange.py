"""Value of exchange in clicks: `python -m research.bench.exchange`.

The share of the first visitors who click, with exchange and without, on the same instances of two smooth worlds. With
`--rows` it prints every instance, so that two versions can be compared in pairs, since instances differ far more.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from research.studies.families import FAMILIES
from zoomrank.lab.recipes import Curve, Experiment, recipe
from zoomrank.lab.run import run
from zoomrank.types import Array

WORLDS = ("two-peaks", "eight-peaks")
VISITS = (1000, 10_000)
RANKERS = {"exchange": recipe("ZoomRank"), "none": recipe("ZoomRank", exchange=False)}


def shares(world: str, ranker: str, instances: int) -> Array:
    """Return a row per instance: the share of the first visitors who clicked."""
    family = next(each for each in FAMILIES if each.name == world)
    experiment = Experiment(
        world,
        family.title,
        tree=family.tree,
        users=family.users,
        slots=family.slots,
        visits=VISITS[-1],
        curves=(Curve(ranker, RANKERS[ranker]),),
    )
    rows = [run(setting) for setting in experiment.settings([ranker], instances=instances)]
    at = np.searchsorted(rows[0].visits, VISITS)
    return np.array([each.satisfied[at] / each.visits[at] for each in rows])


def main() -> None:
    """Print means and the errors of differences, or all rows."""
    parser = argparse.ArgumentParser("python -m research.bench.exchange", description=__doc__)
    parser.add_argument("--instances", type=int, default=240)
    parser.add_argument("--rows", action="store_true", help="print every instance, as JSON")
    asked = parser.parse_args()
    for world in WORLDS:
        found = {ranker: shares(world, ranker, asked.instances) for ranker in RANKERS}
        if asked.rows:
            print(json.dumps({world: {ranker: rows.tolist() for ranker, rows in found.items()}}))
        else:
            gained = found["exchange"] - found["none"]
            for column, visits in enumerate(VISITS):
                error = gained[:, column].std(ddof=1) / len(gained) ** 0.5
                print(
                    f"{world}, {visits:,} visits: {found['exchange'][:, column].mean():.4f} with exchange, "
                    f"{found['none'][:, column].mean():.4f} without: {gained[:, column].mean():+.4f} ± {error:.4f}"
                )


if __name__ == "__main__":
    main()
