"""What is logged: one line each, with the request that caused it; a 5xx once. And what every response carries."""

import asyncio
import io
import json
import logging
import signal
import time
from typing import Any

import httpx
import pytest

from tests.service.test_command import _ask, serving
from tests.support.killing import make_collection
from tests.support.services import Place, client_of, served, started
from zoomrank.cli import main
from zoomrank.service import logs
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.errors import StorageError
from zoomrank.service.http.access import request_id
from zoomrank.service.logs import REQUEST, JsonFormatter, TextFormatter


def _lines(formatter: logging.Formatter, log: Any) -> list[str]:
    """What a handler with a formatter writes."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    logger = logging.Logger("test")
    logger.addHandler(handler)
    log(logger)
    return stream.getvalue().splitlines()


def _fail(logger: logging.Logger) -> None:
    try:
        int("two\nlines")
    except ValueError:
        logger.exception("It failed: %s", "here\nand there")


def test_json_is_one_line_each() -> None:
    token = REQUEST.set("mine")
    (line,) = _lines(JsonFormatter(), _fail)
    REQUEST.reset(token)
    told = json.loads(line)
    assert (told["level"], told["message"], told["request"]) == ("error", "It failed: here\nand there", "mine")
    assert "ValueError: " in told["exception"]
    assert "Traceback" in told["exception"]
    assert time.strptime(told["time"][:19], "%Y-%m-%dT%H:%M:%S")
    assert told["time"].endswith("Z")
    (line,) = _lines(JsonFormatter(), lambda logger: logger.warning("Plain."))
    assert set(json.loads(line)) == {"time", "level", "message"}


def test_text_is_one_line_and_nobody_can_make_one_up() -> None:
    (line,) = _lines(TextFormatter(), lambda logger: logger.warning("GET %s", "/a\n2026-01-01 error: invented"))
    assert " warning: GET /a\\n2026-01-01 error: invented" in line
    first, *others = _lines(TextFormatter(), _fail)
    assert first.endswith("error: It failed: here\\nand there")
    assert "Traceback" in others[0]


@pytest.mark.parametrize(
    ("given", "taken"),
    [(b"a", True), (b"x" * 64, True), (b"A-b_c.9", True), (b"", False), (b"x" * 65, False), (b"a b", False)]
    + [(bad, False) for bad in (b"a\n", b"<a>", "ä".encode(), b'"')],
)
async def test_ids_of_requests(client: httpx.AsyncClient, given: bytes, taken: bool) -> None:
    for path in ("/v1/health", "/v1/collections", "/nothing", "/"):
        found = (await client.get(path, headers={b"X-Request-Id": given})).headers["x-request-id"]
        assert (found.encode() == given) == taken
        assert request_id(found.encode()) == found  # what is made up could have been given


def test_ids_that_are_made_differ() -> None:
    assert len({request_id(None) for _ in range(1000)}) == 1000


async def test_a_5xx_is_logged_with_its_request(
    sqlite: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Noted(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            record.request = REQUEST.get()
            return True

    caplog.handler.addFilter(Noted())
    monkeypatch.setattr(logs, "SELDOM", 0.0)

    def refuse(*_: Any) -> None:
        raise StorageError("no")

    def break_(*_: Any) -> None:
        raise ZeroDivisionError("nobody expects this")

    async with started(sqlite) as engine, client_of(engine) as client:
        await served(engine)
        for broken, status in ((refuse, 503), (break_, 500)):
            with monkeypatch.context() as patched:
                patched.setattr(engine.store.read, "find", broken)
                patched.setattr(engine.store.read, "queries", broken)
                for method, path, body in (
                    ("POST", "/v1/collections/shop/rank", {"query": "owl"}),
                    ("GET", "/v1/collections/shop/queries", None),
                ):
                    caplog.clear()
                    name = f"{status}-{method}"
                    told = await client.request(method, path, json=body, headers={"X-Request-Id": name})
                    assert (told.status_code, set(told.json())) == (status, {"error", "message"})
                    assert told.headers["x-request-id"] == name
                    (record,) = [one for one in caplog.records if "zoomrank.service.http" in one.name]
                    assert record.getMessage() == f"{method} {path}: {status}"
                    assert record.request == name  # type: ignore[attr-defined]
                    assert (record.exc_info is not None) == (status == 500)
        caplog.clear()
        assert (await client.get("/v1/collections/none")).status_code == 404
        assert not caplog.records
        monkeypatch.setattr(logs, "SELDOM", 1000.0)
        monkeypatch.setattr(engine.store.read, "find", refuse)
        for _ in range(20):
            await client.post("/v1/collections/shop/rank", json={"query": "owl"})
        assert not caplog.records  # refusals in words: there was one of late
        monkeypatch.setattr(logs, "SELDOM", 0.0)
        await client.post("/v1/collections/shop/rank", json={"query": "owl"})
        assert "and 20 more" in caplog.text


async def test_what_others_do_for_a_request_names_it(
    engine: Engine, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that makes a collection, a thread that reads."""
    seen: list[str] = []
    add, find = engine.store.add_collection, engine.store.read.find

    def noting(*given: Any) -> None:
        seen.append(REQUEST.get())
        add(*given)

    def finding(*given: Any) -> Any:
        seen.append(REQUEST.get())
        return find(*given)

    monkeypatch.setattr(engine.store, "add_collection", noting)
    monkeypatch.setattr(engine.store.read, "find", finding)
    body = {"name": "new", "documents": [{"id": 1, "path": ["a"]}], "settings": {"slots": 1}}
    await client.post("/v1/collections", json=body, headers={"X-Request-Id": "making"})
    await client.post("/v1/collections/new/rank", json={"query": "a"}, headers={"X-Request-Id": "ranking"})
    assert seen == ["making", "ranking"]


async def test_head_is_get_without_a_body(engine: Engine, client: httpx.AsyncClient) -> None:
    await engine.rank(await served(engine), "owl")
    paths = [
        "",
        "/documents",
        "/queries",
        "/query?query=owl",
        "/tree?query=owl",
        "/activity",
        "/query?query=no",
    ]
    others = ["/v1/health", "/v1/ready", "/metrics", "/v1/openapi.json", "/", "/page/app.js", "/nothing"]
    for path in [f"/v1/collections/shop{path}" for path in paths] + others:
        got, head = await client.get(path), await client.head(path)
        assert (head.status_code, head.content) == (got.status_code, b""), path
        assert head.headers["content-type"] == got.headers["content-type"]
        if path != "/metrics":  # which counts requests
            assert head.headers["content-length"] == got.headers["content-length"]
    assert (await client.head("/v1/feedback")).status_code == 405


def test_lines_of_the_command_and_keys_that_change(sqlite: Place) -> None:
    make_collection(sqlite)
    keys = sqlite.folder.parent / "keys.txt"
    first, second = "f" * 20, "s" * 20
    keys.write_text(f"admin {first}\n")
    with serving("--data", str(sqlite.folder), "--keys", str(keys), "--log", "json") as (process, address):

        def status(key: str) -> int:
            return _ask(address, "GET", "/v1/collections", key=key)[0]

        def until(key: str, wanted: int) -> None:
            while status(key) != wanted:
                time.sleep(0.05)

        assert (status(first), status(second)) == (200, 401)
        keys.write_text(f"admin {second}\nread {'x' * 20}\n")
        until(second, 200)
        assert status(first) == 401
        keys.write_text("nonsense")
        process.send_signal(signal.SIGHUP)
        assert process.stderr is not None
        while "stay as they were" not in (line := process.stderr.readline()):
            assert line
        assert json.loads(line)["level"] == "error"
        assert status(second) == 200
        keys.unlink()
        while "stay as they were" not in process.stderr.readline():
            continue
        assert status(second) == 200
        keys.write_text(f"admin {first}\n")
        process.send_signal(signal.SIGHUP)
        until(first, 200)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        rest = [json.loads(line) for line in process.stderr.read().splitlines()]
        assert rest[-1]["message"] == "Stopped; all data is saved."


@pytest.mark.parametrize("command", ["serve", "demo-service"])
@pytest.mark.parametrize("wrong", ["nan", "-1", "0", "inf"])
def test_memory_that_cannot_be(command: str, wrong: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--port", "0", "--data", str(tmp_path / "data")]
    assert main([command, *options, f"--memory={wrong}"]) == 2
    assert "--memory" in capsys.readouterr().err
    if command == "serve":
        assert main([command, *options, f"--largest-body={wrong}"]) == 2
        assert "--largest-body" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


async def test_a_body_that_is_too_large_is_told_its_own_limit(sqlite: Place) -> None:
    async with started(sqlite) as engine, client_of(engine, largest_body=2**23) as client:
        headers = {"Content-Type": "application/json"}
        for path in ("/v1/feedback", "/v1/feedback/batch", "/v1/collections/shop/rank"):
            told = (await client.post(path, content=b" " * (2**22 + 1), headers=headers)).json()["message"]
            assert "4 MB" in told
            assert "--" not in told
        told = (await client.post("/v1/collections", content=b" " * (2**23 + 1), headers=headers)).json()["message"]
        assert "--largest-body" in told


async def test_a_request_that_a_stop_gave_up_is_told(
    engine: Engine, shop: ServedCollection, client: httpx.AsyncClient
) -> None:
    forever = asyncio.Event()

    async def waits(*_: Any, **__: Any) -> Any:
        await forever.wait()

    engine.rank = waits  # type: ignore[method-assign]
    asking = asyncio.create_task(client.post(f"/v1/collections/{shop.name}/rank", json={"query": "owl"}))
    await asyncio.sleep(0.05)
    asking.cancel()
    told = await asking
    assert (told.status_code, told.json()["message"]) == (503, "The service is stopping.")


@pytest.mark.parametrize("bad", ["\x1b[2J", "\x85", "\u2028", "\u202e", "\ud800", "\x00", "\r\n2026 error: forged"])
def test_a_line_holds_nothing_that_a_terminal_obeys(bad: str) -> None:
    def log(logger: logging.Logger) -> None:
        try:
            int(bad + "x")
        except ValueError:
            logger.exception("owl %s end", bad)

    text = _lines(TextFormatter(), log)
    assert all(line.isprintable() for line in text)
    assert text[0].endswith(f"owl {json.dumps(bad)[1:-1]} end")
    [line] = _lines(JsonFormatter(), log)
    line.encode()
    assert json.loads(line)["message"] == f"owl {bad} end"
