"""Rankers behind HTTP: a learner per query, a durable log of everything that was shown and what became of it, a page.

From the inside out: `storage` where everything is kept · `settings` what a collection's owner chooses · `neighbours`
which queries are alike, and what they lend each other · `served_collection` one collection · `query_learner` one
query's ranker, made of events alone · `learner_cache` those in memory · `collection_registry` all collections ·
`engine` the service without HTTP · `http` the service with HTTP · `server` a process that runs it. Beside them:
`impression_names` by which feedback comes back, `nameless_files` which nobody can alter, `refusals`, `logs`.
"""

from importlib.util import find_spec

from zoomrank.errors import MissingExtraError

_NEEDED = ("fastapi", "plotly", "prometheus_client", "pydantic", "uvicorn")

if _missing := [name for name in _NEEDED if find_spec(name) is None]:
    raise MissingExtraError(f"The service needs {', '.join(_missing)}: pip install 'zoomrank[service]'.")
