"""Copies of learners to play with: made, ranking and learning, and nothing else hears of it."""

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
        """Make a copy of what a query knows, which learns by itself and is thrown away when nobody uses it."""
        served = engine.collections.find(name)
        copy = await copies.make(served, served.query(asked.query))
        return {"copy": copy.name, "query": copy.query, "impressions": copy.learner.counts.impressions}

    @api.post(COPY_RANK.path, response_model=wire.RankResponse)
    async def rank(asked: schema.CopyRankRequest, copy: CopyName) -> Any:  # noqa: ARG001  (there is nothing to ask yet)
        """Let a copy choose a ranking, as the query itself would. Its impression is known to this copy alone."""
        found = copies.find(copy)
        impression, documents = copies.rank(found)
        return {"impression": impression, "query": found.query, "documents": documents}

    @api.post(COPY_FEEDBACK.path, response_model=wire.BatchResponse)
    async def feedback(asked: schema.BatchRequest, copy: CopyName) -> Any:
        """Let a copy learn; each report is taken or refused by itself."""
        told = [(one.impression, one.answer) for one in asked.feedback]
        return {"results": copies.feedback(copies.find(copy), told)}
