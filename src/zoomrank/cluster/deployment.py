"""`Deployment`: the service on a Ray cluster, or on one that is started on this machine if there is none.

Ray Serve is given a configuration, the same that `serve deploy` takes (`build` is its `import_path`). Given again with
another number of replicas, it adds or removes some, and the others go on.
"""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import ray
from ray import serve
from ray.serve.config import HTTPOptions, ProxyLocation
from ray.serve.context import _get_global_client
from ray.serve.schema import LoggingConfig, ServeApplicationSchema, ServeDeploySchema

from zoomrank.cluster.replica import APP, DEPLOYMENT, Options, ServeReplica
from zoomrank.errors import ParameterError, ZoomrankError

_AT_ONCE = 4096  # requests that a replica has at a time; many may wait for partitions of others
_SLOW_START = ("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")  # on a busy machine 5 s are too few, and it never starts
_LAST_REQUESTS = 15.0  # seconds in which a replica that stops writes all learners down
_PATIENCE = 600.0  # seconds until all replicas are there
_POLL = 0.2  # seconds
_LOGS = LoggingConfig(enable_access_log=False)  # a line of each request would take longer than the request


class Deployment:
    """Replicas of the service on a Ray cluster, which may have been started for them."""

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
        self.address = f"http://{host}:{port}"
        self._options = options
        http = HTTPOptions(host=host, port=port, location=location, request_timeout_s=None)
        serve.start(http_options=http, logging_config=_LOGS)
        self.scale(replicas)

    def scale(self, replicas: int) -> None:
        """Set the number of replicas; returns when they serve."""
        config = ServeApplicationSchema(
            name=APP,
            route_prefix="/",
            import_path=f"{__name__}:build",
            args=self._options._asdict(),
            deployments=[{"name": DEPLOYMENT, "num_replicas": replicas}],  # type: ignore[list-item]
        )
        client: Any = _get_global_client()  # as `serve run` does it
        client.deploy_apps(ServeDeploySchema(applications=[config]))
        _wait_for(replicas)

    def stop(self) -> None:
        """Stop the service; a cluster that was there before stays."""
        end: Any = serve.shutdown
        end()
        if self.began:
            leave_ray()

    def __enter__(self) -> Deployment:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def build(options: Mapping[str, Any]) -> Any:
    """Return the application that Ray Serve runs; the options are those of `Options`."""
    return _ray_deployment().bind(tuple(Options(**options)))


def leave_ray() -> None:
    """Leave the cluster; one that was started here ends."""
    end: Any = ray.shutdown
    end()


def _ray_deployment() -> Any:
    return serve.deployment(
        name=DEPLOYMENT,
        max_ongoing_requests=_AT_ONCE,
        health_check_period_s=1.0,
        health_check_timeout_s=2.0,  # three times: one that does not respond, and holds requests, is replaced
        graceful_shutdown_wait_loop_s=0.5,
        graceful_shutdown_timeout_s=_LAST_REQUESTS,
        ray_actor_options={"num_cpus": 0.5},
        logging_config=_LOGS,
    )(ServeReplica)


def _wait_for(replicas: int) -> None:
    """Wait until the replicas serve, or raise the error of Ray Serve."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        app = serve.status().applications.get(APP)
        if app is not None and app.status == "DEPLOY_FAILED":
            raise ZoomrankError(f"Ray Serve could not start the service: {app.message}")
        if app is not None and app.status == "RUNNING" and _running(app.deployments.get(DEPLOYMENT)) == replicas:
            return
        time.sleep(_POLL)
    raise ZoomrankError(f"After {_PATIENCE:g} seconds there are no {replicas} replicas: see “serve status”.")


def _running(deployment: Any) -> int | None:
    """Return the number of replicas, if none is starting or stopping."""
    states = {} if deployment is None else deployment.replica_states
    counts = {getattr(state, "value", state): count for state, count in states.items() if count}
    return counts["RUNNING"] if counts.keys() == {"RUNNING"} else None


def _connect(address: str | None) -> bool:
    """Join a cluster; returns whether one was started on this machine, since there was none."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
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
