"""MkDocs hook: the metrics that the service registers, by name, type and labels."""

from types import SimpleNamespace
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from zoomrank.service.http.metrics import Metrics

PAGE = "reference/metrics.md"
_BEGINNING = """# Metrics

Look up what `GET /metrics` reports. With keys it needs one with the role `read`.
[Watch the service](../how-to/watch-the-service.md) says what to alert on.

| metric | type | labels | meaning |
|---|---|---|---|
"""
_ENDING = """
The label `replica` is there only where several replicas share a store. `outcome` is `shown`, `satisfied`, `abandoned`,
`unseen`, `seen` or `voided`, or, for feedback beside the outcome, `clicked`, `purchased`, `disliked` or `looked_at`;
void impressions are in none of the others.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """Return the page, as a service with replicas and without collections would report its metrics."""
    engine: Any = SimpleNamespace(collections=SimpleNamespace(by_name={}))
    replicas: Any = SimpleNamespace(status=list, free=lambda: 0, are_several=True)
    return _BEGINNING + "".join(map(_row, Metrics(engine, replicas).collect())) + _ENDING


def _row(family: Any) -> str:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = ", ".join(f"`{label}`" for label in family._labelnames)
    return f"| `{name}` | {family.type} | {labels} | {family.documentation} |\n"
