"""Which store it is: the one in a folder of this machine, or the one at an address."""

from __future__ import annotations

from pathlib import Path

from zoomrank.errors import ParameterError
from zoomrank.service.storage.postgres_store import PostgresStore
from zoomrank.service.storage.sqlite_store import NAME, SQLiteStore
from zoomrank.service.storage.store import Store
from zoomrank.service.storage.store_view import PostgresView, SQLiteView, StoreView


def open_store(folder: Path, address: str | None) -> Store:
    """The store at an address, or the one in a folder."""
    return SQLiteStore(folder) if address is None else PostgresStore(_checked(address))


def open_view(folder: Path, address: str | None) -> StoreView:
    """A look at the store at an address, or at the one in a folder."""
    return SQLiteView(folder / NAME) if address is None else PostgresView(_checked(address))


def _checked(address: str) -> str:
    if not address.startswith(("postgresql://", "postgres://")):
        raise ParameterError(f"A store is at postgresql://…, not at {address.split(':')[0]}:…")
    return address
