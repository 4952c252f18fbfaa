"""`zoomrank serve`: a ranking service in this process."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from zoomrank.cli.arguments import Commands, add_command


def add(commands: Commands) -> None:
    """Describe the command."""
    parser = add_command(
        commands,
        "serve",
        "rank and learn behind HTTP",
        "Serve rankings that learn from clicks. What was acknowledged is never lost. A file of keys has a role and a\n"
        "key on each line: “rank KEY”, “read KEY” or “admin KEY”. The address of a store can also be given by the\n"
        "environment variable ZOOMRANK_STORE, so that its password is in no list of processes.",
        "zoomrank serve                                      on this machine alone, data in ./zoomrank-data",
        "zoomrank serve --data /srv/zoomrank --port 9000",
        "zoomrank serve --host 0.0.0.0 --keys keys.txt       for others, with keys",
        "zoomrank serve --store postgresql://user@host/base  in PostgreSQL (zoomrank[postgres])",
    )
    add_options(parser)
    parser.add_argument("--data", type=Path, default=Path("zoomrank-data"), help="folder (default ./zoomrank-data)")
    parser.add_argument(
        "--largest-body", type=float, default=256.0, metavar="MB", help="MB of a new collection (default 256)"
    )
    parser.add_argument("--store", default=os.environ.get("ZOOMRANK_STORE"), help="postgresql://… instead of SQLite")
    parser.set_defaults(run=run)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what all services can be told."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1: this machine)")
    parser.add_argument("--port", type=int, default=8000, help="port (default 8000; 0: any that is free)")
    parser.add_argument("--keys", type=Path, help="file with a role and a key on each line")
    parser.add_argument("--memory", type=float, default=1.0, help="GB that learners may take (default 1)")


def run(options: argparse.Namespace) -> None:
    """Serve until told to stop."""
    from zoomrank.service.http.access import Keys
    from zoomrank.service.server import make_server

    server = make_server(
        options.data,
        options.host,
        options.port,
        store=options.store,
        keys=Keys.read(options.keys) if options.keys else None,
        memory=int(options.memory * 2**30),
        largest_body=int(options.largest_body * 2**20),
    )
    server.announce = lambda address: print(f"zoomrank serves on {address} (stop it with Ctrl-C)", flush=True)
    server.run()
    sys.stderr.write("zoomrank: stopped; everything is written down\n")
