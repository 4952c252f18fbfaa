"""MkDocs hook: the errors of the service, from their classes."""

from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from zoomrank.service.errors import ServiceError
from zoomrank.service.http.fast_path import refusal

PAGE = "reference/service-errors.md"
_BEGINNING = """# Errors of the service

Look up a status or an `error` code. Every error has the same body, a code for programs and a sentence for people:

```
{"error": "contradiction", "message": "…"}
```

| status | `error` | meaning |
|---|---|---|
"""
_ELSEWHERE = (
    (408, "timeout", "The request arrived too slowly: see [limits](limits.md)."),
    (500, "internal", "A bug: the log of the service has the exception, beside the `X-Request-Id` of the response."),
)
_ENDING = """
{waits} have a header `Retry-After`; [retry safely](../how-to/retry-safely.md) says which requests to send again. The
statuses of feedback, with what is learned, are in [feedback](feedback.md), exceptions of the library in
[zoomrank.errors](errors.md).
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """Return the page: one row a class that has a code of its own."""
    found = {(kind.status, kind.code, (kind.__doc__ or "").split("\n\n")[0].replace("\n", " ")) for kind in _kinds()}
    rows = [f"| {status} | `{code}` | {about} |\n" for status, code, about in sorted(found | set(_ELSEWHERE))]
    waits = sorted({str(kind.status) for kind in _kinds() if "Retry-After" in _headers(kind)})
    return _BEGINNING + "".join(rows) + _ENDING.format(waits=" and ".join(waits))


def _kinds() -> Iterator[type[ServiceError]]:
    waiting: list[type[ServiceError]] = [ServiceError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if {"status", "code"} <= vars(kind).keys():
            yield kind


def _headers(kind: type[ServiceError]) -> dict[str, str]:
    error = ServiceError("")
    error.status = kind.status
    return refusal(error)[2]
