"""A cluster under load in which replicas are killed and stopped, and PostgreSQL starts anew: visitors wait, at most.

A short form here; `ZOOMRANK_ROUNDS=20 ZOOMRANK_SEED=… pytest -s tests/cluster` goes on for longer, also with nodes that
come and go.
"""

import os
import socket
import time
from pathlib import Path
from typing import Any

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
    short = ROUNDS < 5  # beside other tests, so patience must not be what decides
    patience: dict[str, Any] = {"timeout": 120.0, "retries": 10} if short else {}
    with unrest(tmp_path, port, seed=SEED, **patience) as it:
        waits = rounds(it, ROUNDS, SEED, print, short=short)
        assert it.memory.told
    print(waits, f"{len(it.memory.shown):,} rankings and {len(it.memory.told):,} reports acknowledged")
