"""Editions: changes are placed and applied, the same whichever way; nothing that has a number is mixed up."""

import io
import json
from typing import Any

import numpy as np
import pytest

from tests.support.seeds import seeds
from zoomrank.documents import Collection, load_collection
from zoomrank.documents.collection_file import load_version, write_version
from zoomrank.documents.versions import BORROWED, CollectionVersion
from zoomrank.errors import ChangeError, FileFormatError, ParameterError

PATHS = {"owl": "Animals > Birds", "hen": "Animals > Birds", "pike": "Animals > Fish", "oak": "Plants"}


def shop(**more: Any) -> CollectionVersion:
    return CollectionVersion.first(Collection.from_taxonomy(PATHS, titles={"owl": "Owls"}, **more))


def after(edition: CollectionVersion, *changes: dict[str, Any]) -> CollectionVersion:
    return edition.changed(json.loads(json.dumps(edition.placed(changes))))


def saved(edition: CollectionVersion) -> CollectionVersion:
    file = io.BytesIO()
    write_version(edition, file)
    assert load_collection(file).tree.fingerprint == edition.collection.tree.fingerprint
    return load_version(file, verify=True)


def category(edition: CollectionVersion, document: Any) -> str:
    tree = edition.collection.tree
    return tree.name(int(tree.shape.parent[tree.leaf(document)]))


def assert_same(one: CollectionVersion, other: CollectionVersion) -> None:
    assert one.collection.tree.fingerprint == other.collection.tree.fingerprint
    assert one.collection.geometry.fingerprint == other.collection.geometry.fingerprint
    for name in ("documents", "nodes", "heirs", "marks"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    assert one.gone.numbers.tolist() == other.gone.numbers.tolist()
    assert list(one.gone.ids) == list(other.gone.ids)
    assert list(one.collection) == list(other.collection)
    assert list(one.collection.tree.names or []) == list(other.collection.tree.names or [])
    if one.collection.vectors is not None:
        assert np.array_equal(one.collection.vectors, np.asarray(other.collection.vectors))


class Model:
    """The same shop as dictionaries: where each document is, what is said of it, and what it learned."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.path = {name: tuple(path.split(" > ")) for name, path in PATHS.items()}
        self.title = dict.fromkeys(PATHS, "") | {"owl": "Owls"}
        self.made = 0

    def any_path(self) -> tuple[str, ...]:
        return tuple(self.rng.choice(list("ABC"), size=int(self.rng.integers(1, 4))).tolist())

    def any_document(self) -> str:
        return str(self.rng.choice(list(self.path)))

    def add(self) -> dict[str, Any]:
        self.made += 1
        name = f"new {self.made}"
        if self.rng.random() < 0.5:
            near = self.any_document()
            self.path[name], self.title[name] = self.path[near], ""
            return {"add": name, "near": near}
        self.path[name], self.title[name] = self.any_path(), f"title {self.made}"
        return {"add": name, "path": list(self.path[name]), "title": self.title[name]}

    def change(self) -> dict[str, Any]:
        name = self.any_document()
        if self.rng.random() < 0.3:
            self.title[name] = f"other {self.rng.integers(9)}"
            return {"change": name, "title": self.title[name]}
        self.path[name] = self.any_path()
        return {"change": name, "path": " > ".join(self.path[name])}

    def remove(self) -> dict[str, Any]:
        if len(self.path) == 1:
            return self.add()
        name = self.any_document()
        del self.path[name], self.title[name]
        return {"remove": name}

    def category(self) -> dict[str, Any]:
        whole = self.path[self.any_document()]
        source = whole[: int(self.rng.integers(1, len(whole) + 1))]
        goal = self.any_path()
        there = {path[:depth] for path in self.path.values() for depth in range(len(path) + 1)}
        if goal in there or goal[: len(source)] == source:
            return self.change()
        for name, path in self.path.items():
            if path[: len(source)] == source:
                self.path[name] = goal + path[len(source) :]
        return {"category": " > ".join(source), "to": " > ".join(goal)}

    def step(self) -> dict[str, Any]:
        kinds = [self.add, self.change, self.remove, self.category]
        return kinds[int(self.rng.choice(4, p=[0.35, 0.25, 0.25, 0.15]))]()


@pytest.mark.parametrize("seed", seeds(8, 25))
def test_changes_come_to_the_same_whichever_way_they_are_applied(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, model = shop(), Model(rng)
    changes = [model.step() for _ in range(40)]
    placed = json.loads(json.dumps(first.placed(changes)))
    at_once = first.changed(placed)
    one_by_one = through_files = first
    for at, change in enumerate(placed):
        assert one_by_one.placed([changes[at]]) == [change]
        one_by_one = one_by_one.changed([change])
        through_files = (saved(through_files) if rng.random() < 0.3 else through_files).changed([change])
    assert_same(at_once, one_by_one)
    assert_same(at_once, through_files)
    tree = at_once.collection.tree
    assert {name: tuple(category(at_once, name).split(" > ")) for name in tree.documents} == model.path
    assert {name: at_once.collection[name].title for name in tree.documents} == model.title
    for position, number in enumerate(at_once.documents.tolist()):
        assert at_once.id_of(number) == tree.documents[position]
        assert at_once.position(number) == position
    assert (at_once.positions(at_once.gone.numbers) == -1).all()
    assert set(at_once.heirs.tolist()) == set(at_once.nodes.tolist())
    for node in range(tree.nodes):  # children in the order of their numbers
        assert at_once.nodes[list(tree.children(node))].tolist() == sorted(at_once.nodes[list(tree.children(node))])


@pytest.mark.parametrize("seed", seeds(4, 10))
def test_vectors_and_neighbours(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first = CollectionVersion.first(Collection.from_vectors(rng.normal(size=(40, 5)), ids=np.arange(100, 140)))
    at_once, vectors, changes = first, {}, []
    there = list(range(100, 140))
    for number in range(30):
        which = int(rng.integers(len(there)))
        if rng.random() < 0.6:
            vectors[number] = rng.normal(size=5)
            changes.append({"add": number, "vector": vectors[number].tolist()})
            there.append(number)
        elif rng.random() < 0.5:
            changes.append({"remove": there.pop(which)})
        else:
            vectors[there[which]] = rng.normal(size=5)
            changes.append({"change": there[which], "vector": vectors[there[which]].tolist()})
    placed = json.loads(json.dumps(first.placed(changes)))
    at_once, one_by_one = first.changed(placed), first
    for change in placed:
        one_by_one = saved(one_by_one).changed([change])
    assert_same(at_once, one_by_one)
    rows = at_once.collection.vectors
    assert rows is not None
    for document, vector in vectors.items():
        if document in there:
            row = rows[at_once.collection.tree.documents.position(document)]
            assert np.allclose(row, vector / np.linalg.norm(vector), atol=1e-6)
    leaving = {change["remove"] for change in changes if "remove" in change}
    before, tree = first.collection, first.collection.tree
    assert before.vectors is not None
    for change, where in zip(changes, placed, strict=True):
        if "add" in change:
            like = before.vectors @ np.array(change["vector"])
            like[[tree.documents.position(one) for one in leaving if one in tree.documents]] = -np.inf
            home = int(tree.shape.parent[tree.shape.leaf[int(np.argmax(like))]])
            moved = {c["change"] for c in changes if "change" in c}
            if tree.documents[int(np.argmax(like))] not in moved:
                assert first.heirs[where["parent"]] == first.nodes[home]


def test_texts_find_their_neighbours_and_the_count_goes_on() -> None:
    texts = ["barn owl", "snowy owl", "eagle owl", "river pike", "sea trout", "river trout"]
    edition = CollectionVersion.first(
        Collection.from_texts(texts, ids=["barn", "snow", "eagle", "pike", "sea", "river"])
    )
    more = after(edition, {"add": "b2", "text": "two barn owls"}, {"add": "t2", "text": "trout of the sea"})
    tree = more.collection.tree
    assert tree.distance("b2", "barn") == edition.collection.tree.width[tree_parent(edition, "barn")]
    assert tree.distance("t2", "sea") == edition.collection.tree.width[tree_parent(edition, "sea")]
    assert more.collection["b2"].text == "two barn owls"
    assert (more.marks & BORROWED > 0).sum() == 2
    counted = edition.searches["texts"].counter
    again = after(more, {"add": "b3", "text": "two barn owls"}, {"change": "sea", "text": "whale"})
    assert more.searches["texts"].counter is counted  # nothing is counted anew
    assert again.collection.tree.distance("b3", "b2") == tree.distance("b2", "barn")
    assert int(again.documents[again.collection.tree.documents.position("sea")]) not in again.searches["texts"].numbers
    alone = after(again, {"add": "q", "text": "qqq"})
    assert alone.collection.tree.distance("q", "barn") == alone.collection.tree.width[0]
    remade = alone.remade(seed=1)
    assert (remade.marks == 0).all()
    assert remade.collection.tree.distance("b2", "b3") == 0
    assert remade.collection.tree.distance("b2", "barn") > 0  # they have vectors of their own now


def tree_parent(edition: CollectionVersion, document: Any) -> int:
    tree = edition.collection.tree
    return int(tree.shape.parent[tree.leaf(document)])


def test_categories_take_what_is_below_them_along() -> None:
    edition = shop()
    moved = after(edition, {"category": "Animals > Birds", "to": "Plants > Winged > Birds"})
    assert category(moved, "owl") == "Plants > Winged > Birds"
    kept = edition.nodes[tree_parent(edition, "owl")]
    assert kept == moved.nodes[tree_parent(moved, "owl")]
    geometry = moved.collection.geometry
    up = geometry.shape.parent[tree_parent(moved, "owl")]
    assert geometry.width[tree_parent(moved, "owl")] == pytest.approx(0.837 * geometry.width[up])
    renamed = after(edition, {"category": "Animals", "to": "Beasts"})
    assert category(renamed, "pike") == "Beasts > Fish"
    assert (renamed.nodes == edition.nodes).all()
    emptied = after(edition, {"remove": "oak"})
    assert emptied.heirs[edition.nodes[tree_parent(edition, "oak")]] == emptied.nodes[0]
    again = after(emptied, {"add": "ash", "path": "Plants"})
    assert again.nodes[tree_parent(again, "ash")] not in edition.nodes


def test_a_single_document_gets_company() -> None:
    edition = CollectionVersion.first(Collection.from_vectors(np.eye(3)[:1], ids=[7]))
    more = after(edition, {"add": 8, "vector": [0, 3, 0]}, {"add": 9, "near": 8})
    assert more.documents.tolist() == [0, 1, 2]
    assert more.collection.tree.distance(7, 8) == 1
    assert edition.remap_to(more).node.tolist() == [1]
    with pytest.raises(ChangeError, match=r"Change 2 .*last document"):
        more.placed([{"remove": 7}, {"remove": 8}, {"remove": 9}])


WRONG: list[tuple[list[Any], int, str]] = [
    ([{"add": "owl", "path": "A"}], 0, "already"),
    ([{"remove": "owl"}, {"remove": "owl"}], 1, "no document"),
    ([{"add": "a", "path": "A"}, {"add": "a", "path": "A"}], 1, "already"),
    ([{"add": "a"}], 0, "say where it belongs"),
    ([{"add": "a", "path": "A", "near": "owl"}], 0, "not by two"),
    ([{"add": "a", "path": "A >  > B"}], 0, "empty step"),
    ([{"add": "a", "path": 7}], 0, "no path"),
    ([{"add": "a", "near": "nobody"}], 0, "no document"),
    ([{"add": "a", "near": "a"}], 0, "near itself"),
    ([{"add": "a", "near": ["owl"]}], 0, "strings"),
    ([{"add": 5, "path": "A"}], 0, "strings"),
    ([{"add": "", "path": "A"}], 0, "empty"),
    ([{"add": "a", "vector": [1]}], 0, "no vectors"),
    ([{"add": "a", "path": "A", "title": 5}], 0, '"title" must be a string'),
    ([{"add": "a", "path": "A", "titel": "A"}], 0, "titel"),
    ([{"change": "owl"}], 0, "nothing of it is changed"),
    ([{"remove": "owl", "change": "owl"}], 0, "one of"),
    (["remove"], 0, "must be an object"),
    ([{"category": "Nowhere", "to": "A"}], 0, "no such category"),
    ([{"category": "Animals"}], 0, "where the category goes"),
    ([{"category": "Animals", "to": "Plants"}], 0, "already"),
    ([{"category": "Animals", "to": "Animals > Birds > Animals"}], 0, "within it"),
    ([{"remove": "nobody"}, {"add": 5}], 0, "no document"),
    ([{"remove": name} for name in PATHS], 3, "last document"),
]


@pytest.mark.parametrize(("changes", "at", "says"), WRONG, ids=[says for _, _, says in WRONG])
def test_what_is_refused_is_named(changes: list[Any], at: int, says: str) -> None:
    with pytest.raises(ChangeError, match=f"^Change {at}.*{says}") as refusal:
        shop().placed(changes)
    assert refusal.value.change == at


def test_changes_of_another_edition_are_refused() -> None:
    edition = shop()
    placed = edition.placed([{"add": "a", "path": "A"}])
    with pytest.raises(ChangeError, match="another version"):
        edition.changed(placed).changed(placed)


def test_a_tree_made_anew_holds_what_the_old_one_held() -> None:
    rng = np.random.default_rng(3)
    edition = CollectionVersion.first(
        Collection.from_vectors(rng.normal(size=(200, 8)), ids=[f"d{i}" for i in range(200)])
    )
    grown = after(edition, *({"add": f"n{i}", "vector": rng.normal(size=8).tolist()} for i in range(100)))
    grown = after(grown, *({"remove": f"d{i}"} for i in range(0, 200, 3)))
    remade = grown.remade(seed=5)
    assert sorted(remade.documents.tolist()) == sorted(grown.documents.tolist())
    assert_same(remade, saved(remade))
    move = grown.remap_to(remade)
    old, new = grown.collection.tree, remade.collection.tree
    for node in range(old.nodes):
        below, held = set(old.below(node)), set(new.below(int(move.node[node])))
        assert below <= held
        smaller = [set(new.below(child)) for child in new.children(int(move.node[node]))]
        assert node == 0 or not any(below <= part for part in smaller)
    assert [new.documents[p] for p in move.document] == list(old.documents)
    for document in new.documents:
        assert remade.nodes[new.leaf(document)] == grown.nodes[old.leaf(document)]
    later = after(remade, {"remove": "d1"}, {"add": "d1", "near": "d2"})
    assert edition.remap_to(later).document[edition.collection.tree.documents.position("d1")] == -1
    with pytest.raises(ParameterError, match="rebuild"):
        CollectionVersion.first(Collection.from_distances([[0, 1], [1, 0]])).remade()


def test_a_taxonomy_made_anew_has_the_widths_of_its_depths() -> None:
    moved = after(shop(), {"category": "Animals > Birds", "to": "A > B > C > D > Birds"}, {"add": "x", "path": "Y > Z"})
    remade = moved.remade()
    fresh = Collection.from_taxonomy({name: category(moved, name) for name in moved.collection.tree.documents})
    for one in remade.collection.tree.documents:
        for other in remade.collection.tree.documents:
            assert remade.collection.tree.distance(one, other) == pytest.approx(fresh.tree.distance(one, other))
    assert moved.remap_to(remade).stays.all()


def test_crowds_are_noticed() -> None:
    rng = np.random.default_rng(1)
    edition = CollectionVersion.first(
        Collection.from_vectors(rng.normal(size=(100, 4)), ids=[f"d{i}" for i in range(100)])
    )
    few = after(edition, *({"add": f"n{i}", "near": "d5"} for i in range(31)))
    many = after(few, {"add": "one more", "near": "d5"})
    assert few.crowded() == []
    (crowd,) = many.crowded()
    assert crowd.added == 32
    assert crowd.node == tree_parent(many, "d5")
    assert "32 of the" in crowd.says
    assert many.remade().crowded() == []
    grown = after(shop(), *({"add": f"n{i}", "path": "Animals > Fish"} for i in range(40)))
    assert [(crowd.name, crowd.documents, crowd.added) for crowd in grown.crowded()] == [("Animals > Fish", 41, 40)]
    assert "had 1 documents" in grown.crowded()[0].says
    fresh = after(shop(), *({"add": f"n{i}", "path": "New"} for i in range(40)))
    assert "New" not in [crowd.name for crowd in fresh.crowded()]


def test_files_of_editions() -> None:
    edition = shop()
    file = io.BytesIO()
    write_version(edition, file)
    assert_same(load_version(file), edition)
    broken = CollectionVersion(
        edition.collection, edition.documents, edition.nodes, edition.heirs[:-1], edition.gone, edition.marks, 0.5
    )
    file = io.BytesIO()
    write_version(broken, file)
    with pytest.raises(FileFormatError, match="numbers"):
        load_version(file)


def test_a_plain_collection_is_a_first_edition(tmp_path: Any) -> None:
    edition = shop()
    edition.collection.save(tmp_path / "shop")
    assert_same(load_version(tmp_path / "shop"), edition)
