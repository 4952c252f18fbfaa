"""Report of any study: efficiency, tuning, queries, warm start, convergence or judging."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

import numpy as np

from research.studies.efficiency import efficiency_sections
from research.studies.families import Family, families_of
from research.studies.judging_report import judging_sections
from research.studies.queries_report import query_sections
from research.studies.questions import CANDIDATES, CONVERGENCE, RIVALS, STUDIES, candidates_of
from research.studies.warm_start import known_before_sections
from zoomrank.errors import ResultsError
from zoomrank.lab.curves import Results, collected
from zoomrank.lab.evaluation import COMPETITORS, OURS
from zoomrank.lab.registry import GREEDY
from zoomrank.lab.report_pages import made_with, table, write_page
from zoomrank.lab.results_folder import ResultsFolder
from zoomrank.lab.run import MARKS


def write_study_report(folder: ResultsFolder) -> Path:
    """Draw and write everything; return the path of the page."""
    study = folder.manifest["study"]
    results, command = Results(folder.rows()), _command(folder)
    if study == "queries":
        paragraphs = query_sections(folder.path, command, results, folder.manifest)
    elif study == "judging":
        paragraphs = judging_sections(folder, command)
    else:
        sections = {
            "efficiency": efficiency_sections,
            "tuning": _tuning,
            "convergence": _convergence,
            "warm-start": known_before_sections,
        }[study]
        paragraphs = sections(folder.path, command, results, families_of(folder.manifest))
    made = (*_notes(folder), "## Made with", made_with(folder))
    return write_page(folder.path, f"zoomrank: {STUDIES[study].title}", (*paragraphs, *made))


def _command(folder: ResultsFolder) -> str:
    """Return the command that repeats the study, without the user's folders."""
    manifest = folder.manifest
    words = ["python", "-m", "research", "study", manifest["study"], "--instances", manifest["instances"]]
    words += ["--seed", manifest["seed"]]
    words += ["--visits", manifest["visits"]] if manifest["visits"] else []
    words += ["--families", *manifest["families"]] if manifest.get("families") else []
    words += ["--traffic"] if manifest.get("traffic") else []
    words += ["--taxonomy", PurePath(manifest["taxonomy"]).name] if manifest.get("taxonomy") else []
    words += manifest["judged"]["options"] if manifest.get("judged") else []
    return shlex.join(map(str, words))


def _notes(folder: ResultsFolder) -> Iterable[str]:
    """Explain the judged documents to the reader."""
    if folder.manifest.get("judged"):
        judged = folder.manifest["judged"]
        yield "## Judged documents"
        yield (
            f"Of {judged['documents']} there are {len(judged['topics'])} topics; instances take turns on them. Which "
            "documents are relevant to which kind of visitor was judged by people; clicks are simulated from that. "
            "Topics cannot be drawn anew: tuning and the comparison meet the same first ones, with other visitors."
            + "".join(f" {note}" for note in judged["notes"])
        )


def _tuning(folder: Path, command: str, results: Results, families: Sequence[Family]) -> Iterable[str]:
    there = [family for family in families if results.comparable(_tuned(family), *candidates_of(family), GREEDY)]
    if not there:
        raise ResultsError(f"{folder} has no family in which all candidates have run: nothing to report yet.")
    yield "# Which parameters are best over all families"
    yield (
        f"Made by `{command}`: the shares of greedy's clicks that each candidate collects, means over families. The "
        "instances are not those of the comparison. A ranker is used with the parameters whose mean over all marks is "
        "highest; ZoomRank with its defaults, which were chosen before. Rivals that do not scale are tuned on short "
        "lists alone."
    )
    for title, some in {"All families": there, "Short lists": [family for family in there if family.short]}.items():
        if some:
            yield f"## {title}"
            yield f"The families: {'; '.join(family.title for family in some)}."
            yield _candidates(results, some)


def _tuned(family: Family) -> str:
    return f"tuning-{family.name}"


def _candidates(results: Results, families: Sequence[Family]) -> str:
    """Return the table of those candidates that run in all of these families."""
    used = [str(ranker) for ranker in (*COMPETITORS.values(), *RIVALS.values())]
    rows = []
    for name in CANDIDATES:
        if not all(name in candidates_of(family) for family in families):
            continue
        shares: dict[int, list[float]] = {}
        for family in families:
            mine, greedy = results.together(_tuned(family), name, GREEDY)
            for mark in MARKS:
                if mark <= mine.length:
                    shares.setdefault(mark, []).append(float(collected(mine, greedy, mark).mean()))
        means = {mark: np.mean(some) for mark, some in shares.items()}
        cells = [f"{means[mark]:.3f}" if mark in means else "–" for mark in MARKS]
        rows.append((name, *cells, f"{np.mean(list(means.values())):.3f}", "used" if name in used else ""))
    return table(("candidate", *(f"by {mark:,}" for mark in MARKS), "mean", ""), rows)


def _convergence(folder: Path, command: str, results: Results, families: Sequence[Family]) -> Iterable[str]:  # noqa: ARG001
    rows = []
    for one in CONVERGENCE:
        if results.comparable(one.name, OURS, GREEDY):
            mine, greedy = results.together(one.name, OURS, GREEDY)
            shares = (
                mine.rate(start, end) / greedy.expected[:, 0] for start, end in ((0, 0.01), (0.01, 0.1), (0.9, 1))
            )
            shown = mine.expected[:, -1] / greedy.expected[:, 0]
            rows.append((one.title, str(one.slots), *(f"{share.mean():.4f}" for share in shares), f"{shown.min():.4f}"))
    if not rows:
        raise ResultsError(f"{folder} has no rows of this study: nothing to report yet.")
    yield "# Whether ZoomRank gets to greedy in the long run"
    yield f"Made by `{command}`. Shares of greedy's satisfied visitors."
    yield table(("experiment", "slots", "first 1 %", "to 10 %", "last tenth", "last ranking, worst instance"), rows)
