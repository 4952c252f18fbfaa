"""The report of a sweep: figures, claims, settings, theory and machine, as `report.md` and one `report.html`.

It is written once, as Markdown; the page is made of it, with its pictures inside, so that it can be sent as one file.
Every number and every verdict in it is computed from the rows; only our reading of why something differs is written by
hand, beside the claim.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

from zoomrank.errors import ResultsError
from zoomrank.lab import catalogue
from zoomrank.lab.catalogue import GREEDY
from zoomrank.lab.paper.claims import (
    BETTER,
    CLOSE,
    DIFFERS,
    FAR_ENOUGH,
    INDISTINGUISHABLE,
    MUCH,
    NEAR_OPTIMAL,
    RAPIDLY,
    Judgement,
    judge_all,
    tally,
)
from zoomrank.lab.paper.experiments import EXPERIMENTS, FIGURES, Figure
from zoomrank.lab.paper.figures import draw, label
from zoomrank.lab.paper.theory import Facts, facts, guarantee, over_instances, regret, vacuous_until
from zoomrank.lab.recipes import described
from zoomrank.lab.results import Results, estimate
from zoomrank.lab.results_folder import Store


@dataclass(frozen=True)
class Report:
    """Where it is, and how the claims came out."""

    page: Path
    verdicts: Mapping[str, int]


def write_report(store: Store) -> Report:
    """Draw and write everything."""
    results = Results(store.rows())
    if not results.experiments():
        raise ResultsError(f"{store.folder} has no finished runs yet: there is nothing to report.")
    known = {name: _facts(name, results) for name in results.experiments() if name in EXPERIMENTS}
    figures = [figure for figure in FIGURES.values() if _drawable(figure, results, store.manifest["figures"])]
    for figure in figures:
        draw(figure, results, store.folder / "figures", known)
    judgements = judge_all(results, known)
    text = "\n\n".join(_sections(store, results, known, figures, judgements)) + "\n"
    (store.folder / "report.md").write_text(text)
    written = store.folder / "report.html"
    written.write_text(page(text, store.folder, "zoomrank: the evaluation, rerun"))
    return Report(written, tally(judgements))


def _drawable(figure: Figure, results: Results, wanted: Sequence[str]) -> bool:
    return figure.name in wanted and any(results.curves(panel.experiment) for panel in figure.panels)


def _facts(experiment: str, results: Results) -> Facts:
    runs = results.curve(experiment, results.curves(experiment)[0]).settings
    return over_instances([facts(*catalogue.world(run), run.slots) for run in runs])


def _sections(
    store: Store,
    results: Results,
    known: Mapping[str, Facts],
    figures: Sequence[Figure],
    judgements: Sequence[Judgement],
) -> Iterable[str]:
    yield "# Ranked bandits in metric spaces: the evaluation, rerun"
    yield _opening(store, judgements)
    if judgements:
        yield "## What the paper says, and what was measured"
        yield _CLAIMS_INTRODUCTION
        yield _claims(judgements)
        yield from _reasons(judgements)
    yield "## Figures"
    for figure in figures:
        yield f"![{figure.title}](figures/figure-{figure.name}.png)"
        yield _caption(figure, results)
    yield "## Numbers"
    yield (
        "Visitors satisfied, with 95 % intervals over instances: over the whole run, in the window around visit "
        f"{RAPIDLY:,} and in the last tenth of the run. *Slots* is the share of all visitors who clicked on each slot."
    )
    for experiment in results.experiments():
        yield f"### {_title(experiment)}"
        yield _numbers(experiment, results, store.seconds())
    if known:
        yield "## Theory beside it"
        yield _theory(results, known)
    yield "## Settings"
    yield from _settings(results)
    yield "## Made with"
    yield made_with(store)


def _opening(store: Store, judgements: Sequence[Judgement]) -> str:
    manifest = store.manifest
    counts = ", ".join(f"{count} {verdict}" for verdict, count in tally(judgements).items())
    options = f" --visits {manifest['rounds']}" if manifest["rounds"] is not None else ""
    command = f"zoomrank reproduce {' '.join(manifest['figures'])} --instances {manifest['instances']}{options}"
    return (
        f"Made by `{command} --seed {manifest['seed']}`. Every curve is the mean of up to {manifest['instances']} "
        "instances, with a 95 % band; all rankers meet the same instances. Each sentence of the "
        f"paper's evaluation was tested on every experiment it is about: {counts}."
    )


_CLAIMS_INTRODUCTION = (
    "Sentences are in our words. Differences are between fractions of satisfied visitors over the whole run unless "
    "said otherwise, paired by instance, with 95 % intervals. A claim *holds* if every interval is on the right side "
    "of its threshold, *differs* if one is wholly on the wrong side, and else one *cannot tell*; a conjecture can hold "
    "but not differ, and runs that were cut short tell nothing. What adjectives stand "
    f"for is the same everywhere (`lab/paper/claims.py`): indistinguishable {INDISTINGUISHABLE}, eventually better "
    f"{BETTER}, close {CLOSE}, much better {MUCH}, near-optimal {NEAR_OPTIMAL:.0%} of greedy, rapidly {FAR_ENOUGH:.0%} of it "
    f"by visit {RAPIDLY:,}. Not tested: what REC would do (it is not here), whether the large branching factor is why "
    "RankContextZoom is slow, and whether table sizes follow a power law."
)


def _claims(judgements: Sequence[Judgement]) -> str:
    rows = []
    before = None
    for one in judgements:
        measured = "; ".join(str(part) for part in one.measured)
        verdict = f"**{one.verdict}**" if one.verdict == DIFFERS else one.verdict
        said = (one.claim.place, one.claim.says) if one.claim is not before else ("", "")
        rows.append((*said, one.experiment, measured, verdict))
        before = one.claim
    return table(("where", "claim", "experiment", "measured", "verdict"), rows)


def _reasons(judgements: Sequence[Judgement]) -> Iterable[str]:
    """Why, for each claim that differs somewhere."""
    differing: dict[str, list[Judgement]] = {}
    for one in judgements:
        if one.verdict == DIFFERS:
            differing.setdefault(one.claim.name, []).append(one)
    if differing:
        yield "### Where it differs, and our reading of why"
        lines = []
        for group in differing.values():
            where = ", ".join(one.experiment for one in group)
            lines.append(f"- {group[0].claim.says} ({where}) {group[0].claim.why or 'No explanation yet.'}")
        yield "\n".join(lines)


def _caption(figure: Figure, results: Results) -> str:
    name = f"Figure {figure.name}" if figure.in_paper else f"“{figure.name}”"
    shown = [EXPERIMENTS[p.experiment] for p in figure.panels if results.curves(p.experiment)]
    parts = "; ".join(
        f"{e.title} ({e.slots} slots, {results.curve(e.name, results.curves(e.name)[0]).rounds:,} visits)"
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
        speed = f"{mine.rounds * len(taken) / sum(taken):,.0f}" if taken and sum(taken) > 0 else ""
        slots = " ".join(f"{rate:.2f}" for rate in mine.slot_rates().mean(axis=0))
        values = (estimate(rate) for rate in (mine.rate(), mine.rate_around(RAPIDLY), mine.rate(0.9)))
        rows.append((label(curve), *(str(value) for value in values), share, slots, speed))
    heads = ("ranker", "whole run", f"around {RAPIDLY:,}", "last tenth", "of greedy", "slots", "visits/s")
    return table(heads, rows)


def _theory(results: Results, known: Mapping[str, Facts]) -> str:
    rows = []
    for name, one in known.items():
        run = results.curve(name, results.curves(name)[0]).settings[0]
        tree, users = catalogue.world(run)
        sure = float(guarantee(one.optimum, run.slots, one.covering_dimension, run.rounds))
        until = vacuous_until(one.optimum, run.slots, one.covering_dimension)
        contextual = vacuous_until(one.optimum, run.slots, run.slots * one.covering_dimension)
        mean = users.mean()
        worst = float(mean.max() - mean.min())  # what any learner can lose in a visit
        bounds = [regret(tree, mean, run.rounds, kind) / run.rounds for kind in ("UCB1", "GridUCB1", "zooming")]
        rows.append(
            (
                name,
                f"{one.greedy:.4f}",
                f"{one.optimum:.4f}" if one.optimum_is_exact else f"≤ {one.optimum:.4f}",
                f"{one.covering_dimension:.2f}",
                f"{one.zooming_dimension:.2f}",
                f"{sure:.3f}" if sure > 0 else "vacuous",
                f"{until:.2g}",
                f"{contextual:.2g}",
                " / ".join(f"{bound:.2f}" if bound < worst else "vacuous" for bound in bounds),
            )
        )
    heads = (
        "experiment",
        "greedy",
        "OPT",
        "covering dimension",
        "zooming dimension",
        "RankGridEXP3 is sure of",
        "vacuous until visit",
        "RankContextZoom's until",
        "regret per visit of UCB1 / GridUCB1 / zooming in one slot",
    )
    return (
        "The bounds of Sections 4 and 5 and of Appendix A with every hidden constant and logarithm taken as 1 (but the "
        "log T that Appendix A prints), which is kinder than the truth: where even this promises nothing, it says "
        "*vacuous*. Dimensions are with α = 1; the regret bounds are those of the first instance.\n\n"
    ) + table(heads, rows)


def _settings(results: Results) -> Iterable[str]:
    for name in results.experiments():
        first = results.curve(name, results.curves(name)[0])
        run = first.settings[0]
        yield (
            f"**{name}**: {_title(name)}. Tree {run.tree}, visitors {run.users}, {run.slots} slots, {run.rounds:,} "
            f"visits, instances {first.instances[0]} to {first.instances[-1]} from seed {run.seed}."
        )
        lines = []
        for curve in results.curves(name):
            one = results.curve(name, curve).settings[0]
            extra = f", answers {one.delay:,} visits late" if one.delay else ""
            extra += f", believes in the tree {one.belief}" if one.belief else ""
            lines.append(f"- `{name}/{curve}`: {one.ranker}{extra}")
        yield "\n".join(lines)


def made_with(store: Store) -> str:
    """Say which zoomrank ran on what, and for how long."""
    machine = described(store.manifest["machine"])
    seconds = store.seconds()
    return (
        f"zoomrank {store.manifest['version']}; {machine}. {len(seconds)} runs took {sum(seconds.values()):,.0f} "
        "seconds in all, compiling included."
    )


def _title(experiment: str) -> str:
    return EXPERIMENTS[experiment].title if experiment in EXPERIMENTS else experiment


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


_LOOK = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222 }
h1, h2, h3 { line-height: 1.2 } img { max-width: 100%; background: #fff } code { font-size: .9em }
table { border-collapse: collapse; font-size: .85rem; display: block; overflow-x: auto }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ddd; vertical-align: top }
td { font-variant-numeric: tabular-nums } td strong { color: #a33c00 }
@media (prefers-color-scheme: dark) {
  body { background: #16181c; color: #ddd } th, td { border-color: #3a3d44 }
  td strong { color: #ff9a5c } a { color: #7ab8ff }
}
"""


def page(text: str, folder: Path, title: str) -> str:
    """Make a page of a report, with its pictures inside."""
    body = MarkdownIt("commonmark").enable("table").render(text)
    for figure in sorted((folder / "figures").glob("*.svg")):
        data = base64.b64encode(figure.read_bytes()).decode()
        inside = f"data:image/svg+xml;base64,{data}"
        body = body.replace(f'src="figures/{figure.stem}.png"', f'src="{inside}"')
        body = body.replace(f' <a href="figures/{figure.name}">SVG</a>', "")
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_LOOK}</style>\n{body}</html>\n"
    )
