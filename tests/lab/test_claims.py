"""Claims of the paper: rows can contradict them."""

import dataclasses
from collections.abc import Sequence

from tests.lab.tiny_world import made_up_results, made_up_rows
from zoomrank.lab.curves import Results
from zoomrank.lab.paper.claims import CLAIMS, Claim, judge_claim
from zoomrank.lab.paper.comparisons import (
    CANNOT_TELL,
    DIFFERS,
    HOLDS,
    Above,
    Alike,
    Comparison,
    MoreStrategies,
    Reaches,
    Settles,
)
from zoomrank.lab.paper.figures import EXPERIMENTS
from zoomrank.lab.run import RunRows

GOOD = [(0.5, 0.7), (0.52, 0.72), (0.48, 0.69)]
POOR = [(0.1, 0.1), (0.12, 0.11), (0.11, 0.09)]


def _of(experiment: str, rows: RunRows) -> RunRows:
    return dataclasses.replace(rows, setting=dataclasses.replace(rows.setting, experiment=experiment))


def _verdict(test: Comparison, results: Results) -> str:
    (finding,) = judge_claim(Claim("c", "p", "s", {"tiny": (test,)}), results)
    return finding.verdict


def test_a_claim_that_is_false_in_doctored_rows_differs() -> None:
    honest, doctored = made_up_results(a=GOOD, b=POOR, Greedy=GOOD), made_up_results(a=POOR, b=GOOD, Greedy=GOOD)
    for test in (Above("a", "b"), Above("a", "b", by=0.2, start=0.9), Reaches("a", 0.9), Reaches("a", 0.6, visits=200)):
        assert _verdict(test, honest) == HOLDS
        assert _verdict(test, doctored) == DIFFERS
    assert _verdict(Settles("a", 0.7, within=0.05), honest) == HOLDS
    assert _verdict(Settles("a", 0.7, within=0.05), doctored) == DIFFERS
    assert _verdict(Alike("a", "Greedy", within=0.01), honest) == HOLDS
    assert _verdict(Alike("a", "Greedy", within=0.01), doctored) == DIFFERS


def test_curves_that_are_alike_on_average_can_differ_somewhere() -> None:
    results = made_up_results(a=[(0.5, 0.5)] * 3, b=[(0.49, 0.59), (0.49, 0.6), (0.49, 0.58)])
    assert _verdict(Alike("a", "b", within=0.02), results) == HOLDS
    assert _verdict(Alike("a", "b", within=0.02, everywhere=True), results) == DIFFERS


def test_noise_cannot_tell() -> None:
    noisy = made_up_results(a=[(0.1, 0.1), (0.6, 0.6)], b=[(0.3, 0.3), (0.35, 0.35)])
    assert _verdict(Above("a", "b"), noisy) == CANNOT_TELL
    assert _verdict(Above("a", "missing"), noisy) == CANNOT_TELL
    assert (
        _verdict(Above("a", "b"), made_up_results(a=[(0.9, 0.9)], b=[(0.1, 0.1)])) == CANNOT_TELL
    )  # one instance is none


def _with_active(curve: str, active: Sequence[tuple[int, int] | None], visits: int = 1_000) -> list[RunRows]:
    rows = [made_up_rows(curve, at, (0.5, 0.5), visits) for at in range(len(active))]
    return [dataclasses.replace(run, active=each) for run, each in zip(rows, active, strict=True)]


def test_strategies_are_counted_over_all_slots() -> None:
    few = _with_active("b", [(10, 20), (11, 19), (10, 21)])
    for many, verdict in (
        ([(10, 90), (11, 95), (12, 99)], HOLDS),  # in one slot as many, in all three times
        ([(10, 50), (11, 50), (12, 50)], DIFFERS),
        ([(10, 50), (11, 200), (12, 50)], CANNOT_TELL),
        ([None, (1, 2), (1, 2)], CANNOT_TELL),
    ):
        results = Results([*few, *_with_active("a", many)])
        assert _verdict(MoreStrategies("a", "b", 3.0), results) == verdict
    assert _verdict(MoreStrategies("a", "missing", 3.0), Results(few)) == CANNOT_TELL


def test_the_conjecture_is_one_claim_of_two_comparisons() -> None:
    (larger,) = (claim for claim in CLAIMS if claim.conjecture)
    assert {test.curves for test in larger.tests["two-peaks"]} == {
        ("RankContextZoom", "RankZoom"),
        ("RankContextZoom", "RankCorrZoom"),
    }
    assert "names no visit" in larger.undecidable


def test_what_needs_no_rows_can_be_told_from_short_runs() -> None:
    short = Results(_of("restaurant", run) for run in _with_active("RankZoom", [(1, 1)] * 3))
    by_name = {claim.name: claim for claim in CLAIMS}
    assert [one.verdict for one in judge_claim(by_name["power-law"], short)] == [HOLDS]
    assert {one.verdict for one in judge_claim(by_name["best"], short)} == {CANNOT_TELL}


def test_every_part_of_a_claim_must_hold() -> None:
    results = made_up_results(a=GOOD, b=POOR, c=[(0.6, 0.8), (0.61, 0.8), (0.62, 0.8)])
    both = Claim("c", "p", "s", {"tiny": (Above("a", "b"), Above("a", "c"))})
    assert judge_claim(both, results)[0].verdict == DIFFERS
    assert judge_claim(dataclasses.replace(both, conjecture=True), results)[0].verdict == CANNOT_TELL


def test_the_papers_claims_follow_the_rows() -> None:
    """Swap the rows of two rankers, and the verdict on who is best turns round."""
    curves = {"RankZoom": POOR, "RankGridUCB1": POOR, "RankContextZoom": POOR, "RankContextZoom-0.2": POOR}
    best = next(claim for claim in CLAIMS if claim.name == "best")
    for mine, theirs, verdict in ((GOOD, POOR, HOLDS), (POOR, GOOD, DIFFERS)):
        for visits in (300_000, 1_000):
            made = [
                _of("two-peaks", made_up_rows(name, at, pair, visits))
                for name, rates in {"RankCorrZoom": mine, **dict.fromkeys(curves, theirs)}.items()
                for at, pair in enumerate(rates)
            ]
            verdicts = {one.experiment: one.verdict for one in judge_claim(best, Results(made))}
            told = verdict if visits == 300_000 else CANNOT_TELL  # a run that was cut short tells nothing
            assert verdicts == {"two-peaks": told, "restaurant": CANNOT_TELL, "restaurant-mixture": CANNOT_TELL}


def test_claims_are_about_curves_that_exist() -> None:
    for claim in CLAIMS:
        for experiment, tests in claim.tests.items():
            curves = {curve.name for curve in EXPERIMENTS[experiment].curves}
            for test in tests:
                assert set(test.curves) <= curves, claim.name
    names = [claim.name for claim in CLAIMS]
    assert len(set(zip(names, [claim.place for claim in CLAIMS], strict=True))) == len(names)
