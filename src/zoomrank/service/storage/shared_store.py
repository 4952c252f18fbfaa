"""`SharedStore`: a database of a PostgreSQL server in which several services work, each on partitions of its own."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Any

from zoomrank.service.refusals import FencedError, StorageError
from zoomrank.service.storage.leases import IDLE, Leases, are_held
from zoomrank.service.storage.postgres_store import PostgresStore


class SharedStore(PostgresStore):
    """A store of which this service has some partitions."""

    shared = True

    def __init__(self, address: str) -> None:
        self.epochs: dict[int, int] = {}  # in which this service took the partitions that it has
        super().__init__(address)
        self.leases = Leases(self.server.connect, self.failures)

    def join(self, name: str, token: str) -> None:
        """Work in it from now on, under a new number, with no partition yet."""
        self.epochs = {}
        with self._transaction(touching=()):  # there is a writer, so nobody works here alone
            self.number = self.leases.join(name, token)
            self._sign(self.writer)

    def let_go(self, partitions: Collection[int]) -> None:
        """Let others have some partitions: not before a write is over that was begun when they were this service's."""
        with self._writing:
            for partition in partitions:
                self.epochs.pop(partition, None)
            self.leases.let_go(partitions)

    def connect_writer(self) -> Any:
        """The connection that writes shares a lock with its like: a service that wants to be alone waits for all."""
        connection = self.server.connect()
        if not connection.execute("SELECT pg_try_advisory_lock_shared(2013)").fetchone()[0]:
            connection.close()
            raise StorageError(
                "A zoomrank service that works alone uses this database: stop it, or take another database."
            )
        self._sign(connection)
        return connection

    def _sign(self, connection: Any) -> None:
        """Have the server's lists of connections say whose this is, and a transaction ended in the middle of which this
        process was stopped: others wait for what it has locked.
        """
        connection.execute(f"SET application_name TO 'zoomrank replica {self.number:d}'")
        connection.execute(f"SET idle_in_transaction_session_timeout TO {IDLE:d}")

    def _create(self) -> None:
        if self.writer.execute("SELECT to_regclass('visitors_once')").fetchone()[0] is not None:
            self._check_layout()  # to make what is there already would lock it
            return
        self.writer.execute("SELECT pg_advisory_lock(2014)")  # one at a time makes tables
        try:
            super()._create()
        finally:
            self.writer.execute("SELECT pg_advisory_unlock(2014)")

    def _claim(self) -> None:
        """Have it known that whoever worked here alone before may not go on; others like this one may."""
        self._say_owner(secrets.token_hex(8))

    def _check_held(self, cursor: Any, partitions: Collection[int]) -> None:
        """Refuse to write into partitions that others have by now."""
        if not are_held(cursor, self.number, self.epochs, partitions):
            raise FencedError()

    def close(self) -> None:
        """Let go of everything."""
        if hasattr(self, "leases"):
            self.leases.close()
        super().close()
