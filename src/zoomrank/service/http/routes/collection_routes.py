"""Collections: made of documents or of a file, listed, and looked into."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from zoomrank import wire
from zoomrank.documents import Collection
from zoomrank.service.engine import Engine
from zoomrank.service.http import page_data, schema
from zoomrank.service.http.known_paths import COLLECTIONS
from zoomrank.service.http.routes.parameters import CollectionName, Limit, Offset, refusals
from zoomrank.service.refusals import UnusableError
from zoomrank.service.settings import Settings

_A_FILE = {"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {}}}}}


def add_collections(api: FastAPI, engine: Engine) -> None:
    """Add the routes."""
    made: dict[str, Any] = {
        "status_code": 201,
        "response_model": schema.CollectionResponse,
        "responses": refusals(409),
    }

    @api.post(COLLECTIONS.path, **made)
    async def create(asked: schema.NewCollection) -> Any:
        """Make a collection of documents that are sent with their paths, vectors or texts."""
        served = await engine.collections.add(asked.name, lambda: _gathered(asked), asked.settings)
        return page_data.about(engine, served)

    @api.put(wire.COLLECTION, **made, openapi_extra=_A_FILE)
    async def upload(request: Request, name: CollectionName, settings: str = "{}") -> Any:
        """Make a collection of a file that `Collection.save` wrote; settings are JSON."""
        try:
            chosen = Settings.model_validate_json(settings)
        except ValidationError as error:
            raise RequestValidationError(error.errors(include_url=False, include_input=False)) from error
        content = await request.body()
        return page_data.about(engine, await engine.collections.add(name, lambda: content, chosen))

    @api.get(COLLECTIONS.path, response_model=schema.CollectionsResponse)
    async def collections() -> Any:
        """All collections."""
        return {"collections": [page_data.about(engine, one) for one in engine.collections.by_name.values()]}

    @api.get(wire.COLLECTION, response_model=schema.CollectionResponse)
    async def collection(name: CollectionName) -> Any:
        """One collection."""
        return page_data.about(engine, engine.collections.find(name))

    @api.get(wire.DOCUMENTS, response_model=wire.DocumentsResponse)
    async def documents(name: CollectionName, offset: Offset = 0, limit: Limit = 100) -> Any:
        """Documents in the order of the tree, so that neighbours are alike."""
        return page_data.documents(engine.collections.find(name), offset, limit)


def _gathered(asked: schema.NewCollection) -> Collection:
    """The collection of the documents of a request."""
    documents = asked.documents
    ids: list[Any] = [one.id for one in documents]
    about: dict[str, Any] = {
        "titles": {one.id: one.title for one in documents},
        "urls": {one.id: one.url for one in documents},
    }
    if len({type(one) for one in ids}) > 1:
        raise UnusableError("Ids must be all texts or all whole numbers.")
    if len(set(ids)) < len(ids):
        twice = next(one for number, one in enumerate(ids) if one in ids[:number])
        raise UnusableError(f"Document {twice!r} is there twice.")
    if all(one.path is not None for one in documents):
        return Collection.from_taxonomy({one.id: tuple(one.path or ()) for one in documents}, **about)
    if all(one.vector is not None for one in documents):
        vectors: Any = [one.vector for one in documents]
        if len({len(vector) for vector in vectors}) > 1:
            raise UnusableError("The vectors have different lengths.")
        return Collection.from_vectors(vectors, ids=ids, **about)
    if all(one.text for one in documents):
        return Collection.from_texts([one.text for one in documents], ids=ids, **about)
    raise UnusableError("Every document needs a path, or every document a vector, or every document a text.")
