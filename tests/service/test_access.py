"""Who may do what, how much of it, and what never gets near the file system."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.services import Place, audit, client_of, served, started
from zoomrank.errors import ParameterError
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.http.access import ROLES, SMALL_BODY, Keys
from zoomrank.service.server import is_loopback, make_server

SECRETS = {role: f"{role}-{'x' * 20}" for role in ROLES}
REQUESTS = {  # what needs which role
    ("POST", "/v1/collections/shop/rank"): "rank",
    ("POST", "/v1/collections/shop/rank/batch"): "rank",
    ("POST", "/v1/feedback"): "feedback",
    ("POST", "/v1/feedback/batch"): "feedback",
    ("POST", "/v1/seen"): "feedback",
    ("GET", "/v1/collections"): "read",
    ("GET", "/v1/collections/shop"): "read",
    ("GET", "/v1/collections/shop/documents"): "read",
    ("GET", "/v1/collections/shop/queries"): "read",
    ("GET", "/v1/collections/shop/query?query=owl"): "read",
    ("GET", "/v1/collections/shop/tree?query=owl"): "read",
    ("GET", "/v1/collections/shop/activity"): "read",
    ("GET", "/v1/activity"): "read",
    ("GET", "/v1/replicas"): "read",
    ("GET", "/metrics"): "read",
    ("GET", "/v1/openapi.json"): "read",
    ("GET", "/nothing"): "read",
    ("POST", "/v1/collections"): "admin",
    ("GET", "/v1/collections/shop/export"): "admin",
    ("PUT", "/v1/collections/new"): "admin",
    ("DELETE", "/v1/collections/nothing"): "admin",
    ("PATCH", "/nothing"): "admin",
    ("GET", "/v1/health"): None,
    ("GET", "/v1/ready"): None,
}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org", "", "10.0.0.1", "127.0.0.1.nip.io"])  # noqa: S104
def test_without_keys_nobody_else_can_reach_it(tmp_path: Path, host: str) -> None:
    with pytest.raises(ParameterError, match="keys are needed"):
        make_server(tmp_path / "data", host)
    with pytest.raises(ParameterError, match="keys are needed"):
        make_server(tmp_path / "data", host, keys=Keys({}))
    assert not (tmp_path / "data").exists()


async def test_without_keys_it_serves_its_own_names_alone(sqlite: Place) -> None:
    async with started(sqlite) as engine, client_of(engine) as client:
        for name, status in (
            ("localhost:8000", 200),
            ("127.0.0.1", 200),
            ("[::1]:80", 200),
            ("rebound.example", 403),
        ):
            response = await client.get("/v1/collections", headers={"Host": name})
            assert response.status_code == status
    async with started(sqlite) as engine, client_of(engine, Keys({SECRETS["read"]: "read"})) as client:
        given = {"Host": "rank.example", "Authorization": f"Bearer {SECRETS['read']}"}
        assert (await client.get("/v1/collections", headers=given)).status_code == 200


async def test_without_keys_only_its_own_pages_change_anything(sqlite: Place) -> None:
    """A request without a body needs no consent from the service before a browser sends it."""
    async with started(sqlite) as engine, client_of(engine) as client:
        await served(engine)
        for origin, status in (("https://evil.example", 403), ("null", 403), ("http://localhost:8000", 200)):
            for method, path in (("POST", "remake"), ("PATCH", "documents/a"), ("DELETE", "query?query=owl")):
                headers = {"Origin": origin, "Host": "localhost:8000", "Content-Type": "application/json"}
                response = await client.request(method, f"/v1/collections/shop/{path}", headers=headers)
                assert (response.status_code == 403) == (status == 403), (origin, method)
        evil = {"Origin": "https://evil.example", "Host": "localhost:8000"}
        assert (await client.get("/v1/collections", headers=evil)).status_code == 200  # a page cannot read it


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost"])
def test_addresses_of_this_machine(host: str) -> None:
    assert is_loopback(host)


async def test_roles(sqlite: Place) -> None:
    keys = Keys({secret: role for role, secret in SECRETS.items()})
    async with started(sqlite) as engine, client_of(engine, keys) as client:
        await served(engine)

        async def status(request: tuple[str, str], header: str | None) -> int:
            headers = {"Content-Type": "application/json"}
            headers |= {} if header is None else {"Authorization": header}
            return (await client.request(*request, headers=headers)).status_code

        for request, needed in REQUESTS.items():
            for wrong in (None, "", "Bearer", "Bearer ", "Bearer nobody-has-this-key", f"Basic {SECRETS['admin']}"):
                assert (await status(request, wrong) == 401) == (needed is not None), (request, wrong)
            for role, secret in SECRETS.items():
                allowed = needed is None or role in (needed, "admin") or (needed, role) == ("feedback", "rank")
                for header in (f"Bearer {secret}", f"bearer  {secret} "):
                    assert (await status(request, header) in (401, 403)) != allowed, (request, role)
            assert list(engine.collections.by_name) == ["shop"], request


async def test_a_key_has_its_role_told(sqlite: Place) -> None:
    keys = Keys({secret: role for role, secret in SECRETS.items()})
    async with started(sqlite) as engine:
        async with client_of(engine, keys) as client:
            for role in ("read", "admin"):
                told = await client.get("/v1/role", headers={"Authorization": f"Bearer {SECRETS[role]}"})
                assert told.json() == {"role": role}
            assert (await client.get("/v1/role")).status_code == 401
        async with client_of(engine) as client:
            assert (await client.get("/v1/role")).json() == {"role": "admin"}


async def test_a_refusal_says_what_to_do(sqlite: Place) -> None:
    keys = Keys({secret: role for role, secret in SECRETS.items()})
    async with started(sqlite) as engine, client_of(engine, keys) as client:
        refused = await client.get("/v1/collections")
        assert refused.headers["www-authenticate"] == "Bearer"
        assert refused.json()["error"] == "missing_key"
        refused = await client.get("/v1/collections", headers={"Authorization": f"Bearer {SECRETS['rank']}"})
        assert refused.json() == {
            "error": "forbidden",
            "message": "This key may rank, but this request needs a key that may read.",
        }
        assert refused.headers["x-content-type-options"] == "nosniff"
        given = {"Authorization": f"Bearer {SECRETS['feedback']}"}
        refused = await client.post("/v1/collections/shop/rank", json={"query": "owl"}, headers=given)
        assert refused.json()["message"] == "This key may give feedback, but this request needs a key that may rank."


def test_files_of_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    path.write_text(f"# ours\nadmin {SECRETS['admin']}\n\n  rank   {SECRETS['rank']}  # of the web shop\n")
    keys = Keys.read(path)
    keys.check("rank", f"Bearer {SECRETS['rank']}".encode())
    keys.check("read", f"Bearer {SECRETS['admin']}".encode())
    for wrong in ("", "# nothing\n", "boss 1234567890123456", "admin short", "admin", "rank\t1234567890123456789"):
        path.write_text(wrong)
        with pytest.raises(ParameterError, match=r"keys\.txt"):
            Keys.read(path)


async def test_bodies_have_a_limit(sqlite: Place) -> None:
    async def chunks(total: int) -> AsyncIterator[bytes]:
        for _ in range(total // 2**16):
            yield b" " * 2**16

    async with started(sqlite) as engine, client_of(engine, largest_body=2**23) as client:
        await served(engine)
        for method, path, limit in (
            ("POST", "/v1/feedback", SMALL_BODY),
            ("POST", "/v1/feedback/batch", SMALL_BODY),
            ("POST", "/v1/collections/shop/rank", SMALL_BODY),
            ("POST", "/v1/collections/shop/rank/batch", SMALL_BODY),
            ("POST", "/v1/collections", 2**23),
            ("PUT", "/v1/collections/new", 2**23),
        ):
            json_type = {"Content-Type": "application/json"}
            told = await client.request(method, path, content=b" " * (limit + 1), headers=json_type)
            assert (told.status_code, told.json()["error"]) == (413, "too_large"), path
            counted = await client.request(method, path, content=chunks(limit + 2**17), headers=json_type)
            assert (counted.status_code, counted.json()["error"]) == (413, "too_large"), path
        assert list(engine.collections.by_name) == ["shop"]
        assert not [file for file in sqlite.folder.iterdir() if file.stat().st_size > 2**20]


TRICKS = [
    *("..", ".", "../x", "..%2fx", "%2e%2e", "%2e%2e%2f%2e%2e%2fetc", "a/b", "a%2fb", "a\\b", "%00", "a%00b"),
    *("~", "-a", "_a", ".a", "a b", "a%0a", "ä", "con:", "x" * 65, "%ff"),
]


async def test_names_with_tricks_never_reach_the_file_system(
    sqlite: Place, engine: Engine, shop: ServedCollection, client: httpx.AsyncClient
) -> None:
    content = b"".join(engine.store.read.content(shop.id, 0))
    before = sorted(sqlite.folder.rglob("*"))
    around = sorted(sqlite.folder.parent.iterdir())
    for trick in TRICKS:
        put = await client.put(f"/v1/collections/{trick}", content=content)
        assert put.status_code in (404, 405, 422), (trick, put.text)
        post = await client.post("/v1/collections", json={"name": trick, "documents": [{"id": 1, "path": ["a"]}]})
        assert post.status_code == 422, (trick, post.text)
        for path in ("", "/documents", "/queries", "/query?query=a", "/activity"):
            got = await client.get(f"/v1/collections/{trick}{path}")
            assert got.status_code in (404, 422) or trick in (".", ".."), (trick, got.text)
        got = await client.get(f"/page/{trick}")
        assert got.status_code in (404, 405, 422) or trick in (".", "..", "%2e%2e"), (trick, got.text)
        assert list(engine.collections.by_name) == ["shop"], trick
        assert sorted(sqlite.folder.rglob("*")) == before, trick
        assert sorted(sqlite.folder.parent.iterdir()) == around, trick


NOT_RANKED: list[Any] = [
    {},
    [],
    {"query": ""},
    {"query": "x" * 513},
    {"query": "a\x00b"},
    {"query": 5},
    {"query": None},
    {"query": "owl", "slots": 0},
    {"query": "owl", "slots": 4},
    {"query": "owl", "slots": 10**30},
    {"query": "owl", "slots": "two"},
    {"query": "owl", "slots": 1.5},
    {"query": "owl", "more": 1},
    {"query": "owl", "eligible": []},
    {"query": "owl", "eligible": ["d000"]},
    {"query": "owl", "eligible": ["nothing", "d000", "d001", "d002"]},
    {"query": "owl", "eligible": [True, "d000", "d001"]},
    {"query": "owl", "eligible": [["d000"]]},
    {"query": "owl", "excluded": [1.5]},
    {"query": "owl", "excluded": ["nothing"]},
    {"query": "owl", "excluded": [2**63]},
]


async def test_what_cannot_be_ranked_is_refused(engine: Engine, client: httpx.AsyncClient) -> None:
    await served(engine)
    for body in NOT_RANKED:
        refused = await client.post("/v1/collections/shop/rank", json=body)
        assert refused.status_code == 422, (body, refused.text)
        assert set(refused.json()) == {"error", "message"}, body
    for text in (
        b"",
        b"{",
        b"\xff",
        b'"\\ud800"',
        b'{"query": "\\ud800"}',
        b'{"query": "\xed\xa0\x80"}',
        b"NaN",
    ):
        refused = await client.post(
            "/v1/collections/shop/rank", content=text, headers={"Content-Type": "application/json"}
        )
        assert refused.status_code == 422, (text, refused.text)
    assert not (await audit(engine)).outcomes


NO_COLLECTIONS: list[tuple[Any, dict[str, Any]]] = [  # documents (None: three that are fine), and settings
    ([], {}),
    ([{"id": 1}], {}),
    ([{"id": 1, "path": ["a"]}, {"id": 2, "vector": [1.0]}], {}),
    ([{"id": 1, "path": ["a"]}, {"id": 1, "path": ["b"]}], {}),
    ([{"id": True, "path": ["a"]}], {}),
    ([{"id": 1.5, "path": ["a"]}], {}),
    ([{"id": None, "path": ["a"]}], {}),
    ([{"id": 2**63, "path": ["a"]}], {}),
    ([{"id": 1, "path": []}], {}),
    ([{"id": 1, "path": [""]}], {}),
    ([{"id": 1, "path": ["a"] * 51}], {}),
    ([{"id": 1, "path": ["a"], "more": 1}], {}),
    ([{"id": 1, "vector": []}], {}),
    ([{"id": 1, "vector": [1.0, 2.0]}, {"id": 2, "vector": [1.0]}], {}),
    ([{"id": 1, "vector": ["x"]}], {}),
    ([{"id": 1, "vector": [0.0, 0.0]}, {"id": 2, "vector": [1.0, 0.0]}], {}),
    ([{"id": 1, "path": ["a"]}, {"id": "1", "path": ["a"]}], {}),
    ([{"id": 1, "vector": [float("nan")]}, {"id": 2, "vector": [1.0]}], {}),
    ([{"id": 1, "vector": [float("inf")]}, {"id": 2, "vector": [1.0]}], {}),
    (None, {"slots": 0}),
    (None, {"slots": 51}),
    (None, {"slots": 4}),
    (None, {"algorithm": "RankEXP3"}),
    (None, {"algorithm": "__class__"}),
    (None, {"algorithm": "Ranked"}),
    (None, {"seed": -1}),
    (None, {"seed": 2**63}),
    (None, {"feedback_within": 0}),
    (None, {"feedback_within": float("nan")}),
    (None, {"feedback_within": 1e300}),
    (None, {"no_feedback": "maybe"}),
    (None, {"more": 1}),
    (None, {"parameters": {"more": 1}}),
    (None, {"parameters": {"tree": 1}}),
    (None, {"parameters": {"self": 1}}),
    (None, {"parameters": {"seed": [1]}}),
    (None, {"algorithm": "RankThompson", "parameters": {"prior": -1}}),
    (None, {"algorithm": "RankThompson", "parameters": {"prior": "many"}}),
    (None, {"algorithm": "RankThompson", "parameters": {"prior": float("nan")}}),
    (None, {"algorithm": "RankThompson", "parameters": {"prior": float("inf")}}),
    (None, {"algorithm": "RankKLUCB", "parameters": {"exploration": "much"}}),
    (None, {"algorithm": "RankUCB1", "parameters": {"exploration": "much"}}),
    (None, {"algorithm": "RankUCB1", "parameters": {"exploration": float("inf")}}),
    (None, {"algorithm": "RankUCB1", "parameters": {"horizon": -5}}),
    (None, {"algorithm": "RankZoom", "parameters": {"horizon": "long"}}),
    (None, {"algorithm": "RankContextZoom", "parameters": {"scale": "wide"}}),
    (None, {"algorithm": "RankContextZoom", "parameters": {"scale": 0}}),
    (None, {"algorithm": "RankContextZoom", "parameters": {"scale": float("inf")}}),
]


async def test_what_cannot_be_a_collection_is_refused(sqlite: Place) -> None:
    async with started(sqlite) as engine, client_of(engine) as client:
        three = [{"id": number, "path": ["a", f"b{number}"]} for number in range(3)]
        for documents, settings in NO_COLLECTIONS:
            body = {"name": "new", "documents": three if documents is None else documents}
            body["settings"] = {"slots": 1, **settings}
            refused = await client.post(
                "/v1/collections", content=json.dumps(body), headers={"Content-Type": "application/json"}
            )
            assert refused.status_code == 422, (body, refused.text)
            assert set(refused.json()) == {"error", "message"}, body
            assert not engine.collections.by_name, body
    async with started(sqlite) as engine:
        assert not engine.collections.by_name


async def test_a_file_that_is_no_collection_is_refused_and_not_kept(
    sqlite: Place, engine: Engine, shop: ServedCollection, client: httpx.AsyncClient
) -> None:
    content = b"".join(engine.store.read.content(shop.id, 0))
    before = sorted(sqlite.folder.rglob("*"))
    middle = len(content) // 2
    for wrong in (
        b"",
        b"nothing",
        content[:middle],
        content[: len(content) - 1],
        content + b"x",
        content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        b"\x80\x04\x95" + content,  # as a pickle begins
    ):
        refused = await client.put("/v1/collections/new", content=wrong)
        assert refused.status_code == 422, refused.text
        assert str(sqlite.folder) not in refused.text
    for settings in ("", "{", "[]", '{"slots": 99}', '{"more": 1}', "null"):
        refused = await client.put("/v1/collections/new", params={"settings": settings}, content=content)
        assert refused.status_code == 422, refused.text
    assert sorted(sqlite.folder.rglob("*")) == before
    taken = await client.put("/v1/collections/new", params={"settings": '{"slots": 2}'}, content=content)
    assert taken.status_code == 201
    again = await client.put("/v1/collections/new", content=content)
    assert (again.status_code, again.json()["error"]) == (409, "exists")


def test_no_pickle_anywhere() -> None:
    import zoomrank.service

    for file in Path(zoomrank.service.__file__).parent.rglob("*.py"):
        text = file.read_text()
        assert "pickle" not in text
        assert "eval(" not in text
        assert "allow_pickle" not in text


OUR_PAGES, OTHER_PAGES = "https://shop.example", "https://shop.example.evil.example"


def _question(origin: str) -> dict[str, str]:
    """What a browser asks before it sends JSON with a key to another origin."""
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
    return {"Origin": origin, **asked}


async def test_pages_of_an_origin_that_is_allowed_may_give_feedback_and_no_more(sqlite: Place) -> None:
    keys = Keys({secret: role for role, secret in SECRETS.items()})
    async with started(sqlite) as engine, client_of(engine, keys, origins=[OUR_PAGES]) as client:
        await served(engine)
        given = {"Authorization": f"Bearer {SECRETS['feedback']}", "Origin": OUR_PAGES}
        for path in ("/v1/feedback", "/v1/feedback/batch", "/v1/seen"):
            may = await client.options(path, headers=_question(OUR_PAGES))
            assert may.status_code == 204
            assert may.headers["access-control-allow-origin"] == OUR_PAGES
            assert may.headers["access-control-allow-methods"] == "POST"
            assert set(may.headers["access-control-allow-headers"].split(", ")) == {"authorization", "content-type"}
            said = await client.post(path, json={"impression": "?", "clicked": None}, headers=given)
            assert said.status_code in (404, 422)
            assert said.headers["access-control-allow-origin"] == OUR_PAGES  # a page may read refusals, too
            assert said.headers["vary"] == "origin"
            for others in (OTHER_PAGES, "null", "http://shop.example"):
                refused = await client.options(path, headers=_question(others))
                assert refused.status_code == 401
                assert "access-control-allow-origin" not in refused.headers
                said = await client.post(path, json={}, headers={**given, "Origin": others})
                assert "access-control-allow-origin" not in said.headers
        for path in ("/v1/collections/shop/rank", "/v1/collections", "/v1/collections/shop/void", "/v1/health"):
            refused = await client.options(path, headers=_question(OUR_PAGES))
            assert refused.status_code != 204
            assert "access-control-allow-origin" not in refused.headers


async def test_unless_told_so_no_page_elsewhere_may_do_anything(client: httpx.AsyncClient) -> None:
    refused = await client.options("/v1/feedback", headers=_question(OUR_PAGES))
    assert refused.status_code == 405
    assert not any(name.startswith("access-control") for name in refused.headers)


@pytest.mark.parametrize("origin", ["*", "shop.example", "https://shop.example/", "https://Shop.example", "null", ""])
def test_what_is_no_origin_is_refused_at_start(tmp_path: Path, origin: str) -> None:
    with pytest.raises(ParameterError, match="is not an origin"):
        make_server(tmp_path / "data", port=0, origins=[origin])
