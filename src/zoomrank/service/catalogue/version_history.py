"""`VersionHistory`: the versions of a collection's tree. The newest is served; earlier ones are rebuilt when needed.

Every change of a collection is one row in the store, a *revision*. Most revisions change the tree, and so begin another
*version*: learners move there before they rank next. A revision that changes metadata alone (titles, urls, texts)
belongs to the version before it: its tree, its numbers and its learners stay. A version has the number of the revision
that began it, and that number is what learners are stored with. Stores written before this distinction have learners
that moved to revisions of metadata: those stand for their version, and such a move maps everything to itself.

A learner that has not been asked for a while is restored in the version where it was and moves on from there, as its
log says. So earlier versions are needed now and then: each is the newest stored file before it, and the changes since.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple
from weakref import WeakValueDictionary

from zoomrank.documents.collection_file import load_version
from zoomrank.documents.versions import CollectionVersion, is_metadata, unpack_changes
from zoomrank.service.catalogue.served_version import ServedVersion
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.errors import NotFoundError, StorageError
from zoomrank.service.storage.store_reader import StoredCollection, StoreReader
from zoomrank.spaces.document_tree import Remap

# Temporary files for uploads, results being built, and mapped collections. Without a name no other process can delete,
# truncate or alter such a file; truncating a mapped file would crash this process. The system removes it when the
# process ends, however it ends.

_PIECE = 2**20
_HAS_THEM = os.name == "posix"  # elsewhere an open file cannot be unlinked


def temp_file(folder: Path) -> IO[bytes]:
    """Return an anonymous file for reading and writing; an in-memory one where the system has none."""
    if not _HAS_THEM:
        return io.BytesIO()
    folder.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryFile(dir=folder)


def filled(file: IO[bytes], pieces: Iterable[bytes]) -> str:
    """Write chunks to a file; return their SHA-256."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        file.write(piece)
    file.flush()
    return digest.hexdigest()


def chunks_of(file: IO[bytes], size: int = _PIECE) -> Iterator[bytes]:
    """Yield the content of a file from its start, chunk by chunk."""
    file.seek(0)
    while piece := file.read(size):
        yield piece


def digest_of(file: IO[bytes]) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    for piece in chunks_of(file):
        digest.update(piece)
    return digest.hexdigest()


_NODE_BYTES = 200  # bytes, roughly, of a version
_BUDGET = 2**28  # bytes of earlier versions that stay in memory though no learner is in them
_REMAP_BYTES = 2**27  # bytes of remaps between versions, roughly


class Revision(NamedTuple):
    """A collection after one of its changes."""

    number: int
    version: int  # the revision that began its tree
    catalogue: CollectionVersion


class StoredRevisions:
    """The revisions of a collection that a store has."""

    def __init__(self, store: StoreReader, stored: StoredCollection, folder: Path) -> None:
        self._store = store
        self._stored = stored
        self._folder = folder  # for copies of files, which are mapped
        self._versions: dict[int, int] = {}  # of revisions that were looked up

    @property
    def last(self) -> int:
        """The number of the newest revision."""
        return self._store.last_version(self._stored.documents)

    def version_of(self, revision: int) -> int:
        """Return the version that a revision belongs to: the last one up to it that changed the tree."""
        version, passed = revision, []
        while version not in self._versions and version > 0 and self._is_metadata(version):
            passed.append(version)
            version -= 1
        version = self._versions.get(version, version)
        self._versions.update(dict.fromkeys((*passed, revision), version))
        return version

    def _is_metadata(self, revision: int) -> bool:
        rows = list(self._store.changes(self._stored.documents, revision - 1, revision))
        return bool(rows) and rows[0].changes is not None and is_metadata(unpack_changes(rows[0].changes))

    def changes(self, after: int, last: int) -> list[dict[str, Any]] | None:
        """Return the changes after a revision, up to another; None if one of these was stored as a file alone."""
        changes: list[dict[str, Any]] = []
        for row in self._store.changes(self._stored.documents, after, last):
            if row.changes is None or row.number != after + 1:
                return None
            changes += unpack_changes(row.changes)
            after = row.number
        return changes if after == last else None

    def catalogue_at(self, number: int, begin: Revision | None = None) -> CollectionVersion:
        """Rebuild a revision from an earlier one, or from the newest stored file before it, whichever is later."""
        whole = self._store.whole_version(self._stored.documents, number)
        if begin is None or (whole is not None and whole.number > begin.number):
            if whole is None:
                raise self._damaged()
            at, catalogue = whole.number, self._read(whole.number, whole.digest or "")
        else:
            at, catalogue = begin.number, begin.catalogue
        changes = self.changes(at, number)
        if changes is None:
            raise self._damaged()
        return catalogue.changed(changes)

    def _read(self, number: int, digest: str) -> CollectionVersion:
        """Load a stored file, mapped from a copy of it that only this process has."""
        try:
            with temp_file(self._folder) as file:
                if filled(file, self._store.content(self._stored.documents, number)) == digest:
                    return load_version(file)
        except OSError as error:
            raise StorageError(
                f"The collection “{self._stored.name}” cannot be copied to {self._folder}: {error}."
            ) from error
        raise self._damaged()

    def _damaged(self) -> StorageError:
        return StorageError(
            f"The collection “{self._stored.name}” is damaged in the store: its content differs from what was written. "
            "Look with “zoomrank verify”, and go back to a backup with “zoomrank restore”."
        )


class VersionHistory:
    """Versions of one collection, by their numbers; any thread may ask for one, and for the remap between two."""

    def __init__(self, newest: ServedVersion, source: StoredRevisions | VersionHistory | None = None) -> None:
        self.newest = newest
        self._source = source  # None: there never was another one
        self._finding, self._moving = threading.Lock(), threading.Lock()
        self._known: WeakValueDictionary[int, ServedVersion] = WeakValueDictionary()
        self._kept: OrderedDict[int, ServedVersion] = OrderedDict()  # the one that was asked for last at the end
        self._remaps: OrderedDict[tuple[int, int], Remap] = OrderedDict()
        self._known[newest.number] = newest

    @classmethod
    def kept(
        cls,
        store: StoreReader,
        stored: StoredCollection,
        settings: Settings,
        folder: Path,
        first: CollectionVersion | None = None,
    ) -> VersionHistory:
        """Return the history of a stored collection, or (with its first edition) of one that is about to be stored."""
        source = StoredRevisions(store, stored, folder)
        if first is not None:
            return cls(ServedVersion(0, first, settings), source)
        last = source.last
        newest = ServedVersion(source.version_of(last), source.catalogue_at(last), settings, last)
        return cls(newest, source)

    def for_arm(self, settings: Settings) -> VersionHistory:
        """Return the same versions for learners with other settings; a newer one has to be served in both."""
        newest = self.newest
        return VersionHistory(ServedVersion(newest.number, newest.catalogue, settings, newest.revision), self)

    def go_on(self, version: ServedVersion) -> None:
        """Serve a newer version."""
        self._known[version.number] = version
        self.newest = version

    def newer(self) -> Revision | None:
        """Return the newest revision in the store, if it is not the one that is served.

        Another replica may have written it, or a write here that seemed to fail succeeded after all.
        """
        assert isinstance(self._source, StoredRevisions)  # noqa: S101  (arms follow their collection)
        newest, last = self.newest, self._source.last
        if last == newest.revision:
            return None
        changes = self._source.changes(newest.revision, last)
        if changes is not None and is_metadata(changes):
            return Revision(last, newest.number, newest.catalogue.changed(changes))
        begin = Revision(newest.revision, newest.number, newest.catalogue)
        return Revision(last, self._source.version_of(last), self._source.catalogue_at(last, begin))

    def version_of(self, revision: int) -> int:
        """Return the number of the version that a revision belongs to."""
        newest = self.newest
        if newest.number <= revision <= newest.revision:
            return newest.number
        return revision if self._source is None else self._source.version_of(revision)

    def at(self, revision: int) -> ServedVersion:
        """Return the version that a revision belongs to; one that is not in memory is rebuilt."""
        number = self.version_of(revision)
        if number == self.newest.number:
            return self.newest
        with self._finding:
            found = self._known.get(number)
            if found is None:
                if self._source is None:
                    raise NotFoundError(f"There is no version {number} of this collection.")
                catalogue = self._source.catalogue_at(number, self._before(number))
                found = self._known[number] = ServedVersion(number, catalogue, self.newest.settings)
            self._keep(found)
            return found

    def catalogue_at(self, number: int, begin: Revision | None = None) -> CollectionVersion:  # noqa: ARG002
        """Return a version's documents, for the arms of experiments."""
        return self.at(number).catalogue

    def _before(self, number: int) -> Revision | None:
        """Return the newest version in memory before one."""
        near = max((known for known in list(self._known) if known < number), default=None)
        found = None if near is None else self._known.get(near)
        return None if found is None else Revision(found.revision, found.number, found.catalogue)

    def _keep(self, found: ServedVersion) -> None:
        self._kept[found.number] = found
        self._kept.move_to_end(found.number)
        size = sum(_NODE_BYTES * kept.tree.nodes for kept in self._kept.values())
        while size > _BUDGET and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            size -= _NODE_BYTES * gone.tree.nodes

    def remap(self, before: ServedVersion, after: ServedVersion) -> Remap:
        """Return where everything of one version stands in a later one."""
        key = (before.number, after.number)
        found = self._remaps.get(key)
        if found is None:
            found = before.catalogue.remap_to(after.catalogue)  # which takes long: others need not wait for it
            with self._moving:
                self._remaps[key] = found
                while len(self._remaps) > 1 and sum(map(_size, self._remaps.values())) > _REMAP_BYTES:
                    self._remaps.popitem(last=False)
        return found


def _size(remap: Remap) -> int:
    return sum(array.nbytes for array in remap)
