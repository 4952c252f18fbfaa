"""The exact number of tables of each size, and the law that it follows."""

import numpy as np
import pytest

from zoomrank.lab.curves import Results
from zoomrank.lab.paper import comparisons
from zoomrank.lab.paper.comparisons import DIFFERS, HOLDS, Fit, PowerLaw, expected_tables, power_law_and_exponential
from zoomrank.users import seat_customers


def test_expected_tables_are_those_of_the_process() -> None:
    rng = np.random.default_rng(0)
    counts = np.zeros(21)
    for _ in range(4000):
        counts += np.bincount(seat_customers(20, 2.0, rng), minlength=21)
    expected = expected_tables(20, 2.0)
    np.testing.assert_allclose(counts[1:] / 4000, expected, atol=5 * np.sqrt(2 / 4000))
    assert (np.arange(1, 21) * expected).sum() == pytest.approx(20)  # everybody sits somewhere
    assert expected.sum() == pytest.approx(sum(2.0 / (t + 2.0) for t in range(20)))


def test_which_law_is_found() -> None:
    power, exponential = power_law_and_exponential()
    assert power.slope == pytest.approx(-1.25, abs=0.01)
    assert power.r_squared > exponential.r_squared > 0.9
    power, exponential = power_law_and_exponential(largest=20)  # among all sizes, those above the half included
    assert power.r_squared < exponential.r_squared


def test_the_claim_follows_the_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = PowerLaw().measure("restaurant", Results([]), {})
    assert measured.verdict == HOLDS
    assert "exponent -1.25 is 0.993, that of an exponential 0.948" in str(measured)
    monkeypatch.setattr(comparisons, "power_law_and_exponential", lambda: (Fit(-1.0, 0.8), Fit(-0.3, 0.9)))
    assert PowerLaw().measure("restaurant", Results([]), {}).verdict == DIFFERS
