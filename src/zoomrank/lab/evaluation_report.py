"""Report of an evaluation: learning curves over topics, clicks collected by each mark, and results by topic.

Its main table and the share that popularity reaches are also returned as text, for a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import PercentFormatter

from zoomrank.errors import ResultsError
from zoomrank.lab import evaluation
from zoomrank.lab import figure_style as style
from zoomrank.lab.curves import Results, estimate
from zoomrank.lab.evaluation import CHANCE, DIVERSIFIED, GIVEN, OURS, POPULARITY, PUBLISHED, RIVAL, SEARCH_ORDER
from zoomrank.lab.registry import GREEDY, world_of_setting
from zoomrank.lab.report_pages import label, made_with, table, write_page
from zoomrank.lab.results_folder import ResultsFolder

_LEVEL = 0.005  # shares closer than this are called level
_SAME = 1e-9  # means closer than this are equal
_NOTHING = 0.01  # share of greedy's clicks that is not worth a diverse ranking
_MODELS = {  # of visitors, by the shape of the file that they come from
    "relevance": "**Clicks here are simulated from real labels.** Which documents are relevant to which kind of "
    "visitor was judged by people; that visitors come in these shares, read top-down and click on the first relevant "
    "document is our model, without real clicks.",
    "likes": "**Visitors here are recorded people.** Every visit draws one of them. What they like is real; that they "
    "read top-down and click on the first document that they like is our model.",
    "sessions": "**Visitors here are recorded sessions.** Every visit draws one of them. The documents of a session "
    "are real; that visitors read top-down and click on the first of these is our model.",
}
_COLOUR: Mapping[str, str] = {
    OURS: style.RED,
    RIVAL: style.PINK,
    PUBLISHED: style.BLUE,
    POPULARITY: style.ORANGE,
    DIVERSIFIED: style.GREEN,
    CHANCE: style.GREY,
    SEARCH_ORDER: style.BLACK,
}
_OTHERS = (style.SKY, style.WINE, style.INDIGO, style.OLIVE)
_FIXED = (SEARCH_ORDER, POPULARITY, DIVERSIFIED, CHANCE)  # rankings that do not learn


class EvaluationReport(NamedTuple):
    """The path of a page, and what it says in short."""

    page: Path
    heads: tuple[str, ...]  # of the main table
    rows: list[tuple[str, ...]]
    popularity: str  # a sentence on the share that it reaches


def write_evaluation_report(folder: ResultsFolder) -> EvaluationReport:
    """Draw and write everything."""
    results = Results(folder.rows())
    curves = dict.fromkeys(curve for name in results.experiments() for curve in results.curves(name))
    rankers = sorted(curves.keys() - {GREEDY, *_FIXED}, key=lambda curve: (curve != OURS, curve))
    topics = evaluation.topics_in(results, *curves, *GIVEN)
    if not topics:
        raise ResultsError(f"{folder.path} has no topic on which all rankers have run: nothing to report yet.")
    at = evaluation.marks(results.curve(evaluation.experiment_of(topics[0]), GREEDY).length)
    compared = [*rankers, *(curve for curve in _FIXED if curve in curves)]
    rows = [
        (label(curve), *(str(estimate(evaluation.shares(results, topics, curve, mark))) for mark in at))
        for curve in compared
    ]
    brief = EvaluationReport(
        folder.path, ("ranker", *(f"by {mark:,}" for mark in at)), rows, _popularity(results, topics)
    )
    paragraphs = (*_sections(folder, results, compared, topics, brief), "## Made with", made_with(folder))
    return brief._replace(page=write_page(folder.path, "zoomrank: an evaluation on judged documents", paragraphs))


def _sections(
    folder: ResultsFolder,
    results: Results,
    compared: Sequence[str],
    topics: Sequence[str],
    brief: EvaluationReport,
) -> Iterable[str]:
    first = results.curve(evaluation.experiment_of(topics[0]), GREEDY)
    at = evaluation.marks(first.length)
    _draw(results, compared, topics, folder.path / "figures")
    yield "# Rankers on judged documents"
    yield _opening(folder, len(topics), len(first.instances), first.length, first.settings[0].slots)
    yield "![Clicks so far as a share of greedy's](figures/figure-evaluation.png)"
    bands = ", the mean over topics with its 95 % band" if len(topics) > 1 else ""
    duel = {OURS, RIVAL} <= set(compared)
    each = "topic" if len(topics) > 1 else "instance"
    legend = f"On the right, {OURS}'s share minus that of {RIVAL}, a point per {each}." if duel else ""
    yield f"Clicks so far as a share of greedy's{bands}. {legend} [SVG](figures/figure-evaluation.svg)"
    yield f"## Clicks collected by {_listed(at)} visits"
    told = (_given_information(curve) for curve in compared)
    yield table(
        ("ranker", "is told", *brief.heads[1:]),
        ((row[0], known, *row[1:]) for row, known in zip(brief.rows, told, strict=True)),
    )
    yield f"{brief.popularity} {_caution(folder.path, results, topics)}"
    if duel:
        yield f"## {each.capitalize()}s that {OURS} wins and loses against {RIVAL}"
        yield _wins_and_losses(results, topics, at, each)
    few = [mark for mark in at[:-1] if mark in (100, 1_000)] + at[-1:]  # all of them would fill the page
    yield "## Topic by topic"
    yield (
        f"Shares of greedy's clicks by {_listed(few)} visits, means of instances. *Greedy* is the share of visitors "
        "that the greedy optimum satisfies; every other number is a part of it."
    )
    yield _by_topic(folder.path, results, topics, compared, few)


def _popularity(results: Results, topics: Sequence[str]) -> str:
    """Say which share of greedy's clicks popularity reaches, and what that leaves to gain."""
    share = evaluation.popularity_share(results, topics)
    reached = (
        f"Ranking by popularity, which is told how many like each document, reaches {share:.3f} of greedy's clicks"
    )
    if share > 1 - _NOTHING:
        return f"{reached}: diversity has next to nothing to gain here, and finding what is popular is enough."
    return f"{reached}; the other {1 - share:.3f} is what diversity can gain."


def _opening(folder: ResultsFolder, topics: int, instances: int, visits: int, slots: int) -> str:
    command = folder.manifest.get("command")
    made = f"Made by `{command}`. " if command else ""
    notes = "".join(f" {note}" for note in folder.manifest.get("notes", ()))
    over = "topics" if topics > 1 else "the instances of the only topic"
    intervals = f"Intervals are 95 %, Student's, over {over}."
    if topics == instances == 1:
        intervals = "There is but one topic and one instance, so there are no intervals."
    model = _MODELS[folder.manifest.get("visitors", "relevance")]
    return (
        f"{model} {made}{topics} {'topics' if topics > 1 else 'topic'}, {slots} slots, {visits:,} visits, {instances} "
        f"{'instances' if instances > 1 else 'instance'} of each; on every topic "
        "rankers start from nothing, and all of an instance meet the same visitors. Clicks are counted as "
        "shares of what the greedy optimum, with full information, is expected to collect in as many visits. "
        f"{intervals}{notes}"
    )


def _given_information(curve: str) -> str:
    known = {
        SEARCH_ORDER: "the order of the search engine",
        POPULARITY: "to how many each document is relevant",
        DIVERSIFIED: f"the same, and distances (λ = {evaluation.TRADEOFF})",
        CHANCE: "nothing, and learns nothing",
    }
    return known.get(curve, "clicks alone")


def _caution(path: Path, results: Results, topics: Sequence[str]) -> str:
    """Say how much popularity tells about relevance, and how far chance alone gets."""
    runs = [results.curve(evaluation.experiment_of(topic), GREEDY).settings[0] for topic in topics]
    worlds = [world_of_setting(run, path)[1] for run in runs]
    relevant = [mean[mean > 0] for mean in (users.mean() for users in worlds)]
    level = sum(float(np.ptp(mean)) < _SAME for mean in relevant)
    share = np.mean([len(mean) / len(users) for mean, users in zip(relevant, worlds, strict=True)])
    return (
        f"On average {share:.0%} of a topic's candidates are relevant to some visitor. On {level} of {len(topics)} "
        "topics "
        "all of these are relevant to equally many: there, popularity cannot tell one from another."
    )


def _wins_and_losses(results: Results, topics: Sequence[str], at: Sequence[int], each: str) -> str:
    rows = []
    for mark in at:
        lead = _lead(results, topics, mark)
        wins, losses = int((lead > _LEVEL).sum()), int((lead < -_LEVEL).sum())
        mean = estimate(lead)
        surely = len(lead) > 1 and (mean.low > 0 or mean.high < 0)
        verdict = ("ahead" if mean.mean > 0 else "**behind**") if surely else "cannot tell"
        counts = (str(count) for count in (wins, len(lead) - wins - losses, losses))
        rows.append((f"{mark:,}", *counts, f"{lead.min():.3f}", f"{lead.max():.3f}", str(mean), verdict))
    heads = ("by visit", "wins", "level", "losses", "worst", "best", "mean lead", "on average")
    return (
        f"Differences of shares, {each} by {each}; less than {_LEVEL} is level. Whether the mean lead is more than "
        f"luck is said from its interval over {each}s.\n\n" + table(heads, rows)
    )


def _lead(results: Results, topics: Sequence[str], mark: int) -> Any:
    return evaluation.shares(results, topics, OURS, mark) - evaluation.shares(results, topics, RIVAL, mark)


def _by_topic(path: Path, results: Results, topics: Sequence[str], curves: Sequence[str], at: Sequence[int]) -> str:
    rows = []
    for topic in topics:
        greedy = results.curve(evaluation.experiment_of(topic), GREEDY)
        tree, users = world_of_setting(greedy.settings[0], path)
        shares = ([evaluation.shares(results, [topic], curve, mark).mean() for mark in at] for curve in curves)
        rows.append(
            (
                topic,
                f"{len(tree):,}",
                f"{len(users.weights):,}",
                f"{greedy.expected[0, 0]:.3f}",
                *(" / ".join(f"{share:.2f}" for share in by_mark) for by_mark in shares),
            )
        )
    return table(("topic", "documents", "kinds of visitors", "greedy", *map(label, curves)), rows)


def _listed(at: Sequence[int]) -> str:
    return ", ".join(f"{mark:,}" for mark in at)


def _draw(results: Results, curves: Sequence[str], topics: Sequence[str], folder: Path) -> None:
    duel = {OURS, RIVAL} <= set(curves)
    with mpl.rc_context(style.STYLE):
        drawing = Drawing(figsize=(style.WIDTH, 2.9), layout="constrained")
        grid = drawing.subplots(1, 1 + duel, squeeze=False, width_ratios=(2, 1)[: 1 + duel])[0]
        _draw_curves(grid[0], results, curves, topics)
        if duel:
            _draw_leads(grid[1], results, topics)
        handles, names = grid[0].get_legend_handles_labels()
        drawing.legend(handles, names, loc="outside lower center", ncols=min(len(names), 4))
        style.save(drawing, folder, "evaluation")


def _draw_curves(axes: Axes, results: Results, curves: Sequence[str], topics: Sequence[str]) -> None:
    spare = iter(_OTHERS * len(curves))
    for curve in reversed(curves):  # ours is drawn over the others
        colour = _COLOUR.get(curve) or next(spare)
        at, values = evaluation.learning_curves(results, topics, curve)
        bands = [estimate(column) for column in values.T]
        line = "--" if curve in _FIXED else "-"
        axes.plot(at, [band.mean for band in bands], color=colour, linestyle=line, label=label(curve))
        if len(topics) > 1:
            low, high = ([getattr(band, side) for band in bands] for side in ("low", "high"))
            axes.fill_between(at, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.axhline(1.0, color="black", linewidth=0.9, linestyle=(0, (1, 1.5)), label=label(GREEDY))
    axes.set_title("clicks so far, as a share of greedy's", loc="left")
    axes.set_xlabel("visits")
    axes.set_xscale("log")
    axes.set_xlim(min(100, at[-1] / 10), at[-1])
    axes.set_ylim(0, 1.08)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _draw_leads(axes: Axes, results: Results, topics: Sequence[str]) -> None:
    at = evaluation.marks(results.curve(evaluation.experiment_of(topics[0]), GREEDY).length)
    for place, mark in enumerate(at):
        lead = np.sort(_lead(results, topics, mark))
        beside = place + np.linspace(-0.28, 0.28, len(lead)) if len(lead) > 1 else np.array([float(place)])
        axes.scatter(beside, lead, s=7, color=_COLOUR[OURS], linewidths=0)
        axes.plot([place - 0.34, place + 0.34], [lead.mean()] * 2, color="black", linewidth=1.0)
    axes.axhline(0.0, color="0.35", linewidth=0.7)
    axes.set_xticks(range(len(at)), [f"by {mark:,}" for mark in at], rotation=45, ha="right", rotation_mode="anchor")
    axes.set_title(f"lead over {RIVAL}", loc="left")
    axes.grid(visible=False, axis="x")
