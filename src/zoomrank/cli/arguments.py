"""What commands have in common: how they describe themselves, and options that mean the same wherever they stand."""

import argparse
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from zoomrank.cli.extras import installing
from zoomrank.errors import ParameterError

Commands = Any  # what argparse calls _SubParsersAction


class Layout(argparse.RawDescriptionHelpFormatter):
    """Help whose texts stay as they were written, with room for long options."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **{"max_help_position": 28, **options})


def add_command(
    commands: Commands, name: str, summary: str, about: str, *examples: str, extras: tuple[str, ...] = ()
) -> argparse.ArgumentParser:
    """Start a sub-command whose help ends with examples, and with what has to be installed for it."""
    needs = f"\n\nneeds:\n  {installing(extras)}" if extras else ""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        description=about,
        epilog="examples:\n" + "\n".join(f"  {example}" for example in examples) + needs,
        formatter_class=Layout,
        allow_abbrev=False,
    )
    parser.set_defaults(summary=summary, extras=extras, refuse=parser.error)
    return parser


def listed(what: str, names: Iterable[str]) -> str:
    """Names that an argument can have, as a paragraph of help.

    >>> print(listed("colours:", ["red", "green"]))
    colours:     red, green
    """
    indent = " " * 13
    return textwrap.fill(
        ", ".join(names), 80, initial_indent=what.ljust(13), subsequent_indent=indent, break_on_hyphens=False
    )


def add_seed(parser: argparse.ArgumentParser, default: int | None) -> None:
    """`--seed N`."""
    own = "each study's own" if default is None else str(default)
    parser.add_argument(
        "--seed",
        type=_seed,
        default=default,
        metavar="N",
        help=f"start of the random numbers: the same seed, the same run (default: {own})",
    )


def add_documents(parser: argparse.ArgumentParser) -> None:
    """`FILE`, the documents that a command is about."""
    parser.add_argument("documents", type=Path, metavar="FILE", help="the documents, in any of the forms above")


def add_depth(parser: argparse.ArgumentParser) -> None:
    """`--depth N`."""
    parser.add_argument(
        "--depth",
        type=int,
        default=15,
        metavar="N",
        help="levels of the binary tree that documents are the leaves of (default: 15, which is 32,768 documents)",
    )


def add_slots(parser: argparse.ArgumentParser) -> None:
    """`--slots N`."""
    parser.add_argument("--slots", type=int, default=5, metavar="N", help="documents in a ranking (default: 5)")


def add_visits(parser: argparse.ArgumentParser, default: int | None) -> None:
    """`--visits N`."""
    own = "each experiment's own" if default is None else f"{default:,}"
    parser.add_argument("--visits", type=int, default=default, metavar="N", help=f"visits in each run (default: {own})")


def add_instances(parser: argparse.ArgumentParser, default: int | None, what: str) -> None:
    """`--instances N`."""
    own = "each study's own" if default is None else str(default)
    parser.add_argument(
        "--instances",
        type=int,
        default=default,
        metavar="N",
        help=f"how many times {what} is run, each time with other random numbers (default: {own})",
    )


def add_out(parser: argparse.ArgumentParser, what: str, default: Path | str) -> None:
    """`--out DIR`; a default that is no path is only said, and decided later."""
    path = default if isinstance(default, Path) else None
    parser.add_argument("--out", type=Path, default=path, metavar="DIR", help=f"folder for {what} (default: {default})")


def add_sweep(parser: argparse.ArgumentParser) -> None:
    """How runs are carried out, and whether they go on where they were interrupted."""
    parser.add_argument("--resume", action="store_true", help="go on in a folder that has results already")
    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes that share the work (default: one for each core)"
    )


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """`--engine` and `--address`: runs on other machines."""
    parser.add_argument(
        "--engine",
        default="local",
        metavar="ENGINE",
        help="where runs take place: local, in processes of this machine; or ray, on the cluster at --address or, "
        f"without one, on Ray that is started here for the while; needs {installing(['ray'])} (default: local)",
    )
    parser.add_argument("--address", metavar="ADDRESS", help="address of a Ray cluster, or auto to look for one")


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


def add_force(parser: argparse.ArgumentParser) -> None:
    """`--force`, of a command that writes a file."""
    parser.add_argument("--force", action="store_true", help="write over a file that is there")


def check_new(path: Path, force: bool) -> None:
    """Refuse to write over a file, unless that is wanted."""
    if path.exists() and not force:
        raise ParameterError(f"{path} is there already: take another name, or say --force to write over it.")
