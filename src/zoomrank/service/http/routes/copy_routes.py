"""Routes of copies: throwaway learners that rank and learn in isolation."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from zoomrank import wire
from zoomrank.service.copies import Copies
from zoomrank.service.engine import Engine
from zoomrank.service.http import schema
from zoomrank.service.http.known_paths import COPIES, COPY_FEEDBACK, COPY_RANK
from zoomrank.service.http.routes.parameters import CollectionName, CopyName


def add_copies(api: FastAPI, engine: Engine, copies: Copies) -> None:
    """Add the routes."""

    @api.post(COPIES.path, status_code=201, response_model=wire.CopyResponse)
    async def make(asked: schema.CopyRequest, name: CollectionName) -> Any:
        """Copy what a query has learned into a learner of its own, which is dropped when it is no longer used."""
        served = engine.collections.find(name)
        copy = await copies.make(served, served.query(asked.query))
        return {"copy": copy.name, "query": copy.query, "impressions": copy.learner.counts.impressions}

    @api.post(COPY_RANK.path, response_model=wire.RankResponse)
    async def rank(asked: schema.CopyRankRequest, copy: CopyName) -> Any:  # noqa: ARG001  (no options yet)
        """Rank with a copy, as the query itself would. The impression is valid for this copy only."""
        found = copies.find(copy)
        impression, documents = copies.rank(found)
        return {"impression": impression, "query": found.query, "documents": documents}

    @api.post(COPY_FEEDBACK.path, response_model=wire.BatchResponse)
    async def feedback(asked: schema.BatchRequest, copy: CopyName) -> Any:
        """Teach a copy; each item succeeds or fails by itself."""
        told = [(one.impression, one.answer) for one in asked.feedback]
        return {"results": copies.feedback(copies.find(copy), told)}
