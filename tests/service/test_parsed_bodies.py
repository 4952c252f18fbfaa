"""A body that was parsed to find its partition is understood as if it had not been."""

from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_core import from_json

from zoomrank.service.http.fast_path import (
    FEEDBACK,
    FEEDBACK_BATCH,
    RANK,
    RANK_BATCH,
    SEEN,
    FastRoute,
    RouteRule,
    refusal,
)


async def _nothing(asked: Any) -> Any:
    return asked


def _understood(route: FastRoute, body: bytes, content: Any) -> Any:
    try:
        return route.parsed(body, content)
    except ValidationError as error:
        return refusal(error)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (RANK, b'{"query": "owl"}'),
        (RANK, b'{"query": "owl", "slots": 2, "eligible": ["a", 1], "order": [], "fewer": true, "visitor": "v"}'),
        (RANK, b'{"query": "owl", "about": [1, 2.5]}'),
        (RANK, b'{"query": "owl", "about": [1, "x"]}'),
        (RANK, b'{"query": "owl", "slots": "2", "fewer": 1}'),
        (RANK, b'{"query": "owl", "slots": 0, "more": 1}'),
        (RANK, b'{"slots": 0}'),
        (RANK, b'{"query": 1, "eligible": "a", "about": {}}'),
        (RANK, b'{"query": "owl", "eligible": [1.5, null, true]}'),
        (RANK, b"[]"),
        (RANK, b"null"),
        (RANK_BATCH, b'{"requests": [{"query": "owl"}, {"query": "owl", "about": [1, 2.5], "order": ["a", 1]}]}'),
        (RANK_BATCH, b'{"requests": [{"query": "owl"}, {"query": 1, "slots": "2"}]}'),
        (RANK_BATCH, b'{"requests": []}'),
        (FEEDBACK, b'{"impression": "1", "clicked": ["a"], "looked_at": 1}'),
        (FEEDBACK, b'{"impression": "1", "clicked": null}'),
        (FEEDBACK, b'{"impression": "1", "clicked": {}}'),
        (FEEDBACK_BATCH, b'{"feedback": [{"impression": "1", "clicked": 2}, {"impression": "2"}]}'),
        (FEEDBACK_BATCH, b'{"feedback": [1, {"impression": "2"}]}'),
        (FEEDBACK_BATCH, b'{"feedback": []}'),
        (SEEN, b'{"impression": 1}'),
    ],
)
def test_a_parsed_body_is_understood_the_same(path: RouteRule, body: bytes) -> None:
    route = FastRoute.to(_nothing, path)
    plain = _understood(route, body, None)
    assert _understood(route, body, from_json(body)) == plain
    if not isinstance(plain, tuple):  # what the client left out is known
        assert route.parsed(body, from_json(body)).model_fields_set == plain.model_fields_set
