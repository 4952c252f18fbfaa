"""Open the store in a folder of this machine, or the one at an address of PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from zoomrank.errors import ParameterError
from zoomrank.service.storage.postgres_store import PostgresDatabase
from zoomrank.service.storage.sqlite_store import NAME, SQLiteDatabase
from zoomrank.service.storage.store import Store
from zoomrank.service.storage.store_snapshot import PostgresSnapshot, SQLiteSnapshot, StoreSnapshot


def open_store(folder: Path, address: str | None) -> Store:
    """Return the store at an address, or the one in a folder."""
    return Store(SQLiteDatabase(folder) if address is None else PostgresDatabase(_checked(address)))


def open_snapshot(folder: Path, address: str | None) -> StoreSnapshot:
    """Return a snapshot of the store at an address, or of the one in a folder."""
    return SQLiteSnapshot(folder / NAME) if address is None else PostgresSnapshot(_checked(address))


def _checked(address: str) -> str:
    if not address.startswith(("postgresql://", "postgres://")):
        raise ParameterError(f"A store is at postgresql://…, not at {address.split(':')[0]}:…")
    return address
