"""Placement of changes: each is validated as if those before it had been applied, and given numbers and a parent.

A `_Draft` tracks the effect of the changes so far without building a tree: it has the parent, the number of children
and the width of the nodes that were touched, and takes those of all others from the version. Only where a category
moves, with its whole subtree, an intermediate version is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from zoomrank.documents.change_application import apply_changes, encode_vector
from zoomrank.documents.nearest_documents import Placement, nearest, placement_of
from zoomrank.documents.versions import COLUMNS, CollectionVersion
from zoomrank.errors import ChangeError, TaxonomyError, UnknownDocumentError, ZoomrankError
from zoomrank.spaces.ids import DocumentId
from zoomrank.spaces.tree_shape import TaxonomyPath, steps_of

KINDS = ("add", "change", "remove", "category")
PLACES = ("path", "vector", "near")
_NAMES = ("add", "change", "remove", "near")  # keys whose value is the id of a document
_MAY_SAY = {
    "add": {*COLUMNS, *PLACES},
    "change": {*COLUMNS, *PLACES},
    "remove": set[str](),
    "category": {"to"},
}


def placed(edition: CollectionVersion, changes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the same changes with numbers and parents."""
    asked, searched, refusal = _checked(edition, list(changes))
    leaving = [change["remove"] for change in asked if "remove" in change]
    beside = nearest(edition, searched, leaving)
    draft, since = _Draft(edition, asked), 0
    done: list[dict[str, Any]] = []
    for at, change in enumerate(asked):
        with _NamingChange(at, change):
            done.append(draft.place(change, searched.get(at), beside.get(at)))
        if "category" in change:
            draft, since = _Draft(apply_changes(draft.edition, done[since:]), asked[at + 1 :]), len(done)
    if refusal is not None:
        raise refusal
    return done


def _checked(
    edition: CollectionVersion, asked: list[Mapping[str, Any]]
) -> tuple[list[Mapping[str, Any]], dict[int, Placement], ChangeError | None]:
    """Return the changes up to the first malformed one, those that need a neighbour, and the error.

    An earlier change may still fail for another reason, and the first failure is the one to report.
    """
    searched: dict[int, Placement] = {}
    for at, change in enumerate(asked):
        try:
            with _NamingChange(at, change):
                _check_form(edition, change)
                found = placement_of(edition, change)
        except ChangeError as refusal:
            return asked[:at], searched, refusal
        if found is not None:
            searched[at] = found
    return asked, searched, None


class _NamingChange:
    """Say in every error which change it is about."""

    def __init__(self, at: int, change: Any) -> None:
        self.at, self.change = at, change

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ZoomrankError):
            said = self.change if isinstance(self.change, Mapping) else {}
            what = next((f" ({kind} {said[kind]!r})" for kind in KINDS if kind in said), "")
            raise ChangeError(f"Change {self.at}{what}: {error}", self.at) from error


def _check_form(edition: CollectionVersion, change: Mapping[str, Any]) -> None:
    if not isinstance(change, Mapping):
        raise ChangeError('a change must be an object such as {"add": "owl", "path": "Animals > Birds"}.')
    kinds = [kind for kind in KINDS if kind in change]
    if len(kinds) != 1:
        raise ChangeError('a change has one of "add", "change", "remove" and "category".')
    strange = sorted(set(map(str, change)) - _MAY_SAY[kinds[0]] - {kinds[0]})
    if strange:
        raise ChangeError(f'"{strange[0]}" says nothing in a change with "{kinds[0]}"; leave it out.')
    if kinds[0] == "category":
        if "to" not in change:
            raise ChangeError('say where the category goes: "to", with its new path.')
        return
    _check_id(edition, change[kinds[0]])
    for name in COLUMNS:
        if not isinstance(change.get(name, ""), str):
            raise ChangeError(f'"{name}" must be a string.')
    if len([place for place in PLACES if place in change]) > 1:
        raise ChangeError('a document is placed by one of "path", "vector" and "near", not by two of them.')


def _check_id(edition: CollectionVersion, document: Any) -> None:
    numbers = isinstance(edition.collection.tree.documents[0], int)
    whole = isinstance(document, int) and not isinstance(document, bool)
    if numbers and not (whole and abs(document) < 2**63):
        raise ChangeError(f"the ids of this collection are whole numbers; {document!r} is none.")
    if not numbers and not (isinstance(document, str) and document):
        raise ChangeError(f"the ids of this collection are strings; {document!r} is none, or empty.")


class _Draft:
    """The effect of the changes so far, beside the version that they begin with."""

    def __init__(self, edition: CollectionVersion, asked: Sequence[Mapping[str, Any]]) -> None:
        self.edition, self.tree = edition, edition.collection.geometry
        self.known = _numbers(edition, asked)
        self.documents, self.numbered, self.nodes = len(edition), edition.numbered, len(edition.heirs)
        self.root = int(edition.nodes[0])
        self.added: dict[DocumentId, int] = {}
        self.removed: set[DocumentId] = set()
        self.leaf: dict[int, int] = {}  # of new documents
        self.up: dict[int, int] = {}
        self.fan: dict[int, int] = {}  # number of children
        self.width: dict[int, float] = {}
        self.named: dict[int, dict[str, int]] = {}  # the categories below a category
        self.lost: set[int] = set()  # categories that are dropped
        self.dropped: list[list[int]] = []  # by the current change, with successors
        self.made: list[list[Any]] = []  # by the current change

    def place(self, change: Mapping[str, Any], searched: Placement | None, beside: int | None) -> dict[str, Any]:
        """Place one change, and record its effect."""
        self.dropped, self.made = [], []
        if "add" in change:
            found = self._add(change, searched, beside)
        elif "change" in change:
            found = self._change(change, searched, beside)
        elif "remove" in change:
            found = self._remove(change)
        else:
            found = self._move_category(change)
        if self.made:
            found["made"] = self.made
        if self.dropped:
            found["dropped"] = self.dropped
        return found

    def _add(self, change: Mapping[str, Any], searched: Placement | None, beside: int | None) -> dict[str, Any]:
        document = change["add"]
        if self._number(document) is not None:
            raise ChangeError("there is a document of this id already; change it, or give another id.")
        if self._children(self.root) == 0:
            self._make(-1, "", 1 / self.edition.collection.scale)
        parent = self._home(change, beside, self.root)
        number, node = self.numbered, self.nodes
        self.numbered, self.nodes, self.documents = number + 1, node + 1, self.documents + 1
        self.added[document], self.leaf[number] = number, node
        self.fan[node] = 0
        self._attach(node, parent)
        return {
            "add": document,
            **{name: change[name] for name in COLUMNS if name in change},
            "document": number,
            "node": node,
            "parent": parent,
            **self._vector(change, searched, beside),
        }

    def _change(self, change: Mapping[str, Any], searched: Placement | None, beside: int | None) -> dict[str, Any]:
        number = self._known(change["change"])
        said = {name: change[name] for name in COLUMNS if name in change}
        if not said and not any(place in change for place in PLACES):
            raise ChangeError("nothing of it is changed; say its title, url, text, path, vector or near.")
        found = {"change": change["change"], **said, "document": number}
        if any(place in change for place in PLACES):
            node, before = self._leaf(number), self._parent(self._leaf(number))
            parent = before if node == self.root else self._home(change, beside, before)
            if parent != before:
                self._attach(node, parent)
                self._detach(before)
                found |= {"node": node, "parent": parent}
            if "vector" in change:
                found |= self._vector(change, searched, beside)
        return found

    def _remove(self, change: Mapping[str, Any]) -> dict[str, Any]:
        number = self._known(change["remove"])
        if self.documents == 1:
            raise ChangeError("it is the last document, and a collection needs one; add another one first.")
        node = self._leaf(number)
        parent = self._parent(node)
        self.documents -= 1
        self.added.pop(change["remove"], None)
        self.removed.add(change["remove"])
        self.dropped.append([node, parent])
        self._detach(parent)
        return {"remove": change["remove"], "document": number, "node": node}

    def _move_category(self, change: Mapping[str, Any]) -> dict[str, Any]:
        steps, goal = self._steps(change["category"]), self._steps(change["to"])
        node = self._walk(steps)
        if node is None:
            raise ChangeError("there is no such category.")
        if self._walk(goal) is not None:
            raise ChangeError(f"there is a category {change['to']!r} already; move its documents one by one.")
        if goal[: len(steps)] == steps:
            raise ChangeError(f"{change['to']!r} lies within it.")
        before, width = self._parent(node), self._width(node)
        parent = self._category(goal[:-1])
        found = {"category": change["category"], "to": change["to"], "node": node, "parent": parent, "name": goal[-1]}
        if parent != before:
            found["factor"] = self._new_width(parent) / width if width > 0 else 1.0
            self._attach(node, parent)
            self._detach(before)
        return found

    def _home(self, change: Mapping[str, Any], beside: int | None, before: int) -> int:
        """Return the parent of a document; `before` if it has no neighbour."""
        if "path" in change:
            return self._category(self._steps(change["path"]))
        if "near" in change:
            document = change.get("add", change.get("change"))
            if change["near"] == document:
                raise ChangeError("it cannot be placed near itself.")
            return self._parent(self._leaf(self._known(change["near"])))
        if beside is not None:
            return self._parent(self._leaf(beside))
        return before

    def _vector(self, change: Mapping[str, Any], searched: Placement | None, beside: int | None) -> dict[str, Any]:
        """Return its vector, or the number of the document whose vector it borrows; empty where documents have none."""
        if self.edition.collection.vectors is None:
            return {}
        if searched is not None and searched.vector is not None:
            return {"vector": encode_vector(searched.vector)}
        if "near" in change:
            return {"like": self._known(change["near"])}
        return {"like": int(self.edition.documents[0]) if beside is None else beside}

    def _steps(self, path: TaxonomyPath) -> list[str]:
        if self.tree.names is None:
            raise ChangeError("this collection has no categories with names; say near which document it belongs.")
        if not isinstance(path, str) and not isinstance(path, Sequence):
            raise TaxonomyError(
                f"{path!r} is no path; a path is a string such as 'Animals > Birds', or a list of names."
            )
        return steps_of(path)

    def _walk(self, steps: Sequence[str]) -> int | None:
        """Return the category of a path, if it is there."""
        node: int | None = self.root
        for step in steps:
            node = None if node is None else self._child(node, step)
        return node

    def _category(self, steps: Sequence[str]) -> int:
        """Return the category of a path; missing steps are created."""
        node = self.root
        for step in steps:
            child = self._child(node, step)
            node = self._make(node, step, self._new_width(node)) if child is None else child
        return node

    def _child(self, node: int, name: str) -> int | None:
        """Return the category of this name below a category, if it is there."""
        child = self._below(node).get(name)
        return None if child in self.lost else child

    def _make(self, parent: int, name: str, width: float) -> int:
        node = self.nodes
        self.nodes += 1
        self.made.append([node, parent, name, width])
        self.width[node], self.fan[node], self.named[node] = width, 0, {}
        if parent < 0:
            self._attach(self.root, node)
            self.root = node
        else:
            self._attach(node, parent)
            self._below(parent)[name] = node
        return node

    def _below(self, node: int) -> dict[str, int]:
        """Return the categories below a category, by name."""
        if node not in self.named:
            at, start = int(self.edition.index[node]), self.tree.shape.child_start
            children = np.arange(start[at], start[at + 1])
            inner = children[start[children + 1] > start[children]].tolist() if self.tree.names is not None else []
            names = self.tree.names or []
            self.named[node] = {names[child]: int(self.edition.nodes[child]) for child in inner}
        return self.named[node]

    def _new_width(self, parent: int) -> float:
        return self._width(parent) * self.edition.ratio

    def _width(self, node: int) -> float:
        return self.width[node] if node in self.width else float(self.tree.width[self.edition.index[node]])

    def _parent(self, node: int) -> int:
        if node in self.up:
            return self.up[node]
        return int(self.edition.nodes[self.tree.shape.parent[self.edition.index[node]]])

    def _children(self, node: int) -> int:
        if node in self.fan:
            return self.fan[node]
        at, start = int(self.edition.index[node]), self.tree.shape.child_start
        return int(start[at + 1] - start[at])

    def _attach(self, node: int, parent: int) -> None:
        self.up[node] = parent
        self.fan[parent] = self._children(parent) + 1

    def _detach(self, parent: int) -> None:
        """Take a child from a node. A category without children is dropped: it would look like a document."""
        self.fan[parent] = self._children(parent) - 1
        if self.fan[parent] == 0 and parent != self.root:
            above = self._parent(parent)
            self.dropped.append([parent, above])
            self.lost.add(parent)
            self._detach(above)

    def _leaf(self, number: int) -> int:
        if number in self.leaf:
            return self.leaf[number]
        return int(self.edition.nodes[self.tree.shape.leaf[self.edition.position(number)]])

    def _known(self, document: DocumentId) -> int:
        number = self._number(document)
        if number is None:
            raise UnknownDocumentError(f"there is no document {document!r}.")
        return number

    def _number(self, document: DocumentId) -> int | None:
        """Return the number of a document, if it is there."""
        _check_id(self.edition, document)
        if document in self.added:
            return self.added[document]
        return None if document in self.removed else self.known.get(document)


def _numbers(edition: CollectionVersion, asked: Sequence[Mapping[str, Any]]) -> dict[DocumentId, int]:
    """Return the numbers of all documents that changes name, as far as they are there, looked up at once."""
    named = [change[key] for change in asked for key in _NAMES if key in change]
    places = edition.collection.geometry.documents.places(named)
    numbers = edition.documents[places]
    there = np.flatnonzero(places >= 0).tolist()
    return {named[at]: int(numbers[at]) for at in there}
