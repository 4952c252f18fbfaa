"""The `zoomrank` command: a table of sub-commands, of which only the one that is asked for is imported."""

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple

from zoomrank import __version__
from zoomrank.cli.arguments import Layout, require
from zoomrank.errors import ZoomrankError


class Command(NamedTuple):
    """A sub-command: a function adds its help, its examples and its action to a parser."""

    summary: str
    module: str
    function: str = "add"


@dataclass(frozen=True)
class Program:
    """A command line: its name, what its help says, and its sub-commands by group."""

    name: str
    summary: str
    examples: str
    groups: Mapping[str, Mapping[str, Command]]

    @property
    def commands(self) -> dict[str, Command]:
        """All sub-commands by name, in the order of the help."""
        return {name: command for group in self.groups.values() for name, command in group.items()}


ZOOMRANK = Program(
    "zoomrank",
    "Learn short, diverse rankings over large document collections from clicks alone.",
    "examples:\n"
    "  zoomrank demo              # what it does, in half a minute\n"
    "  zoomrank evaluate --help   # what a command does, its options, examples",
    {
        "getting started": {
            "demo": Command(
                "what a diverse ranking is worth, and how it is learned", "zoomrank.cli.simulate", "add_demo"
            ),
            "demo-service": Command(
                "a service with simulated visitors, to watch in a browser", "zoomrank.cli.demo_service"
            ),
            "demo-experiment": Command(
                "a simulated shop with an experiment, up to its decision", "zoomrank.cli.demo_experiment"
            ),
        },
        "your own documents": {
            "inspect": Command(
                "check whether the similarity of your documents is useful", "zoomrank.cli.evaluate", "add_inspect"
            ),
            "evaluate": Command("compare rankers on judged documents of yours", "zoomrank.cli.evaluate"),
            "serve": Command("a ranking service of your own, behind HTTP", "zoomrank.cli.serve"),
            "compile": Command("compile learners beforehand", "zoomrank.cli.compile"),
            "import": Command(
                "let a service learn from the click log of another ranker", "zoomrank.cli.transfer", "add_import"
            ),
        },
        "data of a service": {
            "backup": Command("copy all data of a service into one file", "zoomrank.cli.backup"),
            "restore": Command(
                "restore a backup into an empty folder or database", "zoomrank.cli.backup", "add_restore"
            ),
            "verify": Command("check all data of a service against its event log", "zoomrank.cli.backup", "add_verify"),
            "export": Command("write impressions and their feedback to a file", "zoomrank.cli.transfer"),
        },
        "comparisons": {
            "judge": Command("estimate from a log how another ranking would have done", "zoomrank.cli.judge"),
        },
        "experiments": {
            "simulate": Command("let simulated visitors teach one ranker", "zoomrank.cli.simulate"),
            "reproduce": Command("rerun the paper's evaluation and report on it", "zoomrank.cli.reproduce"),
            "report": Command("write the report of finished runs again", "zoomrank.cli.reproduce", "add_report"),
        },
    },
)


def make_parser(program: Program = ZOOMRANK, only: Collection[str] | None = None) -> argparse.ArgumentParser:
    """Return a parser with all sub-commands, or only some of them; its help lists all of them by group."""
    parser = argparse.ArgumentParser(
        prog=program.name, epilog=program.examples, formatter_class=Layout, allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"zoomrank {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", help="any of the above")
    lines = [program.summary]
    for group, members in program.groups.items():
        lines.append(f"\n{group}:")
        for name, command in members.items():
            lines.append(f"  {name:<16} {command.summary}")
            if only is None or name in only:
                getattr(import_module(command.module), command.function)(commands)
    parser.description = "\n".join(lines)
    return parser


def main(arguments: Sequence[str] | None = None, program: Program = ZOOMRANK) -> int:
    """Run the command line; return the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    known = not words or words[0] in program.commands or words[0] in {"-h", "--help", "--version"}
    parser = make_parser(program, words[:1] if known else None)  # an error names all commands
    options, unknown = parser.parse_known_args(words)
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
