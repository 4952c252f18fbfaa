"""The `zoomrank` command: one module per sub-command, each with its help, its examples and its action."""

import argparse
import sys
from collections.abc import Sequence

from zoomrank import __version__
from zoomrank.cli.arguments import Layout
from zoomrank.cli.commands import (
    backup,
    demo,
    demo_experiment,
    demo_service,
    evaluate,
    export,
    import_clicks,
    inspect,
    judge,
    report,
    reproduce,
    restore,
    serve,
    simulate,
    study,
    verify,
    year,
)
from zoomrank.cli.extras import require
from zoomrank.errors import ZoomrankError

_COMMANDS = {
    "getting started": (demo, demo_service, demo_experiment),
    "your own documents": (inspect, evaluate, serve, import_clicks),
    "data of a service": (backup, restore, verify, export),
    "comparisons": (judge,),
    "experiments": (simulate, reproduce, study, report, year),
}


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="zoomrank",
        epilog="examples:\n"
        "  zoomrank demo              # what it does, in half a minute\n"
        "  zoomrank evaluate --help   # what a command does, its options, examples",
        formatter_class=Layout,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"zoomrank {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", help="any of the above")
    lines = ["Learn short, diverse rankings over large document collections from clicks alone."]
    for group, members in _COMMANDS.items():
        before = len(commands.choices)
        for member in members:
            member.add(commands)
        lines.append(f"\n{group}:")
        lines += [f"  {name:<16} {one.get_default('summary')}" for name, one in [*commands.choices.items()][before:]]
    parser.description = "\n".join(lines)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options, unknown = make_parser().parse_known_args(arguments)
    if unknown:  # the sub-command reports it, with its own usage
        options.refuse(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        require(options.command, options.extras)
        status = options.run(options)
    except (ZoomrankError, OSError) as error:
        sys.stderr.write(f"zoomrank: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\nzoomrank: stopped\n")
        return 130
    return int(status or 0)
