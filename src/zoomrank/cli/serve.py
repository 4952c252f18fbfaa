"""`zoomrank serve`: a ranking service in this process."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from zoomrank.cli.arguments import Commands, add_command, add_number, installing, require
from zoomrank.errors import ParameterError

_ABOUT = f"""Serve rankings that learn from clicks. Acknowledged requests are never lost.
docs/how-to/run-the-service.md says how to send documents, ask for rankings and
report clicks.

keys:        a file with a role and a key on each line: “feedback KEY”, “rank
             KEY”, “read KEY” or “admin KEY”; without keys only this machine is
             served
store:       address of PostgreSQL, if data is to be kept there, which needs
             {installing(["postgres"])}; the environment variable
             ZOOMRANK_STORE can hold it, too: then its password is in no list of
             processes
cluster:     several replicas on a Ray cluster, each with a share of the
             queries; PostgreSQL records which replica owns what
             (docs/how-to/run-a-cluster.md). Needs
             {installing(["cluster"])}"""


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "serve",
        _ABOUT,
        "zoomrank serve                                  # data in ./zoomrank-data",
        "zoomrank serve --data rankings --port 9000",
        "zoomrank serve --host 0.0.0.0 --keys keys.txt   # for others, too",
        "zoomrank serve --store postgresql://user@host/base",
        "zoomrank serve --store postgresql://… --cluster --replicas 3",
        extras=("service",),
    )
    add_service(parser)
    add_place(parser)
    parser.add_argument(
        "--largest-body",
        type=float,
        default=256.0,
        metavar="MB",
        help="size limit of an uploaded collection (default: 256)",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="https://shop.example, whose pages may give feedback themselves; may be repeated (default: none)",
    )
    parser.add_argument(
        "--cluster", action="store_true", help="serve on a Ray cluster: an existing one, or one started on this machine"
    )
    parser.add_argument(
        "--compile", action="store_true", help="compile beforehand what is not compiled yet, instead of meanwhile"
    )
    add_number(parser, "--replicas", 2, "with --cluster: number of processes (default: 2)")
    parser.add_argument(
        "--address", metavar="ADDRESS", help="with --cluster: address of Ray, if it is not found automatically"
    )
    parser.add_argument(
        "--door",
        type=int,
        metavar="PORT",
        help="with --cluster: a port on each machine at which replicas also take requests directly; that is ten "
        "times cheaper, and for a load balancer with health checks (default: none)",
    )
    parser.set_defaults(run=run)


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add the options of where a service stores its data."""
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("zoomrank-data"),
        metavar="DIR",
        help="folder for the data (default: zoomrank-data)",
    )
    parser.add_argument(
        "--store",
        default=os.environ.get("ZOOMRANK_STORE"),
        metavar="ADDRESS",
        help="postgresql://… (default: SQLite, in the folder)",
    )


def add_service(parser: argparse.ArgumentParser) -> None:
    """Add the options that all services share."""
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, only for this machine)"
    )
    add_number(parser, "--port", 8000, "port to listen on; 0 for any that is free (default: 8000)")
    parser.add_argument("--keys", type=Path, metavar="FILE", help="file with a role and a key on each line")
    parser.add_argument(
        "--memory", type=float, default=1.0, metavar="GB", help="memory that learners may take (default: 1)"
    )
    parser.add_argument(
        "--log", choices=("text", "json"), default="text", help="format of the log lines (default: text)"
    )


def run(options: argparse.Namespace) -> None:
    """Serve until stopped."""
    from zoomrank.service.http.access import Keys
    from zoomrank.service.logs import log_to_stderr
    from zoomrank.service.server import make_server

    log_to_stderr(options.log)
    if options.compile:
        from zoomrank.cli.compile import compile_kernels

        compile_kernels(["service"])
    if options.cluster:
        _run_cluster(options)
        return
    server = make_server(
        options.data,
        options.host,
        options.port,
        store=options.store,
        keys=Keys.read(options.keys) if options.keys else None,
        memory=in_bytes("--memory", options.memory, 2**30),
        largest_body=in_bytes("--largest-body", options.largest_body, 2**20),
        origins=options.allow_origin,
        announce=lambda address: print(f"zoomrank serves on {address} (stop it with Ctrl-C)", flush=True),
    )
    server.run()
    if options.log == "json":
        logging.getLogger(__name__).info("Stopped; all data is saved.")
    else:
        sys.stderr.write("zoomrank: stopped; all data is saved\n")


def _run_cluster(options: argparse.Namespace) -> None:
    """Deploy on a Ray cluster: until this command ends if it started the cluster, otherwise until Ray Serve is shut
    down.
    """
    require("zoomrank serve --cluster", ["cluster"])
    from zoomrank.cluster.deployment import Deployment
    from zoomrank.cluster.replica import Options
    from zoomrank.service.server import check_reachable

    if not (options.store or "").startswith("postgres"):
        raise ParameterError("--cluster needs a PostgreSQL database that replicas share: give --store postgresql://….")
    if options.keys:
        from zoomrank.service.http.access import Keys

        Keys.read(options.keys)  # raises here already if the file is wrong
    check_reachable(options.host, bool(options.keys))
    told = Options(
        options.store,
        str(options.data.absolute()),
        in_bytes("--memory", options.memory, 2**30),
        in_bytes("--largest-body", options.largest_body, 2**20),
        tuple(options.allow_origin),
        str(options.keys.absolute()) if options.keys else None,
        options.host,
        options.door,
    )
    deployed = Deployment(told, options.replicas, options.host, options.port, options.address)
    some = f"{options.replicas} replica{'s' if options.replicas > 1 else ''}"
    print(f"zoomrank serves on {deployed.address} with {some}", flush=True)
    if not deployed.began:
        print("It keeps running without this command; “serve shutdown” stops it.")
        return
    print("(stop it with Ctrl-C)", flush=True)
    told_to_stop = threading.Event()
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, lambda *_: told_to_stop.set())
    try:
        while not told_to_stop.wait(1.0):  # signals are handled between two waits
            pass
    finally:
        deployed.stop()
        sys.stderr.write("zoomrank: stopped; all data is saved\n")


def in_bytes(option: str, number: float, unit: int) -> int:
    """Convert the value of an option to bytes."""
    if not 0 < number < 2**40:
        raise ParameterError(f"{option} is {number:g}; it must be above 0.")
    return max(1, int(number * unit))
