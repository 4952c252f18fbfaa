"""Process that builds one collection: JSON in, collection file out, remaining data on its last line.

`CollectionBuilder` starts it for large uploads. Parsing much JSON blocks every thread of a Python process, so the
processes that serve rankings leave it to another.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import IO, Any, NamedTuple

from zoomrank.documents import Collection
from zoomrank.documents.collection_file import write
from zoomrank.errors import ZoomrankError
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.errors import ServiceError, UnprocessableError
from zoomrank.service.http import schema
from zoomrank.service.http.fast_path import validated
from zoomrank.spaces import DocumentId


class UploadedCollection(NamedTuple):
    """An upload without its documents."""

    name: str
    settings: Settings


def make(body: bytes, file: IO[bytes]) -> UploadedCollection:
    """Build the collection file of an upload."""
    asked = validated(schema.NewCollection, body, "body")
    try:
        write(_gathered(asked.documents), file)
    except ServiceError:
        raise
    except ZoomrankError as error:
        raise UnprocessableError(str(error)) from error
    file.flush()
    return UploadedCollection(asked.name, asked.settings)


def _gathered(documents: list[schema.NewDocument]) -> Collection:
    """Build a collection from documents."""
    ids: list[Any] = [one.id for one in documents]
    _check_ids(ids)
    about: dict[str, Any] = {
        "titles": {one.id: one.title for one in documents},
        "urls": {one.id: one.url for one in documents},
    }
    if all(one.path is not None for one in documents):
        return Collection.from_taxonomy({one.id: tuple(one.path or ()) for one in documents}, **about)
    if all(one.vector is not None for one in documents):
        vectors: Any = [one.vector for one in documents]
        if len({len(vector) for vector in vectors}) > 1:
            raise UnprocessableError("The vectors have different lengths: send vectors of one length.")
        return Collection.from_vectors(vectors, ids=ids, **about)
    if all(one.text for one in documents):
        return Collection.from_texts([one.text for one in documents], ids=ids, **about)
    raise UnprocessableError(
        "The documents are placed in different ways: give every document a path, or every document a vector, or "
        "every document a text."
    )


def _check_ids(ids: list[DocumentId]) -> None:
    if len({type(one) for one in ids}) > 1:
        raise UnprocessableError("Some ids are texts and some are numbers: send either all texts or all whole numbers.")
    seen: set[DocumentId] = set()
    for one in ids:
        if one in seen:
            raise UnprocessableError(f"Document {one!r} is there twice: ids must be unique.")
        seen.add(one)


INVALID_UPLOAD = 3  # exit status if the upload is invalid
_WATCH_EVERY = 0.5  # seconds
_POLITE = 10  # niceness: ranking goes first


def main() -> int:
    """Build the collection for the service whose process id is given."""
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    os.nice(_POLITE)
    out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # libraries may print, which must not end up in the collection
    try:
        with os.fdopen(out, "wb") as file:
            made = make(sys.stdin.buffer.read(), file)
    except ServiceError as error:
        _say({"status": error.status, "code": error.code, "message": str(error)})
        return INVALID_UPLOAD
    _say({"name": made.name, "settings": made.settings.model_dump_json()})
    return 0


def _say(what: dict[str, object]) -> None:
    sys.stderr.write("\n" + json.dumps(what) + "\n")


def _end_with(service: int) -> None:
    """Exit when the service is gone, even if it was killed."""
    while os.getppid() == service:
        time.sleep(_WATCH_EVERY)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
