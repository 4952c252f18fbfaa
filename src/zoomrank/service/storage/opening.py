"""Which store it is: the one in a folder of this machine, or the one at an address."""

from __future__ import annotations

from pathlib import Path

from zoomrank.errors import ParameterError
from zoomrank.service.storage.postgres_store import PostgresStore
from zoomrank.service.storage.sqlite_store import SQLiteStore
from zoomrank.service.storage.store import Store


def open_store(folder: Path, address: str | None) -> Store:
    """The store at an address, or the one in a folder."""
    if address is None:
        return SQLiteStore(folder)
    if not address.startswith(("postgresql://", "postgres://")):
        raise ParameterError(f"A store is at postgresql://…, not at {address.split(':')[0]}:…")
    return PostgresStore(address)
