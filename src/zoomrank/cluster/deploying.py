"""`Deployed`: the service on a Ray cluster, or on the one that is started on this machine if there is none."""

from __future__ import annotations

import logging
import os
import warnings
from types import TracebackType
from typing import Any

import ray
from ray import serve
from ray.serve.config import HTTPOptions, ProxyLocation, RequestRouterConfig

from zoomrank.cluster.named_router import NamedRouter
from zoomrank.cluster.replica import APP, DEPLOYMENT, Options, Replica
from zoomrank.errors import ParameterError

_AT_ONCE = 256  # requests that a replica has at a time
_SLOW_START = ("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")  # on a busy machine 5 s are too few, and it never starts
_LAST_REQUESTS = 15.0  # seconds in which a replica that is to stop writes everything down


class Deployed:
    """Replicas of the service, and whether the cluster that they are on was started for them."""

    def __init__(
        self,
        options: Options,
        replicas: int,
        host: str = "127.0.0.1",
        port: int = 8000,
        address: str | None = None,
        location: ProxyLocation = ProxyLocation.EveryNode,
    ) -> None:
        if replicas < 1:
            raise ParameterError(f"A service has 1 replica or more, not {replicas}.")
        self.began = _connect(address)
        serve.start(http_options=HTTPOptions(host=host, port=port, location=location, request_timeout_s=None))
        serve.run(_deployment(replicas).bind(tuple(options)), name=APP, route_prefix="/")
        self.address = f"http://{host}:{port}"

    def stop(self) -> None:
        """Stop the service; a cluster that was there before stays."""
        end: Any = serve.shutdown
        end()
        if self.began:
            leave_ray()

    def __enter__(self) -> Deployed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def leave_ray() -> None:
    """Leave the cluster; one that was started here ends."""
    end: Any = ray.shutdown
    end()


def _deployment(replicas: int) -> Any:
    router: Any = NamedRouter
    return serve.deployment(
        name=DEPLOYMENT,
        num_replicas=replicas,
        max_ongoing_requests=_AT_ONCE,
        health_check_period_s=1.0,
        health_check_timeout_s=2.0,  # three times: one that does not respond, and holds requests, is replaced
        graceful_shutdown_wait_loop_s=0.5,
        graceful_shutdown_timeout_s=_LAST_REQUESTS,
        ray_actor_options={"num_cpus": 0.5},
        request_router_config=RequestRouterConfig(request_router_class=router),
    )(Replica)


def _connect(address: str | None) -> bool:
    """Join a cluster; says whether one was started on this machine, since there was none."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if ray.is_initialized():
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            ray.init(address=address or "auto", **quiet)
        except ConnectionError as error:
            if address is not None:
                raise ParameterError(f"There is no Ray cluster at {address}: {error}.") from error
            os.environ.setdefault(*_SLOW_START)
            ray.init(include_dashboard=False, **quiet)
            return True
    return False
