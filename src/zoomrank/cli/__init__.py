"""The `zoomrank` command: one function per sub-command adds its help, its examples and its action."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence

from zoomrank import __version__
from zoomrank.cli import (
    backup,
    demo,
    demo_experiment,
    demo_service,
    evaluate,
    judge,
    reproduce,
    serve,
    simulate,
    transfer,
)
from zoomrank.cli.arguments import Commands, Layout, require
from zoomrank.errors import ZoomrankError

Groups = Mapping[str, Sequence[Callable[[Commands], None]]]

_SUMMARY = "Learn short, diverse rankings over large document collections from clicks alone."
_EXAMPLES = (
    "examples:\n"
    "  zoomrank demo              # what it does, in half a minute\n"
    "  zoomrank evaluate --help   # what a command does, its options, examples"
)
_COMMANDS: Groups = {
    "getting started": (demo.add, demo_service.add, demo_experiment.add),
    "your own documents": (evaluate.add_inspect, evaluate.add, serve.add, transfer.add_import),
    "data of a service": (backup.add, backup.add_restore, backup.add_verify, transfer.add),
    "comparisons": (judge.add,),
    "experiments": (simulate.add, reproduce.add, reproduce.add_report),
}


def make_parser(
    prog: str = "zoomrank", summary: str = _SUMMARY, examples: str = _EXAMPLES, groups: Groups = _COMMANDS
) -> argparse.ArgumentParser:
    """Return a parser with some groups of commands; its help lists them by group."""
    parser = argparse.ArgumentParser(prog=prog, epilog=examples, formatter_class=Layout, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"zoomrank {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", help="any of the above")
    lines = [summary]
    for group, members in groups.items():
        before = len(commands.choices)
        for add in members:
            add(commands)
        lines.append(f"\n{group}:")
        lines += [f"  {name:<16} {one.get_default('summary')}" for name, one in [*commands.choices.items()][before:]]
    parser.description = "\n".join(lines)
    return parser


def main(arguments: Sequence[str] | None = None, parser: argparse.ArgumentParser | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = parser or make_parser()
    options, unknown = parser.parse_known_args(arguments)
    if unknown:  # the sub-command reports it, with its own usage
        options.refuse(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        require(f"{parser.prog} {options.command}", options.extras)
        status = options.run(options)
    except (ZoomrankError, OSError) as error:
        sys.stderr.write(f"zoomrank: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\nzoomrank: stopped\n")
        return 130
    return int(status or 0)
