"""Routes of logs: exports of impressions and their outcomes as a stream, and imports of click logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request
from fastapi.responses import StreamingResponse

from zoomrank import wire
from zoomrank.service.catalogue.version_history import chunks_of, temp_file
from zoomrank.service.click_import import ImportedLog
from zoomrank.service.engine import Engine
from zoomrank.service.errors import MediaTypeError
from zoomrank.service.export import ExportFilter, ExportSource, Row, json_lines, pages, write_parquet
from zoomrank.service.http import schema
from zoomrank.service.http.builder import CollectionBuilder
from zoomrank.service.http.fast_path import EXPORT
from zoomrank.service.http.routes import CollectionName, RequestCaller, refusals
from zoomrank.service.http.routes.collections import sent

_JSONL, _PARQUET = "application/x-ndjson", "application/vnd.apache.parquet"
_CONTENT: dict[int | str, dict[str, Any]] = {
    200: {"content": {_JSONL: {"schema": {"type": "string"}}, _PARQUET: {"schema": {"type": "string"}}}}
}

Time = Annotated[schema.Time | None, Query()]


def add_export(api: FastAPI, engine: Engine) -> None:
    """Add the route."""

    @api.get(EXPORT.path, response_class=StreamingResponse, responses=_CONTENT)
    async def export(
        name: CollectionName,
        since: Time = None,
        until: Time = None,
        format: Literal["jsonl", "parquet"] = "jsonl",  # noqa: A002  (the name in the URL)
        learned: bool = False,
    ) -> StreamingResponse:
        """Export impressions shown since a time and until another, with their outcomes, as JSON lines or as a Parquet
        file; with `learned`, only those that were learned from.
        """
        served = engine.collections.find(name)
        one = ExportSource(
            served.id, served.name, served.settings.satisfied_by, lambda shown: served.version.ids(shown)
        )
        await engine.write_queue.flush()
        rows = pages(engine.store.read, engine.signer, one, ExportFilter(since, until, learned))
        named = {"Content-Disposition": f'attachment; filename="{served.name}.{format}"'}
        if whole := await asyncio.to_thread(engine.store.read.whole_since, served.id):
            named["Log-Whole-Since"] = repr(whole)
        if format == "jsonl":
            return StreamingResponse(_lines(rows), media_type=_JSONL, headers=named)
        file = temp_file(engine.collections.folder)
        try:
            await asyncio.to_thread(write_parquet, file, rows)
        except BaseException:
            file.close()
            raise
        return StreamingResponse(_pieces(file), media_type=_PARQUET, headers=named)


async def _lines(rows: Iterator[list[Row]]) -> AsyncIterator[bytes]:
    """Yield page after page, each read and encoded in another thread."""

    def next_lines() -> bytes | None:
        page = next(rows, None)
        return None if page is None else json_lines(page)

    while (lines := await asyncio.to_thread(next_lines)) is not None:
        if lines:
            yield lines


async def _pieces(file: Any) -> AsyncIterator[bytes]:
    with file:
        for piece in chunks_of(file):
            yield piece


# Routes of imports: click logs of other rankers.

_KINDS = {"application/x-ndjson": ".jsonl", "application/jsonl": ".jsonl", "application/vnd.apache.parquet": ".parquet"}
_A_LOG = {"requestBody": {"required": True, "content": {kind: {"schema": {}} for kind in _KINDS}}}

Unknown = Annotated[Literal["refuse", "skip"], Query()]


def add_imports(api: FastAPI, engine: Engine) -> None:
    """Add the routes."""
    builder = CollectionBuilder(engine.collections.folder)

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
        log = ImportedLog(served, await sent(request, builder), kind, unknown)
        return await engine.importer.learn(log, caller.idempotency_key, caller.digest)

    @api.get(wire.CLICKS, response_model=wire.ImportProgress)
    async def progress(name: CollectionName) -> Any:
        """Return the progress of the running import."""
        learned, of = engine.importer.progress.get(engine.collections.find(name).id, (0, 0))
        return {"learned": learned, "of": of}
