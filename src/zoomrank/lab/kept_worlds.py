"""Worlds made from the user's own files, stored beside the rows.

A topic is a tree of candidate documents and a table of the kinds of visitors who find each of them relevant; a taxonomy
is stored as it came. The name of a stored file contains a fingerprint of its content, so rows of other data are never
mistaken for these. A setting may name the file relative to the folder of results, `worlds/…`; `with_absolute_paths`
resolves that, so that any process can carry out the run.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import numpy as np

from zoomrank.errors import ParameterError, ResultsError, SlotsError, TaxonomyError
from zoomrank.files import atomic_file
from zoomrank.lab.recipes import Recipe, Setting
from zoomrank.spaces import DocumentId, DocumentIds, DocumentTree
from zoomrank.spaces.trees.shape import shape_from_breadth_first
from zoomrank.users import RelevanceTable

_WORLDS = "worlds"


@dataclass(frozen=True)
class JudgedTopic:
    """Candidate documents, and the kinds of visitors who find each of them relevant."""

    name: str
    tree: DocumentTree
    users: RelevanceTable


@dataclass(frozen=True)
class Taxonomy:
    """A file with a path such as "Animals > Birds" in each line, as it was read."""

    name: str
    content: bytes


def read_taxonomy(path: Path) -> Taxonomy:
    """Read a taxonomy file."""
    try:
        return Taxonomy(path.name, path.read_bytes())
    except OSError as error:
        raise TaxonomyError(f"The taxonomy {path} cannot be read: {error}.") from error


def require_slots(topic: JudgedTopic, slots: int) -> None:
    """Raise an error for a topic that has fewer candidates than a ranking has slots."""
    if slots > len(topic.tree):
        raise SlotsError(
            f"The topic {topic.name!r} has {len(topic.tree)} candidate documents, too few for {slots} slots: "
            "leave it out, or ask for fewer slots."
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


def store_taxonomy(taxonomy: Taxonomy, path: Path) -> None:
    """Write the file of a taxonomy, unless it exists."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(taxonomy.content)


def taxonomy_file(taxonomy: Taxonomy) -> str:
    """Return the path of a stored taxonomy, relative to the folder of results; it keeps its name in a folder of its
    own.
    """
    digest = hashlib.sha256(taxonomy.content).hexdigest()[:12]
    return str(PurePosixPath(_WORLDS, digest, taxonomy.name))


def topic_file(topic: JudgedTopic, folder: str | Path) -> Path:
    """Return the path of a stored topic in a folder of results; its name contains the fingerprint."""
    digest = hashlib.sha256(topic.tree.fingerprint.encode())
    digest.update(json.dumps(_plain_ids(topic.tree.documents)).encode())
    for array in (topic.users.state.row_start, topic.users.state.relevant, topic.users.weights):
        digest.update(array.tobytes())
    return Path(folder) / _WORLDS / f"{quote(topic.name, safe='')}-{digest.hexdigest()[:12]}.npz"


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
    return load_world(str(folder / _WORLDS / Path(setting.tree.given["file"]).name))


def with_absolute_paths(setting: Setting, folder: Path) -> Setting:
    """Return the setting with absolute paths to the files of its world, for the process that carries it out."""
    return replace(setting, tree=_located(setting.tree, folder), users=_located(setting.users, folder))


def _located(what: Recipe, folder: Path) -> Recipe:
    file = what.given.get("file")
    if not isinstance(file, str) or not file.startswith(f"{_WORLDS}/"):
        return what
    there = str(folder.resolve() / file)
    return replace(what, parameters=tuple((name, there if name == "file" else v) for name, v in what.parameters))
