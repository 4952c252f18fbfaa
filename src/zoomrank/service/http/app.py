"""The service as an ASGI application: access, the fast path, and the framework with all routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import metadata

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

from zoomrank.service.copies import Copies
from zoomrank.service.engine import Engine
from zoomrank.service.errors import ServiceError
from zoomrank.service.http.access import Access, AllowedOrigins, Keys, LoadMeter
from zoomrank.service.http.builder import CollectionBuilder
from zoomrank.service.http.fast_path import App, FastPath, internal_error_response, malformed_response, refusal
from zoomrank.service.http.metrics import Metrics, Replicas, SingleReplica
from zoomrank.service.http.routes import refusals
from zoomrank.service.http.routes.collections import add_changes, add_collections, add_documents
from zoomrank.service.http.routes.experiments import add_copies, add_experiments
from zoomrank.service.http.routes.learned import add_learned
from zoomrank.service.http.routes.operations import add_operations
from zoomrank.service.http.routes.page_files import add_page_files
from zoomrank.service.http.routes.ranking import add_ranking
from zoomrank.service.http.routes.transfer import add_export, add_imports

LARGEST_BODY = 256 * 2**20


def make_app(
    engine: Engine, keys: Keys | None = None, largest_body: int = LARGEST_BODY, origins: Iterable[str] = ()
) -> App:
    """Return the application of a service that works alone; `origins` are those whose pages may give feedback."""
    keys, load = keys or Keys({}), LoadMeter(engine)
    routes = make_routes(engine, keys, SingleReplica(load))
    return Access(routes, keys, load, largest_body, AllowedOrigins(origins))


def make_routes(engine: Engine, keys: Keys, replicas: Replicas) -> App:
    """Return the application of an engine behind `Access`, which checks requests before they come here."""
    api = FastAPI(
        title="zoomrank",
        version=metadata.version("zoomrank"),
        description="Short, diverse rankings that learn from clicks.",
        responses=refusals(400, 401, 403, 404, 413, 415, 422, 503),
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        redirect_slashes=False,  # what a client made of a path must not become a request for something else
    )
    _add_errors(api)
    fast = add_ranking(api, engine)
    builder = CollectionBuilder(engine.collections.folder)
    engine.collections.when_stopped.append(builder.stop)
    add_collections(api, engine, builder)
    add_changes(api, engine, builder)
    add_documents(api, engine)
    copies = Copies(engine)
    add_copies(api, engine, copies)
    add_learned(api, engine, copies)
    add_experiments(api, engine)
    add_export(api, engine)
    add_imports(api, engine)
    add_operations(api, engine, Metrics(engine, replicas), keys, replicas)
    add_page_files(api)
    return FastPath(api, fast)


def _add_errors(api: FastAPI) -> None:
    def say(status: int, body: Mapping[str, str], headers: Mapping[str, str]) -> Response:
        return JSONResponse(body, status, headers)

    @api.exception_handler(ServiceError)
    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, ServiceError)  # noqa: S101
        return say(*refusal(error))

    @api.exception_handler(RequestValidationError)
    async def not_understood(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101
        return say(*malformed_response(error.errors()))

    @api.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> Response:  # noqa: ARG001  (`Access` logs it)
        return say(*internal_error_response())

    @api.exception_handler(HTTPException)
    async def other(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101
        if isinstance(error.__cause__, ServiceError):  # raised while the body was read
            return say(*refusal(error.__cause__))
        headers = dict(error.headers or {})
        if error.status_code == 405:  # the framework names the methods of one route only
            there = (route for route in api.routes if route.matches(request.scope)[0] is not Match.NONE)
            methods = {method for route in there for method in getattr(route, "methods", ())}
            headers["Allow"] = ", ".join(sorted(methods))
        return say(error.status_code, {"error": "http", "message": str(error.detail)}, headers)
