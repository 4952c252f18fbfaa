"""`zoomrank demo`: the worth of a diverse ranking, and how it is learned from clicks alone."""

import argparse
import time
from collections.abc import Sequence

import numpy as np

from zoomrank.cli.arguments import Commands, add_command, add_depth, add_seed, add_slots, add_visits, installing
from zoomrank.cli.terminal import chart, sparkline
from zoomrank.lab.simulator import simulate
from zoomrank.rankers import RankCorrZoom, ZoomRank
from zoomrank.spaces import DocumentId, DocumentTree
from zoomrank.users import BestRanking, UserDistribution, chinese_restaurant

_VISITS = 20_000
_SAMPLE = 300_000  # visitors per ranking that does not learn
_WINDOWS = 30
_NEXT = f"""
What to try next, after {installing(["lab", "service"])}:

  zoomrank demo-service
      a service in your browser that learns as you watch
  zoomrank inspect FILE
      your own documents: whether their similarity helps learning
  zoomrank reproduce 1 --instances 3 --visits 50000
      a quick look at Figure 1 of the paper
  zoomrank --help
      every command; README.md and docs say how to use zoomrank from Python"""


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "demo",
        "Make a collection of documents and visitors with a few interests, as the paper\n"
        "does; show what the best ranking would be if all were known about them; then let\n"
        "two rankers learn one from simulated clicks alone.",
        "zoomrank demo",
        "zoomrank demo --depth 20 --seed 3   # a million documents, other interests",
        "zoomrank demo --visits 200000       # ten times as long to learn",
    )
    add_depth(parser)
    add_slots(parser)
    add_visits(parser, _VISITS)
    add_seed(parser, 7)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the demo."""
    tree = DocumentTree.exponential(depth=options.depth)
    print(f"{len(tree):,} documents, left to right, and how likely they are to be relevant to\n", flush=True)
    users = chinese_restaurant(tree, seed=options.seed)
    best = users.greedy(options.slots)
    _show_interests(users, best.documents)
    print("\nA visitor clicks on the first relevant document, or leaves.")
    _show_rankings(users, best, options.seed)
    _learn(tree, users, best, options.visits, options.seed)
    print(_NEXT)


def _show_interests(users: UserDistribution, best: Sequence[DocumentId]) -> None:
    """Draw what visitors like: all of them, then those that the first documents of the best ranking did not please."""
    print(f"  {'every visitor':<28}│{sparkline(users.mean())}│")
    for shown in range(1, min(len(best), 4)):
        skipped = best[:shown]
        name = f"those who skipped {skipped[-1]}" if shown == 1 else f"  and {skipped[-1]}"
        print(f"  {name:<28}│{sparkline(users.conditional_mean(skipped))}│")


def _show_rankings(users: UserDistribution, best: BestRanking, seed: int) -> None:
    """Compare the best ranking with two obvious ones."""
    slots, documents = len(best.documents), len(users.documents)
    popular = users.documents.at(np.argsort(-users.mean(), kind="stable")[:slots])
    chance = users.documents.at(np.random.default_rng([seed, 1]).choice(documents, size=slots, replace=False))
    print(f"Rankings of {slots}, exact and simulated with {_SAMPLE:,} visitors each:\n", flush=True)
    print(f"  {'ranking':<34}{'satisfied':>10}{'simulated':>11}{'visitors/s':>13}")
    users.clicks(chance, 1)  # compiled before it is timed
    for name, ranking in (("greedy, knows all", best.documents), ("by popularity", popular), ("at random", chance)):
        start = time.perf_counter()
        clicks = users.clicks(ranking, _SAMPLE, seed)
        rate = _SAMPLE / (time.perf_counter() - start)
        print(f"  {name:<34}{users.satisfaction(ranking):>10.4f}{np.mean(clicks < slots):>11.4f}{rate:>13,.0f}")
    if users.satisfaction(popular) < best.satisfaction:
        print("\nThe most popular documents are much alike; a diverse ranking satisfies more visitors.")


def _learn(tree: DocumentTree, users: UserDistribution, best: BestRanking, visits: int, seed: int) -> None:
    """Let ZoomRank and the best ranker of the paper find such a ranking from clicks alone."""
    print(f"\nLearning it from clicks alone, in {visits:,} visits:\n", flush=True)
    slots = len(best.documents)
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
    print(chart(curves, visits, top=best.satisfaction))
    print(f"\n  {'satisfied by':<16}{'all in all':>12}{'last window':>14}{'last ranking':>14}{'visits/s':>13}")
    print("\n".join(lines))
