"""`make bench`: every number in docs/benchmarks.md, measured in one run and printed as Markdown.

Machines differ and are noisy, so speeds that matter are ratios within the run. Name sections to run only those:
`python -m bench floor`.
"""

import argparse
import platform
import sys
from datetime import datetime, timezone

import numba
import numpy as np

import zoomrank
from bench import (
    answers,
    catalogue,
    cluster,
    experiments,
    ground,
    learners,
    others,
    propensities,
    queries,
    retention,
    ring,
    service,
)
from bench.measure import Row
from zoomrank.lab.reports.machine import machine

SECTIONS = {
    "spaces": ground.spaces,
    "floor": ground.floor,
    "exact": ground.exact,
    "learners": learners.learners,
    "growth": learners.growth,
    "footprint": learners.footprint,
    "eligible": learners.eligible,
    "documents": ground.documents,
    "queries": queries.queries,
    "answers": answers.answers,
    "compilation": learners.compilation,
    "others": others.others,
    "service": service.service,
}
PARTS = {"experiment": service.experiment}  # parts of other sections

ON_REQUEST = {  # take too long to be run with the rest
    "steady": service.steady,
    "catalogue": catalogue.catalogue,
    "cluster": cluster.cluster,
    "retention": retention.retention,
    "ring": ring.ring,
    "experiments": experiments.experiments,
    "propensities": propensities.propensities,
}


def main() -> None:
    known = {**SECTIONS, **PARTS, **ON_REQUEST}
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"any of {', '.join(known)} (default: the first {len(SECTIONS)})"
    )
    chosen = parser.parse_args().sections or list(SECTIONS)
    unknown = set(chosen) - set(known)
    if unknown:
        parser.error(f"unknown section {unknown.pop()!r}; choose from {', '.join(known)}")
    today = datetime.now(timezone.utc).date()
    print(f"zoomrank {zoomrank.__version__}, {today}, Python {platform.python_version()}, "
          f"Numba {numba.__version__}, NumPy {np.__version__}, {machine()['processor']}\n")  # fmt: skip
    for section in chosen:
        print(f"### {section}\n\n| what | measured | aim |\n|---|---|---|")
        for row in known[section]():
            _print(row)
        print()


def _print(row: Row) -> None:
    print(f"| {row.what} | {row.measured} | {row.aim} |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
