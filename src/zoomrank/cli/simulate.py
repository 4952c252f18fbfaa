"""`zoomrank simulate`: simulate one ranker with one kind of visitors."""

import argparse

from zoomrank.cli import arguments
from zoomrank.lab.recipes import SEED, Curve, Experiment, recipe
from zoomrank.lab.registry import GREEDY, RANKERS, USERS

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
    from zoomrank.cli.terminal import chart
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
