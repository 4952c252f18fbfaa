"""`zoomrank verify`: a store that has seen much is sound, and whatever is wrong with one is found and named."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tests.support.lives import live
from tests.support.services import Clock, Place, look_at, served, started
from zoomrank.cli import main
from zoomrank.service.storage.events import ABANDONED, WAITING
from zoomrank.service.storage.store import Store
from zoomrank.service.verification import verify

Read = Callable[..., list[Any]]
Damage = Callable[[Callable[..., None], Read], None]


@pytest.mark.store_contract
async def test_a_store_that_has_seen_much_is_sound(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    await live(place, clock)
    async with started(place, clock) as engine:  # while a service works in it
        told: list[tuple[int, int]] = []
        with closing(look_at(engine.store)) as view:
            verdict = verify(view, lambda done, total: told.append((done, total)))
        assert verdict.findings == []
        assert verdict.checked["collections"] == 2
        assert verdict.checked["impressions"] == 270
        assert verdict.checked["events"] == engine.store.database.query("SELECT COUNT(*) FROM events")[0][0]
        assert min(verdict.checked[what] for what in ("queries", "snapshots", "reports", "counts")) > 5
        assert told[-1] == (
            engine.store.database.query("SELECT COUNT(*) FROM events")[0][0],
            engine.store.database.query("SELECT COUNT(*) FROM events")[0][0],
        )
        assert main(["verify", *place.options()]) == 0
    said = capsys.readouterr().out
    assert "impressions: 270" in said
    assert "Everything agrees." in said


def _an_end_is_deleted(do: Callable[..., None], read: Read) -> None:
    do("DELETE FROM events WHERE id = ?", read("SELECT MIN(id) FROM events WHERE outcome < ?", (ABANDONED,))[0][0])


def _a_showing_is_deleted(do: Callable[..., None], read: Read) -> None:
    do("DELETE FROM events WHERE id = ?", read("SELECT MIN(id) FROM events WHERE outcome = ?", (WAITING,))[0][0])


def _an_outcome_is_altered(do: Callable[..., None], read: Read) -> None:
    place, outcome = read("SELECT id, outcome FROM events WHERE outcome < 2 ORDER BY id LIMIT 1")[0]
    do("UPDATE events SET outcome = ? WHERE id = ?", 1 - outcome, place)


def _a_click_is_beyond_the_ranking(do: Callable[..., None], read: Read) -> None:
    do("UPDATE events SET outcome = 7 WHERE id = ?", read("SELECT MIN(id) FROM events WHERE outcome < 2")[0][0])


def _an_end_comes_first(do: Callable[..., None], read: Read) -> None:
    learner, number = read("SELECT learner, number FROM events WHERE outcome < 2 ORDER BY id LIMIT 1")[0]
    change = "UPDATE events SET id = 1000000000 WHERE learner = ? AND number = ? AND outcome = ?"
    do(change, learner, number, WAITING)


def _a_ranking_is_unreadable(do: Callable[..., None], read: Read) -> None:
    do("UPDATE events SET shown = ? WHERE id = (SELECT MIN(id) FROM events)", b"\1")


def _a_snapshot_is_older(do: Callable[..., None], read: Read) -> None:
    """As if the newest had not been kept, though the place says that it was."""
    learner = read("SELECT learner FROM snapshots ORDER BY learner")[0][0]
    last = read("SELECT MAX(id) FROM events WHERE learner = ?", (learner,))[0][0]
    do("DELETE FROM events WHERE id = ?", last)  # an older state of the log is one that the newest snapshot is not of
    do("UPDATE snapshots SET event = ? WHERE learner = ?", last - 1, learner)


def _a_snapshot_is_of_another_place(do: Callable[..., None], read: Read) -> None:
    learner = read("SELECT learner FROM snapshots ORDER BY learner")[0][0]
    do("UPDATE snapshots SET event = event - 10240 WHERE learner = ?", learner)


def _a_snapshot_knows_too_much(do: Callable[..., None], read: Read) -> None:
    learner = read("SELECT learner FROM snapshots ORDER BY learner")[0][0]
    do("UPDATE snapshots SET event = 1000000000 WHERE learner = ?", learner)


def _a_byte_of_a_snapshot_is_altered(do: Callable[..., None], read: Read) -> None:
    learner, content = read("SELECT learner, content FROM snapshots ORDER BY learner")[0]
    content = bytearray(content)
    content[-1] ^= 1
    do("UPDATE snapshots SET content = ? WHERE learner = ?", bytes(content), learner)


def _the_counts_of_a_snapshot_are_off(do: Callable[..., None], read: Read) -> None:
    learner, counts = read("SELECT learner, counts FROM snapshots ORDER BY learner")[0]
    do("UPDATE snapshots SET counts = ? WHERE learner = ?", counts.replace('"satisfied": ', '"satisfied": 1'), learner)


def _the_first_that_waits_is_off(do: Callable[..., None], read: Read) -> None:
    do("UPDATE snapshots SET first = first + 1 WHERE learner = (SELECT MIN(id) FROM learners)")


def _a_count_is_off_by_one(do: Callable[..., None], read: Read) -> None:
    step, outcome = read("SELECT step, outcome FROM activity WHERE collection = 1 ORDER BY step, outcome")[0]
    do("UPDATE activity SET count = count + 1 WHERE collection = 1 AND step = ? AND outcome = ?", step, outcome)


def _a_count_is_missing(do: Callable[..., None], read: Read) -> None:
    do("DELETE FROM activity WHERE collection = 1 AND outcome = ?", WAITING)


def _a_list_is_ahead(do: Callable[..., None], read: Read) -> None:
    do(
        "UPDATE learners SET impressions = 1000000, satisfied = 2000000, answered = 3000000 "
        "WHERE id = (SELECT MIN(id) FROM learners)"
    )


def _a_report_is_ahead(do: Callable[..., None], read: Read) -> None:
    do("UPDATE reports SET answers = 1000000 WHERE learner = (SELECT MIN(id) FROM learners)")


def _a_report_is_unreadable(do: Callable[..., None], read: Read) -> None:
    do("UPDATE reports SET content = ? WHERE learner = (SELECT MIN(id) FROM learners)", b"?")


def _a_learner_is_missing(do: Callable[..., None], read: Read) -> None:
    do("DELETE FROM learners WHERE id = (SELECT MIN(id) FROM learners)")


def _the_settings_are_others(do: Callable[..., None], read: Read) -> None:
    do("UPDATE collections SET settings = ? WHERE id = 1", '{"slots": "many"}')


DAMAGES: list[tuple[Damage, list[str]]] = [
    (
        _an_end_is_deleted,
        ["snapshot differs from what its log gives", "activity counts differ from the log: satisfied"],
    ),
    (_a_showing_is_deleted, ["not numbered one after the other", "were not shown before", "log: shown (255)"]),
    (
        _an_outcome_is_altered,
        ["snapshot differs from what its log gives", "counts beside its snapshot", "log: satisfied"],
    ),
    (_a_click_is_beyond_the_ranking, ["a click in a slot that they do not have: 0", "activity counts differ"]),
    (_an_end_comes_first, ["have an end and were not shown before it: 0"]),
    (_a_ranking_is_unreadable, ["whose ranking cannot be read: 0"]),
    (_a_snapshot_is_older, ["snapshot differs from what its log gives", "counts beside"]),
    (_a_snapshot_is_of_another_place, ["snapshot differs from what its log gives"]),
    (_a_snapshot_knows_too_much, ["its snapshot includes event 1000000000, but the log ends at"]),
    (_a_byte_of_a_snapshot_is_altered, ["its snapshot cannot be read"]),
    (_the_counts_of_a_snapshot_are_off, ["the counts beside its snapshot differ from its log"]),
    (_the_first_that_waits_is_off, ["as the first that may still end"]),
    (_a_count_is_off_by_one, ["“shop”: activity counts differ from the log"]),
    (_a_count_is_missing, ["0 counted"]),
    (
        _a_list_is_ahead,
        [
            "1,000,000 impressions are listed, but the log has",
            "2,000,000 satisfied are",
            "3,000,000 answers are listed",
        ],
    ),
    (_a_report_is_ahead, ["report to neighbours counts 1,000,000 answers"]),
    (_a_report_is_unreadable, ["its report to neighbours cannot be read"]),
    (_a_learner_is_missing, ["events of missing learners: ", "snapshots of missing", "reports of"]),
    (_the_settings_are_others, ["“shop” cannot be served, so nothing was replayed"]),
]


async def test_each_damage_is_found_and_named(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    await live(place, Clock())
    store = place.open()
    for damage, expected in DAMAGES:
        store.database.writer.execute("BEGIN")
        _do(store, damage)
        found = "\n".join(_seen_by_the_writer(store))
        for said in expected:
            assert said in found, (damage.__name__, found)
        store.database.writer.execute("ROLLBACK")
    with closing(look_at(store)) as view:
        assert verify(view).findings == []
    _do(store, _an_outcome_is_altered)
    assert main(["verify", *place.options()]) == 1
    said = capsys.readouterr().out
    assert "- Query “snowy owl " in said
    assert "Findings: " in said


def _do(store: Store, damage: Damage) -> None:
    def do(statement: str, *values: Any) -> None:
        cursor = store.database.writer.cursor()
        cursor.execute(store.database.sql(statement), values)
        assert cursor.rowcount > 0

    damage(do, store.database.query)


def _seen_by_the_writer(store: Store) -> list[str]:
    """What is found in a store in the middle of a transaction that will not come true."""
    with closing(look_at(store)) as view:
        there, view.connection = view.connection, store.database.writer
        try:
            return verify(view).findings
        finally:
            view.connection = there


@pytest.mark.parametrize("where", [100, -100])
async def test_bytes_of_a_collection_that_are_altered(place: Place, where: int) -> None:
    async with started(place) as engine:
        await engine.rank(await served(engine), "owl")
    store = place.open()
    content = bytearray(b"".join(store.read.content(1, 0)))
    content[where] ^= 1
    store.database.writer.cursor().execute(store.database.sql("UPDATE contents SET bytes = ?"), (bytes(content),))
    with closing(look_at(store)) as view:
        assert any(
            "“shop”: version 0 of the catalogue differs from what was stored" in said for said in verify(view).findings
        )


async def test_a_damaged_file_is_said_to_be_one(sqlite: Place, capsys: pytest.CaptureFixture[str]) -> None:
    await live(sqlite, Clock(), lives=1)
    file = sqlite.folder / "zoomrank.sqlite"
    content = file.read_bytes()
    half = len(content) // 8192 * 4096  # the beginning of a page
    file.write_bytes(content[:half] + b"\xff" * 4096 + content[half + 4096 :])
    assert main(["verify", *sqlite.options()]) == 1
    assert "- The file of the store is damaged: " in capsys.readouterr().out
