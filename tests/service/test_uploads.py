"""Collections on their way in: in files without a name, and what is large in a process of its own."""

import asyncio
import contextlib
import hashlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.service.test_collections import KINDS
from tests.support.services import Place, audit, client_of, kept_digest, served, started
from zoomrank.documents import Collection, collection_file
from zoomrank.service.engine import Engine
from zoomrank.service.errors import UnprocessableError
from zoomrank.service.http import builder as maker_module
from zoomrank.service.http.builder_process import _check_ids

HEADERS = {"Content-Type": "application/json"}
THREE = [{"id": number, "path": ["a", f"b{number}"]} for number in range(3)]
WRONG: dict[str, Any] = {
    "no JSON": b'{"name": ',
    "not UTF-8": b'{"name": "\xff"}',
    "nothing": b"",
    "no name": {"documents": THREE},
    "a bad name": {"name": "../x", "documents": THREE},
    "no documents": {"name": "new", "documents": []},
    "two bad documents": {"name": "new", "documents": [*THREE, {"id": 1.5}, {"id": 7, "path": 7}]},
    "twice": {"name": "new", "documents": [*THREE, THREE[0]]},
    "mixed ids": {"name": "new", "documents": [*THREE, {"id": "x", "path": ["a"]}]},
    "mixed kinds": {"name": "new", "documents": [*THREE, {"id": 9, "vector": [1.0]}]},
    "no direction": {"name": "new", "documents": [{"id": 1, "vector": [0.0]}, {"id": 2, "vector": [1.0]}]},
    "bad settings": {"name": "new", "documents": THREE, "settings": {"slots": 0}},
    "too many slots": {"name": "new", "documents": THREE, "settings": {"slots": 4}},
    "there already": {"name": "shop", "documents": THREE, "settings": {"slots": 1}},
}


@pytest.fixture
def in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if everything were large."""
    monkeypatch.setattr(maker_module, "LARGE", -1)


def _nameless(place: Place) -> list[Path]:
    """Files without a name in the folder of a service that this process has open; a collection is mapped from one."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            target = os.readlink(descriptor)
            if target.startswith(str(place.folder)) and target.endswith("(deleted)"):
                found.append(descriptor)
    return found


def _as_bytes(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


@pytest.mark.usefixtures("in_a_process")
@pytest.mark.parametrize(
    "kind", ["texts", *(pytest.param(kind, marks=pytest.mark.full) for kind in ("paths", "numbers"))]
)
async def test_a_process_makes_the_same_collection(sqlite: Place, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with started(sqlite) as engine, client_of(engine) as client:
        made = {}
        for name, large in (("elsewhere", -1), ("here", 2**20)):
            monkeypatch.setattr(maker_module, "LARGE", large)
            body = {"name": name, "documents": KINDS[kind], "settings": {"slots": 2, "seed": 5}}
            response = await client.post("/v1/collections", json=body)
            assert response.status_code == 201, response.text
            assert response.json()["settings"]["seed"] == 5
            made[name] = engine.collections.find(name)
        assert kept_digest(engine.store, made["here"].id) == kept_digest(engine.store, made["elsewhere"].id)
        await engine.rank(made["elsewhere"], "owl")
        assert len(_nameless(sqlite)) == 2
    async with started(sqlite) as engine:
        await audit(engine)


@pytest.mark.parametrize(
    "wrong",
    [
        ("no JSON", "twice", "there already"),
        pytest.param(("two bad documents", "no direction", "too many slots", "there already"), marks=pytest.mark.full),
    ],
    ids=["some", "others"],
)
async def test_a_process_refuses_in_the_same_words(
    sqlite: Place, engine: Engine, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, wrong: tuple[str, ...]
) -> None:
    await served(engine)
    for what in wrong:
        said, body = [], WRONG[what]
        for large in (-1, 2**20):
            monkeypatch.setattr(maker_module, "LARGE", large)
            response = await client.post("/v1/collections", content=_as_bytes(body), headers=HEADERS)
            assert response.status_code == (409 if what == "there already" else 422), (what, response.text)
            said.append(response.json())
        assert said[0] == said[1], what
    assert said[0]["error"] == "exists"
    assert list(engine.collections.by_name) == ["shop"]
    assert len(_nameless(sqlite)) == 1


async def test_what_is_wrong_is_said_with_its_place(engine: Engine, client: httpx.AsyncClient) -> None:
    await served(engine)
    said = {
        what: (await client.post("/v1/collections", content=_as_bytes(body), headers=HEADERS)).json()["message"]
        for what, body in WRONG.items()
    }
    assert said["two bad documents"].startswith("body.documents.3.id")
    assert " more)." in said["two bad documents"]
    assert said["bad settings"].startswith("body.settings.slots: ")
    assert said["no JSON"].startswith("body: Invalid JSON")
    assert said["twice"] == "Document 0 is there twice: ids must be unique."
    for settings in ("{", '{"slots": 99}'):
        refused = await client.put("/v1/collections/new", params={"settings": settings}, content=b"")
        assert refused.json()["message"].startswith("settings")


class Counted(str):
    """Counts how often it is compared."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_the_same_id_twice_is_found_by_looking_once() -> None:
    ids = [Counted(number) for number in range(5000)]
    with pytest.raises(UnprocessableError, match="'4999' is there twice"):
        _check_ids([*ids, Counted(4999)])
    assert Counted.comparisons < 5000


@pytest.mark.usefixtures("in_a_process")
@pytest.mark.parametrize("script", ["import os; os.abort()", "raise MemoryError", "import sys; sys.exit(1)"])
async def test_a_process_that_fails_is_said(
    sqlite: Place, script: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(maker_module, "_COMMAND", [sys.executable, "-c", script])
    async with started(sqlite) as engine, client_of(engine) as client:
        refused = await client.post("/v1/collections", json={"name": "new", "documents": THREE})
        assert (refused.status_code, refused.json()["error"]) == (503, "storage")
        assert "its process exited with" in refused.json()["message"]
        assert not _nameless(sqlite)
    assert ("MemoryError" in caplog.text) == ("MemoryError" in script)


def _lasting(begun: Path) -> list[str]:
    """A process that says that it has begun, and goes on for ever."""
    script = f"import os, time; open({str(begun)!r}, 'a').write(f'{{os.getpid()}}\\n'); time.sleep(1000)"
    return [sys.executable, "-c", script]


async def _begun(file: Path, count: int) -> list[int]:
    while not file.exists() or len(file.read_text().split()) < count:
        await asyncio.sleep(0.01)
    return [int(pid) for pid in file.read_text().split()]


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.usefixtures("in_a_process")
async def test_one_at_a_time_and_none_after_a_stop(sqlite: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = sqlite.folder.parent / "begun"
    monkeypatch.setattr(maker_module, "_COMMAND", _lasting(begun))
    async with started(sqlite) as engine, client_of(engine) as client:
        shop = await served(engine)
        making = [
            asyncio.create_task(client.post("/v1/collections", json={"name": f"c{number}", "documents": THREE}))
            for number in range(3)
        ]
        (pid,) = await _begun(begun, 1)
        await engine.rank(shop, "owl")  # others go on
        await asyncio.sleep(0.1)
        assert len(await _begun(begun, 1)) == 1
        engine.collections.stop()
        for response in await asyncio.gather(*making):
            assert (response.status_code, response.json()["message"]) == (503, "The service is stopping.")
        assert not _is_there(pid)
        assert len(await _begun(begun, 1)) == 1
        late = await client.put("/v1/collections/late", content=b"".join(engine.store.read.content(shop.id, 0)))
        assert (late.status_code, late.json()["message"]) == (503, "The service is stopping.")


def test_the_process_ends_with_a_service_that_is_killed(tmp_path: Path) -> None:
    """Its input never ends, so nothing else would end it."""
    service = (
        "import os, subprocess, sys, time; "
        "command = [sys.executable, '-m', 'zoomrank.service.http.builder_process', str(os.getpid())]; "
        "child = subprocess.Popen(command); "
        "print(child.pid, flush=True); time.sleep(1000)"
    )
    process = subprocess.Popen([sys.executable, "-c", service], stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
    with process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
        for _ in range(600):
            if not _is_there(pid) or not Path(f"/proc/{pid}/cmdline").read_bytes():  # gone, or nobody has looked yet
                return
            time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
        raise AssertionError("it goes on")


async def test_who_leaves_in_the_middle_leaves_nothing_behind(
    sqlite: Place, engine: Engine, client: httpx.AsyncClient
) -> None:
    await served(engine)
    before = sorted(sqlite.folder.rglob("*"))
    halfway = asyncio.Event()

    async def half() -> AsyncIterator[bytes]:
        yield b'{"name": "new", ' + b" " * 2**21
        halfway.set()
        await asyncio.sleep(1000)

    for method, path in (("POST", "/v1/collections"), ("PUT", "/v1/collections/new")):
        halfway.clear()
        sending = asyncio.create_task(client.request(method, path, content=half(), headers=HEADERS))
        await halfway.wait()
        while len(_nameless(sqlite)) < 2:
            await asyncio.sleep(0.01)
        assert sorted(sqlite.folder.rglob("*")) == before  # it has no name
        assert all(file.stat().st_mode & 0o077 == 0 for file in _nameless(sqlite))
        sending.cancel()  # as a stop does that has waited long enough
        assert (await sending).status_code == 503
        assert len(_nameless(sqlite)) == 1


async def test_who_hangs_up_is_no_failure_of_the_service(sqlite: Place, caplog: pytest.LogCaptureFixture) -> None:
    """As servers say it: the body is cut short by a message that the client has gone."""
    from zoomrank.service.http.app import make_app

    async with started(sqlite) as engine:
        app = make_app(engine)
        for method, path in (("POST", "/v1/collections"), ("PUT", "/v1/collections/new")):
            coming = [{"type": "http.request", "body": b"x" * 100, "more_body": True}, {"type": "http.disconnect"}]
            sent: list[Any] = []

            async def receive(coming: Any = coming) -> Any:
                return coming.pop(0)

            async def send(message: Any, sent: Any = sent) -> None:
                sent.append(message)

            headers = [(b"content-type", b"application/json"), (b"host", b"localhost")]
            scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "headers": headers}
            await app(scope | {"query_string": b"", "http_version": "1.1", "app": None}, receive, send)
            assert sent[0]["status"] == 400
        assert not _nameless(sqlite)
    assert not caplog.records


async def test_a_large_body_does_not_stop_the_loop(sqlite: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process reads it, this one has nothing to do with it: it ranks as often as it is asked."""
    go, made = threading.Event(), threading.Event()
    elsewhere = maker_module.CollectionBuilder._make_elsewhere

    def slowly(self: Any, body: Any, file: Any) -> Any:
        found = elsewhere(self, body, file)
        made.set()
        assert go.wait(60)
        return found

    monkeypatch.setattr(maker_module.CollectionBuilder, "_make_elsewhere", slowly)
    async with started(sqlite) as engine, client_of(engine) as client:
        shop = await served(engine)
        documents = [{"id": number, "path": [f"b{number % 7}"]} for number in range(20_000)]
        making = asyncio.create_task(client.post("/v1/collections", json={"name": "l", "documents": documents}))
        ranked = 0
        while not made.is_set() and not making.done():
            await engine.rank(shop, "owl")
            ranked += 1
            await asyncio.sleep(0.001)
        assert ranked > 10
        go.set()
        assert (await making).json()["documents"] == 20_000


def _forged(rng: random.Random, collection: Collection) -> bytes:
    """The file of a collection, altered, with checksums that agree."""
    file = io.BytesIO()
    collection_file.write(collection, file)
    length = collection_file._PREFIX.unpack_from(whole := file.getvalue())[2]
    start = collection_file._PREFIX.size + length
    header, body = json.loads(whole[start - length : start]), bytearray(whole[start:])
    array = rng.choice(header["arrays"])
    match rng.randrange(5):
        case 0:
            array["type"] = rng.choice(["|u1", "<u4", "<i8", "<f4", "<f8"])
        case 1:
            array["shape"] = [max(0, size + rng.choice([-1, 1])) for size in array["shape"]]
        case 2:
            header[rng.choice(["scale", "notes"])] = rng.choice([None, "x", -1, [1], {"a": 1}])
        case _:
            for _ in range(rng.choice([1, 3, 20])):
                body[rng.randrange(len(body))] = rng.randrange(256)
    text = json.dumps({**header, "sha256": hashlib.sha256(body).hexdigest()}).encode()
    text += b" " * (-(collection_file._PREFIX.size + len(text)) % 64)
    prefix = collection_file.MAGIC, collection_file.VERSION, len(text), hashlib.sha256(text).digest()
    return collection_file._PREFIX.pack(*prefix) + text + body


async def test_forged_collections_are_refused_or_served(sqlite: Place) -> None:
    """A client that alters a file computes its checksums again: it is refused, or served as what it says."""
    ids, rng = [f"d{number}" for number in range(60)], random.Random(3)
    paths = {one: f"A{number % 5} > B{number % 15}" for number, one in enumerate(ids)}
    vectors = np.random.default_rng(0).normal(size=(60, 4))
    sources = [
        Collection.from_taxonomy(paths, titles={one: f"ö {one}" for one in ids}),
        Collection.from_vectors(vectors, ids=ids, titles=[f"ä {one}" for one in ids]),
    ]
    asked = [("GET", "/documents", None), ("GET", "/documents?search=d1", None), ("POST", "/rank", {"query": "owl"})]
    asked += [("GET", "/tree?query=owl", None), ("PATCH", "/documents/d3", {"title": "x"}), ("GET", "", None)]
    async with started(sqlite) as engine, client_of(engine) as client:
        accepted = 0
        for number in range(80):
            where = f"/v1/collections/c{number}"
            made = await client.put(where, content=_forged(rng, sources[number % 2]))
            assert made.status_code in (201, 422), made.text
            if made.status_code == 201:
                accepted += 1
                for method, path, body in asked:
                    response = await client.request(method, where + path, json=body)
                    assert response.status_code < 500, (number, method, path)
        assert 0 < accepted < 80
