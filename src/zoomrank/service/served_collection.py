"""`Served`: a collection that is being served, with the one bandit that all its queries share."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from zoomrank.documents import Collection, load_collection
from zoomrank.errors import ZoomrankError
from zoomrank.files import whole_file
from zoomrank.numbers import Array
from zoomrank.rankers import SlotExplanation
from zoomrank.service.refusals import UnusableError
from zoomrank.service.storage.store import StoredCollection
from zoomrank.spaces import DocumentId, Eligible

_DESCRIBED = 10_000  # documents
_REMEMBERED = 64  # sets of eligible documents: pages ask for the same few again and again


class Served:
    """Documents, settings, and how to speak of both."""

    def __init__(self, stored: StoredCollection, collection: Collection) -> None:
        self.stored = stored
        self.id, self.name, self.settings = stored.id, stored.name, stored.settings
        self.collection = collection
        self.tree = collection.tree
        self.bandit = self.settings.bandit(self.tree)
        self._eligible = lru_cache(_REMEMBERED)(self._find_eligible)
        self.document = lru_cache(_DESCRIBED)(self._describe)  # what is shown is mostly what was shown before

    def eligible(self, only: Sequence[DocumentId] | None, excluded: Sequence[DocumentId] | None) -> Eligible | None:
        """The documents that a request allows; None if it allows all."""
        if only is None and not excluded:
            return None
        return self._eligible(None if only is None else tuple(only), tuple(excluded or ()))

    def _find_eligible(self, only: tuple[DocumentId, ...] | None, excluded: tuple[DocumentId, ...]) -> Eligible:
        ids = self.tree.documents
        try:
            allowed = Eligible.everything(ids) if only is None else Eligible.only(ids, only)
            allowed = allowed.without(excluded) if excluded else allowed
        except ZoomrankError as error:
            raise UnusableError(str(error)) from error
        slots = self.settings.slots
        if not self.bandit.restrictable:
            raise UnusableError(f"{self.settings.algorithm} cannot choose among some documents only.")
        if len(allowed) < slots:
            raise UnusableError(f"{slots} slots cannot be filled: only {len(allowed)} documents may be shown.")
        return allowed

    def describe(self, positions: Array) -> list[dict[str, Any]]:
        """Documents as a page shows them; not to be changed, since others are shown the same."""
        return [self.document(position) for position in positions.tolist()]

    def _describe(self, position: int) -> dict[str, Any]:
        titles, urls = self.collection.titles, self.collection.urls
        return {
            "id": self.tree.documents[position],
            "title": titles[position] if titles is not None else "",
            "url": urls[position] if urls is not None else "",
        }

    def path(self, position: int) -> list[str]:
        """The categories of a document, from the root down; empty if they have no names."""
        names, leaf = self.tree.names, int(self.tree.shape.leaf[position])
        if names is None:
            return []
        return [names[up] for up in reversed(list(self.tree.ancestors(leaf))) if up != leaf and names[up]]

    def label(self, node: int) -> str:
        """A short name of a part of the tree."""
        shape = self.tree.shape
        first, end = int(shape.first_document[node]), int(shape.end_document[node])
        if end - first == 1 and int(shape.leaf[first]) == node:
            titles = self.collection.titles
            return (titles[first] if titles is not None else "") or str(self.tree.documents[first])
        if node == 0:
            return self.name
        return self.tree.names[node] if self.tree.names is not None else f"{end - first} documents"

    def why(self, slot: int, reason: SlotExplanation, label: str) -> str:
        """One sentence on why a document is where it is."""
        where = "it" if reason.documents == 1 else f"“{label}” ({reason.documents} documents)"
        told = f"{reason.clicks} of {reason.plays} visitors who looked at {where} in this slot clicked"
        if reason.plays == 0:
            told = f"Nobody has looked at {where} in this slot yet"
        if slot > 0 and reason.cap < reason.index + 1e-9 and reason.cap < 1:
            return f"{told}; it is at most {reason.cap:.2f} away from what stands above, which bounds what it can add."
        if reason.index > reason.mean + 0.1:
            return f"{told}; it may be as good as {min(reason.index, 1):.2f}, so it is worth finding out."
        return f"{told}."


def write_content(folder: Path, digest: str, content: bytes) -> Path:
    """Put the file of a collection where it can be mapped; its name comes from its content alone."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{digest}.zoomrank"
    if not path.exists():
        with whole_file(path) as file:
            file.write(content)
    return path


def read_content(folder: Path, content: bytes) -> tuple[str, Collection]:
    """Check the file of a collection; says its digest."""
    digest = hashlib.sha256(content).hexdigest()
    path = folder / f"{digest}.zoomrank"
    known = path.exists()
    try:
        return digest, load_collection(write_content(folder, digest, content), verify=True)
    except ZoomrankError as error:
        if not known:
            path.unlink(missing_ok=True)
        raise UnusableError(str(error).replace(str(path), "What was sent")) from error
