"""What a ranker says that it is about to try, against a literal dry run; and saying it changes nothing."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import zoomrank as zr
from zoomrank.errors import ParameterError
from zoomrank.rankers.ranker_file import to_bytes

TREE = zr.DocumentTree.exponential(depth=4)
SLOTS = 3
Array = np.ndarray[Any, Any]


def taught(visits: int, **how: Any) -> zr.ZoomRank:
    """A ranker that has learned from visitors with three tastes, the most of whom like one document."""
    ranker = zr.ZoomRank(TREE, slots=SLOTS, seed=2, **how)
    rng = np.random.default_rng(5)
    for _ in range(visits):
        ranking = ranker.rank()
        wanted = int(rng.choice([3, 9, 14], p=[0.5, 0.3, 0.2]))
        pleased = wanted in ranking.documents and rng.random() < 0.9
        ranker.learn(ranking, ranking.documents.index(wanted) if pleased else None)
    return ranker


def everything(ranker: zr.Ranked) -> tuple[bytes, dict[str, Any], Any]:
    arrays = {name: array.tobytes() for name, array in ranker.state._asdict().items() if hasattr(array, "tobytes")}
    return to_bytes(ranker), arrays, ranker.rng.bit_generator.state


def believed(state: Any, document: int, slot: int, above: Array) -> float:
    """What a document is believed to earn, by definition: under the cap, its record or the mean of what holds it, and
    not more than visitors who skipped those above let expect.
    """
    entry = 0
    while state.child[entry] != 0:
        children = range(int(state.child[entry]), int(state.child[entry]) + int(state.fan[entry]))
        entry = next(one for one in children if document < state.end_document[state.node[one]])
    mean = float(state.record[entry, slot])
    if mean < 0:
        plays, clicks = _evidence(state, entry, slot)
        if entry != 0:
            around, gained = _evidence(state, int(state.up[entry]), slot)
            plays, clicks = plays + state.prior, clicks + state.prior * gained / max(around, 1)
        mean = clicks / plays if plays else 0.0
    if any(_held(state, one, above) for one in (entry, int(state.up[entry]))):
        plays, clicks = _evidence_given(state, entry, slot, above)
        if entry != 0:
            around, gained = _evidence_given(state, int(state.up[entry]), slot, above)
            plays, clicks = plays + state.prior, clicks + state.prior * gained / max(around, 1)
        mean = min(mean, clicks / plays if plays >= 1 else 0.0)
    return min([mean, *(float(TREE.distances(int(other))[document]) for other in above)])


def _evidence(state: Any, entry: int, slot: int) -> tuple[float, float]:
    plays, clicks = int(state.plays[entry, slot]), int(state.clicks[entry, slot])
    others = int(state.total[entry]) - plays
    lent = min(state.borrow, others)
    return plays + lent, clicks + (lent * (int(state.gains[entry]) - clicks) / others if others else 0.0)


def _held(state: Any, entry: int, above: Array) -> list[int]:
    node = state.node[entry]
    return [int(x) for x in above if state.first_document[node] <= x < state.end_document[node]]


def _evidence_given(state: Any, entry: int, slot: int, above: Array) -> tuple[float, float]:
    """The same without the visits of documents above that have entries, which are `prior` visits without a click each;
    what other slots lend counts by a tenth, but for the root and what is directly below it.
    """
    held = _held(state, entry, above)
    leaves = {int(state.first_document[state.node[e]]): e for e in range(int(state.filled[0])) if state.fan[e] == 0}
    own = [leaves[x] for x in held if x in leaves]

    def left(counts: Array) -> int:
        return int(counts[entry]) - sum(int(counts[one]) for one in own)

    plays, clicks = left(state.plays[:, slot]), left(state.clicks[:, slot])
    others = left(state.total) - plays
    lent = min(state.borrow, others)
    share = 0.1 if entry != 0 and (held or state.up[entry] != 0) else 1.0
    borrowed = share * lent * (left(state.gains) - clicks) / others if others else 0.0
    return plays + lent + state.prior * len(held), clicks + borrowed


def literal(ranker: zr.ZoomRank, visits: int) -> tuple[list[int], Array]:
    """Go on with a copy, visitor by visitor: how often slots have documents on trial, and the clicks that it costs."""
    copy, luck = ranker.copied(), np.random.default_rng(0).random((visits, SLOTS))
    trials: Counter[int] = Counter()
    costs = np.zeros(SLOTS)
    for visit in range(visits):
        ranking = copy.rank()
        shown, examined = ranking.arrays.shown[0], 1.0
        click: int | None = None
        for slot, reason in enumerate(copy.explain(ranking)):
            if reason.trial:
                trials[slot] += 1
                own = believed(copy.state, shown[slot], slot, shown[:slot])
                costs[slot] += examined * max(0.0, (reason.record or 0.0) - own)
            chance = believed(ranker.state, shown[slot], slot, shown[:slot])
            examined *= 1 - chance
            if click is None and luck[visit, slot] < chance:
                click = slot
        copy.learn(ranking, click)
    return [trials[slot] for slot in range(SLOTS)], costs


@pytest.mark.parametrize("visits", [10, 30, 60])
def test_shares_and_costs_are_those_of_a_literal_dry_run(visits: int) -> None:
    ranker = taught(visits)
    trials, costs = literal(ranker, 50)
    forecast = ranker.forecast(visits=50)
    assert [slot.share for slot in forecast.slots] == [trial / 50 for trial in trials]
    np.testing.assert_allclose([slot.cost for slot in forecast.slots], 2 * costs, atol=1e-9)
    assert forecast.cost == pytest.approx(2 * costs.sum())
    assert 0 < sum(trials) < 50 * SLOTS
    for slot in forecast.slots:
        assert sum(one.visits for one in slot.tried) <= slot.share * 50 + 1e-9
        assert bool(slot.tried) == (slot.share > 0)


def test_a_fresh_ranker_tries_everywhere() -> None:
    ranker = zr.ZoomRank(TREE, slots=SLOTS, seed=0)
    assert [(slot.trial, slot.record) for slot in ranker.explain(ranker.rank())] == [(True, None)] * SLOTS
    forecast = ranker.forecast(visits=20)
    assert [slot.share for slot in forecast.slots] == [1.0] * SLOTS
    assert all(slot.tried[0].documents == len(TREE) and slot.tried[0].visits == 20 for slot in forecast.slots)
    assert "no other record" in str(ranker.explain(ranker.rank())[0])


def test_a_settled_ranker_tries_nothing() -> None:
    ranker = zr.ZoomRank(TREE, slots=2, seed=0)
    for visit in range(4000):
        ranking = ranker.rank()
        wanted = 3 if visit % 5 < 3 else 12
        ranker.learn(ranking, ranking.documents.index(wanted) if wanted in ranking.documents else None)
    assert ranker.rank().documents == [3, 12]
    assert [slot.trial for slot in ranker.explain(ranker.rank())] == [False, False]
    forecast = ranker.forecast()
    assert [(slot.share, slot.cost, slot.tried) for slot in forecast.slots] == [(0.0, 0.0, ())] * 2
    assert str(forecast) == "The next 200 visits:\nslot 0: nothing on trial\nslot 1: nothing on trial"


def test_trials_are_at_the_bottom() -> None:
    shares = [slot.share for slot in taught(15).forecast().slots]
    assert shares[0] < shares[-1]


@pytest.mark.parametrize("visits", [0, 40, 300])
def test_a_forecast_changes_nothing(visits: int) -> None:
    ranker = taught(visits)
    before = everything(ranker)
    first = ranker.forecast(visits=30)
    assert everything(ranker) == before
    assert ranker.forecast(visits=30) == first
    assert everything(ranker) == before


def test_removed_documents_are_not_tried() -> None:
    ranker = taught(20)
    ranker.remove(range(8))
    for _ in range(5):
        assert all(one.name for slot in ranker.forecast(visits=40).slots for one in slot.tried)
        best = ranker.explain(ranker.rank())[0].record
        known = [believed(ranker.state, document, 0, np.zeros(0)) for document in range(8, 16)]
        assert best is None or best <= max(known) + 1e-9
        ranker.learn(ranker.rank(), click=0)


def test_others_refuse() -> None:
    with pytest.raises(ParameterError, match="ZoomRank can"):
        zr.RankCorrZoom(TREE, slots=2).forecast()
    with pytest.raises(ParameterError, match="visits must be 1 or more"):
        zr.ZoomRank(TREE, slots=2).forecast(visits=0)
