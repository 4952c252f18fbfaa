"""The `zoomrank` command."""

import argparse
import time
from collections.abc import Sequence

import numpy as np

from zoomrank import __version__
from zoomrank.errors import ZoomrankError
from zoomrank.lab import simulate
from zoomrank.rankers import RankCorrZoom, RankUCB1
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.topology import Array
from zoomrank.users import UserDistribution, chinese_restaurant

_BLOCKS = " ▁▂▃▄▅▆▇█"
_COLUMNS = 64


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="zoomrank",
        description="Learn short, diverse rankings over large document collections from clicks alone.",
        epilog="example:  zoomrank demo --depth 20 --seed 3",
    )
    parser.add_argument("--version", action="version", version=f"zoomrank {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="what a diverse ranking is worth, and how fast it is learned from clicks",
        description="Build the paper's collection and visitors with a few interests, rank with full information, "
        "and let simulated visitors click.",
        epilog="example:  zoomrank demo --visitors 1000000",
    )
    demo.add_argument("--depth", type=int, default=15, help="levels of the binary tree; 15 is 32,768 documents")
    demo.add_argument("--slots", type=int, default=5, help="documents in a ranking (default: 5)")
    demo.add_argument("--visitors", type=int, default=300_000, help="simulated visitors a ranking (default: 300,000)")
    demo.add_argument("--visits", type=int, default=50_000, help="visits to learn from (default: 50,000)")
    demo.add_argument("--seed", type=_seed, default=7, help="another number, other interests (default: 7)")
    options = parser.parse_args(arguments)
    try:
        _demo(options.depth, options.slots, options.visitors, options.visits, options.seed)
    except ZoomrankError as error:
        parser.exit(2, f"zoomrank: {error}\n")
    return 0


def _demo(depth: int, slots: int, visitors: int, visits: int, seed: int) -> None:
    tree = DocumentTree.exponential(depth=depth)
    users = chinese_restaurant(tree, seed=seed)
    best = users.greedy(slots)
    popular = users.documents.at(np.argsort(-users.mean(), kind="stable")[:slots])
    chance = users.documents.at(np.random.default_rng([seed, 1]).choice(len(tree), size=slots, replace=False))

    print(f"{len(tree):,} documents, left to right, and how likely they are to be relevant to\n")
    print(f"  {'every visitor':<28}│{_sparkline(users.mean())}│")
    for shown in range(1, min(slots, 4)):
        skipped = best.documents[:shown]
        name = f"those who skipped {skipped[-1]}" if shown == 1 else f"  and {skipped[-1]}"
        print(f"  {name:<28}│{_sparkline(users.conditional_mean(skipped))}│")
    print("\nA visitor clicks on the first relevant document, or leaves. Rankings of "
          f"{slots}, exact and simulated with {visitors:,} visitors each:\n")  # fmt: skip
    print(f"  {'ranking':<34}{'satisfied':>10}{'simulated':>11}{'visitors/s':>13}")
    rows = (("greedy, knows all", best.documents), ("by popularity", popular), ("at random", chance))
    users.clicks(chance, 1)  # compiled before it is timed
    for name, ranking in rows:
        start = time.perf_counter()
        clicks = users.clicks(ranking, visitors, seed)
        rate = visitors / (time.perf_counter() - start)
        satisfied = np.mean(clicks < slots) if visitors else np.nan
        print(f"  {name:<34}{users.satisfaction(ranking):>10.4f}{satisfied:>11.4f}{rate:>13,.0f}")
    if users.satisfaction(popular) < best.satisfaction:
        print("\nThe most popular documents are much alike; a diverse ranking satisfies more visitors.")
    _learn(tree, users, slots, visits, seed, best.satisfaction)


def _learn(tree: DocumentTree, users: UserDistribution, slots: int, visits: int, seed: int, best: float) -> None:
    """Let two learners find such a ranking from clicks alone."""
    tenth = max(visits // 10, 1)
    print(f"\nLearning it from clicks alone, in {visits:,} visits, as a share of what the greedy ranking satisfies:\n")
    heads = "".join(f"{end // 1000:>7,}k" if end >= 1000 else f"{end:>8}" for end in range(tenth, visits + 1, tenth))
    print(f"  {'visits':<16}{heads}")
    for make in (RankCorrZoom, RankUCB1):
        trace = simulate(make(tree, slots, seed=seed), users, visits, seed=seed, windows=list(_ends(visits, tenth)))
        print(f"  {make.__name__:<16}{''.join(f'{rate / best:>8.2f}' for rate in trace.rates)}")


def _ends(visits: int, tenth: int) -> list[int]:
    ends = list(range(tenth, visits, tenth))[:9]
    return [*ends, visits]


def _seed(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("a seed is 0 or more")
    return number


def _sparkline(values: Array) -> str:
    """The largest value of each of a few groups of neighbours, as blocks; full height is ½."""
    groups = np.array_split(values, min(_COLUMNS, len(values)))
    heights = [max(group.max(), 0.0) / 0.5 * (len(_BLOCKS) - 1) for group in groups]
    return "".join(_BLOCKS[min(round(height), len(_BLOCKS) - 1)] for height in heights)
