"""Catalogue of the trees, visitors and rankers that recipes can name.

Names that are not in the catalogue are imported: `my_module:MyRanker` is called as `MyRanker(tree, slots, seed=...)`,
and `my_module:MyUsers` as `MyUsers(tree, seed=...)`, followed by the recipe's parameters.

Worlds made from the user's own judgments are stored beside the rows. A topic is a tree of candidate documents and a
table of the kinds of visitors who find each of them relevant. The name of a stored file contains a fingerprint of its
content, so rows of other data are never mistaken for these. A setting may name the file relative to the folder of
results, `worlds/…`; `with_absolute_paths` resolves that, so that any process can carry out the run.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from zoomrank.errors import CatalogueError, ParameterError, ResultsError, SlotsError, SourceError, TaxonomyError
from zoomrank.files import atomic_file
from zoomrank.lab.recipes import Recipe, Setting
from zoomrank.lab.simulator import Ranker
from zoomrank.rankers import FixedRanking, registry
from zoomrank.spaces import DocumentId, DocumentIds, DocumentTree
from zoomrank.spaces.tree_shape import shape_from_breadth_first
from zoomrank.users import (
    Mixture,
    RelevanceTable,
    UserDistribution,
    chinese_restaurant,
    decoy,
    intents,
    needles,
    random_peaks,
    scattered,
    three_documents,
    twins,
    two_peaks,
)

Make = Callable[..., Any]


def _three_documents(tree: DocumentTree, *, seed: Any) -> UserDistribution:  # noqa: ARG001  (there is only one)
    return three_documents()[1]


def _scaled(tree: DocumentTree, rng: np.random.Generator, *, factor: float) -> DocumentTree:  # noqa: ARG001
    return tree.with_width(tree.width * factor)


def _shuffled(tree: DocumentTree, rng: np.random.Generator, *, share: float) -> DocumentTree:
    """Move a part of the documents to each other's places."""
    ids = list(tree.documents)
    moved = rng.permutation(len(ids))[: round(share * len(ids))]
    for place, other in zip(moved, np.roll(moved, 1), strict=True):
        ids[place] = tree.documents[other]
    return tree.with_documents(ids)


def _uneven(seed: int = 0, most: int = 14_000) -> DocumentTree:
    """Make a wide and uneven tree, as taxonomies are: up to 40 children per node, branches that end early, 7 levels."""
    rng = np.random.default_rng(seed)
    parents, level = [-1], [0]
    for depth in range(7):
        below: list[int] = []
        for node in level:
            if len(parents) < most and (depth < 2 or rng.random() < 0.6):
                fan = min(40, 1 + int(rng.geometric(0.15)))
                below.extend(range(len(parents), len(parents) + fan))
                parents.extend([node] * fan)
        level = below
    return DocumentTree.from_parents(parents)


def _hundred() -> DocumentTree:
    """Make a small collection: ten topics of ten documents."""
    return DocumentTree.exponential(depth=2, branching=10, epsilon=0.6)


def _regular(branching: Sequence[int]) -> DocumentTree:
    """Make a regular tree: (20, 10, 10) are 20 categories of 10 categories of 10 documents."""
    parents, level = [-1], [0]
    for fan in branching:
        parents += [node for node in level for _ in range(fan)]
        level = list(range(len(parents) - len(level) * fan, len(parents)))
    return DocumentTree.from_parents(parents)


def _taxonomy(file: str) -> DocumentTree:
    """Read the tree of a taxonomy file, such as one with a path "Animals > Birds" in each line."""
    from zoomrank.documents import Collection  # imported late: only this function needs it

    try:
        return Collection.from_taxonomy(file, categories="skip").tree
    except SourceError as error:
        raise TaxonomyError(f"The taxonomy {file} cannot be read: {error}") from error


TREES: Mapping[str, Make] = {
    "exponential": DocumentTree.exponential,
    "uneven": _uneven,
    "hundred": _hundred,
    "regular": _regular,
    "taxonomy": _taxonomy,
    "three-documents": lambda: three_documents()[0],
}
USERS: Mapping[str, Make] = {
    "two-peaks": two_peaks,
    "chinese-restaurant": chinese_restaurant,
    "peaks": random_peaks,
    "decoy": decoy,
    "twins": twins,
    "intents": intents,
    "scattered": scattered,
    "needles": needles,
    "three-documents": _three_documents,
}
BELIEFS: Mapping[str, Make] = {"scaled": _scaled, "shuffled": _shuffled}
RANKERS: Mapping[str, Make] = registry.RANKERS
WORLDS = "worlds"  # folder of stored worlds in a folder of results
GREEDY = "Greedy"  # knows the visitors, so it is not made like the other rankers


def world(setting: Setting) -> tuple[DocumentTree, UserDistribution]:
    """Return the documents and the visitors of an instance. Those of the catalogue are cached, imported ones may
    change.
    """
    make = _known_users if setting.users.name in USERS else _users
    return _tree(setting.tree), make(setting.tree, setting.users, setting.instance, setting.seed)


def _users(tree: Recipe, users: Recipe, instance: int, seed: int) -> UserDistribution:
    made: UserDistribution = _lookup(USERS, users, "users")(_tree(tree), seed=_stream(seed, instance, 0), **users.given)
    return made


_known_users = lru_cache(maxsize=4)(_users)


@lru_cache(maxsize=4)
def _tree(tree: Recipe) -> DocumentTree:
    return _lookup(TREES, tree, "trees")(**tree.given)  # type: ignore[no-any-return]


def believed(setting: Setting) -> tuple[DocumentTree, UserDistribution]:
    """Return the tree that the ranker is given, and the visitors with documents in its order."""
    tree, users = world(setting)
    if setting.belief is None:
        return tree, users
    make = _lookup(BELIEFS, setting.belief, "beliefs")
    other = make(tree, _stream(setting.seed, setting.instance, 3), **setting.belief.given)
    if other.documents is tree.documents:
        return other, users
    if isinstance(users, Mixture):
        return other, Mixture(users.components, users.shares, documents=other.documents)
    return other, Mixture([users], [1.0], documents=other.documents)


def ranker(setting: Setting, tree: DocumentTree, users: UserDistribution) -> Ranker:
    """Make the ranker of a run."""
    if setting.ranker.name == GREEDY:
        return FixedRanking(tree, users.greedy(setting.slots).documents)
    make = _lookup(RANKERS, setting.ranker, "rankers")
    given = setting.ranker.given
    if getattr(make, "meets_others", False):  # it first meets visitors of other queries, drawn from this stream
        given["world"] = _stream(setting.seed, setting.instance, 0)
    made: Ranker = make(tree, setting.slots, seed=_stream(setting.seed, setting.instance, 2), **given)
    return made


def visitors(setting: Setting) -> np.random.Generator:
    """Return the generator of the visitors: the same visitors in the same order for every curve of an instance."""
    return _stream(setting.seed, setting.instance, 1)


def _stream(seed: int, instance: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng([seed, instance, purpose])


def _lookup(known: Mapping[str, Make], wanted: Recipe, kind: str) -> Make:
    if wanted.name in known:
        return _with_good_errors(known[wanted.name], wanted)
    module, _, name = wanted.name.partition(":")
    if not name:
        names = ", ".join(sorted([*known, GREEDY] if kind == "rankers" else known))
        raise CatalogueError(
            f"Unknown {kind}: {wanted.name!r}; the catalogue has {names}. Name your own as module:Name."
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python` itself does, so that modules in the current folder are found
    try:
        found: Make = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise CatalogueError(f"{wanted.name!r} cannot be imported: {error}.") from error
    return _with_good_errors(found, wanted)


def _with_good_errors(make: Make, wanted: Recipe) -> Make:
    def careful(*arguments: Any, **parameters: Any) -> Any:
        try:
            return make(*arguments, **parameters)
        except TypeError as error:
            raise ParameterError(f"{wanted} cannot be made: {error}.") from error

    careful.meets_others = getattr(make, "meets_others", False)  # type: ignore[attr-defined]
    return careful


@dataclass(frozen=True)
class JudgedTopic:
    """Candidate documents, and the kinds of visitors who find each of them relevant."""

    name: str
    tree: DocumentTree
    users: RelevanceTable
    order: tuple[DocumentId, ...] | None = None  # in which a search engine had them, to compare with


def require_slots(topic: JudgedTopic, slots: int) -> None:
    """Raise an error for a topic that has fewer candidates than a ranking has slots."""
    if slots > len(topic.tree):
        raise SlotsError(
            f"The topic {topic.name!r} has {len(topic.tree)} candidate documents, too few for {slots} slots: "
            "leave it out, or ask for fewer slots."
        )
    if topic.order is not None and slots > len(topic.order):
        raise SlotsError(
            f"The order of the search engine has {len(topic.order)} candidates of the topic {topic.name!r}, too few "
            f"for {slots} slots: add some, or ask for fewer slots."
        )


def store_topic(topic: JudgedTopic, path: Path) -> None:
    """Write the file of a topic, unless it exists."""
    if path.exists():  # the name contains the fingerprint, so the content is the same
        return
    shape, state = topic.tree.shape, topic.users.state
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        np.savez_compressed(
            file,
            ids=np.array(json.dumps(_plain_ids(topic.tree.documents))),
            parent=shape.parent,
            child_start=shape.child_start,
            width=topic.tree.width,
            starts=state.row_start,
            columns=state.relevant,
            weights=topic.users.weights,
        )


def topic_file(topic: JudgedTopic, folder: str | Path) -> Path:
    """Return the path of a stored topic in a folder of results; its name contains the fingerprint."""
    digest = hashlib.sha256(topic.tree.fingerprint.encode())
    digest.update(json.dumps(_plain_ids(topic.tree.documents)).encode())
    for array in (topic.users.state.row_start, topic.users.state.relevant, topic.users.weights):
        digest.update(array.tobytes())
    return Path(folder) / WORLDS / f"{quote(topic.name, safe='')}-{digest.hexdigest()[:12]}.npz"


def _plain_ids(documents: DocumentIds) -> list[DocumentId]:
    ids = list(documents)
    odd = next((name for name in ids if not isinstance(name, str | int)), None)
    if odd is not None:
        raise ParameterError(f"The document {odd!r} cannot be stored: its id must be a text or a whole number.")
    return ids


@lru_cache(maxsize=4)
def load_world(file: str) -> tuple[DocumentTree, RelevanceTable]:
    """Read the candidates of a topic and its visitors."""
    try:
        with np.load(file, allow_pickle=False) as kept:
            ids = json.loads(str(kept["ids"]))
            shape = shape_from_breadth_first(kept["parent"], kept["child_start"])
            tree = DocumentTree(shape, kept["width"], DocumentIds(len(ids), ids))
            starts, columns, weights = kept["starts"], kept["columns"], kept["weights"]
    except (OSError, KeyError, ValueError) as error:
        raise ResultsError(f"The world {file} cannot be read: {error}. Run it again in another folder.") from error
    rows = [tree.documents.at(columns[start:end]) for start, end in pairwise(starts)]
    return tree, RelevanceTable(tree, rows, weights)


def kept_tree(file: str) -> DocumentTree:
    """Return the candidates of a topic."""
    return load_world(file)[0]


def kept_users(tree: DocumentTree, seed: Any = None, *, file: str) -> RelevanceTable:  # noqa: ARG001  (always the same)
    """Return the visitors of a topic."""
    return load_world(file)[1]


def world_of_setting(setting: Setting, folder: Path) -> tuple[DocumentTree, RelevanceTable]:
    """Return the world of a run, from the folder that the rows are in now."""
    return load_world(str(folder / WORLDS / Path(setting.tree.given["file"]).name))


def with_absolute_paths(setting: Setting, folder: Path) -> Setting:
    """Return the setting with absolute paths to the files of its world, for the process that carries it out."""
    return replace(setting, tree=_located(setting.tree, folder), users=_located(setting.users, folder))


def _located(what: Recipe, folder: Path) -> Recipe:
    file = what.given.get("file")
    if not isinstance(file, str) or not file.startswith(f"{WORLDS}/"):
        return what
    there = str(folder.resolve() / file)
    return replace(what, parameters=tuple((name, there if name == "file" else v) for name, v in what.parameters))
