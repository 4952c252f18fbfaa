"""Routes of what was learned: queries, explanations, activity; and their removal."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Query

from zoomrank import wire
from zoomrank.service.copies import Copies
from zoomrank.service.engine import Engine
from zoomrank.service.errors import UnprocessableError
from zoomrank.service.http import page_data, schema
from zoomrank.service.http.access import caller_digest
from zoomrank.service.http.fast_path import VOID
from zoomrank.service.http.page_details import LearningCurves
from zoomrank.service.http.routes import (
    CollectionName,
    CopyParameter,
    Limit,
    Offset,
    Points,
    QueryText,
    Search,
    Seconds,
    Sort,
)
from zoomrank.service.learners.void import ImpressionFilter


def add_learned(api: FastAPI, engine: Engine, copies: Copies) -> None:
    """Add the routes."""
    find = engine.collections.find

    @api.get(wire.QUERIES, response_model=wire.QueriesResponse)
    async def queries(
        name: CollectionName, offset: Offset = 0, limit: Limit = 50, search: Search = "", sort: Sort = "asked"
    ) -> Any:
        """List queries, optionally those that contain a text: the most asked first, or the least satisfied, or the
        newest, or those whose satisfied share falls most.
        """
        return await page_data.queries(engine, find(name), offset, limit, search, sort)

    @api.get(wire.QUERY, response_model=wire.QueryInfo)
    async def query(name: CollectionName, query: QueryText, copy: CopyParameter = None) -> Any:
        """Return one query, or a copy of it: its outcome counts, what the next visitor will see, and why."""
        return await page_data.query(engine, find(name), query, copies, copy)

    curves, activities = LearningCurves(engine), page_data.ActivityCache(engine)

    @api.get(wire.CURVE, response_model=wire.LearningCurve)
    async def curve(name: CollectionName, query: QueryText) -> Any:
        """Return the learning curve of a query: the satisfied share in successive windows of its impressions."""
        served = find(name)
        return await curves.curve(served, served.folded(query))

    @api.delete(wire.QUERY, response_model=wire.RemovedQuery)
    async def remove(name: CollectionName, query: QueryText) -> Any:
        """Remove a query with all that it has learned."""
        served = find(name)
        await engine.remove_query(served, served.folded(query))
        return {"query": served.folded(query), "status": "removed"}

    @api.post(VOID.path, response_model=wire.Voided)
    async def void(asked: schema.VoidRequest, name: CollectionName) -> Any:
        """Void impressions: what they taught is undone, as if they had never been."""
        served = find(name)
        query = None if asked.query is None else served.folded(asked.query)
        span = ImpressionFilter(
            query, asked.since, asked.until, None if asked.key is None else caller_digest(asked.key)
        )
        if span == ImpressionFilter():
            raise UnprocessableError(
                "No impressions are selected: send a `query`, a time (`since`, `until`), or a `key`."
            )
        impressions, queries = await engine.void(served, span, asked.dry_run)
        retired = await engine.void_service.retired(served, span)
        return {"impressions": impressions, "queries": queries, "retired": retired, "dry_run": asked.dry_run}

    @api.get(wire.TREE, response_model=wire.TreeResponse)
    async def tree(
        name: CollectionName,
        query: QueryText,
        limit: Annotated[int, Query(ge=1, le=5000)] = 400,
        copy: CopyParameter = None,
    ) -> Any:
        """Return the zoom tree of a query, or of a copy of it: how finely it distinguishes documents, and their
        estimates.
        """
        return await page_data.tree(engine, find(name), query, limit, copies, copy)

    @api.get(wire.COLLECTION_ACTIVITY, response_model=wire.Activity)
    async def activity(name: CollectionName, seconds: Seconds = 3600, points: Points = 120) -> Any:
        """Return outcome counts of a collection over time."""
        return await activities.look(find(name), seconds, points)

    @api.get(wire.ACTIVITY, response_model=wire.Activity)
    async def all_activity(seconds: Seconds = 3600, points: Points = 120) -> Any:
        """Return outcome counts of all collections over time."""
        return await activities.look(None, seconds, points)
