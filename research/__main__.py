"""`python -m research`: studies, the simulated year, and benchmarks."""

import sys
from collections.abc import Sequence

from research.commands import bench, study, year
from zoomrank import cli

_EXAMPLES = """examples:
  python -m research study efficiency --instances 4 --visits 5000
  python -m research bench learners"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    groups = {"studies": (study.add, study.add_report), "service": (year.add,), "speed": (bench.add,)}
    parser = cli.make_parser("python -m research", "Studies and benchmarks of zoomrank.", _EXAMPLES, groups)
    return cli.main(arguments, parser)


if __name__ == "__main__":
    sys.exit(main())
