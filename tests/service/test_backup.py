"""Backups: one file of either store, taken while it works, from which either goes on as if nothing had happened."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.lives import QUERIES, live
from tests.support.services import Clock, Place, audit, look_at, served, started
from zoomrank.cli import main
from zoomrank.service.errors import StorageError
from zoomrank.service.storage import backups, database, sqlite_store
from zoomrank.service.storage.store_snapshot import open_snapshot


def _silent(done: int, total: int) -> None:
    assert 0 <= done <= total


@pytest.mark.store_contract
async def test_a_service_goes_on_in_the_same_store_and_in_the_other(
    place: Place, elsewhere: Place, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.sqlite"
    goals = [Place(tmp_path / "again"), elsewhere]
    clock = Clock()
    waiting = await live(place, clock)
    assert waiting
    async with started(place, clock) as engine:
        shop = engine.collections.find("shop")
        before = [await engine.learners.find(shop, query) for query in QUERIES]
        known = [one.snapshot() for one in before if one is not None]
        assert main(["backup", str(backup), *place.options()]) == 0  # beside the service
        after = await engine.rank(shop, QUERIES[0])  # which the backup has not
    for goal in goals:
        assert main(["restore", str(backup), *goal.options()]) == 0
        async with started(goal, clock) as engine:
            shop = engine.collections.find("shop")
            found = [await engine.learners.find(shop, query) for query in QUERIES]
            assert [one.snapshot() for one in found if one is not None] == known
            for name, clicked in waiting:
                assert await engine.feedback(name, clicked) == "learned"
            assert await engine.rank(shop, QUERIES[0]) == after  # the same ranking, under the same name
            assert (await audit(engine)).loans > 0


async def test_a_backup_is_what_there_was_when_it_began(place: Place, tmp_path: Path) -> None:
    backup = tmp_path / "backup.sqlite"
    async with started(place) as engine:
        shop = await served(engine)
        await engine.rank(shop, "owl")
        with closing(look_at(engine.store)) as view:
            await engine.rank(shop, "snowy owl")
            copied = backups.back_up(view, backup, _silent)
        assert (copied["learners"], copied["events"], copied["activity"]) == (1, 1, 1)
    assert main(["verify", "--backup", str(backup)]) == 0


@pytest.mark.store_contract
def test_tables_that_are_added_are_in_it(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = "CREATE TABLE IF NOT EXISTS more (id {whole} PRIMARY KEY, said TEXT, content {bytes})"
    known = database.statements
    for module in ("backups", "database"):
        name = f"zoomrank.service.storage.{module}.statements"
        monkeypatch.setattr(name, lambda types: [*known(types), more.format(**types)])
    store = place.open()
    store.database.writer.execute(store.database.sql("INSERT INTO more VALUES (?, ?, ?)"), (7, "owl", b"\0\1"))
    with closing(open_snapshot(place.folder, place.address)) as view:
        backups.back_up(view, tmp_path / "backup.sqlite", _silent)
    again = Place(tmp_path / "again")
    assert backups.restore(tmp_path / "backup.sqlite", again.open, _silent)["more"] == 1
    restored = again.open()
    assert restored.database.query("SELECT id, said, content FROM more") == [(7, "owl", b"\0\1")]
    restored.close()


def test_what_is_secret_is_for_its_owner_alone(sqlite: Place, tmp_path: Path) -> None:
    store = sqlite.open()
    assert isinstance(store.database, sqlite_store.SQLiteDatabase)
    backup = tmp_path / "backup.sqlite"
    assert main(["backup", str(backup), *sqlite.options()]) == 0
    files = [
        store.database.path,
        *(store.database.path.with_name(f"{store.database.path.name}-{end}") for end in ("wal", "shm")),
        backup,
    ]
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 4
    store.close()
    store.database.path.chmod(0o644)  # somebody copied it here
    sqlite.open()
    assert stat.S_IMODE(store.database.path.stat().st_mode) == 0o600


def test_a_backup_never_replaces_a_file_in_silence(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place.open().close()
    backup = tmp_path / "backup.sqlite"
    backup.write_text("mine")
    assert main(["backup", str(backup), *place.options()]) == 2
    assert "overwrite it with --force" in capsys.readouterr().err
    assert backup.read_text() == "mine"
    assert main(["backup", str(backup), *place.options(), "--force"]) == 0
    assert main(["verify", "--backup", str(backup)]) == 0


def test_one_that_is_broken_off_leaves_nothing(sqlite: Place, tmp_path: Path) -> None:
    sqlite.open()
    folder = tmp_path / "backups"
    folder.mkdir()

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with closing(open_snapshot(sqlite.folder, None)) as view, pytest.raises(KeyboardInterrupt):
        backups.back_up(view, folder / "backup.sqlite", stop)
    assert list(folder.iterdir()) == []


async def test_a_restore_that_is_broken_off_leaves_an_empty_store(place: Place, tmp_path: Path) -> None:
    async with started(Place(tmp_path / "first")) as engine:
        await engine.rank(await served(engine), "owl")
    backup = tmp_path / "backup.sqlite"
    assert main(["backup", str(backup), "--data", str(tmp_path / "first")]) == 0

    def stop(done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backups.restore(backup, place.open, stop)
    store = place.open()
    assert (store.read.collections(), store.read.last("events")) == ([], 0)
    store.close()
    assert backups.restore(backup, place.open, _silent)["events"] == 1


def test_what_cannot_be_restored(place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, empty = tmp_path / "good.sqlite", tmp_path / "empty"
    with closing(place.open()):
        assert main(["backup", str(good), *place.options()]) == 0
        assert main(["restore", str(good), *place.options()]) == 2  # a service works there
        assert "Another zoomrank service" in capsys.readouterr().err
    damaged, cut, older, other, text = (tmp_path / name for name in ("damaged", "cut", "older", "other", "text"))
    cut.write_bytes(good.read_bytes()[: good.stat().st_size // 2])
    with closing(sqlite3.connect(good)) as connection:
        [(page,)] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events'")
    content = good.read_bytes()
    damaged.write_bytes(content[: 4096 * (page - 1)] + b"\xff" * 4096 + content[4096 * page :])
    older.write_bytes(good.read_bytes())
    _change(older, "UPDATE about SET value = '3' WHERE name = 'layout'")
    other.write_bytes(good.read_bytes())
    _change(other, "DROP TABLE reports")
    text.write_text("These are no tables, and this is longer than what a file of tables begins with." * 20)
    for file, said in (
        (tmp_path / "nowhere", "There is no"),
        (text, "file is not a database"),
        (older, "has layout 3"),
        (other, "`reports` is missing or has other columns"),
        (damaged, "is damaged, use another backup"),
        (cut, "database disk image is malformed"),
    ):
        assert main(["restore", str(file), "--data", str(empty)]) == 2
        assert said in capsys.readouterr().err
        assert not empty.exists()  # not begun


def _change(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)
        connection.commit()


async def test_nothing_is_restored_over_anything(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with started(place) as engine:
        await served(engine)
    backup = tmp_path / "backup.sqlite"
    assert main(["backup", str(backup), *place.options()]) == 0
    capsys.readouterr()
    assert main(["restore", str(backup), *place.options()]) == 2
    assert "This store is not empty" in capsys.readouterr().err
    assert main(["verify", *place.options()]) == 0


def test_nothing_is_backed_up_where_nothing_is(
    elsewhere: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for options in (["--data", str(tmp_path / "none")], elsewhere.options()):
        assert main(["backup", str(tmp_path / "backup.sqlite"), *options]) == 2
        said = capsys.readouterr().err
        assert "There is no" in said or "is no store of zoomrank" in said
    assert list(tmp_path.iterdir()) == []


async def test_writers_do_not_wait_for_a_backup(sqlite: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of SQLite cannot begin anew while somebody reads in it: then it goes on growing, and nobody waits."""
    monkeypatch.setattr(sqlite_store, "_LONG_LOG", 0)
    async with started(sqlite) as engine:
        shop = await served(engine)
        with closing(look_at(engine.store)):
            await engine.rank(shop, "owl")
            engine.store.database.tidy()  # which would wait for five seconds, and all who write for it
            await engine.rank(shop, "owl")
        assert engine.store.database._tidier.execute("PRAGMA busy_timeout").fetchone()[0] < 100  # type: ignore[attr-defined]
        await audit(engine)


def test_a_look_that_lost_its_connection_is_over(on_postgres: Place) -> None:
    on_postgres.open()
    with closing(open_snapshot(on_postgres.folder, on_postgres.address)) as view:
        view.connection.close()
        with pytest.raises(StorageError, match="cannot be read"):
            view.read.collections()
