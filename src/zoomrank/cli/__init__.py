"""The `zoomrank` command: one module per sub-command, each with its help, its examples and what it does."""

import argparse
import sys
from collections.abc import Sequence

from zoomrank import __version__
from zoomrank.cli.commands import demo, demo_service, evaluate, inspect, report, reproduce, serve, simulate, study
from zoomrank.errors import ZoomrankError

_COMMANDS = (demo, simulate, reproduce, report, study, inspect, evaluate, serve, demo_service)

_EXTRAS = {  # which modules each of them brings
    "lab": ("markdown_it", "matplotlib", "pyarrow", "rich"),
    "service": ("fastapi", "httpx", "plotly", "prometheus_client", "pydantic", "uvicorn"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="zoomrank",
        description="Learn short, diverse rankings over large document collections from clicks alone.",
        epilog="example:  zoomrank demo",
    )
    parser.add_argument("--version", action="version", version=f"zoomrank {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add(commands)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except ZoomrankError as error:
        sys.stderr.write(f"zoomrank: {error}\n")
        return 2
    except ModuleNotFoundError as error:
        extra = next((extra for extra, names in _EXTRAS.items() if error.name in names), None)
        if extra is None:
            raise
        sys.stderr.write(f"zoomrank: this needs {error.name}: pip install 'zoomrank[{extra}]'\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"zoomrank: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\nzoomrank: stopped\n")
        return 130
    return 0
