"""`SQLiteStore`: a file in a folder of this machine, in which one process works at a time."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, ClassVar

from zoomrank.service.refusals import StorageError
from zoomrank.service.storage.store import Store

NAME = "zoomrank.sqlite"  # of the file
_LONG_LOG = 4096  # pages
_PATIENCE = 50  # milliseconds that writers wait for those who read, a backup say, before the log goes on growing
_CHECKED = 2 * 2**30  # bytes: a larger file takes too long to be looked through at every start
_DAMAGED = ("malformed", "not a database")  # as SQLite says it
_TO_DO = "look with “zoomrank verify”, and go back to a backup with “zoomrank restore”"


class SQLiteStore(Store):
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
        with suppress(PermissionError):  # of somebody who only may write
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
        """Transactions are begun and ended by hand."""
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA wal_autocheckpoint = 0")  # `tidy` does it, where nobody has to wait
        except sqlite3.Error as error:
            connection.close()
            raise StorageError(f"{self.path} cannot be used: {self.words(error)}.") from error
        return connection

    def _check(self) -> None:
        """Refuse a file that is damaged, before anything in it is believed."""
        if self.path.stat().st_size > _CHECKED:
            return
        try:
            (found,) = self._tidier.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.Error as error:
            found = str(error)
        if found != "ok":
            raise StorageError(f"{self.path} is damaged: {' '.join(found.split())}; {_TO_DO}.")

    def words(self, error: Exception) -> str:
        """What a failure says, and what to do about a file that is damaged."""
        said = str(error)
        return f"{self.path} is damaged: {said}; {_TO_DO}" if any(one in said for one in _DAMAGED) else said

    def tidy(self) -> None:
        """Move what is in the write-ahead log to where it belongs; requests go on meanwhile.

        What is written meanwhile stays in it, so under load it would never be empty, and never begin anew. When it has
        become long, writers wait until it is: most of the work was done before.
        """
        with self._tidying, suppress(sqlite3.Error):  # a full disk, say: there will be another time
            _, length, _ = self._tidier.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if length > _LONG_LOG:
                with self._writing:
                    self._tidier.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()

    def close(self) -> None:
        """Let go of the file."""
        with self._tidying:
            self._tidier.close()
            super().close()
        self._lock_file.close()


def _lock_folder(folder: Path) -> IO[str]:
    """Make sure that only one process works in a folder; the system lets go when the process ends, however it does."""
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
