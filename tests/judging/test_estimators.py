"""Estimates agree with their literal twins, and with what is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from research.studies.judging import SLOTS, PolicyTarget, Softmax, logged, standard_scores, world

from tests.reference import judging as literal
from zoomrank.judging import ImpressionLog, Target, TargetMix, TargetRankings, target_of
from zoomrank.judging.estimators import (
    ESTIMATORS,
    Predictions,
    ShareEstimate,
    WeightedLog,
    doubly_robust,
    effective_sample,
    missing_support,
    observed_share,
    predicted,
    reach,
    self_normalised,
    self_normalised_doubly_robust,
    stretches,
    tree_paths,
    weight_log,
    weighted,
)
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array

RANKING = ["3", "1", "0"]


def small_log(visits: int = 300, documents: int = 5, seed: int = 1, patience: bool = False) -> ImpressionLog:
    """Impressions of few documents; with `patience`, some visitors look at fewer slots than there are."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(visits):
        left, shown, propensity = list(range(documents)), [], []
        for _ in range(3):
            odds = np.array([1.0 + document for document in left])
            at = int(rng.choice(len(left), p=odds / odds.sum()))
            propensity.append(float(odds[at] / odds.sum()))
            shown.append(left.pop(at))
        click = next((document for document in shown if rng.random() < 0.1 + 0.1 * document), None)
        looked_at = int(rng.integers(1, 4)) if patience and click is None else None
        rows.append({"query": "", "shown": shown, "propensity": propensity, "clicked": click, "looked_at": looked_at})
    return ImpressionLog.from_rows(rows)


def literally(log: ImpressionLog) -> list[literal.Visit]:
    columns = zip(log.shown.tolist(), log.propensity.tolist(), log.looks.tolist(), log.click.tolist(), strict=True)
    return [
        literal.Visit("", shown, propensity, looks, None if click == log.slots else click)
        for shown, propensity, looks, click in columns
    ]


def half_of_each(log: ImpressionLog) -> TargetMix:
    return TargetMix([target_of(log, RANKING), target_of(log, ["4", "3", "1"])], [0.5, 0.5])


def chance_of(log: ImpressionLog, rankings: Sequence[Sequence[str]]) -> literal.Chance:
    """How likely a mix of rankings, equally often drawn, shows a document below others."""
    numbers = [[log.documents.index(name) for name in ranking] for ranking in rankings]

    def chance(query: str, above: Sequence[int], document: int) -> float:
        could = [ranking for ranking in numbers if ranking[: len(above)] == list(above)]
        return sum(ranking[len(above)] == document for ranking in could) / len(could) if could else 0.0

    return chance


@pytest.mark.parametrize("patience", [False, True])
@pytest.mark.parametrize("mixed", [False, True])
def test_estimates_are_those_of_their_twins(patience: bool, mixed: bool) -> None:
    log = small_log(patience=patience)
    target: Target = half_of_each(log) if mixed else target_of(log, RANKING)
    chance = chance_of(log, [RANKING, ["4", "3", "1"]] if mixed else [RANKING])
    visits, seen = literally(log), weight_log(log, target)
    own, before = literal.predictions(visits, chance, range(len(log.documents)))
    model = predicted(log, target, seen)
    assert weighted(seen).value == pytest.approx(literal.weighted(visits, chance))
    assert self_normalised(seen).value == pytest.approx(literal.self_normalised(visits, chance))
    assert model.own == pytest.approx(np.array(own))
    counts = np.column_stack([np.ones(len(log), bool), seen.weight[:, :-1] > 0, np.ones(len(log), bool)])
    assert model.before[counts] == pytest.approx(np.array(before)[counts])
    assert doubly_robust(seen, model).value == pytest.approx(literal.doubly_robust(visits, chance, own, before))


def test_self_normalised_doubly_robust_is_both() -> None:
    """With a model that knows nothing it is the self-normalised one; on a log of the target itself, the log's share."""
    log = small_log()
    seen = weight_log(log, target_of(log, RANKING))
    nothing = predicted(log, target_of(log, RANKING), seen)._replace(
        own=np.zeros(log.shown.shape), before=np.zeros((len(log), log.slots + 1))
    )
    assert self_normalised_doubly_robust(seen, nothing).value == pytest.approx(self_normalised(seen).value)
    assert doubly_robust(seen, nothing).value == pytest.approx(weighted(seen).value)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_influences_tell_what_an_impression_does(kind: str) -> None:
    """Leave one out, and the estimate moves by its influence, but for what its square divided by their number is."""
    log = small_log(visits=600)
    target = TargetMix([target_of(log, ["4", "3", "2"]), target_of(log, ["4", "2", "3"])], [0.5, 0.5])
    seen = weight_log(log, target)
    model = predicted(log, target, seen)
    whole = np.arange(len(log))

    def estimated(rows: Array) -> ShareEstimate:
        some, known = WeightedLog(*(column[rows] for column in seen)), Predictions(*(column[rows] for column in model))
        return ESTIMATORS[kind](some, known)

    every = estimated(whole)
    moved = np.array([every.value - estimated(np.delete(whole, row)).value for row in whole]) * (len(log) - 1)
    assert np.abs(every.influence).max() > 1
    assert every.influence.mean() == pytest.approx(0.0, abs=1e-9)
    assert np.abs(moved - every.influence).max() < 0.1 * np.abs(every.influence).max()


def test_a_log_of_the_target_itself_is_its_own_estimate() -> None:
    rows = [{"query": "", "shown": [1, 2], "propensity": [1, 1], "clicked": click} for click in (1, 2, None, None, 2)]
    log = ImpressionLog.from_rows(rows * 30)
    seen = weight_log(log, target_of(log, ["1", "2"]))
    model = predicted(log, target_of(log, ["1", "2"]), seen)
    for estimate in (observed_share(seen), weighted(seen), self_normalised(seen)):
        assert estimate.value == pytest.approx(0.6)
    assert doubly_robust(seen, model).value == pytest.approx(0.6)
    assert self_normalised_doubly_robust(seen, model).value == pytest.approx(0.6)
    assert effective_sample(seen) == pytest.approx(150)
    assert reach(seen).tolist() == pytest.approx([1.0, 0.8])


def test_what_she_did_not_look_at_does_not_matter() -> None:
    """Rankings that differ below her click alone weigh the same."""
    rows = [
        {"query": "", "shown": [1, other, 7], "propensity": [0.5, 0.1 * other, 0.3], "clicked": 1}
        for other in (2, 3, 4)
    ]
    log = ImpressionLog.from_rows(rows)
    assert weighted(weight_log(log, target_of(log, ["1", "9", "8"]))).value == pytest.approx(2.0)


def test_unbiased_over_many_logs() -> None:
    """The mean of many small logs is the truth, within three errors of that mean; also with a model."""
    one = world("half", 1)
    policy, target = Softmax(0.5 * standard_scores(one)), PolicyTarget({"0": Softmax(standard_scores(one))})
    truth = Softmax(standard_scores(one)).worth(one)
    rng, found = np.random.default_rng(1), []
    for _ in range(300):
        shown, propensity = policy.draw(150, rng)
        log = logged(np.zeros(150, np.int64), shown, propensity, one.click(shown, rng))
        seen = weight_log(log, target)
        found.append([weighted(seen).value, doubly_robust(seen, predicted(log, target, seen, one.tree)).value])
    means, errors = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(means - truth) < 3 * errors).all()
    assert errors[1] < errors[0]  # which is what the model is for


def test_unbiased_where_visitors_lose_patience() -> None:
    """Some look at one document, some at two, some at all: whoever looked no further would not have, either way."""
    one = world("half", 2)
    policy, ranking = Softmax(0.5 * standard_scores(one)), one.popular[[1, 0, 4]]
    rng, found = np.random.default_rng(1), []
    for _ in range(300):
        shown, propensity = policy.draw(400, rng)
        patience, first = rng.integers(1, SLOTS + 1, 400), one.click(shown, rng)
        click = np.where(first < patience, first, SLOTS)
        log = replace(logged(np.zeros(400, np.int64), shown, propensity, click), looks=np.minimum(patience, click + 1))
        target = target_of(log, [str(document) for document in ranking])
        seen = weight_log(log, target)
        found.append([weighted(seen).value, doubly_robust(seen, predicted(log, target, seen, one.tree)).value])
    truth = np.mean([one.users.satisfaction(one.users.documents.at(ranking[:slots])) for slots in (1, 2, 3)])
    means, errors = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(means - truth) < 3 * errors).all()


def test_the_exact_worth_is_what_visitors_say() -> None:
    one = world("high", 2)
    policy = Softmax(standard_scores(one))
    shown, propensity = policy.draw(40_000, np.random.default_rng(3))
    clicks = one.click(shown, np.random.default_rng(4)) < SLOTS
    assert clicks.mean() == pytest.approx(policy.worth(one), abs=4 * 0.5 / 200)
    assert propensity == pytest.approx(policy.propensities(shown))


def test_mixes_are_drawn_once_a_ranking() -> None:
    """The chance of a whole ranking is the mean of the chances that the mixed ones give it."""
    log = small_log(visits=2)
    target = half_of_each(log)
    every = np.array(list(permutations(range(len(log.documents)), 3)))
    whole = target.propensities("", every).prod(axis=1)
    assert whole.sum() == pytest.approx(1.0)
    assert sorted(whole[whole > 0].tolist()) == [0.5, 0.5]


def test_support_is_missed_where_it_is_missing() -> None:
    log = small_log(visits=2_000)
    partly = TargetMix([target_of(log, RANKING), target_of(log, ["3", "none", "0"])], [0.5, 0.5])
    slot, share, error = missing_support(weight_log(log, partly))
    assert slot == 1
    assert share > 4 * error
    _, share, error = missing_support(weight_log(log, half_of_each(log)))
    assert share < 4 * error


def test_stretches_double() -> None:
    assert [len(some) for some in stretches(np.arange(1024))] == [4, 4, 8, 16, 32, 64, 128, 256, 512]
    assert np.concatenate(list(stretches(np.arange(7)))).tolist() == list(range(7))


def test_paths_go_from_the_root_to_the_document() -> None:
    tree = DocumentTree.from_parents([-1, 0, 0, 1, 1], ids=["c", "a", "b"])
    paths = tree_paths(["b", "c"], tree)
    deep, shallow = paths.tolist()
    assert deep[0] == shallow[1] == 1  # the root
    assert shallow[0] == 0  # which counts nothing
    assert len({*deep, *shallow}) == 5


def test_rankings_of_unlike_lengths() -> None:
    """Where a target's ranking ends, nothing is shown; so it is with the log's."""
    rows = [{"query": query, "shown": [1, 2], "propensity": [0.5, 0.5], "clicked": 2} for query in "ab"]
    log = ImpressionLog.from_rows([*rows, {"query": "a", "shown": [1], "propensity": [0.5], "clicked": None}])
    target = TargetRankings(log, {"a": ["1"], "b": ["1", "2"]})
    assert target.propensities("a", log.shown).tolist() == [[1, 0], [1, 0], [1, 1]]
    assert target.propensities("b", log.shown).tolist() == [[1, 1], [1, 1], [1, 0]]
