"""`python -m research`: studies, the simulated year, and benchmarks."""

import argparse
import sys

from research.commands import bench, study, year
from zoomrank.cli import main, make_parser

_EXAMPLES = """examples:
  python -m research study efficiency --instances 4 --visits 5000
  python -m research bench learners"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    groups = {"studies": (study.add, study.add_report), "service": (year.add,), "speed": (bench.add,)}
    return make_parser("python -m research", "Studies and benchmarks of zoomrank.", _EXAMPLES, groups)


if __name__ == "__main__":
    sys.exit(main(parser=parser()))
