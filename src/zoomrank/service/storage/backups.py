"""Backup and restore: a consistent copy of a store, SQLite or PostgreSQL, in one SQLite file.

The file has the tables of a store, as made by `database`, copied row by row without interpretation. So it can be
restored into either kind of store.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from zoomrank.files import atomic_file
from zoomrank.service.errors import StorageError
from zoomrank.service.storage.database import ABOUT, statements
from zoomrank.service.storage.sqlite_store import SQLiteDatabase
from zoomrank.service.storage.store import Store
from zoomrank.service.storage.store_snapshot import SQLiteSnapshot, StoreSnapshot

Progress = Callable[[int, int], None]  # progress: (rows done, total)
Tables = Mapping[str, Sequence[str]]  # columns by table

_OWNER = "owner"  # names the process that writes to this store, so it is not copied
_MOST_ROWS, _MOST_BYTES = 1000, 2**22  # copied at once


def tables() -> dict[str, list[str]]:
    """Return the tables of a store with their columns."""
    with closing(sqlite3.connect(":memory:")) as made:
        _make_tables(made)
        return _tables_of(made)


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in (ABOUT, *statements(SQLiteDatabase.types)):
        connection.execute(statement)


def _tables_of(connection: sqlite3.Connection) -> dict[str, list[str]]:
    named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid").fetchall()
    return {name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for (name,) in named}


def back_up(snapshot: StoreSnapshot, path: Path, tell: Progress) -> dict[str, int]:
    """Write a backup, which appears complete or not at all; return the number of rows per table."""
    with atomic_file(path, private=True) as file, closing(sqlite3.connect(file.name, isolation_level=None)) as backup:
        backup.execute("PRAGMA journal_mode = OFF")  # an incomplete file is thrown away
        backup.execute("PRAGMA synchronous = OFF")
        _make_tables(backup)
        backup.execute("BEGIN")
        copied = _copy(snapshot, backup.cursor(), "?", tables(), tell)
        backup.execute("COMMIT")
    return copied


def restore(path: Path, open_store: Callable[[], Store], tell: Progress) -> dict[str, int]:
    """Restore a backup into an empty store, in one transaction; return the number of rows per table."""
    with closing(SQLiteSnapshot(path)) as backup:
        known = _checked(backup)
        with closing(open_store()) as store:
            cursor = store.database.writer.cursor()
            cursor.execute("BEGIN")
            try:
                _check_empty(cursor, known)
                cursor.execute(f"DELETE FROM about WHERE name <> '{_OWNER}'")  # noqa: S608
                copied = _copy(backup, cursor, store.database.mark, known, tell)
                cursor.execute("COMMIT")
            except store.database.failures as error:
                raise StorageError(f"Nothing was restored: {error}.") from error
    return copied


def _checked(backup: SQLiteSnapshot) -> Tables:
    """Return the tables of a backup; raise if it cannot be restored."""
    damage = backup.damage()
    if damage:
        raise StorageError(f"{backup.where} is damaged, use another backup: {damage[0]}.")
    known, there = tables(), _tables_of(backup.connection)
    for table, columns in known.items():
        if set(there.get(table, ())) != set(columns):
            raise StorageError(
                f"{backup.where} is not a complete backup: its table `{table}` is missing or has other columns."
            )
    return known


def _check_empty(cursor: Any, known: Tables) -> None:
    for table in known:
        cursor.execute(f"SELECT 1 FROM {table} LIMIT 1")  # noqa: S608  (names of our own tables)
        if table != "about" and cursor.fetchone() is not None:
            raise StorageError("This store is not empty: restore into an empty folder or database.")


def _copy(snapshot: StoreSnapshot, cursor: Any, mark: str, known: Tables, tell: Progress) -> dict[str, int]:
    """Copy all rows of all tables; return their numbers."""
    total = sum(count for table in known for (count,) in snapshot.rows(f"SELECT COUNT(*) FROM {table}"))  # noqa: S608
    copied = dict.fromkeys(known, 0)
    for table, columns in known.items():
        named = ", ".join(columns)
        into = f"INSERT INTO {table} ({named}) VALUES ({', '.join([mark] * len(columns))})"  # noqa: S608
        rows = snapshot.rows(f"SELECT {named} FROM {table} ORDER BY 1")  # noqa: S608
        for some in _in_parts(row for row in rows if (table, row[0]) != ("about", _OWNER)):
            cursor.executemany(into, some)
            copied[table] += len(some)
            tell(sum(copied.values()), total)
    return copied


def _in_parts(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield rows in chunks of limited size."""
    part: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        part.append(row)
        size += sum(len(value) for value in row if isinstance(value, bytes))
        if len(part) == _MOST_ROWS or size >= _MOST_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part
