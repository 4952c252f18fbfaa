"""`zoomrank demo`: what a diverse ranking is worth, and how it is learned from clicks alone."""

import argparse
import time

import numpy as np

from zoomrank.cli.arguments import Commands, add_command, add_seed
from zoomrank.cli.chart import chart, sparkline
from zoomrank.lab.simulator import simulate
from zoomrank.rankers import RankCorrZoom, ZoomRank
from zoomrank.spaces import DocumentTree
from zoomrank.users import UserDistribution, chinese_restaurant

_WINDOWS = 30


def add(commands: Commands) -> None:
    """Describe the command."""
    parser = add_command(
        commands,
        "demo",
        "what a diverse ranking is worth, and how fast it is learned from clicks",
        "Build the paper's collection and visitors with a few interests, rank with full information, "
        "and let simulated visitors click.",
        "zoomrank demo",
        "zoomrank demo --depth 20 --seed 3        a million documents, other interests",
    )
    parser.add_argument("--depth", type=int, default=15, help="levels of the binary tree; 15 is 32,768 documents")
    parser.add_argument("--slots", type=int, default=5, help="documents in a ranking (5)")
    parser.add_argument("--visitors", type=int, default=300_000, help="simulated visitors a ranking (300,000)")
    parser.add_argument("--visits", type=int, default=20_000, help="visits to learn from (20,000)")
    add_seed(parser, 7)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Show it."""
    tree = DocumentTree.exponential(depth=options.depth)
    users = chinese_restaurant(tree, seed=options.seed)
    slots, visitors, seed = options.slots, options.visitors, options.seed
    best = users.greedy(slots)
    popular = users.documents.at(np.argsort(-users.mean(), kind="stable")[:slots])
    chance = users.documents.at(np.random.default_rng([seed, 1]).choice(len(tree), size=slots, replace=False))

    print(f"{len(tree):,} documents, left to right, and how likely they are to be relevant to\n")
    print(f"  {'every visitor':<28}│{sparkline(users.mean())}│")
    for shown in range(1, min(slots, 4)):
        skipped = best.documents[:shown]
        name = f"those who skipped {skipped[-1]}" if shown == 1 else f"  and {skipped[-1]}"
        print(f"  {name:<28}│{sparkline(users.conditional_mean(skipped))}│")
    print("\nA visitor clicks on the first relevant document, or leaves.")
    print(f"Rankings of {slots}, exact and simulated with {visitors:,} visitors each:\n")
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
    _learn(tree, users, slots, options.visits, seed, best.satisfaction)


def _learn(tree: DocumentTree, users: UserDistribution, slots: int, visits: int, seed: int, best: float) -> None:
    """Let our learner and the best of the paper find such a ranking from clicks alone."""
    print(f"\nLearning it from clicks alone, in {visits:,} visits:\n")
    curves, lines = {}, []
    for make in (ZoomRank, RankCorrZoom):
        ranker = make(tree, slots, seed=seed)
        simulate(make(tree, slots, seed=seed), users, 1, seed=seed)  # compiled before it is timed
        start = time.perf_counter()
        trace = simulate(ranker, users, visits, seed=seed, windows=min(_WINDOWS, visits))
        speed = visits / (time.perf_counter() - start)
        curves[make.__name__] = trace.rates
        last = users.satisfaction(trace.shown[-1])
        lines.append(f"  {make.__name__:<16}{trace.rate:>12.4f}{trace.rates[-1]:>14.4f}{last:>14.4f}{speed:>13,.0f}")
    print(chart(curves, visits, top=best))
    print(f"\n  {'satisfied by':<16}{'all in all':>12}{'last window':>14}{'last ranking':>14}{'visits/s':>13}")
    print("\n".join(lines))
