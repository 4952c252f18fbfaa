"""What the OpenAPI document says is what the service does: requests made up from it find no error of the server."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.support.killing import kill, make_collection, nursery
from tests.support.services import Place

PATHS = [
    ("POST", "/v1/collections/{name}/rank"),
    ("POST", "/v1/collections/{name}/rank/batch"),
    ("POST", "/v1/feedback"),
    ("POST", "/v1/feedback/batch"),
    ("POST", "/v1/seen"),
    ("POST", "/v1/collections/{name}/void"),
    ("DELETE", "/v1/collections/{name}/query"),
    ("POST", "/v1/collections/{name}/copies"),
    ("POST", "/v1/copies/{copy}/rank"),
    ("POST", "/v1/copies/{copy}/feedback"),
    ("POST", "/v1/collections"),
    ("PUT", "/v1/collections/{name}"),
    ("DELETE", "/v1/collections/{name}"),
    ("GET", "/v1/collections/{name}/documents"),
    ("POST", "/v1/collections/{name}/documents"),
    ("PATCH", "/v1/collections/{name}/documents/{document}"),
    ("DELETE", "/v1/collections/{name}/documents/{document}"),
    ("POST", "/v1/collections/{name}/changes"),
    ("POST", "/v1/collections/{name}/remake"),
    ("GET", "/v1/collections/{name}/documents/{document}"),
    ("GET", "/v1/collections/{name}/queries"),
    ("GET", "/v1/collections/{name}/query"),
    ("GET", "/v1/collections/{name}/query/curve"),
    ("GET", "/v1/collections/{name}/tree"),
    ("GET", "/v1/collections/{name}/activity"),
    ("GET", "/v1/collections/{name}/export"),
    ("POST", "/v1/collections/{name}/experiments"),
    ("GET", "/v1/collections/{name}/experiments/{experiment}"),
    ("POST", "/v1/collections/{name}/experiments/{experiment}/stop"),
    ("POST", "/v1/collections/{name}/experiments/{experiment}/promote"),
    ("DELETE", "/v1/collections/{name}/experiments/{experiment}"),
    ("GET", "/v1/activity"),
]
WITHOUT_PARAMETERS = [
    ("GET", "/v1/collections"),
    ("GET", "/v1/collections/{name}"),
    ("GET", "/v1/collections/{name}/clicks"),
    ("GET", "/v1/collections/{name}/experiments"),
    ("GET", "/v1/health"),
    ("GET", "/v1/ready"),
    ("GET", "/v1/role"),
    ("GET", "/v1/replicas"),
    ("GET", "/metrics"),
]
TRIED_ELSEWHERE = [("POST", "/v1/collections/{name}/clicks")]  # test_imports.py: logs are no JSON that can be made up
MORE_JSON = ("/v1/seen", *(f"/v1/collections/shop/{what}" for what in ("void", "documents", "changes", "experiments")))
OF_ITS_OWN = (("PUT", "/v1/collections/{name}"), ("DELETE", "/v1/collections/{name}"))  # others need the shop
TRIALS = [(*one, GenerationMode.POSITIVE) for one in PATHS + WITHOUT_PARAMETERS]
TRIALS += [(*one, GenerationMode.NEGATIVE) for one in PATHS]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = Place(tmp_path_factory.mktemp("schema"))
    make_collection(place, similar="paths")  # so that what queries say of themselves is tried, too
    with nursery() as servers:
        pid, found = servers.start(place, 2**30)
        yield found
        kill(pid)


@pytest.fixture(scope="module")
def document(address: str) -> Any:
    return schemathesis.openapi.from_url(f"{address}/v1/openapi.json")


def test_every_path_is_tried(document: Any) -> None:
    known = {(one.ok().method.upper(), one.ok().path) for one in document.get_all_operations()}
    assert known == set(PATHS + WITHOUT_PARAMETERS + TRIED_ELSEWHERE)


@pytest.mark.parametrize("examples", [3, pytest.param(15, marks=pytest.mark.full)])
@pytest.mark.parametrize(("method", "path", "mode"), TRIALS)
def test_no_request_is_too_strange(document: Any, method: str, path: str, mode: GenerationMode, examples: int) -> None:
    operation = document[path][method]
    there = {"name": "shop"} if "{name}" in path and (method, path) not in OF_ITS_OWN else {}
    if "{document}" in path:
        there["document"] = "d000"
    if "{experiment}" in path:
        there["experiment"] = "first"
    fixed = there if there and mode is GenerationMode.POSITIVE else None
    made_up = [positive_data_acceptance] if method != "GET" else []  # its documents and impressions need not exist
    strategy = operation.as_strategy(generation_mode=mode, path_parameters=fixed)

    with requests.Session() as session:

        @given(case=strategy)
        @settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        def ask(case: Any) -> None:
            case.call_and_validate(session=session, excluded_checks=made_up)

        ask()


def test_other_methods_are_not_allowed(document: Any, address: str) -> None:
    known: dict[str, set[str]] = {}
    for one in document.get_all_operations():
        known.setdefault(one.ok().path, set()).add(one.ok().method.upper())
    for path, methods in known.items():
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - methods:
            there = path.format(name="shop", copy="1f", document="d000", experiment="first")
            refused = requests.request(method, address + there, timeout=60)
            assert refused.status_code == 405, (method, path, refused.text)
            assert set(refused.headers["Allow"].split(", ")) == methods
            assert refused.json()["error"] == "http"


def test_what_is_no_json_is_refused(address: str) -> None:
    """No other page can make a browser send JSON here."""
    ranking = (*("/v1/collections/shop/rank" + batch for batch in ("", "/batch")), "/v1/feedback", "/v1/feedback/batch")
    for path in ("/v1/collections", *ranking, "/v1/collections/shop/copies", "/v1/copies/1f/rank", *MORE_JSON):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
            refused = requests.post(address + path, data=b"{}", headers={"Content-Type": kind}, timeout=60)
            assert refused.status_code == 415, (path, kind, refused.text)
