"""A cluster under load in which replicas are killed and stopped, and PostgreSQL starts anew: visitors wait, at most.

A short form here; `ZOOMRANK_ROUNDS=20 ZOOMRANK_SEED=… pytest -s tests/cluster` goes on for longer, also with nodes that
come and go.
"""

import os
import socket
import time
from pathlib import Path

import pytest

from tests.support.unrest import rounds, unrest

ROUNDS = int(os.environ.get("ZOOMRANK_ROUNDS", "2"))
SEED = int(os.environ.get("ZOOMRANK_SEED", str(int(time.time()))))


@pytest.mark.xdist_group("cluster")
@pytest.mark.filterwarnings("default")  # those of Ray are its own
def test_nothing_is_lost_and_nobody_else_writes(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    print(f"seed {SEED}")
    with unrest(tmp_path, port, seed=SEED) as it:
        waits = rounds(it, ROUNDS, SEED, print, short=ROUNDS < 5)
        assert it.memory.told
    print(waits, f"{len(it.memory.shown):,} rankings and {len(it.memory.told):,} reports acknowledged")
