"""Verdicts on the claims: each is tested on the rows of every experiment that it is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zoomrank.lab.curves import Results
from zoomrank.lab.paper.claims import CLAIMS, Claim
from zoomrank.lab.paper.comparisons import CANNOT_TELL, DIFFERS, HOLDS, Measured
from zoomrank.lab.paper.experiments import EXPERIMENTS
from zoomrank.lab.paper.theory import Facts


@dataclass(frozen=True)
class Finding:
    """Verdict on a claim in one experiment."""

    claim: Claim
    experiment: str
    measured: tuple[Measured, ...]
    verdict: str


def judge_claim(claim: Claim, results: Results, known: Mapping[str, Facts] | None = None) -> list[Finding]:
    """Test a claim on the rows of every experiment it is about."""
    findings = []
    for experiment, tests in claim.tests.items():
        measured = tuple(test.measure(experiment, results, known or {}) for test in tests)
        verdicts = {one.verdict for one in measured}
        verdict = HOLDS if verdicts == {HOLDS} else DIFFERS if DIFFERS in verdicts else CANNOT_TELL
        cut_short = any(test.needs_rows for test in tests) and _cut_short(experiment, results)
        if (verdict == DIFFERS and claim.conjecture) or cut_short:
            verdict = CANNOT_TELL
        findings.append(Finding(claim, experiment, measured, verdict))
    return findings


def _cut_short(experiment: str, results: Results) -> bool:
    """Return whether runs are shorter than the experiment's own, which say nothing about the paper's claims."""
    full = EXPERIMENTS[experiment].visits if experiment in EXPERIMENTS else 0
    return any(results.curve(experiment, curve).length < full for curve in results.curves(experiment))


def judge_all(results: Results, known: Mapping[str, Facts] | None = None) -> list[Finding]:
    """Test every claim about experiments that have rows."""
    there = set(results.experiments())
    return [one for claim in CLAIMS for one in judge_claim(claim, results, known) if one.experiment in there]


def undecided(results: Results) -> dict[str, tuple[str, ...]]:
    """Return the curves whose comparison more instances could decide, by experiment."""
    wanted: dict[str, dict[str, None]] = {}
    for one in judge_all(results):
        for test, measured in zip(one.claim.tests[one.experiment], one.measured, strict=True):
            if CANNOT_TELL == one.verdict == measured.verdict and not one.claim.conjecture:
                wanted.setdefault(one.experiment, {}).update(dict.fromkeys(test.curves))
    return {experiment: tuple(curves) for experiment, curves in wanted.items() if curves}


def tally(findings: Sequence[Finding]) -> dict[str, int]:
    """Count the findings by verdict."""
    counts = Counter(one.verdict for one in findings)
    return {verdict: counts[verdict] for verdict in (HOLDS, DIFFERS, CANNOT_TELL)}
