"""For those who keep the service running, and for pages that ask what they may do."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from zoomrank import wire
from zoomrank.service.engine import Engine
from zoomrank.service.http.access import Keys
from zoomrank.service.http.known_paths import HEALTH, READY
from zoomrank.service.http.metrics import Metrics
from zoomrank.service.http.replicas import Replicas, replicas_response


def add_operations(api: FastAPI, engine: Engine, metrics: Metrics, keys: Keys, replicas: Replicas) -> None:
    """Add the routes."""

    @api.get(HEALTH.path, response_model=wire.StatusResponse)
    async def health() -> Any:
        """Whether the process responds."""
        return {"status": "ok"}

    @api.get(READY.path, response_model=wire.StatusResponse)
    async def ready() -> Any:
        """Whether it can rank, and write that down."""
        status = "starting" if not engine.ready else "storage" if engine.store.database.away else "ready"
        return {"status": status} if status == "ready" else JSONResponse({"status": status}, 503)

    @api.get(wire.ROLE, response_model=wire.RoleResponse)
    async def role(request: Request) -> Any:
        """What the key of this request may do, by its role; where there are no keys, everything."""
        return {"role": keys.role(request.headers.get("authorization", "").encode("latin-1"))}

    @api.get(wire.REPLICAS, response_model=wire.ReplicasResponse)
    async def who_serves() -> Any:
        """Which replicas serve, how many of the partitions each has, and how much it has to do; a service that works
        alone is one replica that has all of them.
        """
        return replicas_response(replicas)

    @api.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def prometheus() -> Response:
        """For Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
