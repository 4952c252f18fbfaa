"""Table of claims under other readings of what the paper leaves open: readings × claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from zoomrank.lab.curves import Results
from zoomrank.lab.paper.comparisons import CANNOT_TELL, DIFFERS, HOLDS
from zoomrank.lab.paper.experiments import source
from zoomrank.lab.paper.published import PAPER
from zoomrank.lab.paper.readings import CHOICES, OTHERS, READING, Reading, differences, name_of
from zoomrank.lab.paper.verdicts import Finding, judge_claim
from zoomrank.lab.reports.page_text import table

_SECTIONS = ("4.4", "5, ", "6.2", "6.3", "6.4")  # of the paper: those about the performance of rankers
_MARK = {HOLDS: "✓", DIFFERS: "✗", CANNOT_TELL: "?"}


@dataclass(frozen=True)
class Column:
    """Verdicts on the claims under another reading."""

    reading: Reading
    instances: int  # minimum over its own curves
    verdicts: tuple[str | None, ...]  # a verdict per finding; None where the reading changes nothing


def reading_sections(results: Results, findings: Sequence[Finding]) -> Iterable[str]:
    """Return the table, and what changes against the figures; nothing if no other reading has rows."""
    rows = [one for one in findings if one.claim.place.startswith(_SECTIONS) and _has_rows(one, results)]
    columns = [column for reading in OTHERS if (column := judged_under(reading, results, rows)) is not None]
    if columns:
        yield "## Under other readings"
        yield _introduction()
        yield _table(rows, columns)
        yield "\n".join(_changes(column, rows) for column in columns)


def judged_under(reading: Reading, results: Results, findings: Sequence[Finding]) -> Column | None:
    """Judge what a reading changes; None if it changes nothing, or if its rows are missing."""
    names = {
        (name, curve.name): source(name, curve.name, reading) for name, one in PAPER.items() for curve in one.curves
    }
    changed = [_changed(one, reading) for one in findings]
    wanted = set().union(*changed)
    if not wanted or not all(results.has(*each) for each in wanted):
        return None
    seen = results.renamed(names)
    verdicts = tuple(_judged(one, seen) if others else None for one, others in zip(findings, changed, strict=True))
    return Column(reading, min(len(results.curve(*each).instances) for each in wanted), verdicts)


def _curves(finding: Finding) -> set[str]:
    return {curve for test in finding.claim.tests[finding.experiment] for curve in test.curves}


def _has_rows(finding: Finding, results: Results) -> bool:
    return results.has(finding.experiment, *_curves(finding))


def _changed(finding: Finding, reading: Reading) -> set[tuple[str, str]]:
    """Return the curves that a finding would rest on instead of those in the figures."""
    usual = {(finding.experiment, curve) for curve in _curves(finding)}
    return {source(*each, reading) for each in usual} - usual


def _judged(finding: Finding, results: Results) -> str:
    claim = replace(finding.claim, tests={finding.experiment: finding.claim.tests[finding.experiment]})
    return judge_claim(claim, results)[0].verdict


def _introduction() -> str:
    usual = "; ".join(CHOICES[name][choice] for name, choice in vars(READING).items())
    return (
        f"The paper leaves some questions open. *As drawn* is how the figures answer them: {usual}; whether visitors "
        "belong to a peak is drawn both ways where experiments are named so. Every other column differs in what stands "
        "above it, with the number of instances that its own runs have: ✓ holds, ✗ differs, ? cannot tell, and nothing "
        "where the reading changes none of the curves. Fewer instances than in the figures make “cannot tell” likelier."
    )


def _table(rows: Sequence[Finding], columns: Sequence[Column]) -> str:
    heads = ("claim", "experiment", "as drawn", *(f"{_words(one.reading)} ({one.instances})" for one in columns))
    lines = []
    before = None
    for at, one in enumerate(rows):
        said = "" if one.claim is before else one.claim.says
        others = (column.verdicts[at] for column in columns)
        lines.append((said, one.experiment, _MARK[one.verdict], *(_MARK[each] if each else "" for each in others)))
        before = one.claim
    held = [sum(one.verdict == HOLDS for one in rows), *(_held(column, rows) for column in columns)]
    return table(heads, [*lines, ("hold", "", *(f"{count} of {len(rows)}" for count in held))])


def _held(column: Column, rows: Sequence[Finding]) -> int:
    return sum((other or one.verdict) == HOLDS for one, other in zip(rows, column.verdicts, strict=True))


def _words(reading: Reading) -> str:
    return name_of(reading).replace("-", " ").replace("+", ", ")


def _changes(column: Column, rows: Sequence[Finding]) -> str:
    """Describe a reading, and the verdicts that it changes."""
    means = " and ".join(CHOICES[name][choice] for name, choice in differences(column.reading).items())
    turned: dict[tuple[str, str], list[str]] = {}
    for one, other in zip(rows, column.verdicts, strict=True):
        if other is not None and other != one.verdict:
            turned.setdefault((one.claim.says, f"{one.verdict} → {other}"), []).append(one.experiment)
    told = "; ".join(f"“{says}” {change} ({', '.join(where)})" for (says, change), where in turned.items())
    count = sum(len(where) for where in turned.values())
    judged = sum(verdict is not None for verdict in column.verdicts)
    changes = f"{count} of {judged} verdicts change. {told}." if turned else "No verdict changes."
    return f"- **{_words(column.reading)}** ({means}): {changes}"
