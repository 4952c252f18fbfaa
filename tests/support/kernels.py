"""Compile the kernels that most tests need, once, before workers would each compile them for themselves.

    python -m tests.support.kernels

takes a few minutes on an empty cache and a few seconds on a warm one. Kernels are shared by all processes that have the
same code (see `zoomrank.compiled`): two processes compile different ones, one per core.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import zoomrank as zr
from zoomrank.rankers.registry import RANKERS

SERVICE = Path(__file__).parents[2] / "deploy" / "warm.py"  # what an image is warmed with


def main() -> None:
    """Compile those of learners here, and those of a service in a process beside it."""
    service = subprocess.Popen([sys.executable, SERVICE], stdout=subprocess.DEVNULL)  # noqa: S603
    with service:
        compile_learners()
    if service.returncode != 0:
        raise SystemExit("The service that compiles its kernels failed; its output is above.")


def compile_learners() -> None:
    """Let every learner rank, learn and be simulated; ZoomRank last, since the service beside it compiles that."""
    tree = zr.DocumentTree.exponential(depth=5, branching=2)
    visitors = [zr.users.two_peaks(tree, seed=1, reading=reading) for reading in ("mixture", "mutations")]
    for users in visitors:
        users.greedy(3)
        users.clicks([0, 9, 17], 10, seed=1)
        users.conditional_mean([4, 5])
    kinds: list[Any] = sorted(RANKERS.values(), key=lambda kind: kind is zr.ZoomRank)
    for kind in kinds:
        ranker = kind(tree, slots=3, seed=1, **{"horizon": 100} if kind.bandit_kind.needs_horizon else {})
        ranker.learn(ranker.rank(), 1)
        zr.simulate(ranker, visitors[-1], 10, seed=1)


if __name__ == "__main__":
    main()
