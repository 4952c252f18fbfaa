"""Report of the paper's evaluation: claims, figures, numbers, theory, settings and machine.

Every number and every verdict in it is computed from the rows; only the explanations of differences are written by
hand, beside the claims. Claims are also judged under other readings of what the paper leaves open, where these have
rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mode

from zoomrank.errors import ResultsError
from zoomrank.lab import registry
from zoomrank.lab.curves import CurveRows, Results, estimate
from zoomrank.lab.paper.claims import (
    BETTER,
    CLOSE,
    FAR_ENOUGH,
    INDISTINGUISHABLE,
    MANY_TIMES,
    MUCH,
    NEAR_OPTIMAL,
    RAPIDLY,
    Claim,
    Finding,
    judge_all,
    judge_claim,
    tally,
)
from zoomrank.lab.paper.comparisons import CANNOT_TELL, DIFFERS, HOLDS
from zoomrank.lab.paper.figures import BEYOND_FIGURES, EXPERIMENTS, FIGURES, MAIN, PUBLISHED, Figure, source
from zoomrank.lab.paper.plots import draw
from zoomrank.lab.paper.readings import CHOICES, OTHERS, READING, Reading, differences, name_of
from zoomrank.lab.paper.theory import Facts, facts, over_instances, theory_table
from zoomrank.lab.registry import GREEDY
from zoomrank.lab.report_pages import label, made_with, table, write_page
from zoomrank.lab.results_folder import ResultsFolder
from zoomrank.types import Array

_SECTIONS = ("4.4", "5, ", "6.2", "6.3", "6.4")  # of the paper: those about the performance of rankers
_MARK = {HOLDS: "✓", DIFFERS: "✗", CANNOT_TELL: "?"}


_CLAIMS_INTRODUCTION = (
    "Sentences are in our words. Differences are between fractions of satisfied visitors over the whole run unless "
    "said otherwise, paired by instance, with 95 % intervals. A claim *holds* if every interval is on the right side "
    "of its threshold, *differs* if one is wholly on the wrong side, and else one *cannot tell*; a conjecture can hold "
    "but not differ, and runs that were cut short tell nothing. What adjectives stand for is the same everywhere "
    f"(`lab/paper/claims.py`): indistinguishable {INDISTINGUISHABLE}, eventually better {BETTER}, close {CLOSE}, much "
    f"better {MUCH}, near-optimal {NEAR_OPTIMAL:.0%} of greedy, rapidly {FAR_ENOUGH:.0%} of it by visit {RAPIDLY:,}, "
    f"many more {MANY_TIMES:.0f} times as many."
)
STRATEGY_COUNTS = (
    "The active subtrees of each slot when a run ends, and of RankContextZoom the active pairs with contexts that have "
    "come up; means over instances. *Visits a strategy* are the visits that reached the slot, divided by them."
)
_HEADS = ("experiment", "ranker", "strategies, slot by slot", "in all", "visits a strategy, slot by slot")


@dataclass(frozen=True)
class PaperReport:
    """Path of the page, and the findings."""

    page: Path
    verdicts: Mapping[str, int]

    @property
    def summary(self) -> str:
        """Counts of the verdicts, in a sentence."""
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.verdicts.items())
        return f"Claims of the paper: {counts}."


def write_paper_report(folder: ResultsFolder) -> PaperReport:
    """Draw and write everything."""
    results = Results(folder.rows())
    # The instances that most curves of an experiment have, so that curves drawn together share them.
    usual = {
        name: mode(len(results.curve(name, curve).instances) for curve in results.curves(name) if "@" not in curve)
        for name in results.experiments()
    }
    drawn = results.first(usual)
    there = _in_our_order(results.experiments())
    if not there:
        raise ResultsError(f"{folder.path} has no finished runs yet: there is nothing to report.")
    known = {name: _facts(name, results) for name in there if name in PUBLISHED or name in BEYOND_FIGURES}
    figures = [figure for figure in FIGURES.values() if _drawable(figure, results, folder.manifest["figures"])]
    for figure in figures:
        draw(figure, drawn, folder.path / "figures", known)
    findings = judge_all(results, known)
    paragraphs = _sections(folder, (results, drawn), known, figures, findings)
    return PaperReport(write_page(folder.path, "zoomrank: the evaluation, rerun", paragraphs), tally(findings))


def _in_our_order(experiments: Iterable[str]) -> list[str]:
    """Sort experiments as in `EXPERIMENTS`; others come last."""
    places = {name: place for place, name in enumerate(EXPERIMENTS)}
    return sorted(experiments, key=lambda name: places.get(name, len(places)))


def _drawable(figure: Figure, results: Results, wanted: Sequence[str]) -> bool:
    return (
        figure.kind != "table"
        and figure.name in wanted
        and any(results.curves(panel.experiment) for panel in figure.panels)
    )


def _facts(experiment: str, results: Results) -> Facts:
    runs = results.curve(experiment, results.curves(experiment)[0]).settings
    return over_instances([facts(*registry.world(run), run.slots) for run in runs])


def _sections(
    folder: ResultsFolder,
    rows: tuple[Results, Results],
    known: Mapping[str, Facts],
    figures: Sequence[Figure],
    findings: Sequence[Finding],
) -> Iterable[str]:
    results, drawn = rows
    yield "# Ranked bandits in metric spaces: the evaluation, rerun"
    yield _opening(folder, results, findings)
    if findings:
        yield "## What the paper says, and what was measured"
        yield _CLAIMS_INTRODUCTION
        yield _claims(findings)
        yield from _reasons(findings)
        yield from _undecidable(findings)
        yield from reading_sections(results, findings)
    yield "## Figures"
    for figure in figures:
        yield f"![{figure.title}](figures/figure-{figure.name}.png)"
        yield _caption(figure, results)
    yield "## Numbers"
    yield (
        "Visitors satisfied, with 95 % intervals over instances: over the whole run, in the window around visit "
        f"{RAPIDLY:,} and in the last tenth of the run. *Slots* is the share of all visitors who clicked on each slot."
    )
    for experiment in _in_our_order(results.experiments()):
        yield f"### {_title(experiment)}"
        yield _numbers(experiment, drawn, folder.seconds())
    strategies = strategy_table(results, MAIN)
    if strategies:
        yield "## How many strategies there were"
        yield STRATEGY_COUNTS
        yield strategies
    if known:
        yield "## Theory beside it"
        yield theory_table(results, known)
    yield "## Settings"
    yield from _settings(results)
    yield "## Made with"
    yield made_with(folder)


def _opening(folder: ResultsFolder, results: Results, findings: Sequence[Finding]) -> str:
    manifest = folder.manifest
    counts = ", ".join(f"{count} {verdict}" for verdict, count in tally(findings).items())
    options = f" --visits {manifest['visits']}" if manifest["visits"] is not None else ""
    asked: dict[int, list[str]] = {}
    for name in manifest["figures"]:
        asked.setdefault(_instances(FIGURES[name], results), []).append(name)
    commands = " and ".join(
        f"`zoomrank reproduce {' '.join(names)} --instances {count}{options} --seed {manifest['seed']}`"
        for count, names in asked.items()
    )
    if manifest["instances"] > max(asked):
        commands += f"; then, once, by `zoomrank reproduce undecided --instances {manifest['instances']} --resume`"
    return (
        f"Made by {commands}. Every curve is the mean of that many instances, with a 95 % band; all rankers meet the "
        "same instances. Each sentence of the paper's evaluation was tested on every experiment it is about: "
        f"{counts}."
    )


def _instances(figure: Figure, results: Results) -> int:
    """Return the number of instances that most curves of a figure have: some may be unfinished, others were run more
    often.
    """
    there = [
        len(results.curve(panel.experiment, curve).instances)
        for panel in figure.panels
        for curve in panel.curves
        if results.has(panel.experiment, curve)
    ]
    return mode(there) if there else 0


def _claims(findings: Sequence[Finding]) -> str:
    rows = []
    before = None
    for one in findings:
        measured = "; ".join(str(part) for part in one.measured)
        verdict = f"**{one.verdict}**" if one.verdict == DIFFERS else one.verdict
        said = (one.claim.place, one.claim.says) if one.claim is not before else ("", "")
        rows.append((*said, one.experiment, measured, verdict))
        before = one.claim
    return table(("where", "claim", "experiment", "measured", "verdict"), rows)


def _by_claim(findings: Sequence[Finding], verdict: str) -> Iterable[tuple[Claim, str]]:
    """Return the claims with this verdict somewhere, and the experiments."""
    places: dict[str, list[Finding]] = {}
    for one in findings:
        if one.verdict == verdict:
            places.setdefault(one.claim.name, []).append(one)
    return ((group[0].claim, ", ".join(one.experiment for one in group)) for group in places.values())


def _reasons(findings: Sequence[Finding]) -> Iterable[str]:
    """Explain each claim that differs somewhere."""
    differing = _by_claim(findings, DIFFERS)
    lines = [f"- {claim.says} ({where}) {claim.why or 'No explanation yet.'}" for claim, where in differing]
    if lines:
        yield "### Where it differs, and our reading of why"
        yield "\n".join(lines)


def _undecidable(findings: Sequence[Finding]) -> Iterable[str]:
    """List the claims that no number of instances can decide."""
    undecided = _by_claim(findings, CANNOT_TELL)
    lines = [f"- {claim.says} ({where}) {claim.undecidable}" for claim, where in undecided if claim.undecidable]
    if lines:
        yield "### What no number of instances would decide"
        yield "\n".join(lines)


def _caption(figure: Figure, results: Results) -> str:
    name = f"Figure {figure.name}" if figure.in_paper else f"“{figure.name}”"
    shown = [EXPERIMENTS[p.experiment] for p in figure.panels if results.curves(p.experiment)]
    parts = "; ".join(
        f"{e.title} ({e.slots} slots, {results.curve(e.name, results.curves(e.name)[0]).length:,} visits)"
        for e in shown
    )
    return f"**{name}.** {figure.title}. {parts}. [SVG](figures/figure-{figure.name}.svg)"


def _numbers(experiment: str, results: Results, seconds: Mapping[str, float]) -> str:
    rows = []
    curves = results.curves(experiment)
    for curve in sorted(curves, key=lambda name: -float(results.curve(experiment, name).rate().mean())):
        mine = results.curve(experiment, curve)
        share = ""
        if results.has(experiment, GREEDY):
            pair, greedy = results.together(experiment, curve, GREEDY)
            share = f"{float((pair.rate(0.9) / greedy.expected[:, 0]).mean()):.2f}"
        taken = [seconds[run.id] for run in mine.settings if run.id in seconds]
        speed = f"{mine.length * len(taken) / sum(taken):,.0f}" if taken and sum(taken) > 0 else ""
        slots = " ".join(f"{rate:.2f}" for rate in mine.slot_rates().mean(axis=0))
        values = (estimate(rate) for rate in (mine.rate(), mine.rate_around(RAPIDLY), mine.rate(0.9)))
        rows.append((label(curve), *(str(value) for value in values), share, slots, speed))
    heads = ("ranker", "whole run", f"around {RAPIDLY:,}", "last tenth", "of greedy", "slots", "visits/s")
    return table(heads, rows)


def _settings(results: Results) -> Iterable[str]:
    for name in _in_our_order(results.experiments()):
        first = results.curve(name, results.curves(name)[0])
        run = first.settings[0]
        yield (
            f"**{name}**: {_title(name)}. Tree {run.tree}, visitors {run.users}, {run.slots} slots, {run.visits:,} "
            f"visits, {_count(first)} from seed {run.seed}."
        )
        lines = []
        for curve in results.curves(name):
            rows = results.curve(name, curve)
            one = rows.settings[0]
            extra = f", feedback {one.delay:,} visits late" if one.delay else ""
            extra += f", believes in the tree {one.belief}" if one.belief else ""
            extra += f"; {_count(rows)}" if rows.instances != first.instances else ""
            lines.append(f"- `{name}/{curve}`: {one.ranker}{extra}")
        yield "\n".join(lines)


def _count(rows: CurveRows) -> str:
    many = rows.instances
    return f"{len(many)} instances, {many[0]} to {many[-1]}," if len(many) > 1 else f"instance {many[0]}"


def _title(experiment: str) -> str:
    return EXPERIMENTS[experiment].title if experiment in EXPERIMENTS else experiment


@dataclass(frozen=True)
class Column:
    """Verdicts on the claims under another reading."""

    reading: Reading
    instances: int  # minimum over its own curves
    verdicts: tuple[str | None, ...]  # a verdict per finding; None where the reading changes nothing


def reading_sections(results: Results, findings: Sequence[Finding]) -> Iterable[str]:
    """Return the table, and what changes against the figures; nothing if no other reading has rows."""
    about = [one for one in findings if one.claim.place.startswith(_SECTIONS)]
    rows = [one for one in about if results.has(one.experiment, *_curves(one))]
    columns = [column for reading in OTHERS if (column := judged_under(reading, results, rows)) is not None]
    if columns:
        yield "## Under other readings"
        yield _introduction()
        yield _table(rows, columns)
        yield "\n".join(_changes(column, rows) for column in columns)


def judged_under(reading: Reading, results: Results, findings: Sequence[Finding]) -> Column | None:
    """Judge what a reading changes; None if it changes nothing, or if its rows are missing."""
    names = {
        (name, curve.name): source(name, curve.name, reading) for name, one in PUBLISHED.items() for curve in one.curves
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


def strategy_table(results: Results, experiments: Sequence[str]) -> str | None:
    """Return a row per ranker that has strategies, in these experiments; None if none has rows."""
    rows = [
        _row(experiment, curve, active, results.curve(experiment, curve).examined())
        for experiment in experiments
        for curve in results.curves(experiment)
        if (active := results.curve(experiment, curve).active) is not None
    ]
    return table(_HEADS, rows) if rows else None


def _row(experiment: str, curve: str, active: Array, examined: Array) -> tuple[str, ...]:
    by_slot = active.mean(axis=0)
    visits = (examined / active).mean(axis=0)
    return (
        experiment,
        label(curve),
        " ".join(f"{count:,.0f}" for count in by_slot),
        f"{by_slot.sum():,.0f}",
        " ".join(f"{each:,.1f}" for each in visits),
    )
