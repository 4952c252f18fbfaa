"""Two arms of an experiment: intervals that hold whenever one looks, and find what there is to be found."""

import numpy as np
import pytest
from research.bench.experiments import Interval, fixed, found_after, learning, missed, moving, ordinary

from zoomrank.errors import ParameterError
from zoomrank.judging.comparison import difference
from zoomrank.spaces import DocumentTree
from zoomrank.users import two_peaks


def _alarms(interval: Interval, share: float, rate: float, experiments: int = 300) -> float:
    """The share of experiments with two arms that are alike in which somebody would have seen a difference.

    Few of them: `python -m research bench experiments` has more.
    """
    rng = np.random.default_rng(1)
    return float(
        np.mean([missed(fixed(rng, share, (rate, rate), 10_000), share, interval) for _ in range(experiments)])
    )


@pytest.mark.parametrize(
    ("share", "rate"), [(0.1, 0.9), *(pytest.param(0.5, rate, marks=pytest.mark.full) for rate in (0.5, 0.02))]
)
def test_who_looks_often_is_seldom_misled(share: float, rate: float) -> None:
    assert _alarms(difference, share, rate) <= 0.05
    assert _alarms(ordinary, share, rate) > 0.2  # as anybody would be by an interval for those who look once


def test_shares_that_move_with_the_hour_mislead_nobody() -> None:
    rng, wave = np.random.default_rng(2), moving(10_000)
    assert np.mean([missed(fixed(rng, 0.5, (wave, wave), 10_000), 0.5) for _ in range(200)]) <= 0.05


def test_of_learners_it_is_known_what_they_were_worth_meanwhile() -> None:
    rng, tree = np.random.default_rng(3), DocumentTree.exponential(depth=5)
    came = [learning(rng, tree, two_peaks(tree, seed=1), 2_000) for _ in range(30)]
    assert sum(missed(one, 0.5) for one in came) <= 3
    assert any(np.abs(one.truth).max() > 0.05 for one in came if one.truth is not None)  # which is not nothing


def test_a_lift_is_found() -> None:
    rng = np.random.default_rng(4)
    after = [found_after(fixed(rng, 0.5, (0.55, 0.5), 8_000), 0.5) for _ in range(150)]
    assert np.mean(np.isfinite(after)) >= 0.8
    backwards = [found_after(fixed(rng, 0.5, (0.5, 0.55), 8_000), 0.5) for _ in range(20)]
    assert not np.any(np.isfinite(backwards))


def test_arms_change_places() -> None:
    came = fixed(np.random.default_rng(5), 0.2, (0.3, 0.4), 5_000)
    one, other = difference(came.first, came.second, 0.2), difference(came.second, came.first, 0.8)
    assert one.estimate == pytest.approx(-other.estimate)
    assert one.low == pytest.approx(-other.high)
    assert one.estimate[-1] == pytest.approx(-0.1, abs=0.05)


def test_intervals_hold_more_surely_when_they_are_wider() -> None:
    came = fixed(np.random.default_rng(6), 0.5, (0.3, 0.3), 5_000)
    narrow, wide = (difference(came.first, came.second, level=level) for level in (0.95, 0.99))
    assert np.all(wide.high - wide.low >= narrow.high - narrow.low)
    assert wide.high[-1] - wide.low[-1] > 1.05 * (narrow.high[-1] - narrow.low[-1])


def test_some_batches_are_told_as_all_would_be() -> None:
    came = fixed(np.random.default_rng(7), 0.5, (0.3, 0.3), 3_000)
    every, some = difference(came.first, came.second), difference(came.first, came.second, at=np.array([3, 29]))
    assert some.low.tolist() == every.low[[3, 29]].tolist()
    nobody = difference(np.zeros((1, 2)), np.zeros((1, 2)))
    assert (nobody.low[0], nobody.high[0]) == (-1, 1)


@pytest.mark.parametrize(("share", "level"), [(0.0, 0.95), (1.0, 0.95), (0.5, 1.0)])
def test_what_is_no_share_is_refused(share: float, level: float) -> None:
    with pytest.raises(ParameterError, match="between 0 and 1"):
        difference(np.ones((1, 2)), np.ones((1, 2)), share, level)
