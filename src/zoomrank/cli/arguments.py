"""Options that several commands share, and how their values are read."""

import argparse
from pathlib import Path
from typing import Any

from zoomrank.lab.recipes import SEED

Commands = Any  # what argparse calls _SubParsersAction


def add_command(commands: Commands, name: str, summary: str, about: str, *examples: str) -> argparse.ArgumentParser:
    """Start a sub-command whose help ends with examples."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=about,
        epilog="examples:\n" + "\n".join(f"  {example}" for example in examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_seed(parser: argparse.ArgumentParser, default: int | None) -> None:
    """`--seed N`."""
    parser.add_argument(
        "--seed", type=_seed, default=default, metavar="N", help=f"another number, other luck{_own(default)}"
    )


def _own(default: object) -> str:
    return "" if default is None else f" ({default})"


def add_sweep(
    parser: argparse.ArgumentParser, instances: int | None, folder: Path | None, seed: int | None = SEED
) -> None:
    """Everything that says how runs are carried out and where their rows go; None where that is decided later."""
    parser.add_argument("--instances", type=int, default=instances, metavar="N", help=f"of each world{_own(instances)}")
    parser.add_argument("--rounds", type=int, metavar="N", help="visits a run, instead of each experiment's own")
    parser.add_argument("--out", type=Path, default=folder, metavar="DIR", help=f"folder{_own(folder)}")
    parser.add_argument("--resume", action="store_true", help="go on in a folder that has results already")
    parser.add_argument("--engine", default="local", metavar="ENGINE", help="local (default) or ray")
    parser.add_argument("--address", metavar="ADDRESS", help="of the Ray cluster, or auto")
    parser.add_argument("--workers", type=int, metavar="N", help="processes of the local engine (default: one a core)")
    add_seed(parser, seed)


def parameter(text: str) -> tuple[str, Any]:
    """`name=value`, where a value that looks like a number, true or false is one."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not name=value")
    if value in ("true", "false"):
        return name, value == "true"
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value


def _seed(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("a seed is 0 or more")
    return number
