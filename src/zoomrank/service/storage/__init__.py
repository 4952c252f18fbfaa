"""Where the service keeps everything: the log, snapshots, collections; in SQLite or PostgreSQL.

`outcomes` what became of an impression · `events` what is written down of it · `batch` what is written together ·
`journal` many events in one durable write · `store` what a store can do, over `tables` in a `database`, and
`store_reader` what can be read from it · `sqlite_store`, `postgres_store` the two that there are · `store_view` what
either has at one moment · `backups` all of it in a file, and back · `opening` which of them it is.
"""
