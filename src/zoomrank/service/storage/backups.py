"""Backups: everything that a store has at one moment, in one SQLite file, whichever store it is; and the way back.

The file has the tables of a store, those that `tables` makes, and is copied row by row without knowing what they mean.
So it goes into the other store as well.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from zoomrank.files import whole_file
from zoomrank.service.refusals import StorageError
from zoomrank.service.storage.sqlite_store import SQLiteDatabase
from zoomrank.service.storage.store import Store
from zoomrank.service.storage.store_snapshot import SQLiteSnapshot, StoreSnapshot
from zoomrank.service.storage.tables import ABOUT, statements

Tell = Callable[[int, int], None]  # how much is done, and of how much
Tables = Mapping[str, Sequence[str]]  # their columns

_OWNER = "owner"  # a fact about who writes into a store, which is true of no other one
_MOST_ROWS, _MOST_BYTES = 1000, 2**22  # that are copied at once


def tables() -> dict[str, list[str]]:
    """The tables of a store with their columns, whatever they are."""
    with closing(sqlite3.connect(":memory:")) as made:
        _make_tables(made)
        return _tables_of(made)


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in (ABOUT, *statements(SQLiteDatabase.types)):
        connection.execute(statement)


def _tables_of(connection: sqlite3.Connection) -> dict[str, list[str]]:
    named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid").fetchall()
    return {name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for (name,) in named}


def back_up(snapshot: StoreSnapshot, path: Path, tell: Tell) -> dict[str, int]:
    """Write a backup, which appears whole or not at all; says how many rows of each table it has."""
    with whole_file(path, private=True) as file, closing(sqlite3.connect(file.name, isolation_level=None)) as backup:
        backup.execute("PRAGMA journal_mode = OFF")  # a file that was not completed is thrown away
        backup.execute("PRAGMA synchronous = OFF")
        _make_tables(backup)
        backup.execute("BEGIN")
        copied = _copy(snapshot, backup.cursor(), "?", tables(), tell)
        backup.execute("COMMIT")
    return copied


def restore(path: Path, open_store: Callable[[], Store], tell: Tell) -> dict[str, int]:
    """Put a backup into a store that has nothing, all of it or nothing; says how many rows each table has."""
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
    """The tables of a backup that can be restored."""
    damage = backup.damage()
    if damage:
        raise StorageError(f"{backup.where} is damaged, take another backup: {damage[0]}.")
    known, there = tables(), _tables_of(backup.connection)
    for table, columns in known.items():
        if set(there.get(table, ())) != set(columns):
            raise StorageError(f"{backup.where} is no whole backup: its table `{table}` is not as it should be.")
    return known


def _check_empty(cursor: Any, known: Tables) -> None:
    for table in known:
        cursor.execute(f"SELECT 1 FROM {table} LIMIT 1")  # noqa: S608  (names of our own tables)
        if table != "about" and cursor.fetchone() is not None:
            raise StorageError("This store has something in it already: restore into an empty folder or database.")


def _copy(snapshot: StoreSnapshot, cursor: Any, mark: str, known: Tables, tell: Tell) -> dict[str, int]:
    """Copy all rows of all tables; says how many there were."""
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
    """Some rows at a time, which memory surely holds."""
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
