"""Learners that move to other trees as documents come, go and move: the same as their literal twins, all the way."""

from typing import Any

import numpy as np
import pytest

from tests.bandits.test_twins import twin_tree
from tests.reference import learners as reference
from tests.reference.moving import move
from tests.support.seeds import seeds
from zoomrank import Ranked
from zoomrank.bandits import Bandit, Loan, LoanZooming, PathZooming, TreeThompson
from zoomrank.documents import Collection
from zoomrank.documents.versions import CollectionVersion
from zoomrank.queries.loans import report_of

Pair = tuple[reference.Ranked, Any, Ranked]
SLOTS = 3


def slow_learner(kind: str, tree: reference.Tree, patience: int) -> Any:
    if kind == "thompson":
        return reference.Visits(tree, SLOTS, patience=1)
    return {"paths": reference.PathZooming, "loan": reference.LoanZooming}[kind](tree, SLOTS, patience=patience)


def each(learner: Any) -> list[reference.Learner]:
    if isinstance(learner, reference.PathZooming):
        return learner.each()
    return [reference.TreeThompson(learner, slot) for slot in range(SLOTS)]


def pair(kind: str, edition: CollectionVersion, patience: int, seed: int) -> Pair:
    tree = edition.collection.tree
    plain = twin_tree(tree)
    learner = slow_learner(kind, plain, patience)
    bandit: Bandit = TreeThompson(tree)
    if kind != "thompson":
        bandit = (PathZooming if kind == "paths" else LoanZooming)(tree, patience=patience)
    return reference.Ranked(plain, each(learner), False, seed), learner, Ranked(bandit, SLOTS, seed=seed)


def moved(both: Pair, kind: str, old: CollectionVersion, new: CollectionVersion, patience: int) -> Pair:
    slow, learner, fast = both
    movement, tree = old.remap_to(new), new.collection.tree
    plain = twin_tree(tree)
    other = slow_learner(kind, plain, patience)
    move(learner, other, movement)
    again = reference.Ranked(plain, each(other), False, 0)
    again.rng = slow.rng
    fast.move(tree, movement)
    same_counts(other, fast)
    return again, other, fast


def same_counts(learner: Any, fast: Ranked) -> None:
    state = fast.state
    for entry in range(int(state.filled[0])):
        node = int(state.node[entry])
        assert state.plays[entry].tolist() == [learner.n[node, i] for i in range(SLOTS)]
        assert state.clicks[entry].tolist() == [learner.r[node, i] for i in range(SLOTS)]
        assert int(state.total[entry]) == learner.total(node)
        assert int(state.gains[entry]) == learner.gains(node)
        assert bool(state.child[entry]) == (node in learner.apart)


def random_catalogue(rng: np.random.Generator) -> Collection:
    if rng.random() < 0.4:
        return Collection.from_vectors(rng.normal(size=(int(rng.integers(8, 20)), 3)))
    paths = {i: rng.choice(list("ABC"), size=int(rng.integers(1, 4))).tolist() for i in range(int(rng.integers(6, 18)))}
    return Collection.from_taxonomy(paths)


def some_changes(edition: CollectionVersion, rng: np.random.Generator, first: int) -> CollectionVersion:
    """A few changes, or a tree made anew."""
    if rng.random() < 0.25:
        return edition.remade(seed=int(rng.integers(9)))
    taxonomy = edition.collection.tree.names is not None
    for step in range(int(rng.integers(1, 5))):
        there = list(edition.collection.tree.documents)
        one, other = rng.choice(there, size=2, replace=False).tolist()
        path = rng.choice(list("ABC"), size=int(rng.integers(1, 4))).tolist()
        where = {"path": path} if taxonomy else {"near": other}
        change: dict[str, Any] = {"add": first + step, **where}
        kind = rng.random()
        if kind < 0.3 and len(there) > SLOTS + 1:
            change = {"remove": one}
        elif kind < 0.5:
            change = {"change": one, **where}
        elif kind < 0.7 and taxonomy:
            tree = edition.collection.tree
            change = {"category": tree.name(int(tree.shape.parent[tree.leaf(one)])), "to": [*path, f"K{first + step}"]}
            if list(change["to"])[: len(change["category"].split(" > "))] == change["category"].split(" > "):
                continue
        edition = edition.changed(edition.placed([change]))
    return edition


def visit(both: Pair, mean: np.ndarray, rng: np.random.Generator, waiting: list[Any]) -> None:
    slow, _, fast = both
    shown, picks, chances = slow.rank()
    ranking = fast.rank()
    assert ranking.arrays.shown[0].tolist() == shown
    assert ranking.arrays.pick[0].tolist() == picks
    relevant = rng.random(len(mean)) < mean
    click = next((slot for slot in range(SLOTS) if relevant[shown[slot]]), SLOTS)
    waiting.append([shown, picks, chances, click, ranking])
    if rng.random() < 0.9:
        shown, picks, chances, click, ranking = waiting.pop(int(rng.integers(len(waiting))))
        slow.learn(shown, picks, chances, click)
        fast.learn(ranking, None if click == SLOTS else click)


@pytest.mark.parametrize("kind", ["paths", "thompson", "loan"])
@pytest.mark.parametrize("seed", seeds(4, 12))
def test_same_as_the_literal_twin_after_every_move(kind: str, seed: int) -> None:
    rng = np.random.default_rng([seed, 5])
    edition, patience = CollectionVersion.first(random_catalogue(rng)), int(rng.integers(1, 4))
    both = pair(kind, edition, patience, seed)
    waiting: list[Any] = []
    for life in range(6):
        mean = rng.random(len(edition)) ** 3
        for _ in range(int(rng.integers(5, 80))):
            visit(both, mean, rng, waiting)
        if kind == "loan" and life % 2 == 0:
            lend(both, rng)
        later = some_changes(edition, rng, 1000 * (life + 1))
        place = edition.remap_to(later).document
        for one in waiting:
            one[0], one[1] = ([-1 if x < 0 else int(place[x]) for x in row] for row in one[:2])
        both = moved(both, kind, edition, later, patience)
        edition = later
    assert int(both[2].state.total[0]) > 0


def lend(both: Pair, rng: np.random.Generator) -> None:
    """A loan of what another has seen on the same tree."""
    _, learner, fast = both
    other = Ranked(LoanZooming(fast.tree, patience=1), SLOTS, seed=3)
    for _ in range(25):
        other.learn(other.rank(), int(rng.integers(SLOTS)) if rng.random() < 0.5 else None)
    report = report_of(other.state)
    loan = Loan(report.node, report.visits, report.clicks, 0.5)
    bandit = fast.bandit
    assert isinstance(bandit, LoanZooming)
    fast.state = bandit.with_loan(fast.state, loan)
    learner.take([int(u) for u in report.node], report.visits, report.clicks, 0.5)


def test_a_category_takes_along_what_was_learned_of_it() -> None:
    paths = {f"{c}{i}": f"{up} > {c}" for up, c in (("X", "a"), ("X", "b"), ("Y", "c")) for i in range(4)}
    edition = CollectionVersion.first(Collection.from_taxonomy(paths))
    ranker = Ranked(PathZooming(edition.collection.tree, patience=1), 2, seed=1)
    for _ in range(300):
        ranking = ranker.rank()
        ranker.learn(ranking, next((s for s, d in enumerate(ranking.documents) if d in ("a1", "c2")), None))

    def visits(name: str) -> int:
        tree, state = ranker.tree, ranker.state
        entries = [e for e in range(int(state.filled[0])) if tree.name(int(state.node[e])) == name]
        return int(state.total[entries[0]]) if entries else 0

    before = {name: visits(name) for name in ("", "X", "Y", "X > a", "X > a > a1")}
    later = edition.changed(edition.placed([{"category": "X > a", "to": "Y > d > a"}]))
    ranker.move(later.collection.tree, edition.remap_to(later))
    assert visits("Y > d > a > a1") == before["X > a > a1"] > 100
    assert visits("X") == before["X"] - before["X > a"]
    assert visits("Y") == before["Y"] + before["X > a"]
    assert visits("") == before[""]
    gone = later.changed(later.placed([{"remove": "a1"}]))
    ranker.move(gone.collection.tree, later.remap_to(gone))
    assert visits("Y > d > a") == before["X > a"]  # what was learned of a document that is gone stays where it was
    assert visits("Y > d > a > a1") == 0


def test_a_document_that_leaves_its_category_takes_along_a_few_visits() -> None:
    paths = {f"{c}{i}": c for c in "ab" for i in range(4)}
    edition = CollectionVersion.first(Collection.from_taxonomy(paths))
    ranker = Ranked(PathZooming(edition.collection.tree, patience=1), 2, seed=1)
    for _ in range(300):
        ranking = ranker.rank()
        ranker.learn(ranking, next((slot for slot, d in enumerate(ranking.documents) if d == "a1"), None))

    def counts(name: str) -> tuple[int, int]:
        tree, state = ranker.tree, ranker.state
        entry = next(e for e in range(int(state.filled[0])) if tree.name(int(state.node[e])) == name)
        return int(state.total[entry]), int(state.gains[entry])

    before = {name: counts(name) for name in ("", "a", "b", "a > a1")}
    assert before["a > a1"][0] > 200
    later = edition.changed(edition.placed([{"change": "a1", "path": "b"}]))
    ranker.move(later.collection.tree, edition.remap_to(later))
    visits, clicks = counts("b > a1")
    assert (28, 28) <= (visits, clicks) <= (30, 30)  # all were clicks, and each slot takes its part, rounded down
    assert counts("b") == (before["b"][0] + visits, before["b"][1] + clicks)
    assert counts("a") == (before["a"][0] - visits, before["a"][1] - clicks)
    assert counts("") == before[""]
    deeper = later.changed(later.placed([{"change": "a0", "path": "a > new"}]))  # it is still in its category
    known = counts("a > a0")
    ranker.move(deeper.collection.tree, later.remap_to(deeper))
    assert counts("a > new > a0") == known


def test_what_stands_elsewhere_is_looked_at_anew() -> None:
    """A document that was poor among poor ones is hoped for among good ones, be it with the visits that it had."""
    paths = {f"{c}{i}": c for c in "ab" for i in range(4)}
    edition = CollectionVersion.first(Collection.from_taxonomy(paths))
    ranker = Ranked(PathZooming(edition.collection.tree, patience=1), 1, seed=1)
    ranker.learn_log([("", [f"b{i % 4}"], None) for i in range(40)] + [("", ["a0"], "a0")] * 100)
    state, tree = ranker.state, ranker.tree
    hope = {tree.name(int(state.node[e])): float(state.worth[e, 0]) for e in range(int(state.filled[0]))}
    later = edition.changed(edition.placed([{"change": "b1", "path": "a"}]))
    ranker.move(later.collection.tree, edition.remap_to(later))
    state, tree = ranker.state, ranker.tree
    entry = next(e for e in range(int(state.filled[0])) if tree.name(int(state.node[e])) == "a > b1")
    assert float(state.worth[entry, 0]) > 2 * hope["b > b1"]


def test_rankings_that_showed_documents_that_are_gone() -> None:
    edition = CollectionVersion.first(Collection.from_taxonomy(dict.fromkeys("abcdef", "A")))
    ranker = Ranked(PathZooming(edition.collection.tree, patience=1), 3, seed=1)
    ranking = ranker.rank()
    top, _, low = ranking.documents
    ranker.remove([low])
    later = edition.changed(edition.placed([{"remove": top}, {"add": "new", "near": low}]))
    ranker.move(later.collection.tree, edition.remap_to(later))
    assert top not in ranker.tree.documents
    assert low not in ranker.rank().documents
    with pytest.raises(ValueError, match="was removed"):
        ranker.explain(ranking)
    ranker.learn(ranking, click=2)
    assert int(ranker.state.total[0]) == 2
    assert int(ranker.state.gains[0]) == 1
    few = later.changed(later.placed([{"remove": name} for name in later.collection.tree.documents[:4]]))
    with pytest.raises(ValueError, match="does not start from"):
        ranker.move(few.collection.tree, few.remap_to(few))
    with pytest.raises(ValueError, match="slots cannot be filled"):
        ranker.move(few.collection.tree, later.remap_to(few))
