"""Changes in the body of a request: one JSON document, or a line of JSON for each change.

Lines are read some thousand at a time; each such part is a revision of its own, so other changes need not wait for all
of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from pydantic import BaseModel, TypeAdapter, ValidationError

from zoomrank.service.changing import MOST_AT_ONCE
from zoomrank.service.http import schema
from zoomrank.service.http.error_responses import in_words
from zoomrank.service.refusals import MalformedError

LINES = "application/x-ndjson"
_MOST_BYTES = 2**23  # of the lines of one part

_DOCUMENT: TypeAdapter[schema.AddedDocument] = TypeAdapter(schema.AddedDocument)
_CHANGE: TypeAdapter[schema.Change] = TypeAdapter(schema.Change)


class ChangePart(NamedTuple):
    """Changes that are applied together, and the number of their first line."""

    changes: list[dict[str, Any]]
    line: int


def documents_in(body: IO[bytes], is_lines: bool, there: str) -> Iterator[ChangePart]:
    """Yield the documents of a body as changes that add them, or (`there`) change those that exist."""
    verb = "put" if there == "change" else "add"
    if is_lines:
        yield from _parts(body, _DOCUMENT, lambda one: _as_change(one, verb))
        return
    asked = _whole(body, schema.DocumentsRequest)
    yield ChangePart([_as_change(one, verb) for one in asked.documents], 0)


def changes_in(body: IO[bytes], is_lines: bool) -> Iterator[ChangePart]:
    """Yield the changes of a body."""
    if is_lines:
        yield from _parts(body, _CHANGE, _said)
        return
    yield ChangePart([_said(one) for one in _whole(body, schema.ChangesRequest).changes], 0)


def _as_change(document: schema.AddedDocument, verb: str) -> dict[str, Any]:
    said = _said(document)
    return {verb: said.pop("id"), **said}


def _said(one: BaseModel) -> dict[str, Any]:
    return one.model_dump(exclude_unset=True, exclude_none=True)


def _whole(body: IO[bytes], kind: Any) -> Any:
    body.seek(0)
    try:
        return kind.model_validate_json(body.read())
    except ValidationError as error:
        raise MalformedError(in_words(error.errors(include_url=False, include_input=False), "body")) from error


def _parts(body: IO[bytes], kind: TypeAdapter[Any], said: Any) -> Iterator[ChangePart]:
    body.seek(0)
    changes: list[dict[str, Any]] = []
    first, size = 1, 0
    for number, line in enumerate(body, 1):
        if not line.strip():
            continue
        if not changes:
            first = number
        try:
            changes.append(said(kind.validate_json(line)))
        except ValidationError as error:
            words = in_words(error.errors(include_url=False, include_input=False), f"line {number}")
            raise MalformedError(words) from error
        size += len(line)
        if len(changes) >= MOST_AT_ONCE or size >= _MOST_BYTES:
            yield ChangePart(changes, first)
            changes, size = [], 0
    if changes:
        yield ChangePart(changes, first)


def is_lines(content_type: str) -> bool:
    """Return whether a body has a line for each change."""
    return content_type.partition(";")[0].strip().lower() in (LINES, "application/jsonl", "application/x-jsonlines")
