"""Rankings of eligible documents only, and documents that come and go."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zoomrank as zr
from tests.bandits.test_twins import SHARED, made, random_collection, twin_tree, twins
from tests.reference import learners as reference
from zoomrank.bandits.path_zooming.state import entry_of
from zoomrank.errors import ParameterError, SlotsError, TreeError, UnknownDocumentError
from zoomrank.spaces import Eligible

TREE = zr.DocumentTree.exponential(depth=5)
RESTRICTABLE = [name for name in SHARED if made(name, TREE).restrictable and not name.startswith("Cascade")]


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 6), marks=pytest.mark.full)], ids=["few", "more"])
@pytest.mark.parametrize("name", RESTRICTABLE)
def test_same_choices_as_the_literal_twin(name: str, seeds: range) -> None:
    """Eligible documents change from visitor to visitor."""
    for seed in seeds:
        rng = np.random.default_rng([seed, 23])
        tree = random_collection(rng)
        slots = int(rng.integers(1, min(3, len(tree)) + 1))
        plain = twin_tree(tree)
        slow = reference.Ranked(plain, twins(name, plain, slots), False, seed)
        fast = zr.Ranked(made(name, tree), slots, seed=seed)
        mean = rng.random(len(tree)) ** 2
        for _ in range(200):
            eligible = None
            plain.ineligible = set()
            if rng.random() < 0.8:
                size = int(rng.integers(slots, len(tree) + 1))
                chosen = rng.choice(len(tree), size=size, replace=False)
                plain.ineligible = set(range(len(tree))) - set(chosen.tolist())
                eligible = tree.documents.at(chosen)
            shown, picks, chances = slow.rank()
            ranking = fast.rank(eligible)
            assert ranking.arrays.shown[0].tolist() == shown
            assert ranking.arrays.pick[0].tolist() == picks
            relevant = rng.random(len(tree)) < mean
            click = next((slot for slot in range(slots) if relevant[shown[slot]]), None)
            slow.learn(shown, picks, chances, slots if click is None else click)
            fast.learn(ranking, click)


@pytest.mark.parametrize("make", [zr.ZoomRank, zr.RankThompson, zr.RankRandom])
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_whatever_happens_only_what_may_be_shown_is_shown(make: Any, data: st.DataObject) -> None:
    ranker = make(TREE, slots=3, seed=data.draw(st.integers(0, 5)))
    away: set[int] = set()
    documents = st.sets(st.sampled_from(range(len(TREE))), min_size=1, max_size=12)
    for _ in range(30):
        step = data.draw(st.sampled_from(["rank", "rank some", "remove", "restore"]))
        if step == "remove":
            gone = data.draw(documents)
            if len(TREE) - len(away | gone) >= 3:
                ranker.remove(gone)
                away |= gone
        elif step == "restore":
            back = data.draw(documents)
            ranker.restore(back)
            away -= back
        else:
            some = None if step == "rank" else data.draw(documents) - away
            if some is not None and len(some) < 3:
                with pytest.raises(SlotsError, match="may be shown"):
                    ranker.rank(some)
                continue
            ranking = ranker.rank(some)
            assert len(set(ranking.documents)) == 3
            assert not set(ranking.documents) & away
            assert some is None or set(ranking.documents) <= some
            ranker.learn(ranking, data.draw(st.sampled_from([None, 0, 1, 2])))


def test_removing_changes_nothing_of_the_rest() -> None:
    users = zr.users.two_peaks(TREE, seed=1)
    ranker = zr.ZoomRank(TREE, slots=3, seed=1)
    rng = np.random.default_rng(1)

    def visited() -> list[int]:
        ranking = ranker.rank()
        ranker.learn(ranking, users.click(ranking.documents, rng))
        return ranking.documents

    for _ in range(300):
        visited()
    before = {name: np.copy(part) for name, part in ranker.state._asdict().items() if isinstance(part, np.ndarray)}
    best = ranker.rank().documents[0]
    ranker.remove([best])
    for name, part in before.items():
        if name not in ranker.bandit.not_saved:
            np.testing.assert_array_equal(part, getattr(ranker.state, name))
    assert all(best not in visited() for _ in range(300))
    ranker.restore([best])
    assert ranker.present is None


@pytest.mark.full
def test_simulated_visitors_never_see_what_was_removed() -> None:
    users = zr.users.two_peaks(TREE, seed=1)
    ranker = zr.ZoomRank(TREE, slots=3, seed=1)
    zr.simulate(ranker, users, 500, seed=1)
    best = ranker.rank().documents[0]
    ranker.remove([best])
    trace = zr.simulate(ranker, users, 500, seed=2)
    assert all(best not in shown for shown in trace.shown)


def test_removed_documents_stay_away_after_loading(tmp_path: Any) -> None:
    ranker = zr.ZoomRank(TREE, slots=3, seed=1)
    ranker.remove(range(25))
    ranker.save(tmp_path / "ranker")
    again = zr.load(tmp_path / "ranker")
    for _ in range(20):
        shown = again.rank().documents
        assert shown == ranker.rank().documents
        assert min(shown) >= 25


def _known(ranker: zr.Ranked) -> dict[Any, Any]:
    """What a ranker knows of each subtree, named by its documents among those that were there from the start."""
    state = ranker.state
    known: dict[Any, Any] = {}
    for entry in range(int(state.filled[0])):
        below = tuple(x for x in ranker.tree.below(int(state.node[entry])) if x in TREE.documents)
        if below and state.total[entry] > 0:
            counts = state.plays[entry].tolist(), state.clicks[entry].tolist(), int(state.gains[entry])
            records = state.record[entry].tolist() if isinstance(ranker, zr.ZoomRank) else None
            known.setdefault(below, (*counts, records))
    return known


@pytest.mark.parametrize("make", [zr.ZoomRank, zr.RankThompson])
@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_a_collection_that_grows(make: Any, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    ranker = make(TREE, slots=3, seed=4)
    waiting: list[Any] = []
    away: set[Any] = set()
    for edition in range(4):
        for _ in range(40):
            waiting.append(ranker.rank())
            assert not set(waiting[-1].documents) & away
            ranker.learn(
                waiting.pop(int(rng.integers(len(waiting)))), int(rng.integers(3)) if rng.random() < 0.4 else None
            )
            waiting.append(ranker.rank())
        known, examined = _known(ranker), int(ranker.state.total[0])
        near = {f"new {edition}.{i}": ranker.tree.documents[int(rng.integers(len(ranker.tree)))] for i in range(5)}
        ranker.grow(ranker.tree.grown(near))
        assert _known(ranker) == known
        assert int(ranker.state.total[0]) == examined
        gone = ranker.tree.documents.at(rng.choice(len(ranker.tree), size=2, replace=False))
        ranker.remove(gone)
        away |= set(gone)
    for ranking in waiting:  # answers to rankings of all editions reach the documents that were shown
        at = [ranker.tree.documents.position(x) for x in ranking.documents]
        alone = [x for x in at if ranker.state.fan[entry_of(ranker.state, x)] == 0]  # told apart from all others
        before = [int(ranker.state.total[entry_of(ranker.state, x)]) for x in alone]
        ranker.learn(ranking, None)
        if (ranking.arrays.pick == ranking.arrays.shown).all():
            after = [int(ranker.state.total[entry_of(ranker.state, x)]) for x in alone]
            assert after == [count + 1 for count in before]


def test_new_documents_are_found() -> None:
    tree = zr.DocumentTree.exponential(depth=7)
    ranker = zr.ZoomRank(tree, slots=2, seed=1)
    mean = np.full(len(tree), 0.02)
    mean[40:44] = 0.3
    zr.simulate(ranker, zr.users.Independent(tree, mean), 3_000, seed=1)
    more = tree.grown({"best": 42, "poor": 90})
    ranker.grow(more)
    mean = np.array([0.8 if x == "best" else 0.02 if x == "poor" else mean[x] for x in more.documents])
    trace = zr.simulate(ranker, zr.users.Independent(more, mean), 1_000, seed=2)
    assert "best" in trace.shown[-1]
    with pytest.raises(ParameterError, match="grown"):
        ranker.grow(zr.DocumentTree.exponential(depth=7))
    with pytest.raises(ParameterError, match="Make a new ranker"):
        zr.RankUCB1(tree).grow(tree.grown({"new": 1}))
    with pytest.raises(TreeError, match="single document"):
        zr.DocumentTree.exponential(depth=0).grown({"new": 0})


def test_what_cannot_be_restricted() -> None:
    with pytest.raises(ParameterError, match="ZoomRank"):
        zr.RankUCB1(TREE, seed=1).rank(eligible=range(9))
    with pytest.raises(ParameterError, match="cannot choose among some"):
        zr.RankCorrZoom(TREE, seed=1).remove([3])
    ranker = zr.ZoomRank(TREE, slots=3, seed=1)
    with pytest.raises(SlotsError, match="only 2 documents"):
        ranker.rank(eligible=[1, 2])
    with pytest.raises(SlotsError, match="only 1 documents"):
        ranker.remove(range(31))
    with pytest.raises(UnknownDocumentError):
        ranker.remove([99])
    with pytest.raises(UnknownDocumentError, match="another collection"):
        ranker.rank(Eligible.everything(zr.DocumentTree.exponential(depth=6).documents))
    assert len(ranker.rank(Eligible.everything(TREE.documents)).documents) == 3
