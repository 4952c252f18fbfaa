"""A SQLite file that is damaged: refused in words, at start and while the service runs."""

import random
import sqlite3
from pathlib import Path

import pytest

from tests.support.services import Place, client_of, served, started
from zoomrank.service.errors import StorageError
from zoomrank.service.storage import sqlite_store


async def _filled(place: Place) -> Path:
    """A file of many pages."""
    async with started(place) as engine:
        shop = await served(engine)
        for number in range(300):
            await engine.rank(shop, f"query {number}")
    return place.folder / "zoomrank.sqlite"


def _damage(file: Path, pages: range) -> None:
    content = bytearray(file.read_bytes())
    for page in pages:
        content[4096 * page : 4096 * (page + 1)] = random.Random(page).randbytes(4096)
    file.write_bytes(content)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
async def test_noise_in_the_middle_is_refused_at_start(sqlite: Place, share: float) -> None:
    file = await _filled(sqlite)
    middle = int(share * file.stat().st_size / 4096)
    _damage(file, range(middle, middle + 3))
    for _ in range(2):  # and nobody holds the folder afterwards
        with pytest.raises(StorageError, match=r"is damaged: .*zoomrank verify.*zoomrank restore"):
            sqlite.open()


@pytest.mark.parametrize("page", [0, 1])
async def test_noise_at_the_beginning_is_refused_at_start(sqlite: Place, page: int) -> None:
    file = await _filled(sqlite)
    _damage(file, range(page, page + 1))
    with pytest.raises(StorageError, match=r"is damaged: .*zoomrank restore"):
        sqlite.open()


async def test_a_file_that_is_cut_short_is_refused_at_start(sqlite: Place) -> None:
    file = await _filled(sqlite)
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 8192 * 4096])
    with pytest.raises(StorageError, match=r"is damaged: .*zoomrank restore"):
        sqlite.open()


async def test_a_file_that_is_too_large_to_be_looked_through_is_believed(
    sqlite: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = await _filled(sqlite)
    _damage(file, range(int(0.5 * file.stat().st_size / 4096), int(0.5 * file.stat().st_size / 4096) + 3))
    monkeypatch.setattr(sqlite_store, "_CHECKED", 4096)
    sqlite.open()


async def test_damage_while_it_runs_is_said_in_words(sqlite: Place) -> None:
    async with started(sqlite) as engine, client_of(engine) as client:
        shop = await served(engine)
        for number in range(300):
            await engine.rank(shop, f"query {number}")
        engine.store.database.tidy()  # everything is in the file
        file = sqlite.folder / "zoomrank.sqlite"
        pages = engine.store.database.query("SELECT rootpage FROM sqlite_master WHERE tbl_name = 'learners'")
        with file.open("r+b") as open_file:  # the same file, which the service has open
            for (page,) in pages:
                open_file.seek(4096 * (page - 1))
                open_file.write(random.Random(1).randbytes(4096))
        engine.store.database.reader.close()
        engine.store.database.reader = engine.store.database.connect()  # one that has nothing of it in memory
        refused = await client.get("/v1/collections/shop/queries")
        assert (refused.status_code, refused.json()["error"]) == (503, "storage")
        assert "is damaged: " in refused.json()["message"]
        assert "zoomrank restore" in refused.json()["message"]
    with pytest.raises(StorageError, match="damaged"):
        sqlite.open()


async def test_other_failures_are_not_taken_for_damage(sqlite: Place) -> None:
    store = sqlite.open()
    assert isinstance(store.database, sqlite_store.SQLiteDatabase)
    assert store.database.words(sqlite3.OperationalError("database or disk is full")) == "database or disk is full"
    assert "restore" in store.database.words(sqlite3.DatabaseError("database disk image is malformed"))
