"""Storage of the service: the log, snapshots, collections; in SQLite or PostgreSQL.

`ownership` the partitions of this process · `events` events of the log, and rows that are written together · `database`
the connections, of `sqlite_store` or `postgres_store`, and the tables · `store` a database with its writes, and
`store_reader` its reads · `store_snapshot` a store at one moment, to read only · `backups` all of it in a file, and
back.
"""
