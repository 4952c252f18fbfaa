"""Rankers behind HTTP: a learner for each query, a durable log of impressions and their feedback, and a page.

From top to bottom:

`server` a process · `http` requests and responses · `engine` the service without HTTP · `learners` one for each query,
and their log · `catalogue` collections and their versions · `experiments` A/B tests · `feedback` what a client reports
of an impression · `idempotency` recognising a retried request · `catalogue_updates` changes of documents ·
`write_queue` the event log: many events in one durable write · `storage` SQLite and PostgreSQL.

Beside them: `rank_options` the options of a ranking, `copies` learners to try things with, `click_import` and `export`
of logs, `verification` of a store against its log, `errors`, `logs`. Nothing here knows of replicas: see
`zoomrank.cluster`.
"""

from importlib.util import find_spec

from zoomrank.errors import MissingExtraError

_NEEDED = ("fastapi", "plotly", "prometheus_client", "pydantic", "uvicorn")

if _missing := [name for name in _NEEDED if find_spec(name) is None]:
    raise MissingExtraError(f"The service needs {', '.join(_missing)}: pip install 'zoomrank[service]'.")
