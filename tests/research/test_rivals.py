"""Rivals against their papers: every rule written again, slowly and literally, with whole matrices and sets."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from research.rivals.cascade_lin_ts import CascadeLinTS
from research.rivals.cascade_lsb import CascadeLSB
from research.rivals.hier_ts import HierTS, draw_means
from research.rivals.rival import Rival
from research.rivals.subsampled_greedy import SubsampledGreedy
from research.rivals.top_rank import CONSTANT, TopRank
from research.studies.short_lists import tastes

from zoomrank import DocumentTree, simulate
from zoomrank.errors import ParameterError, SlotsError
from zoomrank.types import Array

TREE = DocumentTree.from_parents([-1, 0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4])  # leaves at two depths
RIVALS: dict[str, Callable[[DocumentTree, int, int], Rival]] = {
    "CascadeLinTS": lambda tree, slots, seed: CascadeLinTS(tree, slots, noise=0.4, spread=0.3, seed=seed),
    "CascadeLSB": lambda tree, slots, seed: CascadeLSB(tree, slots, alpha=0.3, cover=0.7, seed=seed),
    "HierTS": lambda tree, slots, seed: HierTS(tree, slots, seed=seed),
    "SubsampledGreedy": lambda tree, slots, seed: SubsampledGreedy(tree, slots, seed=seed),
    "TopRank": lambda tree, slots, seed: TopRank(tree, slots, scale=0.2, seed=seed),
}


def _path(tree: DocumentTree, document: int) -> list[int]:
    """Nodes from a document up to the root."""
    nodes = [int(tree.shape.leaf[document])]
    while nodes[-1] != 0:
        nodes.append(int(tree.shape.parent[nodes[-1]]))
    return nodes


def _visits(ranker: Rival, count: int) -> Iterator[tuple[np.random.Generator, Array, int]]:
    """Play visits whose clicks are luck: yield the generator as it was, the documents shown, and the click."""
    clicks = np.random.default_rng(3)
    for _ in range(count):
        before = np.random.default_rng()
        before.bit_generator.state = ranker.rng.bit_generator.state
        ranking = ranker.rank()
        click = int(clicks.integers(ranker.slots + 1))
        yield before, ranking.positions, click
        ranker.learn(ranking, None if click == ranker.slots else click)


def test_cascade_lin_ts_draws_from_the_posterior_of_the_paper() -> None:
    noise, spread, slots = 0.4, 0.3, 3
    ranker = CascadeLinTS(TREE, slots, noise=noise, spread=spread, seed=1)
    features = np.zeros((len(TREE), TREE.nodes))
    for document in range(len(TREE)):
        path = _path(TREE, document)
        features[document, [TREE.nodes - 1 - node for node in path]] = 1 / math.sqrt(len(path))
    assert np.linalg.norm(features, axis=1) == pytest.approx(1)
    precision, response = np.eye(TREE.nodes) / spread**2, np.zeros(TREE.nodes)
    for before, shown, click in _visits(ranker, 80):
        lower = np.linalg.cholesky(precision)
        theta = np.linalg.inv(precision) @ response / noise**2
        theta += np.linalg.inv(lower.T) @ before.standard_normal(TREE.nodes)
        assert shown.tolist() == np.argsort(-features @ theta)[:slots].tolist()
        for slot in range(min(click + 1, slots)):
            x = features[shown[slot]]
            precision += np.outer(x, x) / noise**2
            response += x * (slot == click)
    assert ranker.factor @ ranker.factor.T / spread**2 == pytest.approx(precision)


@pytest.mark.parametrize(("topics", "cover"), [("shelves", 1.0), ("shelves", 0.6), ("nodes", 1.0), ("nodes", 0.6)])
def test_cascade_lsb_fills_slots_by_the_bound_of_the_paper(topics: str, cover: float) -> None:
    noise, alpha, slots = 0.7, 0.4, 4
    ranker = CascadeLSB(TREE, slots, noise=noise, alpha=alpha, topics=topics, cover=cover, seed=1)
    covers = np.zeros((len(TREE), TREE.nodes))  # x_aj, with a topic per node
    for document in range(len(TREE)):
        leaf, *above = _path(TREE, document)
        covers[document, above[:1] if topics == "shelves" else above] = cover
        covers[document, leaf] = float(topics == "nodes")

    def coverage(some: list[int]) -> Array:
        return np.asarray(1 - np.prod(1 - covers[some], axis=0))

    precision, response = np.eye(TREE.nodes), np.zeros(TREE.nodes)
    for before, shown, click in _visits(ranker, 80):
        luck, chosen = before.random(len(TREE)), list[int]()
        inverse = np.linalg.inv(precision)
        for _ in range(slots):
            bounds = {}
            for document in set(range(len(TREE))) - set(chosen):
                gain = coverage([*chosen, document]) - coverage(chosen)
                mean = gain @ inverse @ response / noise**2
                bounds[document] = round(mean + alpha * math.sqrt(gain @ inverse @ gain), 9)
            best = max(bounds, key=lambda document: (bounds[document], luck[document]))
            chosen.append(int(shown[len(chosen)]))
            assert chosen[-1] == best or bounds[chosen[-1]] == pytest.approx(bounds[best], abs=1e-8)
        for slot in range(min(click + 1, slots)):
            gain = coverage(chosen[: slot + 1]) - coverage(chosen[:slot])
            precision += np.outer(gain, gain) / noise**2
            response += gain * (slot == click)


def test_hier_ts_draws_from_the_exact_posterior() -> None:
    noise, spread, prior = 0.5, 0.3, 0.1
    ranker = HierTS(TREE, 2, noise=noise, spread=spread, prior=prior, seed=1)
    visits: list[list[tuple[int, int]]] = [[], []]  # leaf and click, by slot
    for before, shown, click in _visits(ranker, 60):
        normal = before.standard_normal((2, TREE.nodes))
        first, second = (_drawn(ranker, slot, normal[slot])[TREE.shape.leaf] for slot in range(2))
        assert shown[0] == np.argmax(first)
        assert shown[1] == np.argmax(np.where(np.arange(len(TREE)) == shown[0], -np.inf, second))
        for slot in range(min(click + 1, 2)):
            visits[slot].append((int(TREE.shape.leaf[shown[slot]]), int(slot == click)))
    above = np.zeros((TREE.nodes, TREE.nodes))  # which independent steps the mean of a node adds up
    for document in range(len(TREE)):
        path = _path(TREE, document)
        for at, node in enumerate(path):
            above[node, path[at:]] = 1
    covariance = spread**2 * above @ above.T
    for slot in range(2):
        seen = np.eye(TREE.nodes)[[leaf for leaf, _ in visits[slot]]]
        clicks = np.array([click for _, click in visits[slot]])
        gain = covariance @ seen.T @ np.linalg.inv(seen @ covariance @ seen.T + noise**2 * np.eye(len(seen)))
        mean = prior + gain @ (clicks - prior)
        assert _drawn(ranker, slot, np.zeros(TREE.nodes)) == pytest.approx(mean)
        linear = np.stack([_drawn(ranker, slot, unit) - mean for unit in np.eye(TREE.nodes)], axis=1)
        assert linear @ linear.T == pytest.approx(covariance - gain @ seen @ covariance)


def _drawn(ranker: HierTS, slot: int, normal: Array) -> Array:
    about = ranker.tree.shape.parent, ranker.precision[slot], ranker.weighted[slot]
    return np.asarray(draw_means(*about, ranker.spread, ranker.prior, normal))


@pytest.mark.parametrize("shared", [False, True])
def test_subsampled_greedy_shows_all_its_arms_once_and_then_the_best(shared: bool) -> None:
    ranker = SubsampledGreedy(TREE, 2, horizon=100, factor=0.5, shared=shared, seed=1)
    assert ranker.arms.shape == (1 if shared else 2, 5)
    counts: list[dict[int, list[int]]] = [{int(arm): [0, 0] for arm in row} for row in ranker.arms]
    for before, shown, click in _visits(ranker, 60):
        luck, above = before.random(ranker.arms.shape), list[int]()
        for slot in range(2):
            table = 0 if shared else slot
            lucky = dict(zip(ranker.arms[table].tolist(), luck[table], strict=True))
            means = {arm: (r / n if n else math.inf) for arm, (n, r) in counts[table].items() if arm not in above}
            above.append(max(means, key=lambda arm: (means[arm], lucky[arm])))
        assert shown.tolist() == above
        for slot in range(min(click + 1, 2)):
            counts[0 if shared else slot][above[slot]][0] += 1
            counts[0 if shared else slot][above[slot]][1] += slot == click
    assert len(SubsampledGreedy(TREE, 2, horizon=10**6).arms[0]) == len(TREE)


def _partition(items: set[int], worse: set[tuple[int, int]]) -> list[set[int]]:
    """P_1, P_2, … of Algorithm 1: (i, j) of G says that i is worse than j."""
    parts = []
    while items:
        least = {i for i in items if all((i, j) not in worse for j in items)}
        parts.append(least or set(items))
        items = items - parts[-1]
    return parts


def test_top_rank_keeps_the_blocks_of_the_paper() -> None:
    slots, scale, horizon = 3, 0.25, 1_000
    ranker = TopRank(TREE, slots, horizon=horizon, scale=scale, seed=1)
    items, worse = range(len(TREE)), set[tuple[int, int]]()
    total, number = np.zeros((2, len(TREE), len(TREE)))  # S, N
    likes, sizes = np.random.default_rng(5), set[int]()
    for _ in range(1_500):
        parts = _partition(set(items), worse)
        sizes.add(len(parts))
        assert [set(np.flatnonzero(ranker.block == at).tolist()) for at in range(len(parts))] == parts
        ranking = ranker.rank()
        in_order = [at for at, part in enumerate(parts) for _ in part]
        assert [int(ranker.block[one]) for one in ranking.positions] == in_order[:slots]
        relevant = likes.random(slots) < 0.5 / (1 + ranking.positions)
        click = int(np.argmax(relevant)) if relevant.any() else None
        ranker.learn(ranking, click)
        clicked = np.zeros(len(TREE))
        if click is not None:
            clicked[ranking.positions[click]] = 1
        for i in items:
            for j in items:
                together = i != j and any({i, j} <= part for part in parts)
                total[i, j] += together * (clicked[i] - clicked[j])
                number[i, j] += together * abs(clicked[i] - clicked[j])
                bound = 2 * number[i, j] * math.log(max(CONSTANT * math.sqrt(number[i, j]) * horizon, 1))
                if number[i, j] > 0 and total[i, j] >= scale * math.sqrt(bound):
                    worse.add((j, i))
    assert len(sizes) > 3
    assert pytest.approx(3.34, abs=0.01) == CONSTANT
    assert _partition({1, 2, 3, 4, 5}, {(3, 1), (5, 2), (5, 3)}) == [{1, 2, 4}, {3}, {5}]  # the paper's example


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_learn(name: str) -> None:
    tree = DocumentTree.exponential(depth=2, branching=5)
    users = tastes(tree, count=3, nothing=0.1, seed=2)
    ranker = RIVALS[name](tree, 3, 4)
    trace = simulate(ranker, users, 2_000, seed=1, windows=4)
    draws = [np.random.default_rng(seed).choice(len(tree), 3, replace=False) for seed in range(200)]
    chance = np.mean([users.satisfaction(tree.documents.at(draw)) for draw in draws])
    assert trace.rates[-1] > 1.2 * chance
    assert all(len(set(shown)) == 3 for shown in trace.shown)
    again = simulate(RIVALS[name](tree, 3, 4), users, 2_000, seed=1, windows=4)
    assert again.shown == trace.shown


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(SlotsError, match="cannot be filled"):
        HierTS(TREE, 100)
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (HierTS, {"noise": 0.0}, "noise is 0.0"),
        (CascadeLinTS, {"spread": -1.0}, "spread is -1.0"),
        (CascadeLSB, {"topics": "words"}, "topics is 'words'"),
        (TopRank, {"horizon": 0}, "horizon is 0"),
    ]
    for rival, parameters, message in wrong:
        with pytest.raises(ParameterError, match=message):
            rival(TREE, 2, **parameters)


def test_vowpal_wabbit_learns() -> None:
    pytest.importorskip("vowpalwabbit")
    from research.rivals.vowpal_wabbit import VowpalWabbit

    tree = DocumentTree.exponential(depth=2, branching=4)
    users = tastes(tree, count=2, seed=2)
    trace = simulate(VowpalWabbit(tree, 2, seed=1), users, 600, seed=1, windows=3)
    assert trace.rates[-1] > trace.rates[0]
    assert all(len(set(shown)) == 2 for shown in trace.shown)
