"""Storage of the service: the log, snapshots, collections; in SQLite or PostgreSQL.

`outcomes` of impressions · `events` lines of the log · `batch` rows that are written together · `journal` many events
in one durable write · `database` the connections, of `sqlite_store` or `postgres_store`, over `tables` · `store` a
database with its writes, and `store_reader` its reads · `store_snapshot` a store at one moment, to read only ·
`backups` all of it in a file, and back · `opening` the store of a folder or an address.
"""
