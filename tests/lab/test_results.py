"""Rows put together: rates, intervals and pairs."""

import dataclasses

import numpy as np
import pytest

from tests.lab.tiny_world import made_up_results, made_up_rows
from zoomrank.errors import ResultsError
from zoomrank.lab.curves import Results, estimate


def test_intervals_are_students() -> None:
    value = estimate([1.0, 2.0, 3.0, 4.0])
    assert value.mean == 2.5
    assert value.high - value.mean == pytest.approx(3.182446 * np.std([1, 2, 3, 4], ddof=1) / 2, rel=1e-6)


def test_pairs_are_taken_from_common_instances() -> None:
    results = Results(
        [made_up_rows("a", 0, (0.5, 0.5)), made_up_rows("a", 3, (0.6, 0.6)), made_up_rows("b", 3, (0.2, 0.2))]
    )
    one, other = results.together("tiny", "a", "b")
    assert one.instances == other.instances == (3,)
    assert one.rate()[0] == pytest.approx(0.6)
    with pytest.raises(ResultsError, match="no rows of tiny/c"):
        results.curve("tiny", "c")


def test_rates_between_points_of_a_run() -> None:
    curve = made_up_results(a=[(0.5, 0.9)]).curve("tiny", "a")
    assert curve.rate(0.0, 0.9)[0] == pytest.approx(0.5, abs=0.01)
    assert curve.rate(0.9)[0] == pytest.approx(0.9, abs=0.01)
    assert curve.rate_around(950)[0] == pytest.approx(0.9, abs=0.05)
    assert curve.windows().mean[3] == pytest.approx(0.5, abs=0.05)
    assert curve.slot_rates()[0].tolist() == [pytest.approx(0.54, abs=0.01), 0.0]


@pytest.mark.parametrize("visits", [1, 4, 7, 10])
def test_the_shortest_runs_have_rates(visits: int) -> None:
    curve = Results([made_up_rows("a", 0, (0.5, 0.5), visits)]).curve("tiny", "a")
    for start, end in ((0.0, 1.0), (0.9, 1.0), (0.0, 0.05)):
        assert 0 <= curve.rate(start, end)[0] <= 1
    assert curve.rate(0.0, 0.05)[0] == curve.satisfied[0, 0] / curve.visits[0]


@pytest.mark.parametrize("visits", [100, 1_000, 300_000])
def test_looks_are_averaged_in_groups(visits: int) -> None:
    rows = made_up_rows("a", 0, (0.5, 0.5), visits)
    noisy = dataclasses.replace(rows, expected=np.arange(len(rows.visits)) % 2.0)
    band = Results([noisy]).curve("tiny", "a").expectation()
    assert band.visits[-1] == visits
    assert abs(band.mean[-1] - 0.5) < 0.2  # the last look is not alone
