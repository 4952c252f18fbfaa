"""Ranking and feedback: for the framework, which documents them, and for the fast path, which serves them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from typing import Any

from fastapi import FastAPI

from zoomrank import wire
from zoomrank.service.engine import Engine
from zoomrank.service.errors import ServiceError, StorageError
from zoomrank.service.http import schema
from zoomrank.service.http.fast_path import FEEDBACK, FEEDBACK_BATCH, RANK, RANK_BATCH, SEEN, FastRoute
from zoomrank.service.http.routes import CollectionName, RequestCaller, refusals

_AT_ONCE = 256  # items of a batch between two awaits


def add_ranking(api: FastAPI, engine: Engine) -> list[FastRoute]:
    """Add the routes; return what the fast path needs."""

    async def rank(asked: schema.RankRequest, name: CollectionName, caller: RequestCaller) -> Any:
        """Choose a ranking for a visitor. Send feedback with its impression.

        The same `Idempotency-Key` returns the same ranking, for ten minutes.
        """
        served = engine.collections.find(name)
        query = served.query(asked.query)
        impression, documents = await engine.rank(served, query, asked, caller)
        ranked: dict[str, Any] = {"impression": impression or None, "query": query, "documents": documents}
        if asked.propensities:
            ranked["propensities"] = await engine.propensities(impression) if impression else []
        return ranked

    async def rank_batch(asked: schema.RankBatchRequest, name: CollectionName, caller: RequestCaller) -> Any:
        """Choose several rankings, each as if it were requested alone; results are in the order of the requests.

        Each succeeds or fails by itself, but if the store fails, so does the batch. The same `Idempotency-Key` returns
        the same rankings, for ten minutes.
        """
        engine.collections.find(name)  # or no item can succeed
        before: Counter[str] = Counter()
        ranked: list[Awaitable[dict[str, Any]]] = []
        for one in asked.requests:
            its = caller
            if caller.idempotency_key is not None:  # by query, since replicas may each have a part of the batch
                its = caller._replace(idempotency_key=f"{before[one.query]} {caller.idempotency_key} {one.query}")
            before[one.query] += 1
            ranked.append(_result({"query": one.query}, rank(one, name, its)))
        results = await asyncio.gather(*ranked)
        failed = next((one["message"] for one in results if one.get("error") == StorageError.code), None)
        if failed is not None:
            raise StorageError(failed)
        return {"results": results}

    async def feedback(asked: schema.FeedbackRequest) -> Any:
        """Send feedback on a ranking: clicks or none, purchases, dislikes, how far down the visitor looked. The same
        feedback may be sent twice.
        """
        return {"impression": asked.impression, "status": await engine.record_feedback(asked.impression, asked.answer)}

    async def seen(asked: schema.SeenRequest) -> Any:
        """Report that a ranking is on the visitor's screen; needed where `no_feedback` is `unseen`."""
        return {"impression": asked.impression, "status": await engine.seen(asked.impression)}

    async def feedback_batch(asked: schema.BatchRequest) -> Any:
        """Send feedback on many rankings; each item succeeds or fails by itself."""
        results: list[dict[str, Any]] = []
        for start in range(0, len(asked.feedback), _AT_ONCE):  # let other tasks run in between
            some = asked.feedback[start : start + _AT_ONCE]
            results += await asyncio.gather(*(_result({"impression": one.impression}, feedback(one)) for one in some))
        return {"results": results}

    api.post(RANK.path, response_model=wire.RankResponse, responses=refusals(429))(rank)
    api.post(RANK_BATCH.path, response_model=wire.RankBatchResponse)(rank_batch)
    api.post(SEEN.path, response_model=wire.SeenResponse, responses=refusals(410))(seen)
    api.post(FEEDBACK.path, response_model=wire.FeedbackResponse, responses=refusals(409, 410))(feedback)
    api.post(FEEDBACK_BATCH.path, response_model=wire.BatchResponse)(feedback_batch)
    return [
        FastRoute.to(rank, RANK, has_caller=True),
        FastRoute.to(feedback, FEEDBACK),
        FastRoute.to(seen, SEEN),
        FastRoute.to(rank_batch, RANK_BATCH, has_caller=True),
        FastRoute.to(feedback_batch, FEEDBACK_BATCH),
    ]


async def _result(about: dict[str, Any], work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """Return the result of one item of a batch; an error names the item by `about`."""
    try:
        return await work
    except ServiceError as error:
        return {**about, "error": error.code, "message": str(error)}
