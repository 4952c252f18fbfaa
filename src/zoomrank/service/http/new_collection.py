"""Uploads of new collections: documents as JSON, validated and built into a collection file."""

from __future__ import annotations

from typing import IO, Any, NamedTuple

from pydantic import ValidationError

from zoomrank.documents import Collection
from zoomrank.documents.collection_file import write
from zoomrank.errors import ZoomrankError
from zoomrank.service.http import schema
from zoomrank.service.http.error_responses import in_words
from zoomrank.service.refusals import MalformedError, ServiceError, UnprocessableError
from zoomrank.service.settings import Settings
from zoomrank.spaces import DocumentId


class UploadedCollection(NamedTuple):
    """An upload without its documents."""

    name: str
    settings: Settings


def make(body: bytes, file: IO[bytes]) -> UploadedCollection:
    """Build the collection file of an upload."""
    try:
        asked = schema.NewCollection.model_validate_json(body)
    except ValidationError as error:
        raise MalformedError(in_words(error.errors(include_url=False, include_input=False), "body")) from error
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
