"""Collections that come over HTTP: by paths, vectors and texts, many at once, and none before it is durable."""

import asyncio
import threading
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest

from tests.support.services import Place, audit, client_of, served, small_collection, started
from zoomrank.documents import Collection
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.engine import Engine
from zoomrank.service.errors import ExistsError
from zoomrank.service.http import page_data
from zoomrank.service.storage.store_reader import StoredCollection

KINDS: dict[str, list[dict[str, Any]]] = {
    "paths": [{"id": f"d{number}", "path": ["All", f"Branch {number % 3}"]} for number in range(9)],
    "numbers": [{"id": -(2**63) + number, "path": [f"{number % 2}"], "title": "ä\x00ö"} for number in range(9)],
    "vectors": [{"id": number, "vector": [number % 3, 1.0, -number]} for number in range(9)],
    "same": [{"id": number, "vector": [1.0, 2.0]} for number in range(9)],
    "texts": [{"id": f"t{number}", "text": f"barn owl number {number}", "url": "javascript:1"} for number in range(9)],
    "one": [{"id": "…", "path": ["x" * 200]}],
}


@pytest.mark.parametrize("kind", KINDS)
async def test_documents_of_each_kind(place: Place, kind: str) -> None:
    body = {"name": "new", "documents": KINDS[kind], "settings": {"slots": 1}}
    async with started(place) as engine, client_of(engine) as client:
        made = await client.post("/v1/collections", json=body)
        assert made.status_code == 201, made.text
        shown = (await client.post("/v1/collections/new/rank", json={"query": "ö 猫 '; DROP TABLE events"})).json()
        clicked = shown["documents"][0]["id"]
        told = await client.post("/v1/feedback", json={"impression": shown["impression"], "clicked": clicked})
        assert told.json()["status"] == "learned"
        listed = (await client.get("/v1/collections/new/documents")).json()
        assert {one["id"] for one in listed["documents"]} == {one["id"] for one in KINDS[kind]}
        for path in ("query?query=ö 猫 '; DROP TABLE events", "tree?query=ö 猫 '; DROP TABLE events", "activity"):
            assert (await client.get(f"/v1/collections/new/{path}")).status_code == 200
        before = (await client.get("/v1/collections/new")).json()
    async with started(place) as engine, client_of(engine) as client:
        assert (await client.get("/v1/collections/new")).json() == before
        await audit(engine)


async def test_collections_that_come_at_once_are_not_mixed_up(place: Place) -> None:
    """Each has its own documents, whoever is first."""

    def documents(number: int) -> Collection:
        return Collection.from_taxonomy({f"c{number} d{one}": ("All", f"B{one % 2}") for one in range(number + 3)})

    async with started(place) as engine:
        names = [f"c{number}" for number in range(8)]
        made = await asyncio.gather(
            *(
                engine.collections.add(name, partial(documents, number), Settings(slots=1))
                for number, name in enumerate(names)
            )
        )
        assert [len(one.tree) for one in made] == [number + 3 for number in range(8)]
        for number, name in enumerate(names):
            rows = page_data.documents(engine.collections.find(name), 0, 100)["documents"]
            assert {row["id"].split()[0] for row in rows} == {f"c{number}"}
    async with started(place) as engine:
        assert sorted(engine.collections.by_name) == names
        assert [len(engine.collections.find(name).tree) for name in names] == [number + 3 for number in range(8)]


@pytest.mark.store_contract
async def test_one_of_two_with_the_same_name(place: Place) -> None:
    async with started(place) as engine:
        both = await asyncio.gather(*(served(engine) for _ in range(2)), return_exceptions=True)
        assert sorted(isinstance(one, ExistsError) for one in both) == [False, True]
        await engine.rank(engine.collections.find("shop"), "owl")
    async with started(place) as engine:
        assert list(engine.collections.by_name) == ["shop"]


async def test_nobody_uses_a_collection_before_it_is_durable(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    writing, go_on = threading.Event(), threading.Event()
    add = engine.store.add_collection

    def slowly(stored: StoredCollection, digest: str, content: Iterable[bytes]) -> None:
        writing.set()
        assert go_on.wait(60)
        add(stored, digest, content)

    monkeypatch.setattr(engine.store, "add_collection", slowly)
    coming = asyncio.create_task(engine.collections.add("new", small_collection, Settings(slots=1)))
    assert await asyncio.to_thread(writing.wait, 60)
    assert "new" not in engine.collections.by_name
    go_on.set()
    await coming
    assert "new" in engine.collections.by_name
