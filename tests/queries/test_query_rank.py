"""One object that learns for all queries."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zoomrank import DocumentTree, QueryRank, QueryTree, users
from zoomrank.documents import Collection, CollectionVersion
from zoomrank.errors import FeedbackError, FileFormatError, ParameterError, SlotsError
from zoomrank.queries import loans

TREE = DocumentTree.exponential(depth=7)
PATHS = {f"{group} {n}": group for group in ("cats", "dogs") for n in range(6)}


def make(**how: object) -> QueryRank:
    return QueryRank(TREE, QueryTree.by_paths(PATHS), 3, seed=4, **how)  # type: ignore[arg-type]


def ask(ranker: QueryRank, visits: int, seed: int, late: int = 0) -> list[list[int]]:
    """Visitors of all queries; what those of a group like is the same. Answers may come late, and in another order."""
    rng = np.random.default_rng(seed)
    wanted = {"cats": users.peaks(TREE, {20: 0.5, 90: 0.3}), "dogs": users.peaks(TREE, {70: 0.5, 33: 0.3})}
    names, shown, waiting = list(PATHS), [], []
    for _ in range(visits):
        query = names[int(rng.integers(len(names)))]
        ranking = ranker.rank(query)
        shown.append(ranking.documents)
        waiting.append((ranking, wanted[PATHS[query]].click(ranking.documents, rng)))
        while len(waiting) > late:
            ranker.learn(*waiting.pop(int(rng.integers(len(waiting)))))
    return shown


def test_a_new_query_shows_what_its_neighbours_found() -> None:
    ranker = make()
    ask(ranker, 900, seed=2)
    assert 20 in ranker.rank("lynx", "cats").documents
    assert 70 in ranker.rank("hound", "dogs").documents
    support = ranker.support("lynx")
    assert set(support.lenders[:6]) == {query for query in PATHS if PATHS[query] == "cats"}
    assert support.visitors > 5


def test_without_lending_every_query_learns_alone() -> None:
    ranker = make(lend=False)
    ask(ranker, 300, seed=1)
    ranker.rank("lynx", "cats")
    assert ranker.support("lynx").lenders == []
    assert ranker.lending.reports == {}


def test_packed_learners_go_on_as_if_they_had_not_been() -> None:
    at_hand, packed = make(), make(live=2)
    assert ask(at_hand, 400, seed=2, late=5) == ask(packed, 400, seed=2, late=5)


@pytest.mark.parametrize("how", ["paths", "words", "vectors", "like"])
def test_saved_and_loaded_it_goes_on_bit_for_bit(how: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    queries = {
        "paths": QueryTree.by_paths(),
        "words": QueryTree.by_words(),
        "vectors": QueryTree.by_vectors(),
        "like": QueryTree.like(DocumentTree.exponential(depth=3)),
    }[how]
    places = {
        "paths": [f"g{q % 3} > x" for q in range(8)],
        "vectors": [np.eye(4)[q % 3] + 0.1 * rng.random(4) for q in range(8)],
    }
    about: Any = places.get(how, [None] * 8)
    names = [q if how == "like" else f"query {q % 3} {q}" for q in range(8)]
    ranker = QueryRank(TREE, queries, 3, live=3, parameters={"optimism": 0.2}, seed=1)
    visitors = users.peaks(TREE, {20: 0.5, 90: 0.3})

    def go_on(one: QueryRank, first: int) -> list[list[int]]:
        chance, shown = np.random.default_rng(first), []
        for _ in range(150):
            which = int(chance.integers(len(names)))
            ranking = one.rank(names[which], about[which])
            shown.append(ranking.documents)
            one.learn(ranking, visitors.click(ranking.documents, chance))
        return shown

    go_on(ranker, 0)
    late = ranker.rank(names[0])
    ranker.save(tmp_path / "queries")
    again = QueryRank.load(tmp_path / "queries")
    again.learn(late, click=1)
    ranker.learn(late, click=1)
    assert again.learners() == ranker.learners()
    assert go_on(again, 150) == go_on(ranker, 150)
    assert again.learners() == ranker.learners()
    if how in ("words", "paths"):  # newcomers find the same places
        assert again.queries.add("query 1 more", "g1 > y") == ranker.queries.add("query 1 more", "g1 > y")
        assert again.queries.group == ranker.queries.group


def test_what_busy_queries_have_told_is_kept_to_the_bit(tmp_path: Path) -> None:
    ranker = make()
    for seed in range(5):
        ask(ranker, 400, seed=seed)
    ranker.save(tmp_path / "queries")
    again = QueryRank.load(tmp_path / "queries")
    told = ranker.lending.reports
    assert max(report.visits.sum(axis=1).max() for report in told.values()) > 99  # where what is told was capped
    assert again.lending.reports.keys() == told.keys()
    assert all(np.array_equal(again.lending.reports[query].rows, told[query].rows) for query in told)


def test_files_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "queries"
    ranker = make()
    ask(ranker, 20, seed=1)
    ranker.save(file)
    content = bytearray(file.read_bytes())
    content[200] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(FileFormatError, match="damaged"):
        QueryRank.load(file)
    file.write_bytes(b"something else entirely, and long enough to be looked at")
    with pytest.raises(FileFormatError, match="not written by"):
        QueryRank.load(file)


def test_documents_that_come_later() -> None:
    ranker = make(live=3)
    ask(ranker, 1200, seed=3)
    before = ranker.rank("cats 0")
    ranker.grow(ranker.tree.grown({"new": 20, "newer": 70}))
    ranker.learn(before, click=None)
    shown = [document for query in PATHS for document in ranker.rank(query).documents]
    assert 20 in shown
    assert 70 in shown
    assert "newer" in ranker.rank("cats 1", eligible=["new", "newer", 5]).documents
    assert 20 in ranker.rank("lynx", "cats").documents  # what was told before is understood


def test_a_loan_in_bytes_is_the_same_loan() -> None:
    ranker = make()
    ask(ranker, 100, seed=1)
    granted = ranker.lending.grant(0)
    assert granted is not None
    again = loans.loan_from_bytes(loans.loan_to_bytes(granted))
    assert again.lenders == granted.lenders
    for name in granted.loan._fields:
        np.testing.assert_array_equal(getattr(again.loan, name), getattr(granted.loan, name))


def test_groups_remember_those_who_know_most() -> None:
    ranker = QueryRank(TREE, QueryTree.by_paths(dict.fromkeys(range(200), "g")), 1, seed=1)
    for query in range(200):
        for _ in range(4 if query % 2 else 1):
            ranker.learn(ranker.rank(query), click=None)
    known = ranker.lending.known[0]
    assert len(known) == loans.MOST_LENDERS
    assert all(query % 2 for query in known)


def test_refusals_say_why() -> None:
    with pytest.raises(SlotsError):
        QueryRank(TREE, slots=1000)
    with pytest.raises(ParameterError, match="live must be 1 or more"):
        QueryRank(TREE, live=0)
    one, other = make(), make()
    with pytest.raises(ParameterError, match="its own tree's grown"):
        one.grow(DocumentTree.exponential(depth=3))
    with pytest.raises(FeedbackError, match="another ranker"):
        other.learn(one.rank("cats 1"), click=0)
    ranking = one.rank("cats 1")
    one.learn(ranking, click=0)
    with pytest.raises(FeedbackError):
        one.learn(ranking, click=0)


def test_queries_move_to_a_tree_in_which_documents_came_went_and_moved() -> None:
    paths = {f"{c}{i}": f"{up} > {c}" for up, c in (("X", "a"), ("X", "b"), ("Y", "c")) for i in range(6)}
    edition = CollectionVersion.first(Collection.from_taxonomy(paths))
    ranker = QueryRank(edition.collection.tree, slots=2, seed=1)
    for _ in range(150):
        for query in ("red shoes", "red shoe"):
            ranking = ranker.rank(query)
            ranker.learn(ranking, ranking.documents.index("a1") if "a1" in ranking.documents else None)
    changes = [{"remove": "b2"}, {"remove": "a3"}, {"category": "X > a", "to": "Y > d > a"}, {"add": "n", "near": "c1"}]
    later = edition.changed(edition.placed(changes))
    ranker.move(later.collection.tree, edition.remap_to(later))
    tree = later.collection.tree
    for report in ranker.lending.reports.values():
        told = report.node.tolist()
        assert told[0] == 0
        assert told == sorted(told)
        assert all(int(tree.shape.parent[node]) in told for node in told)
    assert "a1" in ranker.rank("red shoes").documents
    for _ in range(30):
        ranking = ranker.rank("red shoes now")  # it takes a loan of what has moved
        ranker.learn(ranking, None)
    assert ranker.support("red shoes now").lenders
