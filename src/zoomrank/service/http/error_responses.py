"""Error responses: a status, a code for programs, a sentence for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from zoomrank.service.refusals import ServiceError


def refusal(error: ServiceError | ValidationError) -> tuple[int, dict[str, str], dict[str, str]]:
    """Return status, body and headers for an error."""
    if isinstance(error, ValidationError):
        return malformed_response(error.errors(include_url=False, include_input=False))
    headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "60"}, 503: {"Retry-After": "1"}}.get(
        error.status, {}
    )
    return error.status, {"error": error.code, "message": str(error)}, headers


def malformed_response(errors: Sequence[Any]) -> tuple[int, dict[str, str], dict[str, str]]:
    """Return the response to a malformed request."""
    return 422, {"error": "malformed", "message": in_words(errors)}, {}


def in_words(errors: Sequence[Any], *within: str) -> str:
    """Describe the first of some validation errors: where it is, and what it is."""
    first = errors[0]
    where = ".".join(str(step) for step in (*within, *first["loc"])) or "the body"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{where}: {first['msg']}{more}."


def internal_error_response() -> tuple[int, dict[str, str], dict[str, str]]:
    """Return the response to an unexpected failure."""
    message = "Internal error. The log of the service has more, beside the X-Request-Id of this response."
    return 500, {"error": "internal", "message": message}, {}
