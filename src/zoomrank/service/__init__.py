"""Rankers behind HTTP: a learner per query, a durable log of everything that was shown and answered, a page to watch.

`settings` what a collection's owner chooses · `events` what is written down · `learner` one query's ranker, made of
events alone · `store` where they are kept (SQLite, PostgreSQL) · `journal` many of them in one durable write ·
`learners` those in memory · `engine` the service without HTTP · `views` what a page shows of it · `api` the service
with HTTP.
"""
