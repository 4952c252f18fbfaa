"""Rankers behind HTTP: a learner per query, a durable log of everything that was shown and what became of it, a page.

From the inside out: `storage` where everything is kept · `settings` what a collection's owner chooses · `neighbours`
which queries are alike, and what they lend each other · `answers` what is said of impressions · `served_collection`
one collection · `query_learner` one query's ranker, made of events alone · `learner_cache` those in memory ·
`collection_registry` all collections · `ledger` what they note is written down and counted · `undoing` what is taken
back · `sweeping` what is done every second · `engine` the service without HTTP · `copies` learners to play with ·
`http` the service with HTTP · `server` a process that runs it. Beside them: `impression_names` by which feedback comes
back, `patience` for how long, `repeats` of requests, `newcomers` among queries, `nameless_files` which nobody can
alter, `refusals`, `logs`; `learner_log` what the log says of a learner, `exporting` for others to read, and `verifying`
whether all else agrees with it.
"""

from importlib.util import find_spec

from zoomrank.errors import MissingExtraError

_NEEDED = ("fastapi", "plotly", "prometheus_client", "pydantic", "uvicorn")

if _missing := [name for name in _NEEDED if find_spec(name) is None]:
    raise MissingExtraError(f"The service needs {', '.join(_missing)}: pip install 'zoomrank[service]'.")
