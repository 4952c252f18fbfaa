"""`python -m bench ring`: Ray Serve's own strict consistent hashing, with 256 partitions on three replicas.

Each partition is a session. The replica that each reaches is checked again and again, for all at once: undisturbed,
after a replica was killed, after one was stopped (SIGSTOP), and after one was added.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from bench.measure import Row
from zoomrank.service.storage.partitions import PARTITIONS

_PATIENCE = 2.0  # seconds for a response
_LONGEST = 60.0  # seconds of observation

Reached = dict[int, tuple[str, int]]  # the name of a replica and its process, of each partition with a response


def _deployment(replicas: int) -> Any:
    from ray import serve
    from ray.serve.config import RequestRouterConfig
    from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter

    class Named:
        def __init__(self) -> None:
            self._name = serve.get_replica_context().replica_id.unique_id

        async def who(self) -> tuple[str, int]:
            return self._name, os.getpid()

    router: Any = ConsistentHashRouter
    return serve.deployment(
        name="Named",
        num_replicas=replicas,
        max_ongoing_requests=PARTITIONS,
        health_check_period_s=1.0,
        health_check_timeout_s=2.0,
        ray_actor_options={"num_cpus": 0},
        request_router_config=RequestRouterConfig(
            request_router_class=router, request_router_kwargs={"num_fallback_replicas": 0}
        ),
    )(Named)


async def _reached(handle: Any, patience: float = _PATIENCE) -> Reached:
    async def ask(partition: int) -> tuple[int, tuple[str, int] | None]:
        try:
            return partition, await asyncio.wait_for(
                handle.options(session_id=f"partition {partition}").who.remote(), patience
            )
        except Exception:  # noqa: BLE001  (late, or gone: no response)
            return partition, None

    found = await asyncio.gather(*(ask(partition) for partition in range(PARTITIONS)))
    return {partition: who for partition, who in found if who is not None}


async def _watched(handle: Any, strike: Callable[[int], None]) -> Iterator[Row]:
    """Observe all partitions after something has happened to the process of one replica."""
    before = await _reached(handle, 10.0)
    name, process = before[0]
    its = {partition for partition, who in before.items() if who[0] == name}
    strike(process)
    began, worst, silent = time.monotonic(), 0, 0.0
    while time.monotonic() - began < _LONGEST:
        found = await _reached(handle)
        unanswered = PARTITIONS - len(found)
        worst = max(worst, unanswered)
        if unanswered:
            silent = time.monotonic() - began
        names = {who[0] for who in found.values()}
        if not unanswered and len(names) == 3 and name not in names:
            break
        await asyncio.sleep(0.5)
    moved = sum(found[partition][0] != before[partition][0] for partition in found if partition not in its)
    return iter(
        [
            Row("partitions that it owned", str(len(its))),
            Row("partitions without a response, at worst", str(worst)),
            Row("seconds until all responded", f"{silent:.0f}"),
            Row("partitions of other replicas that moved, after a replacement joined", str(moved)),
        ]
    )


def ring() -> Iterator[Row]:
    """Measure how partitions are distributed, and what happens to them."""
    import ray
    from ray import serve

    os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        handle = serve.run(_deployment(3).bind(), route_prefix=None)
        first = asyncio.run(_reached(handle, 30.0))
        again = [asyncio.run(_reached(handle, 10.0)) for _ in range(5)]
        shares = sorted(Counter(who[0] for who in first.values()).values())
        yield Row("partitions of three replicas", ", ".join(map(str, shares)))
        yield Row("the same five times more, all at once", "yes" if all(one == first for one in again) else "no")
        for what, sent in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
            for row in asyncio.run(_watched(handle, lambda process, sent=sent: os.kill(process, sent))):  # type: ignore[misc]
                yield row._replace(what=f"a replica is {what}: {row.what}")
    finally:
        end: Any = serve.shutdown
        end()
        ray.shutdown()
