"""Compile the kernels that most tests need, once, before workers would each compile them for themselves.

    python -m tests.support.kernels

takes minutes on an empty cache and a few seconds on a warm one. Kernels are shared by all processes that have the same
code (see `zoomrank.compiled`): each core compiles others.
"""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import zoomrank as zr
from zoomrank.rankers.registry import RANKERS

SERVICE = Path(__file__).parents[2] / "deploy" / "warm.py"  # what an image is warmed with
LONGEST = ("ContextualZooming", "TreeThompson", "Zooming")  # to compile, so they begin


def main() -> None:
    """Compile those of visitors here, then those of a service and of each learner, a process per core."""
    visitors(tree())
    bandits = sorted({kind.bandit_kind.__name__ for kind in RANKERS.values()} - {*LONGEST, "PathZooming"})
    # ZoomRank last: the service compiles most of it meanwhile.
    tasks = ["service", *LONGEST, *bandits, "PathZooming"]
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        for _ in pool.imap_unordered(compile_for, tasks):
            pass


def tree() -> zr.DocumentTree:
    """Make a small tree."""
    return zr.DocumentTree.exponential(depth=5, branching=2)


def visitors(tree: zr.DocumentTree) -> list[zr.users.UserDistribution]:
    """Make visitors of both readings of the paper, and use them."""
    made = [zr.users.two_peaks(tree, seed=1, reading=reading) for reading in ("mixture", "mutations")]
    for users in made:
        users.greedy(3)
        users.clicks([0, 9, 17], 10, seed=1)
        users.conditional_mean([4, 5])
    return made


def compile_for(task: str) -> None:
    """Serve a few visitors, or let the rankers of a bandit, which share kernels, rank, learn and be simulated."""
    if task == "service":
        subprocess.run([sys.executable, SERVICE], stdout=subprocess.DEVNULL, check=True)  # noqa: S603
        return
    documents = tree()
    users = visitors(documents)[-1]
    kinds: list[Any] = [kind for kind in RANKERS.values() if kind.bandit_kind.__name__ == task]
    for kind in kinds:
        ranker = kind(documents, slots=3, seed=1, **{"horizon": 100} if kind.bandit_kind.needs_horizon else {})
        ranker.learn(ranker.rank(), 1)
        zr.simulate(ranker, users, 10, seed=1)


if __name__ == "__main__":
    main()
