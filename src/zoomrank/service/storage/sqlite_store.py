"""`SQLiteDatabase`: a file in a folder of this machine, which one process uses at a time."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, ClassVar

from zoomrank.service.errors import StorageError
from zoomrank.service.storage.database import Database

NAME = "zoomrank.sqlite"  # of the file
_LONG_LOG = 4096  # pages
_PATIENCE = 50  # milliseconds that writers wait for readers, such as a backup, before the log goes on growing
_CHECKED = 2 * 2**30  # bytes: checking a larger file at every start takes too long
_DAMAGED = ("malformed", "not a database")  # as SQLite says it
_TO_DO = "look with “zoomrank verify”, and go back to a backup with “zoomrank restore”"


class SQLiteDatabase(Database):
    """A file; a write-ahead log that is synchronised at every commit makes it durable."""

    mark = "?"
    nearby = True
    types: ClassVar = {"whole": "INTEGER", "real": "REAL", "bytes": "BLOB"}
    failures = (sqlite3.Error,)

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / NAME
        self._lock_file = _lock_folder(folder)
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))  # the secret that signs impressions is in it
        with suppress(PermissionError):  # the file of another user, which this one may write
            self.path.chmod(0o600)
        try:
            self._tidying = threading.Lock()
            self._tidier = self.connect()
            self._tidier.execute(f"PRAGMA busy_timeout = {_PATIENCE}")
            try:
                self._check()
                super().__init__()
            except BaseException:
                self._tidier.close()
                raise
        except BaseException:
            self._lock_file.close()
            raise

    def connect(self) -> Any:
        """Return a new connection in autocommit mode."""
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA wal_autocheckpoint = 0")  # `tidy` does it, so that no request waits
        except sqlite3.Error as error:
            connection.close()
            raise StorageError(f"{self.path} cannot be used: {self.words(error)}.") from error
        return connection

    def _check(self) -> None:
        """Refuse a damaged file before anything in it is used."""
        if self.path.stat().st_size > _CHECKED:
            return
        try:
            (found,) = self._tidier.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.Error as error:
            found = str(error)
        if found != "ok":
            raise StorageError(f"{self.path} is damaged: {' '.join(found.split())}; {_TO_DO}.")

    def words(self, error: Exception) -> str:
        """Return the text of a failure, and what to do about a damaged file."""
        return failure_words(self.path, error)

    def tidy(self) -> None:
        """Move the content of the write-ahead log into the file; requests go on meanwhile.

        Pages written meanwhile stay in the log, so under load it would never be empty, and never restart. When it has
        become long, writers wait until it is empty: most of the work was done before.
        """
        with self._tidying, suppress(sqlite3.Error):  # such as a full disk: the next turn tries again
            _, length, _ = self._tidier.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if length > _LONG_LOG:
                with self._writing:
                    self._tidier.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()

    def close(self) -> None:
        """Close the file."""
        with self._tidying:
            self._tidier.close()
            super().close()
        self._lock_file.close()


def failure_words(path: Path, error: Exception) -> str:
    """Return the text of a failure, and what to do about a damaged file."""
    said = str(error)
    return f"{path} is damaged: {said}; {_TO_DO}" if any(one in said for one in _DAMAGED) else said


def _lock_folder(folder: Path) -> IO[str]:
    """Lock a folder for this process; the system releases the lock when the process ends, however it does."""
    file = (folder / "lock").open("w")
    if os.name == "posix":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            raise StorageError(
                f"Another zoomrank service works in {folder}: stop it, or take another folder (--data)."
            ) from error
    return file
