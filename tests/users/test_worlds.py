import numpy as np
import pytest

import zoomrank as zr
from zoomrank.errors import ContinuityError, MeanError, ParameterError, WeightError
from zoomrank.users import READINGS, Mixture, TreeNetwork, peaks_mean, seat_customers
from zoomrank.users.worlds import HEIGHTS, choose_peaks

TREE = zr.DocumentTree.exponential(depth=7, branching=2, epsilon=0.837)


def test_the_front_door() -> None:
    tree = zr.DocumentTree.exponential(depth=15, branching=2, epsilon=0.837)
    users = zr.users.two_peaks(tree, background=0.05, seed=7)
    best = users.greedy(slots=5)
    assert len(set(best.documents)) == 5
    assert users.mean(best.documents[0]) == pytest.approx(0.5)
    assert users.conditional_mean(shown=best.documents[:1])[users.documents.position(best.documents[0])] == 0.0
    assert users.satisfaction(best.documents[:2]) == pytest.approx(best.satisfaction)
    assert best.satisfaction == pytest.approx(0.73, abs=0.02)  # the greedy optimum of the paper's main experiment


def test_peaks_are_equation_29() -> None:
    values = {3: 0.5, 90: 0.4}
    mean = peaks_mean(TREE, values, background=0.05)
    for x in range(0, 128, 7):
        assert mean[x] == max(0.05, *(value - TREE.distance(x, peak) for peak, value in values.items()))


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("model", [zr.users.two_peaks, zr.users.chinese_restaurant])
def test_every_reading_keeps_the_mean(reading: str, model: object) -> None:
    tree = zr.DocumentTree.exponential(depth=6, branching=2, epsilon=0.8)
    plain = model(tree, seed=11)  # type: ignore[operator]
    users = model(tree, seed=11, reading=reading)  # type: ignore[operator]
    np.testing.assert_allclose(users.mean(), plain.mean(), atol=1e-12)


def test_mixture_reading_gives_each_visitor_one_peak() -> None:
    peaks = choose_peaks(TREE, 2, np.random.default_rng(5))
    users = zr.users.two_peaks(TREE, seed=5, reading="mixture")
    assert isinstance(users, Mixture)
    assert users.shares.tolist() == [0.5, 0.5]
    for component, (own, other) in zip(users.components, (peaks, peaks[::-1]), strict=True):
        assert component.mean(own) == pytest.approx(0.95)
        assert component.mean(other) == pytest.approx(0.05)
    assert users.satisfaction(peaks) > zr.users.two_peaks(TREE, seed=5).satisfaction(peaks)


def test_mutations_reading_meets_the_conditions_and_metric_reading_draws() -> None:
    loose = zr.users.two_peaks(TREE, seed=5, reading="mutations")
    assert isinstance(loose, TreeNetwork)
    assert loose.conditions().hold
    small = zr.DocumentTree.exponential(depth=3, branching=2, epsilon=0.5)
    users = zr.users.two_peaks(small, seed=5, reading="metric")
    drawn = users.sample(4000, seed=1)
    assert np.abs(drawn.mean(axis=0) - users.mean()).max() < 5 * np.sqrt(0.25 / 4000)
    frozen = users.frozen(trees=50, seed=2)  # type: ignore[attr-defined]
    assert list(frozen.documents) == list(users.documents)
    np.testing.assert_allclose(frozen.mean(), users.mean(), atol=1e-12)
    for refused in (lambda: users.satisfaction([0]), lambda: users.greedy(1), lambda: users.state):
        with pytest.raises(ParameterError, match="frozen"):
            refused()
    clicks = users.clicks([0, 7], 3000, seed=3)
    assert abs(np.mean(clicks < 2) - frozen.satisfaction([0, 7])) < 0.06


def test_chinese_restaurant_tables() -> None:
    rng = np.random.default_rng(0)
    tables = [seat_customers(20, 2.0, rng) for _ in range(4000)]
    assert all(sum(t) == 20 for t in tables)
    expected = sum(2.0 / (t + 2.0) for t in range(20))  # E[tables] = Σ θ / (t - 1 + θ)
    assert np.mean([len(t) for t in tables]) == pytest.approx(expected, abs=0.1)
    # The second customer joins the first with probability 1 / (1 + θ).
    pairs = [seat_customers(2, 2.0, rng) for _ in range(4000)]
    assert np.mean([len(p) == 1 for p in pairs]) == pytest.approx(1 / 3, abs=0.03)


def test_chinese_restaurant_peaks() -> None:
    users = zr.users.chinese_restaurant(TREE, seed=4)
    values = users.mean()
    assert values.min() == pytest.approx(0.01)
    assert values.max() <= 0.5
    assert isinstance(zr.users.chinese_restaurant(TREE, seed=4, reading="mixture"), Mixture)


@pytest.mark.parametrize("heights", HEIGHTS)
def test_heights_of_a_chinese_restaurant(heights: str) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        tables = seat_customers(20, 2.0, rng)
        peaks = choose_peaks(TREE, len(tables), rng)
        wanted = {
            "shares": [min(0.5, size / 20) for size in tables],
            "tallest": [size / (2 * max(tables)) for size in tables],
            "halves": [0.5 for _ in tables],
        }[heights]
        users = zr.users.chinese_restaurant(TREE, heights=heights, seed=seed)
        expected = peaks_mean(TREE, dict(zip(peaks, wanted, strict=True)), background=0.01)
        np.testing.assert_allclose(users.mean(), expected)
    high = zr.users.chinese_restaurant(TREE, heights=heights, background=0.3, seed=1).mean()
    assert high.min() == pytest.approx(0.3)  # no peak is below the background


def test_peaks_that_are_relevant_to_more_visitors_than_belong_to_them() -> None:
    shares = zr.users.chinese_restaurant(TREE, seed=0, reading="mixture")
    assert isinstance(shares, Mixture)
    assert shares.shares.max() < 0.5
    for heights in ("tallest", "halves"):
        message = r"relevant with probability .* to the share .* of visitors .* heights=\"shares\""
        with pytest.raises(MeanError, match=message):
            zr.users.chinese_restaurant(TREE, heights=heights, seed=0, reading="mixture")


def test_three_documents() -> None:
    tree, users = zr.users.three_documents()
    assert list(tree.documents) == ["x1", "x2", "x3"]
    assert users.greedy(2).satisfaction == users.optimum(2).satisfaction == pytest.approx(3 / 4)
    assert users.satisfaction(["x1", "x3"]) == pytest.approx(2 / 3)


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="reading must be one of network, mixture, mutations, metric"):
        zr.users.two_peaks(TREE, reading="both")
    with pytest.raises(MeanError, match="no peaks"):
        zr.users.peaks(TREE, {})
    with pytest.raises(MeanError, match="between the background and 1"):
        zr.users.peaks(TREE, {0: 0.01}, background=0.05)
    with pytest.raises(MeanError, match=r"theory needs \(0, ½\]"):
        zr.users.peaks(TREE, {0: 0.9})
    with pytest.raises(MeanError, match="raise its share"):
        zr.users.peaks(TREE, {0: 0.5, 64: 0.5, 127: 0.5}, reading="mixture")
    with pytest.raises(WeightError, match="Peak number 1 has no visitors"):
        zr.users.peaks(TREE, {0: 0.5, 64: 0.4}, shares=[1, 0], reading="mixture")
    line = zr.FiniteMetric.from_function([0, 1, 2], lambda x, y: 0.1 * abs(x - y))
    with pytest.raises(ContinuityError, match=r"those of 0 and 1 differ by 0\.3 more than their distance"):
        zr.users.MetricNetwork(line, [0.5, 0.1, 0.1])
    with pytest.raises(ParameterError, match="peaks cannot be chosen"):
        zr.users.two_peaks(zr.DocumentTree.exponential(depth=0))
    with pytest.raises(ParameterError, match="Chinese Restaurant"):
        zr.users.chinese_restaurant(TREE, theta=0)
    with pytest.raises(ParameterError, match="heights must be one of shares, tallest, halves, not 'flat'"):
        zr.users.chinese_restaurant(TREE, heights="flat")
