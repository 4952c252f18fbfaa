"""Click logs of other rankers: learned once, as the library learns them, whatever happens in the middle."""

import asyncio
import contextlib
import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.services import Clock, Place, as_json, audit, client_of, served, small_collection, started
from tests.support.serving import serving
from zoomrank.cli import main
from zoomrank.client import Client
from zoomrank.rankers import Ranked
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.click_import import ImportedLog, LogImporter
from zoomrank.service.engine import Engine
from zoomrank.service.errors import KeyReusedError, StorageError, UnprocessableError
from zoomrank.service.http.access import caller_digest
from zoomrank.service.learners.void import ImpressionFilter
from zoomrank.service.rank_options import Caller
from zoomrank.service.storage.events import Batch
from zoomrank.service.storage.store_snapshot import open_snapshot
from zoomrank.service.verification import verify

JSONL = {"Content-Type": "application/x-ndjson"}
OWNER = caller_digest("the key of the owner")


def impressions(count: int, seed: int = 0, queries: tuple[str, ...] = ("Owl", "pike")) -> list[tuple[str, Any, Any]]:
    """What another ranker showed: all that is liked is in one twig, another for each query."""
    rng, log = random.Random(seed), []
    for _ in range(count):
        query = rng.choice(queries)
        shown = [f"d{rng.randrange(4)}{rng.randrange(3)}{leaf}" for leaf in rng.sample(range(3), 3)]
        liked = f"d{queries.index(query)}0"
        clicked = next((one for one in shown if one.startswith(liked) and rng.random() < 0.8), None)
        log.append((query, shown, clicked))
    return log


def lines(log: list[tuple[str, Any, Any]]) -> bytes:
    rows = ({"query": query, "shown": shown, "clicked": clicked} for query, shown, clicked in log)
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


async def learn(
    engine: Engine, shop: ServedCollection, content: bytes, unknown: str = "refuse", once: str | None = None
) -> dict[str, Any]:
    log = ImportedLog(shop, io.BytesIO(content), ".jsonl", unknown)
    return await engine.importer.learn(log, once, OWNER)


def taught(shop: ServedCollection, log: list[tuple[str, Any, Any]], query: str, unknown: str = "refuse") -> Ranked:
    """What the library makes of the same log."""
    ranker = Ranked(shop.bandit, shop.settings.slots, seed=0)
    ranker.learn_log([one for one in log if one[0].lower() == query], unknown)
    return ranker


def same(one: Ranked, other: Ranked) -> bool:
    one.prepare_room()
    other.prepare_room()
    return all(np.array_equal(array, other.learned[name]) for name, array in one.learned.items())


@pytest.mark.parametrize("algorithm", ["ZoomRank", "RankThompson"])
async def test_the_service_learns_what_the_library_learns(place: Place, algorithm: str) -> None:
    log = impressions(400)
    clock = Clock()
    async with started(place, clock) as engine:
        shop = await served(engine, algorithm=algorithm, new_queries=1)
        told = await learn(engine, shop, lines(log))
        assert (told["status"], told["impressions"], told["queries"]) == ("learned", 400, 2)
        assert told["held_out"]["visits"] == 40
        assert told["held_out"]["found_after"] > told["held_out"]["found_before"]
        assert told["held_out"]["surprise_after"] < told["held_out"]["surprise_usual"]
        assert "400 impressions" in told["words"]
        for query in ("owl", "pike"):
            assert same((await engine.known(shop, query)).ranker, taught(shop, log, query))
        name, documents = await engine.rank(shop, "owl")
        assert documents[0]["id"].startswith("d00")
        assert await engine.feedback(name, documents[0]["id"]) == "learned"
        assert engine.store.read.activity([shop.id], int(clock()) // 10 - 10) != []
        today = engine.store.read.activity([shop.id], int(clock()) // 10 - 10)
        assert sum(count for _, _, count in today) == 2  # that of the log is nobody's activity of today
        await audit(engine)


@pytest.mark.store_contract
async def test_a_log_is_learned_once(place: Place) -> None:
    log = impressions(100)
    async with started(place) as engine:
        shop = await served(engine)
        first, second = await asyncio.gather(*(learn(engine, shop, lines(log)) for _ in range(2)))
        assert first == second
        again = await learn(engine, shop, lines(log))
        assert again == {**first, "status": "repeated"}
        assert (await learn(engine, shop, lines(log), once="once more"))["status"] == "learned"
        with pytest.raises(KeyReusedError):
            await learn(engine, shop, lines(log[1:]), once="once more")
        assert (await engine.known(shop, "owl")).answers + (await engine.known(shop, "pike")).answers == 200
    async with started(place) as engine:
        shop = await served(engine)
        assert (await learn(engine, shop, lines(log)))["status"] == "repeated"
        await audit(engine)


@pytest.mark.parametrize("after", [1, 70, 230, 380])
async def test_what_was_interrupted_goes_on(place: Place, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log = impressions(400)
    taken = LogImporter._take
    count = 0

    async def take(self: LogImporter, *what: Any) -> None:
        nonlocal count
        count += 1
        if count == after:
            await self._learner_events.write_queue.wait_durable()  # as if somebody else had something to write down
            raise StorageError("The plug was pulled.")
        await taken(self, *what)

    monkeypatch.setattr(LogImporter, "_take", take)
    async with started(place, crash=True) as engine:
        with pytest.raises(StorageError):
            await learn(engine, await served(engine), lines(log))
    monkeypatch.setattr(LogImporter, "_take", taken)
    async with started(place) as engine:
        shop = await served(engine)
        assert (await learn(engine, shop, lines(log)))["impressions"] == 400
        for query in ("owl", "pike"):
            assert same((await engine.known(shop, query)).ranker, taught(shop, log, query))
        await audit(engine)


async def test_what_could_not_be_written_is_learned_later(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    log = impressions(200)
    async with started(place) as engine:
        shop = await served(engine)
        write, writes = engine.store.write, 0

        def fails_once(batch: Batch) -> None:
            nonlocal writes
            writes += 1
            if writes == 2:
                raise StorageError("The disk is full.")
            write(batch)

        monkeypatch.setattr(engine.store, "write", fails_once)
        with pytest.raises(StorageError):
            await learn(engine, shop, lines(log))
        await learn(engine, shop, lines(log))
        for query in ("owl", "pike"):
            assert same((await engine.known(shop, query)).ranker, taught(shop, log, query))
        await audit(engine)


async def test_documents_that_the_collection_lacks(place: Place) -> None:
    log = [("owl", ["gone", "d000", "d001"], "d001"), ("owl", ["gone"], "gone"), ("owl", ["d000", "gone"], "gone")]
    async with started(place) as engine:
        shop = await served(engine)
        with pytest.raises(UnprocessableError, match="Impression 1 shows 'gone', which the collection lacks"):
            await learn(engine, shop, lines(log))
        assert engine.learners.queries.get(shop.id, 0) == 0
        told = await learn(engine, shop, lines(log), "skip")
        assert (told["impressions"], told["left_out"]) == (3, 3)
        learner = await engine.known(shop, "owl")
        assert learner.counts.impressions == 2  # of one nothing is known
        assert same(learner.ranker, taught(shop, log, "owl", "skip"))
    async with started(place) as engine:
        shop = await served(engine)
        assert same((await engine.known(shop, "owl")).ranker, taught(shop, log, "owl", "skip"))
        await audit(engine)


async def test_it_can_be_taken_back(place: Place, engine: Engine, shop: ServedCollection) -> None:
    for _ in range(5):
        name, documents = await engine.rank(shop, "owl", caller=Caller())
        await engine.feedback(name, documents[0]["id"])
    before = (await engine.known(shop, "owl")).ranker.copied()
    await learn(engine, shop, lines(impressions(50)))
    assert (await engine.void(shop, ImpressionFilter(caller=OWNER)))[0] == 50
    assert same((await engine.known(shop, "owl")).ranker, before)
    await audit(engine)


async def test_over_http(place: Place, engine: Engine) -> None:
    await served(engine)
    async with client_of(engine) as client:
        path = "/v1/collections/shop/clicks"
        sent = await client.post(path, content=lines(impressions(60)), headers=JSONL)
        assert sent.status_code == 200, sent.text
        assert sent.json()["impressions"] == 60
        assert (await client.get(path)).json() == {"learned": 0, "of": 0}
        for content, headers, said in (
            (b"{}", {"Content-Type": "text/plain"}, "media"),
            (b"{", JSONL, "unusable"),
            (b"", JSONL, "unusable"),
            (b'{"query": "", "shown": ["d000"], "clicked": null}', JSONL, "unusable"),
            (b"PAR1", {"Content-Type": "application/vnd.apache.parquet"}, "unusable"),
        ):
            assert as_json(await client.post(path, content=content, headers=headers))["error"] == said


def test_the_command_here_and_over_http(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, rows = tmp_path / "clicks.jsonl", tmp_path / "clicks.parquet"
    log.write_bytes(lines(impressions(80)))
    table = [{"query": query, "shown": shown, "clicked": clicked} for query, shown, clicked in impressions(80, seed=1)]
    pq.write_table(pa.Table.from_pylist(table), rows)
    folder = tmp_path / "data"
    with serving(folder) as address:
        with Client(address) as client:
            client.create_collection("shop", small_collection())
        command = ["import", "--collection", "shop"]
        assert main([*command, str(log), "--url", address]) == 0
        assert main([*command, str(rows), "--url", address]) == 0
        assert capsys.readouterr().out.count("80 impressions with") == 2
        assert main([*command, str(tmp_path / "clicks.csv"), "--url", address]) == 2
        assert "is not a click log that can be sent" in capsys.readouterr().err
    assert main([*command, str(log), "--data", str(folder)]) == 0
    assert "was learned before; nothing was learned now" in capsys.readouterr().out
    assert main([*command, str(log), "--data", str(folder), "--key", "again"]) == 0
    assert main([*command, str(tmp_path / "none.jsonl"), "--data", str(folder)]) == 2
    assert "none.jsonl cannot be read" in capsys.readouterr().err
    with contextlib.closing(open_snapshot(folder, None)) as view:
        found = verify(view)
    assert found.findings == []
    assert found.checked["impressions"] == 240


HOSTILE = {
    "half of a character": b'{"query": "\\ud800", "shown": ["d000"], "clicked": null}',
    "NUL": b'{"query": "a\\u0000b", "shown": ["d000"], "clicked": null}',
    "an object for a query": b'{"query": {"a": 1}, "shown": ["d000"], "clicked": null}',
    "an object for a click": b'{"query": "a", "shown": ["d000"], "clicked": {"a": 1}}',
    "deep": b'{"query": "a", "shown": ' + b"[" * 100_000 + b"]" * 100_000 + b', "clicked": null}',
    "many digits": b'{"query": "a", "shown": ["d000"], "clicked": ' + b"9" * 5_000 + b"}",
    "a number for what was shown": b'{"query": "a", "shown": 7, "clicked": null}',
    "not text": b'{"query": "\xff", "shown": ["d000"], "clicked": null}',
}


@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_log_is_refused_and_nothing_of_it_learned(sqlite: Place, line: bytes) -> None:
    async with started(sqlite) as engine, client_of(engine) as client:
        await served(engine)
        content = lines(impressions(20)) + line + b"\n"
        response = await client.post("/v1/collections/shop/clicks", content=content, headers=JSONL)
        assert response.status_code == 422, response.text
        assert (await client.get("/v1/collections/shop/queries")).json()["queries"] == []


async def test_damaged_parquet_files_are_refused_or_read(sqlite: Place) -> None:
    """Bytes changed at random, or cut off: never an error of the service."""
    table = [{"query": query, "shown": shown, "clicked": clicked} for query, shown, clicked in impressions(60)]
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(table), file)
    rng, whole = random.Random(7), file.getvalue()
    async with started(sqlite) as engine, client_of(engine) as client:
        await served(engine)
        statuses = set()
        for _ in range(60):
            content = bytearray(whole[: rng.choice([len(whole), rng.randrange(len(whole))])])
            for _ in range(rng.randrange(4)):
                content[rng.randrange(len(content))] = rng.randrange(256)
            headers = {"Content-Type": "application/vnd.apache.parquet"}
            response = await client.post("/v1/collections/shop/clicks", content=bytes(content), headers=headers)
            statuses.add(response.status_code)
        assert statuses <= {200, 422}
        assert 422 in statuses
