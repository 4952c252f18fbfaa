"""`zoomrank simulate`: one ranker with one kind of visitors. `zoomrank demo`: what a diverse ranking is worth."""

import argparse
import math
import time
from collections.abc import Sequence

import numpy as np

from zoomrank.cli import arguments
from zoomrank.cli.terminal import chart, sparkline
from zoomrank.compiled import expecting
from zoomrank.lab.recipes import SEED, Curve, Experiment, recipe
from zoomrank.lab.registry import GREEDY, RANKERS, USERS
from zoomrank.lab.simulator import simulate
from zoomrank.rankers import RankCorrZoom, ZoomRank
from zoomrank.spaces import DocumentId, DocumentTree
from zoomrank.users import BestRanking, UserDistribution, chinese_restaurant

_WRITING = ("lab",)  # the extra that only --out needs
_OWN = "or module:Name of your own"
_ABOUT = f"""Let simulated visitors teach one ranker, and draw how many of them it satisfies.

{arguments.listed("rankers:", [*RANKERS, GREEDY, _OWN])}
{arguments.listed("users:", [*USERS, _OWN])}"""


def add(commands: arguments.Commands) -> None:
    """Add the command to the parser."""
    parser = arguments.add_command(
        commands,
        "simulate",
        _ABOUT,
        "zoomrank simulate ZoomRank two-peaks",
        "zoomrank simulate RankContextZoom two-peaks --set scale=0.2 --depth 7",
        "zoomrank simulate RankUCB1 chinese-restaurant --set-users reading=mixture",
        "zoomrank simulate mine:MyRanker mine:MyUsers --visits 20000   # from mine.py",
    )
    parser.add_argument("ranker", metavar="RANKER", help="the ranker")
    parser.add_argument("users", metavar="USERS", help="the model of visitors")
    _add_set(parser, "--set", "ranker")
    _add_set(parser, "--set-users", "users")
    arguments.add_depth(parser)
    arguments.add_slots(parser)
    arguments.add_visits(parser, 300_000)
    arguments.add_number(parser, "--delay", 0, "number of visits by which feedback is late (default: 0)")
    arguments.add_instances(parser, 1, "it")
    arguments.add_out(
        parser, f"the rows, as Parquet files, which needs {arguments.installing(_WRITING)}", "nothing is written"
    )
    arguments.add_seed(parser, SEED)
    parser.set_defaults(run=run)


def _add_set(parser: argparse.ArgumentParser, option: str, whose: str) -> None:
    about = f"set a parameter of the {whose}; may be given several times"
    parser.add_argument(option, type=arguments.parameter, action="append", default=[], metavar="NAME=VALUE", help=about)


def run(options: argparse.Namespace) -> None:
    """Simulate, draw and count."""
    from zoomrank.lab.curves import Results, estimate
    from zoomrank.lab.sweep import Local

    wanted = experiment(options)
    folder = None
    if options.out is not None:  # first, since the folder may not be empty
        arguments.require("zoomrank simulate --out", _WRITING)
        from zoomrank.lab.results_folder import ResultsFolder, sweep_request

        about = sweep_request("simulation", options.instances, options.visits, options.seed)
        folder = ResultsFolder.create(options.out, about)
    finished = list(Local(workers=1).finish(wanted.settings(instances=options.instances, seed=options.seed)))
    results = Results(one.rows for one in finished)
    mine, greedy = (results.curve(wanted.name, curve) for curve in (wanted.curves[0].name, GREEDY))
    windows = mine.windows().mean
    pictured = windows[1::2] if len(windows) % 2 == 0 else windows
    print(chart({options.ranker: pictured}, mine.length, top=float(greedy.expected[:, -1].mean())))
    print(f"\n  visitors satisfied, all in all   {estimate(mine.rate())}")
    print(f"  in the last tenth                {estimate(mine.rate(0.9))}")
    print(f"  the last ranking shown           {estimate(mine.expected[:, -1])}")
    print(f"  the greedy optimum               {estimate(greedy.expected[:, -1])}")
    print(f"  clicks by slot                   {' '.join(f'{rate:.3f}' for rate in mine.slot_rates().mean(axis=0))}")
    if folder is not None:
        for one in finished:
            folder.add(one.rows, one.seconds)
        print(f"\nRows: {options.out / 'rows'}")


def experiment(options: argparse.Namespace) -> Experiment:
    """Return the experiment asked for, beside the greedy optimum."""
    curves = [Curve(GREEDY, recipe(GREEDY))]
    if options.ranker != GREEDY:
        name = options.ranker.replace(":", ".")  # also the name of a folder
        curves.insert(0, Curve(name, recipe(options.ranker, **dict(options.set)), delay=options.delay))
    small = options.users == "three-documents"
    return Experiment(
        name="simulate",
        title=f"{options.ranker} and {options.users}",
        tree=recipe("three-documents") if small else recipe("exponential", depth=options.depth),
        users=recipe(options.users, **dict(options.set_users)),
        slots=options.slots,
        visits=options.visits,
        curves=tuple(curves),
    )


# The demo.

_VISITS = 20_000
_SAMPLE = 300_000  # visitors per ranking that does not learn
_WINDOWS = 30
_NEXT = f"""
What to try next, after {arguments.installing(["lab", "service"])}:

  zoomrank demo-service
      a service in your browser that learns as you watch
  zoomrank inspect FILE
      your own documents: whether their similarity helps learning
  zoomrank reproduce 1 --instances 3 --visits 50000
      a quick look at Figure 1 of the paper
  zoomrank --help
      every command; README.md and docs say how to use zoomrank from Python"""


def add_demo(commands: arguments.Commands) -> None:
    """Add the demo to the parser."""
    parser = arguments.add_command(
        commands,
        "demo",
        "Make a collection of documents and visitors with a few interests, as the paper\n"
        "does; show what the best ranking would be if all were known about them; then let\n"
        "two rankers learn one from simulated clicks alone.",
        "zoomrank demo",
        "zoomrank demo --depth 20 --seed 3   # a million documents, other interests",
        "zoomrank demo --visits 200000       # ten times as long to learn",
    )
    arguments.add_depth(parser)
    arguments.add_slots(parser)
    arguments.add_visits(parser, _VISITS)
    arguments.add_seed(parser, 7)
    parser.set_defaults(run=run_demo)


def run_demo(options: argparse.Namespace) -> None:
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
    with expecting(math.inf):  # compiled before it is timed
        users.clicks(chance, 1)
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
        with expecting(math.inf):  # compiled before it is timed
            simulate(make(tree, slots, seed=seed), users, 1, seed=seed)
        start = time.perf_counter()
        trace = simulate(ranker, users, visits, seed=seed, windows=min(_WINDOWS, visits))
        speed = visits / (time.perf_counter() - start)
        curves[make.__name__] = trace.rates
        last = users.satisfaction(trace.shown[-1])
        lines.append(f"  {make.__name__:<16}{trace.rate:>12.4f}{trace.rates[-1]:>14.4f}{last:>14.4f}{speed:>13,.0f}")
    print(chart(curves, visits, top=best.satisfaction))
    print(f"\n  {'satisfied by':<16}{'all in all':>12}{'last window':>14}{'last ranking':>14}{'visits/s':>13}")
    print("\n".join(lines))
