"""What is kept of a collection: in pieces, its row last. Whatever happens to the folder changes nothing."""

import asyncio
import hashlib
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.services import Place, audit, client_of, kept_digest, served, started
from zoomrank.documents import Collection
from zoomrank.service.catalogue import version_history
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.engine import Engine
from zoomrank.service.errors import StorageError
from zoomrank.service.storage.store import Store
from zoomrank.service.storage.store_reader import StoredCollection

pytestmark = pytest.mark.store_contract

DOCUMENTS = 3000


def large_collection() -> Collection:
    """Some hundred kilobytes."""
    return Collection.from_taxonomy(
        {f"d{number}": ("All", f"Branch {number % 30}") for number in range(DOCUMENTS)},
        titles={f"d{number}": f"{number} " * 20 for number in range(DOCUMENTS)},
    )


def _parts(store: Store) -> list[tuple[int, int, int]]:
    return [
        tuple(row) for row in store.database.query("SELECT collection, part, LENGTH(bytes) FROM contents ORDER BY 1, 2")
    ]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("zoomrank.service.catalogue.registry.PIECE", 2**14)
    return 2**14


async def test_content_is_kept_in_pieces(place: Place, small_pieces: int) -> None:
    async with started(place) as engine:
        large = await engine.collections.add("large", large_collection, Settings(slots=3))
        sizes = [size for _, _, size in _parts(engine.store)]
        assert len(sizes) > 5
        assert max(sizes) == small_pieces
        content = b"".join(engine.store.read.content(large.id, 0))
        assert hashlib.sha256(content).hexdigest() == kept_digest(engine.store, large.id)
        impression, _ = await engine.rank(large, "owl")
        titles = list(large.version.collection.titles or [])
    async with started(place) as engine:
        again = engine.collections.find("large")
        assert list(again.version.collection.titles or []) == titles
        assert await engine.feedback(impression, None) == "learned"
        await audit(engine)


async def test_events_are_written_between_the_pieces(
    place: Place, engine: Engine, shop: ServedCollection, small_pieces: int
) -> None:
    """Nobody waits until all of a collection is written."""
    change, loop, ranked = engine.store._change, asyncio.get_running_loop(), []

    def rank_first(statement: str, parameters: Any) -> None:
        if "INTO contents" in statement:
            asked = asyncio.run_coroutine_threadsafe(engine.rank(shop, "owl"), loop)
            ranked.append(asked.result(30))
        change(statement, parameters)

    engine.store._change = rank_first  # type: ignore[method-assign]
    await engine.collections.add("large", large_collection, Settings(slots=3))
    assert len(ranked) > 5
    await audit(engine)


async def test_what_never_was_complete_goes_away(place: Place, small_pieces: int) -> None:
    """The service is killed in the middle; the number is given to another collection later."""
    async with started(place, crash=True) as engine:
        await served(engine)
        engine.store._change("INSERT INTO contents VALUES (?, ?, ?, ?)", (2, 0, 0, b"half of a collection"))
        engine.store._change("INSERT INTO contents VALUES (?, ?, ?, ?)", (2, 0, 1, b"more of it"))
    async with started(place) as engine:
        assert {number for number, _, _ in _parts(engine.store)} == {1}
        other = await engine.collections.add("other", large_collection, Settings(slots=3))
        assert other.id == 2
    async with started(place) as engine:
        assert len(engine.collections.find("other").tree) == DOCUMENTS


@pytest.mark.parametrize("after", [0, 3])
async def test_what_could_not_be_kept_is_let_go_of(
    place: Place, engine: Engine, small_pieces: int, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = engine.store._change
    written = 0

    def fail(statement: str, parameters: Any) -> None:
        nonlocal written
        if "INTO contents" in statement:
            written += 1
            if written > after:
                raise StorageError("full")
        change(statement, parameters)

    with monkeypatch.context() as patched:
        patched.setattr(engine.store, "_change", fail)
        with pytest.raises(StorageError):
            await engine.collections.add("large", large_collection, Settings(slots=3))
    assert not _parts(engine.store)
    assert not engine.collections.by_name
    await engine.collections.add("large", large_collection, Settings(slots=3))


async def test_the_second_of_the_same_name_leaves_no_pieces(
    place: Place, engine: Engine, shop: ServedCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when somebody tries again after the first was reported as failed, and was kept."""
    del engine.collections.by_name["shop"]
    assert (await served(engine)).id == shop.id
    assert {number for number, _, _ in _parts(engine.store)} == {shop.id}


async def test_a_stop_ends_it_before_the_next_piece(
    place: Place, small_pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(place) as engine:
        pieces: list[bytes] = []
        add = engine.store.add_collection

        def stopped(stored: StoredCollection, digest: str, content: Iterable[bytes]) -> None:
            def one_then_stop() -> Iterator[bytes]:
                for piece in content:
                    pieces.append(piece)
                    engine.collections.stop()
                    yield piece

            add(stored, digest, one_then_stop())

        monkeypatch.setattr(engine.store, "add_collection", stopped)
        with pytest.raises(StorageError, match="stopping"):
            await engine.collections.add("large", large_collection, Settings(slots=3))
        assert len(pieces) == 1
    async with started(place) as engine:
        assert not engine.collections.by_name
        assert not _parts(engine.store)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE contents SET bytes = ? WHERE part = 1",
        "UPDATE contents SET bytes = ? WHERE part = 0",
        "DELETE FROM contents WHERE part = 1 AND ? IS NOT NULL",
        "DELETE FROM contents WHERE CAST(? AS INTEGER) IS NULL OR part >= 0",
    ],
)
async def test_content_that_is_damaged_is_refused_in_words(sqlite: Place, small_pieces: int, damage: str) -> None:
    async with started(sqlite) as engine:
        await engine.collections.add("large", large_collection, Settings(slots=3))
        engine.store._change(damage, (b"noise" * 100,))
    with pytest.raises(StorageError, match=r"“large” is damaged in the store.*zoomrank restore"):
        async with started(sqlite):
            pass


def _others(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and "sqlite" not in file.name]


@pytest.mark.parametrize("harm", ["delete", "shorten", "alter", "make"])
async def test_whatever_happens_to_the_folder_what_is_served_stays_as_it_was(place: Place, harm: str) -> None:
    """All files are harmed while the service runs, except those of SQLite itself."""
    async with started(place) as engine, client_of(engine) as client:
        await engine.collections.add("large", large_collection, Settings(slots=3))
        path = "/v1/collections/large/documents?limit=1000&offset=2000"
        before = (await client.get(path)).json()
        place.folder.mkdir(exist_ok=True)
        if harm == "make":  # what earlier versions had, made up
            (place.folder / "collections").mkdir()
            (place.folder / "collections" / f"{'0' * 64}.zoomrank").write_bytes(b"noise")
        for file in _others(place.folder):
            if harm == "delete":
                file.unlink()
            elif harm == "shorten":
                file.write_bytes(b"")
            else:
                file.write_bytes(b"noise" * 10_000)
        large = engine.collections.find("large")
        large.version.document.cache_clear()
        assert (await client.get(path)).json() == before
        assert (await client.post("/v1/collections/large/rank", json={"query": "owl"})).status_code == 200
        assert len(list(large.version.collection)) == DOCUMENTS
        await served(engine, "another")
    async with started(place) as engine, client_of(engine) as client:
        assert (await client.get(path)).json() == before
        await audit(engine)
        assert not (place.folder / "collections").exists()


async def test_nothing_but_the_store_is_in_the_folder(place: Place) -> None:
    async with started(place, crash=True) as engine:
        await engine.rank(await served(engine), "owl")
        assert {file.name for file in _others(place.folder)} <= {"lock"}
    assert {file.name for file in _others(place.folder)} <= {"lock"}


async def test_a_folder_that_was_lost_is_made_again(on_postgres: Place) -> None:
    """Where everything is in PostgreSQL, the folder is for files without a name alone."""
    async with started(on_postgres) as engine:
        await served(engine)
        shutil.rmtree(on_postgres.folder, ignore_errors=True)
        await engine.rank(await served(engine, "another"), "owl")
    async with started(on_postgres) as engine:
        assert sorted(engine.collections.by_name) == ["another", "shop"]


async def test_where_there_are_no_files_without_a_name_memory_takes_their_place(
    sqlite: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_history, "_HAS_THEM", False)
    async with started(sqlite) as engine, client_of(engine) as client:
        await engine.rank(await served(engine), "owl")
        documents = [{"id": number, "path": ["a" * 200]} for number in range(2000)]  # no other process can have it
        assert (await client.post("/v1/collections", json={"name": "l", "documents": documents})).status_code == 201
    async with started(sqlite) as engine:
        assert len(engine.collections.find("l").tree) == 2000
        await audit(engine)
