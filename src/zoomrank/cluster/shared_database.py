"""`SharedDatabase`: a PostgreSQL database into which several replicas write, each into partitions that it owns.

Every transaction that writes checks first that this replica holds the leases on its partitions, and keeps them until it
ends.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Any

from zoomrank.cluster.leases import IDLE, Leases, are_owned
from zoomrank.service.errors import FencedError, StorageError
from zoomrank.service.storage.database import Touched
from zoomrank.service.storage.postgres_store import PostgresDatabase, postgres_server


class SharedDatabase(PostgresDatabase):
    """A database that other replicas use, too; every write checks the leases on its partitions."""

    def __init__(self, address: str) -> None:
        self.epochs: dict[int, int] = {}  # in which this replica took the partitions that it owns
        server = postgres_server(address)
        self.leases = Leases(server.connect, server.failures)
        super().__init__(address)

    def join(self, name: str, token: str) -> int:
        """Register this replica under a new number, without partitions; returns the number."""
        self.epochs = {}
        with self.transaction(touching=None):  # there is a writer, so no service works here alone
            self.writer_id = self.leases.join(name, token)
            self._sign(self.writer)
        return self.writer_id

    def release_partitions(self, partitions: Collection[int]) -> None:
        """Give up the leases on partitions, after a write that began while they were this replica's."""
        with self._writing:
            for partition in partitions:
                self.epochs.pop(partition, None)
            self.leases.release(partitions)

    def connect_writer(self) -> Any:
        """Return a connection that shares a lock with those of other replicas: a service alone waits for all."""
        connection = self.server.connect()
        if not connection.execute("SELECT pg_try_advisory_lock_shared(2013)").fetchone()[0]:
            connection.close()
            raise StorageError(
                "A zoomrank service that works alone uses this database: stop it, or take another database."
            )
        self._sign(connection)
        return connection

    def _sign(self, connection: Any) -> None:
        """Name the connection in the server's lists, and have the server end its transactions if this process pauses in
        the middle of one: others wait for its locks.
        """
        connection.execute(f"SET application_name TO 'zoomrank replica {self.writer_id:d}'")
        connection.execute(f"SET idle_in_transaction_session_timeout TO {IDLE:d}")

    def _create(self) -> None:
        if self.writer.execute("SELECT to_regclass('visitors_once')").fetchone()[0] is not None:
            self._check_layout()  # creating tables that exist would lock them
            return
        self.writer.execute("SELECT pg_advisory_lock(2014)")  # one replica at a time creates tables
        try:
            super()._create()
        finally:
            self.writer.execute("SELECT pg_advisory_unlock(2014)")

    def _claim(self) -> None:
        """Record that a service that worked here alone may not go on; other replicas may."""
        self._say_owner(secrets.token_hex(8))

    def _check_owned(self, cursor: Any, touching: Touched) -> None:
        """Refuse a write to partitions that other replicas own by now."""
        partitions = touching()
        if partitions and not are_owned(cursor, self.writer_id, self.epochs, partitions):
            raise FencedError()

    def close(self) -> None:
        """Close all connections."""
        self.leases.close()
        super().close()
