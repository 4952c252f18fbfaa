"""Parts that commands share: their descriptions, the extras they need, and options that mean the same everywhere.

Commands name their extras when they are defined; a command that lacks any ends with an error before it begins.
"""

import argparse
import textwrap
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from zoomrank.errors import MissingExtraError, ParameterError

# Modules that zoomrank imports, by the extra that brings them. Extras that an extra includes are listed in full.
_CLIENT = ("httpx", "typing_extensions")
_DOCUMENTS = ("pyarrow", "sklearn", "threadpoolctl")
_LAB = ("PIL", "markdown_it", "matplotlib", "pyarrow", "rich")
_WEB = ("fastapi", "plotly", "prometheus_client", "pydantic", "pydantic_core", "starlette", "uvicorn")
_SERVICE = (*_CLIENT, *_DOCUMENTS, *_WEB)
MODULES: Mapping[str, tuple[str, ...]] = {
    "client": _CLIENT,
    "cluster": (*_SERVICE, "aiohttp", "psycopg", "ray", "yarl"),
    "documents": _DOCUMENTS,
    "embeddings": (*_DOCUMENTS, "wordllama"),
    "lab": _LAB,
    "postgres": (*_SERVICE, "psycopg"),
    "ray": (*_LAB, "ray"),
    "service": _SERVICE,
}


def installing(extras: Iterable[str]) -> str:
    """Return the command that installs these extras.

    >>> installing(["documents", "lab"])
    "pip install 'zoomrank[documents,lab]'"
    """
    return f"pip install 'zoomrank[{','.join(extras)}]'"


def require(command: str, extras: Iterable[str]) -> None:
    """Raise an error unless all modules of the command's extras are installed.

    Raises
    ------
    MissingExtraError
        Names what is missing and how to install it.
    """
    wanted = dict.fromkeys(module for extra in extras for module in MODULES[extra])
    missing = [module for module in wanted if find_spec(module) is None]
    if missing:
        few = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise MissingExtraError(f"`{command}` needs {few}: {installing(extras)}")


Commands = Any  # argparse's _SubParsersAction, which is private


class Layout(argparse.RawDescriptionHelpFormatter):
    """Help formatter that keeps texts as written, with room for long options."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **{"max_help_position": 28, **options})


def add_command(
    commands: Commands, name: str, about: str, *examples: str, extras: tuple[str, ...] = ()
) -> argparse.ArgumentParser:
    """Add a sub-command whose help ends with examples, and with the extras it needs."""
    needs = f"\n\nneeds:\n  {installing(extras)}" if extras else ""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        description=about,
        epilog="examples:\n" + "\n".join(f"  {example}" for example in examples) + needs,
        formatter_class=Layout,
        allow_abbrev=False,
    )
    parser.set_defaults(extras=extras, refuse=parser.error)
    return parser


def listed(what: str, names: Iterable[str]) -> str:
    """Format the names that an argument can have, as a paragraph of help.

    >>> print(listed("colours:", ["red", "green"]))
    colours:     red, green
    """
    indent = " " * 13
    return textwrap.fill(
        ", ".join(names), 80, initial_indent=what.ljust(13), subsequent_indent=indent, break_on_hyphens=False
    )


def add_number(parser: argparse.ArgumentParser, option: str, default: int | None, about: str, kind: Any = int) -> None:
    """Add an option that is a whole number."""
    parser.add_argument(option, type=kind, default=default, metavar="N", help=about)


def add_seed(parser: argparse.ArgumentParser, default: int | None) -> None:
    """Add `--seed N`."""
    own = "each study's own" if default is None else str(default)
    about = f"seed of the random numbers: the same seed, the same run (default: {own})"
    add_number(parser, "--seed", default, about, _seed)


def _seed(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("a seed must be 0 or more")
    return number


def add_documents(parser: argparse.ArgumentParser) -> None:
    """Add `FILE`, the documents of a command."""
    parser.add_argument("documents", type=Path, metavar="FILE", help="the documents, in any of the forms above")


def add_depth(parser: argparse.ArgumentParser) -> None:
    """Add `--depth N`."""
    about = "levels of the binary tree that documents are the leaves of (default: 15, which is 32,768 documents)"
    add_number(parser, "--depth", 15, about)


def add_slots(parser: argparse.ArgumentParser) -> None:
    """Add `--slots N`."""
    add_number(parser, "--slots", 5, "documents in a ranking (default: 5)")


def add_visits(parser: argparse.ArgumentParser, default: int | None) -> None:
    """Add `--visits N`."""
    own = "each experiment's own" if default is None else f"{default:,}"
    add_number(parser, "--visits", default, f"visits in each run (default: {own})")


def add_instances(parser: argparse.ArgumentParser, default: int | None, what: str) -> None:
    """Add `--instances N`."""
    own = "each study's own" if default is None else str(default)
    about = f"number of times {what} is run, each with other random numbers (default: {own})"
    add_number(parser, "--instances", default, about)


def add_out(parser: argparse.ArgumentParser, what: str, default: Path | str) -> None:
    """Add `--out DIR`; a default that is not a path is only shown in the help, and decided later."""
    path = default if isinstance(default, Path) else None
    parser.add_argument("--out", type=Path, default=path, metavar="DIR", help=f"folder for {what} (default: {default})")


def add_sweep(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how runs are carried out, and whether they resume an interrupted sweep."""
    parser.add_argument("--resume", action="store_true", help="continue in a folder that has results already")
    add_number(parser, "--workers", None, "processes that share the work (default: one for each core)")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add `--engine` and `--address`: runs on other machines."""
    parser.add_argument(
        "--engine",
        default="local",
        metavar="ENGINE",
        help="where to run: local, in processes of this machine; or ray, on the cluster at --address or, "
        f"without one, on a Ray that is started for this command; needs {installing(['ray'])} (default: local)",
    )
    parser.add_argument("--address", metavar="ADDRESS", help="address of a Ray cluster, or auto to look for one")


def parameter(text: str) -> tuple[str, Any]:
    """Parse `name=value`, where a value that looks like a number, true or false becomes one."""
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


def add_unknown(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--unknown refuse|skip`."""
    how = f"what to do with {what} (default: refuse)"
    parser.add_argument("--unknown", choices=["refuse", "skip"], default="refuse", help=how)


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add `--force`, for a command that writes a file."""
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")


def check_new(path: Path, force: bool) -> None:
    """Raise an error if the file exists, unless `force`."""
    if path.exists() and not force:
        raise ParameterError(f"{path} exists already; choose another name, or overwrite it with --force.")
