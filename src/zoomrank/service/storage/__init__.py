"""Storage of the service: the log, snapshots and collections, in SQLite or PostgreSQL.

`outcomes` outcomes of impressions · `events` rows of the log · `batch` rows written together · `journal` many events in
one durable write · `store` writing, over `tables` in a `database`, and `store_reader` reading · `sqlite_store`,
`postgres_store` the two databases · `store_view` a consistent read-only view · `backups` backup and restore · `opening`
choice of the database.
"""
