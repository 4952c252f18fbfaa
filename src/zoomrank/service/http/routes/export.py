"""Route of exports: impressions and their outcomes, as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query
from fastapi.responses import StreamingResponse

from zoomrank.service.engine import Engine
from zoomrank.service.exporting import ExportFilter, ExportSource, Row, json_lines, pages, write_parquet
from zoomrank.service.http import schema
from zoomrank.service.http.known_paths import EXPORT
from zoomrank.service.http.routes.parameters import CollectionName
from zoomrank.service.nameless_files import chunks_of, temp_file

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
            served.id, served.name, served.settings.satisfied_by, lambda shown: served.edition.ids(shown)
        )
        await engine.journal.flush()
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
