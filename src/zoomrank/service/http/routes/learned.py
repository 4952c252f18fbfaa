"""What was learned: queries, why documents stand where they stand, what became of impressions over time; and what is
taken back.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Query

from zoomrank import wire
from zoomrank.service.copies import Copies
from zoomrank.service.engine import Engine
from zoomrank.service.http import page_data, schema
from zoomrank.service.http.access import asker_of
from zoomrank.service.http.known_paths import VOID
from zoomrank.service.http.learning_curve import LearningCurves
from zoomrank.service.http.routes.parameters import (
    CollectionName,
    CopyLookedInto,
    Limit,
    Offset,
    Points,
    QueryText,
    Search,
    Seconds,
    Sort,
)
from zoomrank.service.refusals import UnusableError
from zoomrank.service.undoing import Span


def add_learned(api: FastAPI, engine: Engine, copies: Copies) -> None:
    """Add the routes."""
    find = engine.collections.find

    @api.get(wire.QUERIES, response_model=wire.QueriesResponse)
    async def queries(
        name: CollectionName, offset: Offset = 0, limit: Limit = 50, search: Search = "", sort: Sort = "asked"
    ) -> Any:
        """The queries of a collection that have some letters in them: those asked most first, or least satisfied, or
        newest, or whose satisfied share falls most.
        """
        return await page_data.queries(engine, find(name), offset, limit, search, sort)

    @api.get(wire.QUERY, response_model=wire.QueryInfo)
    async def query(name: CollectionName, query: QueryText, copy: CopyLookedInto = None) -> Any:
        """One query, or a copy of it: what became of its impressions, what the next visitor will see, and why."""
        return await page_data.query(engine, find(name), query, copies, copy)

    curves, activities = LearningCurves(engine), page_data.Activities(engine)

    @api.get(wire.CURVE, response_model=wire.Curve)
    async def curve(name: CollectionName, query: QueryText) -> Any:
        """How a query has learned: of its impressions one after the other, how many were satisfied."""
        served = find(name)
        return await curves.curve(served, served.settings.folded(query))

    @api.delete(wire.QUERY, response_model=wire.RemovedQuery)
    async def remove(name: CollectionName, query: QueryText) -> Any:
        """Remove a query with all that it has learned."""
        served = find(name)
        await engine.remove_query(served, served.settings.folded(query))
        return {"query": served.settings.folded(query), "status": "removed"}

    @api.post(VOID.path, response_model=wire.Voided)
    async def void(asked: schema.VoidRequest, name: CollectionName) -> Any:
        """Take impressions back: what they taught is untaught, as if they had never been."""
        served = find(name)
        query = None if asked.query is None else served.settings.folded(asked.query)
        span = Span(query, asked.since, asked.until, None if asked.key is None else asker_of(asked.key))
        if span == Span():
            raise UnusableError("Say which impressions: those of a `query`, `since` or `until` a time, or of a `key`.")
        impressions, queries = await engine.void(served, span, asked.dry_run)
        retired = await engine.undoing.retired(served, span)
        return {"impressions": impressions, "queries": queries, "retired": retired, "dry_run": asked.dry_run}

    @api.get(wire.TREE, response_model=wire.TreeResponse)
    async def tree(
        name: CollectionName,
        query: QueryText,
        limit: Annotated[int, Query(ge=1, le=5000)] = 400,
        copy: CopyLookedInto = None,
    ) -> Any:
        """How finely the query's learner, or a copy of it, tells documents apart, and what it thinks of them."""
        return await page_data.tree(engine, find(name), query, limit, copies, copy)

    @api.get(wire.COLLECTION_ACTIVITY, response_model=wire.Activity)
    async def activity(name: CollectionName, seconds: Seconds = 3600, points: Points = 120) -> Any:
        """What became of a collection's impressions over time."""
        return await activities.look(find(name), seconds, points)

    @api.get(wire.ACTIVITY, response_model=wire.Activity)
    async def all_activity(seconds: Seconds = 3600, points: Points = 120) -> Any:
        """What became of all impressions over time."""
        return await activities.look(None, seconds, points)
