"""`python -m research`: studies, the simulated year, and benchmarks."""

import os
import sys
from collections.abc import Sequence

from zoomrank import cli
from zoomrank.cli import Command

RESEARCH = cli.Program(
    "python -m research",
    "Studies and benchmarks of zoomrank.",
    """examples:
  python -m research study efficiency --instances 4 --visits 5000
  python -m research bench learners""",
    {
        "studies": {
            "study": Command("compare ZoomRank with its competitors", "research.commands.study"),
            "report": Command("write the report of a study again", "research.commands.study", "add_report"),
        },
        "service": {"year": Command("simulate a year of a shop, in minutes", "research.commands.year")},
        "speed": {"bench": Command("measure speeds and sizes", "research.commands.bench")},
    },
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    os.environ.setdefault("ZOOMRANK_COMPILE", "at-once")  # much work, and nothing that is timed is to be interpreted
    return cli.main(arguments, RESEARCH)


if __name__ == "__main__":
    sys.exit(main())
