"""Routes that create collections from documents or a file, and list them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import IO, Annotated, Any

from fastapi import FastAPI, Path, Request, Response
from fastapi.routing import APIRoute
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.requests import ClientDisconnect

from zoomrank import wire
from zoomrank.service.engine import Engine
from zoomrank.service.http import page_data, schema
from zoomrank.service.http.error_responses import in_words
from zoomrank.service.http.known_paths import COLLECTIONS
from zoomrank.service.http.maker import CollectionBuilder
from zoomrank.service.http.routes.parameters import CollectionName, refusals
from zoomrank.service.refusals import MalformedError, ServiceError
from zoomrank.service.served_collection import ServedCollection
from zoomrank.service.settings import Settings

_A_FILE = {"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {}}}}}


def add_collections(api: FastAPI, engine: Engine, maker: CollectionBuilder) -> None:
    """Add the routes."""
    made: dict[str, Any] = {
        "status_code": 201,
        "response_model": schema.CollectionResponse,
        "responses": refusals(409),
    }

    async def kept(name: str, file: IO[bytes], settings: Settings) -> ServedCollection:
        try:
            return await engine.collections.add(name, lambda: file, settings)
        except ServiceError:  # perhaps before work on it began
            file.close()
            raise

    async def receive(request: Request) -> Response:
        with await sent(request, maker) as body:
            new, file = await maker.make(body)
        content = to_json(page_data.about(engine, await kept(new.name, file, new.settings)))
        return Response(content, 201, media_type="application/json")

    class Streamed(APIRoute):
        """A route that is documented with its body, but reads it off the event loop."""

        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            return receive

    async def create(asked: schema.NewCollection) -> Any:
        """Make a collection of documents that are sent with their paths, vectors or texts."""

    api.router.add_api_route(COLLECTIONS.path, create, methods=["POST"], route_class_override=Streamed, **made)

    @api.put(wire.COLLECTION, **made, openapi_extra=_A_FILE)
    async def upload(request: Request, name: Annotated[schema.CollectionName, Path()], settings: str = "{}") -> Any:
        """Make a collection of a file that `Collection.save` wrote; settings are JSON."""
        try:
            chosen = Settings.model_validate_json(settings)
        except ValidationError as error:
            raise MalformedError(in_words(error.errors(include_url=False, include_input=False), "settings")) from error
        engine.collections.check_free(name)
        return page_data.about(engine, await kept(name, await sent(request, maker), chosen))

    @api.get(COLLECTIONS.path, response_model=schema.CollectionsResponse)
    async def collections() -> Any:
        """All collections."""
        return {"collections": [page_data.about(engine, one) for one in engine.collections.by_name.values()]}

    @api.get(wire.COLLECTION, response_model=schema.CollectionResponse)
    async def collection(name: CollectionName) -> Any:
        """One collection."""
        return page_data.about(engine, engine.collections.find(name))


async def sent(request: Request, maker: CollectionBuilder) -> IO[bytes]:
    """Return the body of a request in a file."""
    try:
        return await maker.received(request.stream())
    except ClientDisconnect:
        raise ServiceError("The body has ended before all of it was here.") from None
