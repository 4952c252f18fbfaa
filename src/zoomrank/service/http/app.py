"""The service over HTTP: every path, and nothing about how it is done."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from importlib import metadata, resources
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from zoomrank.documents import Collection
from zoomrank.service.engine import Engine
from zoomrank.service.http import page_data as views
from zoomrank.service.http import schema as models
from zoomrank.service.http.access import App, Gate, Keys
from zoomrank.service.http.error_responses import malformed, refusal
from zoomrank.service.http.fast_path import Busy, Route
from zoomrank.service.http.metrics import Metrics
from zoomrank.service.refusals import ServiceError, UnknownError, UnusableError
from zoomrank.service.settings import LONGEST_NAME, LONGEST_QUERY, Settings

LARGEST_BODY = 256 * 2**20
_AT_ONCE = 256  # reports of a batch

CollectionName = Annotated[str, Path(max_length=LONGEST_NAME, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
QueryName = Annotated[str, Query(min_length=1, max_length=LONGEST_QUERY, pattern=r"^[^\x00]*$")]
Seconds = Annotated[int, Query(ge=10, le=90 * 86_400)]
Points = Annotated[int, Query(ge=1, le=1000)]
Offset = Annotated[int, Query(ge=0, le=2**40)]
Limit = Annotated[int, Query(ge=1, le=1000)]

_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": models.ErrorAnswer} for status in (400, 401, 403, 404, 413, 415, 422, 503)
}
_MEDIA = {"html": "text/html; charset=utf-8", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def make_app(engine: Engine, keys: Keys | None = None, largest_body: int = LARGEST_BODY) -> App:
    """The service as an ASGI application."""

    @asynccontextmanager
    async def alive(_: FastAPI) -> AsyncIterator[None]:
        await engine.start()
        yield
        await engine.stop()

    api = FastAPI(
        title="zoomrank",
        version=metadata.version("zoomrank"),
        description="Short, diverse rankings that learn from clicks.",
        lifespan=alive,
        responses=_REFUSALS,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )
    metrics = Metrics(engine)
    _add_errors(api)
    busy = _add_ranking(api, engine)
    _add_collections(api, engine)
    _add_views(api, engine)
    _add_operations(api, engine, metrics)
    _add_page(api)
    return Gate(Busy(api, busy), keys or Keys({}), metrics, largest_body)


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
        return say(*malformed(error.errors()))

    @api.exception_handler(HTTPException)
    async def other(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101
        if isinstance(error.__cause__, ServiceError):  # said while the body was read
            return say(*refusal(error.__cause__))
        headers = dict(error.headers or {})
        if error.status_code == 405:  # the framework names the methods of one route only
            there = (route for route in api.routes if route.matches(request.scope)[0] is not Match.NONE)
            methods = {method for route in there for method in getattr(route, "methods", ())}
            headers["Allow"] = ", ".join(sorted(methods))
        return say(error.status_code, {"error": "http", "message": str(error.detail)}, headers)


def _add_ranking(api: FastAPI, engine: Engine) -> list[Route]:
    async def rank(asked: models.RankRequest, name: CollectionName) -> Any:
        """Choose a ranking for a visitor. Report what became of it with its impression."""
        served = engine.find(name)
        impression, documents = await engine.rank(served, asked.query, asked.slots, asked.eligible, asked.excluded)
        return {"impression": impression, "query": asked.query, "documents": documents}

    async def feedback(asked: models.FeedbackRequest) -> Any:
        """Report the first click on a ranking, or that there was none. The same report may come twice."""
        return {"impression": asked.impression, "status": await engine.feedback(asked.impression, asked.clicked)}

    async def feedback_batch(asked: models.BatchRequest) -> Any:
        """Report many at once; each is taken or refused by itself."""
        results: list[dict[str, Any]] = []
        for start in range(0, len(asked.feedback), _AT_ONCE):  # others are answered in between
            some = asked.feedback[start : start + _AT_ONCE]
            results += await asyncio.gather(*(_told(engine, one) for one in some))
        return {"results": results}

    refusals: dict[int | str, dict[str, Any]] = {409: {"model": models.ErrorAnswer}, 410: {"model": models.ErrorAnswer}}
    api.post("/v1/collections/{name}/rank", response_model=models.RankAnswer)(rank)
    api.post("/v1/feedback", response_model=models.FeedbackAnswer, responses=refusals)(feedback)
    api.post("/v1/feedback/batch", response_model=models.BatchAnswer)(feedback_batch)
    name = rf"(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]{{0,{LONGEST_NAME - 1}}})"
    return [
        Route(re.compile(rf"/v1/collections/{name}/rank"), TypeAdapter(models.RankRequest), rank),
        Route(re.compile(r"/v1/feedback"), TypeAdapter(models.FeedbackRequest), feedback),
        Route(re.compile(r"/v1/feedback/batch"), TypeAdapter(models.BatchRequest), feedback_batch),
    ]


async def _told(engine: Engine, one: models.FeedbackRequest) -> dict[str, Any]:
    try:
        return {"impression": one.impression, "status": await engine.feedback(one.impression, one.clicked)}
    except ServiceError as error:
        return {"impression": one.impression, "error": error.code, "message": str(error)}


def _add_collections(api: FastAPI, engine: Engine) -> None:
    exists: dict[int | str, dict[str, Any]] = {409: {"model": models.ErrorAnswer}}

    @api.post("/v1/collections", status_code=201, response_model=models.CollectionAnswer, responses=exists)
    async def create(asked: models.NewCollection) -> Any:
        """Make a collection of documents that are sent with their paths, vectors or texts."""
        return views.about(engine, await engine.add_collection(asked.name, lambda: _gathered(asked), asked.settings))

    @api.put(
        "/v1/collections/{name}",
        status_code=201,
        response_model=models.CollectionAnswer,
        responses=exists,
        openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {}}}}},
    )
    async def upload(request: Request, name: CollectionName, settings: str = "{}") -> Any:
        """Make a collection of a file that `Collection.save` wrote; settings are JSON."""
        try:
            chosen = Settings.model_validate_json(settings)
        except ValidationError as error:
            raise RequestValidationError(error.errors(include_url=False, include_input=False)) from error
        content = await request.body()
        return views.about(engine, await engine.add_collection(name, lambda: content, chosen))

    @api.get("/v1/collections", response_model=models.CollectionsAnswer)
    async def collections() -> Any:
        """All collections."""
        return {"collections": [views.about(engine, served) for served in engine.served.values()]}

    @api.get("/v1/collections/{name}", response_model=models.CollectionAnswer)
    async def collection(name: CollectionName) -> Any:
        """One collection."""
        return views.about(engine, engine.find(name))

    @api.get("/v1/collections/{name}/documents", response_model=models.DocumentsAnswer)
    async def documents(name: CollectionName, offset: Offset = 0, limit: Limit = 100) -> Any:
        """Documents in the order of the tree, so that neighbours are alike."""
        return views.documents(engine.find(name), offset, limit)


def _gathered(asked: models.NewCollection) -> Collection:
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


def _add_views(api: FastAPI, engine: Engine) -> None:
    @api.get("/v1/collections/{name}/queries", response_model=models.QueriesAnswer)
    async def queries(name: CollectionName, offset: Offset = 0, limit: Limit = 50) -> Any:
        """The queries of a collection."""
        return await views.queries(engine, engine.find(name), offset, limit)

    @api.get("/v1/collections/{name}/query", response_model=models.QueryAnswer)
    async def query(name: CollectionName, query: QueryName) -> Any:
        """One query: what became of its impressions, what the next visitor will see, and why."""
        return await views.query(engine, engine.find(name), query)

    @api.get("/v1/collections/{name}/tree", response_model=models.TreeAnswer)
    async def tree(name: CollectionName, query: QueryName, limit: Annotated[int, Query(ge=1, le=5000)] = 400) -> Any:
        """How finely the query's learner tells documents apart, and what it thinks of them."""
        return await views.tree(engine, engine.find(name), query, limit)

    @api.get("/v1/collections/{name}/activity", response_model=models.ActivityAnswer)
    async def activity(name: CollectionName, seconds: Seconds = 3600, points: Points = 120) -> Any:
        """What became of a collection's impressions over time."""
        return await views.activity(engine, engine.find(name), seconds, points)

    @api.get("/v1/activity", response_model=models.ActivityAnswer)
    async def all_activity(seconds: Seconds = 3600, points: Points = 120) -> Any:
        """What became of all impressions over time."""
        return await views.activity(engine, None, seconds, points)


def _add_operations(api: FastAPI, engine: Engine, metrics: Metrics) -> None:
    @api.get("/v1/health", response_model=models.StatusAnswer)
    async def health() -> Any:
        """Whether the process answers."""
        return {"status": "ok"}

    @api.get("/v1/ready", response_model=models.StatusAnswer)
    async def ready() -> Any:
        """Whether it can rank."""
        return {"status": "ready"} if engine.ready else JSONResponse({"status": "starting"}, 503)

    @api.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def prometheus() -> Response:
        """For Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_page(api: FastAPI) -> None:
    @api.get("/", include_in_schema=False)
    async def index() -> Response:
        return Response(_page_file("index.html"), media_type=_MEDIA["html"])

    @api.get("/page/{file}", include_in_schema=False)
    async def part(file: str) -> Response:
        if file == "plotly.min.js":
            content = _plotly()
        elif file in _page_files():
            content = _page_file(file)
        else:
            raise UnknownError(f"The page has no {file}.")
        media = _MEDIA.get(file.rpartition(".")[2], "application/octet-stream")
        return Response(content, media_type=media, headers={"Cache-Control": "max-age=300"})


@cache
def _page_files() -> frozenset[str]:
    return frozenset(file.name for file in resources.files("zoomrank.service.http").joinpath("page").iterdir())


@cache
def _page_file(name: str) -> bytes:
    return resources.files("zoomrank.service.http").joinpath("page").joinpath(name).read_bytes()


@cache
def _plotly() -> bytes:
    return resources.files("plotly").joinpath("package_data").joinpath("plotly.min.js").read_bytes()
