"""Routes of collections: create and list them, list and search their documents, and change these."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import IO, Annotated, Any, Literal

from fastapi import FastAPI, Path, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic_core import to_json
from starlette.requests import ClientDisconnect

from zoomrank import wire
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.catalogue.served_version import ServedVersion
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.engine import Engine
from zoomrank.service.errors import MalformedError, ServiceError, UnprocessableError
from zoomrank.service.http import page_data, schema
from zoomrank.service.http.builder import LINES, ChangePart, CollectionBuilder, changes_in, documents_in, is_lines
from zoomrank.service.http.fast_path import CHANGES, COLLECTIONS, NEW_DOCUMENTS, validated
from zoomrank.service.http.routes import (
    ANY_DOCUMENT,
    CollectionName,
    DocumentText,
    Limit,
    Offset,
    Search,
    refusals,
)

_A_FILE = {"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {}}}}}


def streamed(receive: Callable[[Request], Coroutine[Any, Any, Response]]) -> type[APIRoute]:
    """Return a kind of route that is documented with its body, but whose handler reads it off the event loop."""

    class Streamed(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            return receive

    return Streamed


def add_collections(api: FastAPI, engine: Engine, builder: CollectionBuilder) -> None:
    """Add the routes."""
    made: dict[str, Any] = {"status_code": 201, "response_model": schema.CollectionResponse, "responses": refusals(409)}

    async def kept(name: str, file: IO[bytes], settings: Settings) -> ServedCollection:
        try:
            return await engine.collections.add(name, lambda: file, settings)
        except ServiceError:  # perhaps before work on it began
            file.close()
            raise

    async def receive(request: Request) -> Response:
        with await sent(request, builder) as body:
            new, file = await builder.make(body)
        content = to_json(page_data.about(engine, await kept(new.name, file, new.settings)))
        return Response(content, 201, media_type="application/json")

    async def create(asked: schema.NewCollection) -> Any:
        """Make a collection of documents that are sent with their paths, vectors or texts."""

    api.router.add_api_route(COLLECTIONS.path, create, methods=["POST"], route_class_override=streamed(receive), **made)

    @api.put(wire.COLLECTION, **made, openapi_extra=_A_FILE)
    async def upload(request: Request, name: Annotated[schema.CollectionName, Path()], settings: str = "{}") -> Any:
        """Make a collection of a file that `Collection.save` wrote; settings are JSON."""
        chosen = validated(Settings, settings, "settings")
        engine.collections.check_free(name)
        return page_data.about(engine, await kept(name, await sent(request, builder), chosen))

    @api.get(COLLECTIONS.path, response_model=schema.CollectionsResponse)
    async def collections() -> Any:
        """All collections."""
        return {"collections": [page_data.about(engine, one) for one in engine.collections.by_name.values()]}

    @api.get(wire.COLLECTION, response_model=schema.CollectionResponse)
    async def collection(name: CollectionName) -> Any:
        """One collection."""
        return page_data.about(engine, engine.collections.find(name))


async def sent(request: Request, builder: CollectionBuilder) -> IO[bytes]:
    """Return the body of a request in a file."""
    try:
        return await builder.received(request.stream())
    except ClientDisconnect:
        raise ServiceError("The body has ended before all of it was here.") from None


# Routes that list, search and describe documents of a collection.


def add_documents(api: FastAPI, engine: Engine) -> None:
    """Add the routes."""
    find = engine.collections.find

    @api.get(wire.DOCUMENTS, response_model=wire.DocumentsResponse)
    async def documents(name: CollectionName, offset: Offset = 0, limit: Limit = 100, search: Search = "") -> Any:
        """Documents in the order of the tree, so that neighbours are alike: all, or those that have some letters in
        their title, id or address, in whatever case.
        """
        return await asyncio.to_thread(page_data.documents, find(name), offset, limit, search)

    @api.get(ANY_DOCUMENT, response_model=wire.DocumentInfo)
    async def document(name: CollectionName, document: DocumentText) -> Any:
        """One document, and in which queries it stands."""
        return await page_data.document(engine, find(name), document)


# Routes that add, change, move and remove documents, one at a time or many, and remove collections.

Unknown = Annotated[Literal["refuse", "skip"], Query()]
There = Annotated[Literal["refuse", "change"], Query()]
_LINES_TOO = {"requestBody": {"content": {LINES: {"schema": {"type": "string"}}}}}
_VERBS = {"add": "added", "put": "put", "change": "changed", "remove": "removed", "category": "categories"}


class _ChangeResponder:
    """Applies changes, and counts them for the response."""

    def __init__(self, engine: Engine, builder: CollectionBuilder) -> None:
        self._engine = engine
        self._builder = builder

    async def change(self, name: str, changes: list[dict[str, Any]], unknown: str = "refuse") -> wire.CollectionChange:
        """Apply changes."""
        version = await self._engine.updates.change(self._engine.collections.find(name), changes, unknown)
        return _told(version, Counter(_verb(one) for one in changes))

    async def change_all(self, name: str, parts: Iterator[ChangePart], unknown: str) -> wire.CollectionChange:
        """Apply all changes of a body, part by part."""
        served = self._engine.collections.find(name)
        told, done, version = Counter[str](), 0, served.version
        while (part := await asyncio.to_thread(next, parts, None)) is not None:
            try:
                version = await self._engine.updates.change(served, part.changes, unknown)
            except ServiceError as error:
                if part.line <= 1:
                    raise
                raise UnprocessableError(
                    f"The first {done:,} changes are made, those from line {part.line:,} on are not: {error}"
                ) from error
            done += len(part.changes)
            told += await asyncio.to_thread(_counted, part)
        return _told(version, told)

    def streamed(self, read: Callable[..., Iterator[ChangePart]], *options: str) -> Any:
        """Return a route class that is documented with its body, but reads it off the event loop."""

        async def receive(request: Request) -> Response:
            said, lines = request.query_params, is_lines(request.headers.get("content-type", ""))
            chosen = [_chosen(said, option) for option in options]
            with await sent(request, self._builder) as body:
                parts = read(body, lines, *chosen)
                told = await self.change_all(request.path_params["name"], parts, _chosen(said, "unknown"))
            return Response(to_json(told), media_type="application/json")

        return streamed(receive)


def add_changes(api: FastAPI, engine: Engine, builder: CollectionBuilder) -> None:
    """Add the routes."""
    teller = _ChangeResponder(engine, builder)
    changed: dict[str, Any] = {"response_model": wire.CollectionChange, "responses": refusals(404, 422)}
    posted: dict[str, Any] = {"methods": ["POST"], "openapi_extra": _LINES_TOO, **changed}

    async def add(asked: schema.DocumentsRequest, name: CollectionName, there: There = "refuse") -> Any:
        """Add documents; with `there=change`, those that are there already are changed. As JSON, or a line for each."""

    async def change(asked: schema.ChangesRequest, name: CollectionName, unknown: Unknown = "refuse") -> Any:
        """Make changes, all of them or none: documents and categories. As JSON, or, some at a time, a line for each."""

    for path, declared, streamed in (
        (NEW_DOCUMENTS.path, add, teller.streamed(documents_in, "there")),
        (CHANGES.path, change, teller.streamed(changes_in)),
    ):
        api.router.add_api_route(path, declared, **posted, route_class_override=streamed)

    def named(name: str, document: str) -> Any:
        served = engine.collections.find(name)
        return served.tree.documents[served.position_of(document)]

    @api.patch(ANY_DOCUMENT, **changed)
    async def patch(asked: schema.DocumentChange, name: CollectionName, document: DocumentText) -> Any:
        """Change the metadata of a document, or where it belongs; it keeps what was learned of it."""
        said = asked.model_dump(exclude_unset=True, exclude_none=True)
        return await teller.change(name, [{"change": named(name, document), **said}])

    @api.delete(ANY_DOCUMENT, **changed)
    async def remove(name: CollectionName, document: DocumentText) -> Any:
        """Remove a document; its category keeps what was learned."""
        return await teller.change(name, [{"remove": named(name, document)}])

    @api.post(wire.REMAKE, **changed)
    async def remake(name: CollectionName, seed: Annotated[int, Query(ge=0, lt=2**31)] = 0) -> Any:
        """Rebuild the tree of a collection; what was learned is carried over document by document."""
        return _told(await engine.updates.remake(engine.collections.find(name), seed), Counter())

    @api.delete(wire.COLLECTION, response_model=wire.RemovedCollection, responses=refusals(404))
    async def remove_collection(name: CollectionName) -> Any:
        """Remove a collection with all that was learned in it."""
        served = engine.collections.find(name)
        if not engine.collections.serves(served):
            raise UnprocessableError("This is an arm of an experiment: remove the experiment.")
        await engine.updates.remove(served)
        return {"name": name, "status": "removed"}


def _chosen(said: Mapping[str, str], option: str) -> str:
    """Return an option of the query string; MalformedError if it has another value."""
    chosen, other = said.get(option, "refuse"), {"there": "change", "unknown": "skip"}[option]
    if chosen not in ("refuse", other):
        raise MalformedError(f"query.{option}: it is “refuse” or “{other}”.")
    return chosen


def _counted(part: ChangePart) -> Counter[str]:
    return Counter(_verb(one) for one in part.changes)


def _verb(change: dict[str, Any]) -> str:
    return next(word for verb, word in _VERBS.items() if verb in change)


def _told(version: ServedVersion, told: Counter[str]) -> wire.CollectionChange:
    return {
        "edition": version.number,
        "documents": len(version.catalogue),
        "added": told["added"] + told["put"],
        "changed": told["changed"],
        "removed": told["removed"],
        "categories": told["categories"],
    }
