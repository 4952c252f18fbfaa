"""Where the service keeps everything: the log, snapshots, collections; in SQLite or PostgreSQL."""
