"""Routes for operators, and for pages that ask what their key permits."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from zoomrank import wire
from zoomrank.service.engine import Engine
from zoomrank.service.http.access import Keys
from zoomrank.service.http.fast_path import HEALTH, READY
from zoomrank.service.http.metrics import Metrics, Replicas, replicas_response

_LONGEST_WRITE = 2.0  # seconds: a store that takes longer hangs, and rankings wait for it


def add_operations(api: FastAPI, engine: Engine, metrics: Metrics, keys: Keys, replicas: Replicas) -> None:
    """Add the routes."""

    @api.get(HEALTH.path, response_model=wire.StatusResponse)
    async def health() -> Any:
        """Return 200 if the process responds."""
        return {"status": "ok"}

    @api.get(READY.path, response_model=wire.StatusResponse)
    async def ready() -> Any:
        """Return 200 if the service can rank and write to its store, in time."""
        is_away = engine.store.database.away or engine.write_queue.seconds_writing > _LONGEST_WRITE
        status = "starting" if not engine.ready else "storage" if is_away else "ready"
        return {"status": status} if status == "ready" else JSONResponse({"status": status}, 503)

    @api.get(wire.ROLE, response_model=wire.RoleResponse)
    async def role(request: Request) -> Any:
        """Return the role of this request's key; admin where there are no keys."""
        return {"role": keys.role(request.headers.get("authorization", "").encode("latin-1"))}

    @api.get(wire.REPLICAS, response_model=wire.ReplicasResponse)
    async def who_serves() -> Any:
        """List the replicas, their partitions and their load; a single service is one replica that owns all
        partitions.
        """
        return replicas_response(replicas)

    @api.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def prometheus() -> Response:
        """Return metrics for Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
