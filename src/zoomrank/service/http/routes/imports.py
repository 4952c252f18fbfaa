"""Routes of imports: click logs of other rankers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request

from zoomrank import wire
from zoomrank.service.engine import Engine
from zoomrank.service.http.maker import CollectionBuilder
from zoomrank.service.http.routes.collection_routes import sent
from zoomrank.service.http.routes.parameters import CollectionName, RequestCaller, refusals
from zoomrank.service.imported_log import ImportedLog
from zoomrank.service.refusals import MediaTypeError

_KINDS = {
    "application/x-ndjson": ".jsonl",
    "application/jsonl": ".jsonl",
    "application/vnd.apache.parquet": ".parquet",
}
_A_LOG = {"requestBody": {"required": True, "content": {kind: {"schema": {}} for kind in _KINDS}}}

Unknown = Annotated[Literal["refuse", "skip"], Query()]


def add_imports(api: FastAPI, engine: Engine) -> None:
    """Add the routes."""
    maker = CollectionBuilder(engine.collections.folder)

    @api.post(wire.CLICKS, response_model=wire.ImportResponse, responses=refusals(429), openapi_extra=_A_LOG)
    async def learn(request: Request, name: CollectionName, caller: RequestCaller, unknown: Unknown = "refuse") -> Any:
        """Learn the click log of another ranker, JSONL or Parquet, and return what it was worth.

        The same log is learned once, or once per `Idempotency-Key`; an interrupted import resumes.
        """
        served = engine.collections.find(name)
        kind = _KINDS.get(request.headers.get("content-type", "").partition(";")[0].strip().lower())
        if kind is None:
            raise MediaTypeError(
                f"The media type of the click log is missing or unknown: send Content-Type: {' or '.join(_KINDS)}."
            )
        log = ImportedLog(served, await sent(request, maker), kind, unknown)
        return await engine.importing.learn(log, caller.idempotency_key, caller.digest)

    @api.get(wire.CLICKS, response_model=wire.ImportProgress)
    async def progress(name: CollectionName) -> Any:
        """Return the progress of the running import."""
        learned, of = engine.importing.progress.get(engine.collections.find(name).id, (0, 0))
        return {"learned": learned, "of": of}
