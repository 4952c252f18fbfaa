"""Report on judging: coverage and width of intervals, and what was rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from research.studies.judging import LogKind, Row, kinds_of, results_so_far
from zoomrank.errors import ResultsError
from zoomrank.judging.estimators import ESTIMATORS
from zoomrank.judging.judgment import DEFAULT
from zoomrank.lab.report_pages import table
from zoomrank.lab.results_folder import ResultsFolder
from zoomrank.types import Array

_FEW = 20  # judgments: with fewer, shares are not reported
_CLOSE = 1e-9  # rounding error
_REASONS = {  # beginnings of error messages, and their names in the report
    "The log is deterministic": "deterministic",
    "The log never shows": "never shown",
    "The effective sample": "effective sample",
    "Support is missing": "support",
    "The total weight": "heaviest impression",
    "Of ": "heaviest impression",  # as worded by earlier versions, whose rows can still be read
}


def judging_sections(folder: ResultsFolder, command: str) -> Iterator[str]:
    """Return the page, section by section."""
    results = {
        kind: rows
        for kind, rows in zip(kinds_of(folder.manifest), results_so_far(folder).values(), strict=True)
        if rows
    }
    if not results:
        raise ResultsError(f"{folder.path} has no logs that were judged: nothing to report yet.")
    yield "# What a log can tell, against what is true"
    yield (
        f"Made by `{command}`. Visitors, rankings and their propensities are simulated in worlds of 16 documents and 3 "
        "slots, where the share that a ranking satisfies is computed exactly. Intervals are 95 %. *Bias* is in "
        "standard errors, *covered* how often an interval holds the truth, *difference* the same of the difference "
        "from what was shown, *sample* the median effective sample. What was told fewer than "
        f"{_FEW} times has no numbers."
    )
    yield _in_short(results)
    for kind, rows in results.items():
        yield f"## {kind.title[0].upper()}{kind.title[1:]}"
        logs = len({row["log"] for row in rows})
        yield f"{logs:,} logs of {kind.impressions:,} impressions, by `{DEFAULT}`."
        yield table(
            ("asked about", "told", "refused", "truth", "bias", "covered", "difference", "width", "sample"),
            _target_rows(rows),
        )
    yield "## Which estimator"
    yield (
        "The root of the mean squared error, times 100, and how often intervals cover, over all that was told of a "
        "kind of logs."
    )
    told = {kind: [row for row in rows if "refused" not in row] for kind, rows in results.items()}
    yield table(("logs", *ESTIMATORS), (_estimator_row(kind, rows) for kind, rows in told.items() if rows))


def _in_short(results: Mapping[LogKind, Sequence[Row]]) -> str:
    told = [row for rows in results.values() for row in rows if row.get("estimator") == DEFAULT]
    refused = [row for kind, rows in results.items() if kind.name == "certain" for row in rows if "refused" in row]
    others = [row for kind, rows in results.items() if kind.name == "certain" for row in _others(rows)]
    covered = _covered(_column(told, "share"), np.array([row["truth"] for row in told]))
    apart = _covered(_column(told, "difference"), np.array([row["apart"] for row in told]))
    return (
        f"Of {len(told):,} judgments {covered:.1%} of the intervals cover the truth, and {apart:.1%} of those of "
        f"differences. Of {len(others):,} questions to deterministic logs about anything but themselves "
        f"{len(refused):,} were refused."
    )


def _others(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of deterministic logs about another target; judgments by such a log must be of itself."""
    once = [row for row in rows if row.get("estimator", DEFAULT) == DEFAULT]
    return [row for row in once if "refused" in row or abs(row["apart"]) > _CLOSE]


def _target_rows(rows: Sequence[Row]) -> Iterator[Sequence[str]]:
    for target in dict.fromkeys(row["target"] for row in rows):
        mine = [row for row in rows if row["target"] == target]
        told = [row for row in mine if row.get("estimator") == DEFAULT]
        why = Counter(_reason(row["refused"]) for row in mine if "refused" in row)
        refused = ", ".join(f"{count:,} {reason}" for reason, count in why.most_common()) or "0"
        yield target, f"{len(told):,}", refused, *(_numbers(told) if len(told) >= _FEW else [""] * 6)


def _reason(refusal: str) -> str:
    return next(name for beginning, name in _REASONS.items() if refusal.startswith(beginning))


def _numbers(told: Sequence[Row]) -> Sequence[str]:
    truth, apart = (np.array([row[name] for row in told]) for name in ("truth", "apart"))
    share, difference = _column(told, "share"), _column(told, "difference")
    bias = (share[:, 0] - truth).mean() / share[:, 3].mean()
    return (
        f"{truth.mean():.3f}",
        f"{bias:+.2f}",
        f"{_covered(share, truth):.3f}",
        f"{_covered(difference, apart):.3f}",
        f"{(share[:, 2] - share[:, 1]).mean():.3f}",
        f"{np.median([row['sample'] for row in told]):,.0f}",
    )


def _estimator_row(kind: LogKind, told: Sequence[Row]) -> Sequence[str]:
    cells = []
    for estimator in ESTIMATORS:
        mine = [row for row in told if row["estimator"] == estimator]
        share, truth = _column(mine, "share"), np.array([row["truth"] for row in mine])
        error = 100 * np.sqrt(((share[:, 0] - truth) ** 2).mean())
        cells.append(f"{error:.2f} ({_covered(share, truth):.3f})")
    return kind.title, *cells


def _column(rows: Sequence[Row], name: str) -> Array:
    """Shares or differences: value, low, high, error."""
    return np.array([row[name] for row in rows]).reshape(-1, 4)


def _covered(shares: Array, truth: Array) -> float:
    return float(((shares[:, 1] - _CLOSE <= truth) & (truth <= shares[:, 2] + _CLOSE)).mean())
