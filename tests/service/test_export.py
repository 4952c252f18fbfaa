"""Exports: every impression once, in the order of the log, with all that was said of it."""

import json
import math
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import numpy as np
import pyarrow.parquet
import pytest

from tests.support.services import Clock, Place, client_of, served, started
from tests.support.serving import serving
from zoomrank import ZoomRank
from zoomrank.cli import main
from zoomrank.client import Client, ClientError
from zoomrank.documents import read_clicks
from zoomrank.rankers.ranking import RankingArrays
from zoomrank.service import export
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.errors import StorageError
from zoomrank.service.feedback import ImpressionFeedback
from zoomrank.service.http.access import Keys
from zoomrank.service.learners.void import ImpressionFilter
from zoomrank.service.rank_options import Caller
from zoomrank.service.storage import store_reader
from zoomrank.service.storage.events import EventTags, known_propensities, pack, unpack, unpack_parts

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "export.schema.json").read_text())
EXPORT = "/v1/collections/shop/export"


async def lived(engine: Engine, clock: Clock, shop: ServedCollection) -> list[tuple[str, list[Any]]]:
    """Impressions of two queries, of which each became something else; a second between two of them."""
    shown: list[tuple[str, list[Any]]] = []
    for number in range(8):
        asker = Caller(b"somebody" if number % 2 else None)
        name, documents = await engine.rank(shop, f"query {number % 2}", caller=asker)
        shown.append((name, [one["id"] for one in documents]))
        clock.pass_by(1)
    (one, ids), (two, _), *_ = shown
    await engine.record_feedback(one, ImpressionFeedback([ids[2], ids[1]], looked_at=3, disliked=[ids[0]]))
    await engine.record_feedback(one, ImpressionFeedback(purchased=[ids[1]]))
    await engine.record_feedback(two, ImpressionFeedback(left=True, looked_at=2))
    await engine.seen(shown[2][0])
    await engine.record_feedback(shown[3][0], ImpressionFeedback.of_click(shown[3][1][0]))
    await engine.void(shop, ImpressionFilter(since=clock() - 5, until=clock() - 4))
    clock.pass_by(60)
    await engine.record_feedback(shown[7][0], ImpressionFeedback(disliked=[shown[7][1][1]]))
    await engine.housekeep()
    return shown


def rows_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.store_contract
async def test_a_row_says_all_that_is_known(
    place: Place, clock: Clock, engine: Engine, client: httpx.AsyncClient
) -> None:
    shop = await served(engine, feedback_within=65)
    shown = await lived(engine, clock, shop)
    response = await client.get(EXPORT)
    assert response.headers["content-type"] == "application/x-ndjson"
    rows = rows_of(response.text)
    check = jsonschema.Draft202012Validator(SCHEMA)
    for row in rows:
        check.validate(row)
    assert [(row["impression"], row["shown"]) for row in rows] == shown
    assert [row["outcome"] for row in rows] == [
        *("satisfied", "abandoned", "timed_out", "satisfied"),
        *("waiting", "waiting", "waiting", "waiting"),
    ]
    assert [row["void"] for row in rows] == [False, False, False, True] + [False] * 4
    assert [row["asker"] for row in rows] == [None, b"somebody".hex()] * 4
    assert [row["query"] for row in rows] == ["query 0", "query 1"] * 4
    first, second, third = rows[:3]
    ids = first["shown"]
    assert (first["slot"], first["clicked"], first["clicks"]) == (1, ids[1], [ids[1], ids[2]])
    assert (first["purchased"], first["disliked"], first["looked_at"]) == ([ids[1]], [ids[0]], 3)
    assert first["answered"] == second["answered"] == first["time"] + 8
    assert (second["clicked"], second["clicks"], second["looked_at"]) == (None, [], 2)
    assert (third["seen"], rows[4]["seen"], third["looked_at"]) == (True, False, None)
    assert third["answered"] == clock()
    assert (rows[7]["disliked"], rows[7]["answered"]) == ([rows[7]["shown"][1]], None)
    assert all(len(row["propensity"]) == 3 for row in rows)
    tree = shop.version.tree
    new = ZoomRank(tree, slots=3).propensities(tree.documents.positions(ids)[None])[0].tolist()
    assert first["propensity"] == new  # of a learner that had seen nothing
    asked = await client.post("/v1/collections/shop/rank", json={"query": "query 9", "propensities": True})
    assert asked.json()["propensities"][0] == pytest.approx(1 / len(tree))


def test_what_nobody_knows_is_no_line_of_an_export() -> None:
    check = jsonschema.Draft202012Validator(SCHEMA)
    assert not check.is_valid({})
    assert not check.is_valid(dict.fromkeys(SCHEMA["properties"], None))


@pytest.mark.parametrize("at_once", [1, 3, 4096])
async def test_times_and_pages(sqlite: Place, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """However few are read at once, each is there once; an answer from after the time belongs to its impression."""
    monkeypatch.setattr(store_reader, "_AT_ONCE", at_once)
    clock = Clock()
    async with started(sqlite, clock) as engine, client_of(engine) as client:
        began = clock()
        shop = await served(engine, feedback_within=65)
        other = await served(engine, "other")
        shown = await lived(engine, clock, shop)
        await engine.rank(other, "query 0")
        whole = rows_of((await client.get(EXPORT)).text)
        assert [row["impression"] for row in whole] == [name for name, _ in shown]
        some = rows_of((await client.get(EXPORT, params={"since": began + 1, "until": began + 3})).text)
        assert some == whole[1:3]
        assert some[0]["answered"] > began + 3
        learned = rows_of((await client.get(EXPORT, params={"learned": True})).text)
        assert learned == whole[:3]
        assert rows_of((await client.get(EXPORT, params={"since": began + 1000})).text) == []


async def test_parquet_has_the_same_rows(
    clock: Clock, engine: Engine, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    shop = await served(engine, feedback_within=65)
    await lived(engine, clock, shop)
    rows = rows_of((await client.get(EXPORT)).text)
    response = await client.get(EXPORT, params={"format": "parquet"})
    file = tmp_path / "export.parquet"
    file.write_bytes(response.content)
    assert pyarrow.parquet.read_table(file).to_pylist() == rows
    nothing = await client.get(EXPORT, params={"format": "parquet", "since": 1e10})
    file.write_bytes(nothing.content)
    assert pyarrow.parquet.read_table(file).num_rows == 0
    wrong = await client.get(EXPORT, params={"format": "csv"})
    assert (wrong.status_code, wrong.json()["error"]) == (422, "malformed")
    assert (await client.get("/v1/collections/nowhere/export")).status_code == 404


def test_row_groups(tmp_path: Path) -> None:
    row = {"shown": [7], "clicked": 7, "clicks": [7], "purchased": [], "disliked": [], "time": 0.5, "slot": 0}
    file = tmp_path / "rows.parquet"
    with file.open("wb") as out:
        assert export.write_parquet(out, ([row] * 3 for _ in range(5)), rows_at_once=4) == 15
    found = pyarrow.parquet.ParquetFile(file)
    assert [found.metadata.row_group(at).num_rows for at in range(found.num_row_groups)] == [6, 6, 3]
    assert found.read().to_pylist()[14]["clicks"] == [7]


async def test_only_those_may_who_own_everything(sqlite: Place) -> None:
    keys = Keys({f"{role}-{'x' * 16}": role for role in ("rank", "read", "admin")})
    async with started(sqlite) as engine, client_of(engine, keys) as client:
        await served(engine)
        for role, status in (("rank", 403), ("read", 403), ("admin", 200)):
            header = {"Authorization": f"Bearer {role}-{'x' * 16}"}
            assert (await client.get(EXPORT, headers=header)).status_code == status


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
async def test_the_command_writes_what_the_service_sends(place: Place, tmp_path: Path, capsys: Any, form: str) -> None:
    """Also while a service works in the store; and `read_clicks` reads it."""
    file, all_of_it = tmp_path / f"clicks.{form}", tmp_path / "all.jsonl"
    clock = Clock()
    async with started(place, clock) as engine, client_of(engine) as client:
        shop = await served(engine, feedback_within=65)
        await lived(engine, clock, shop)
        await engine.rank(await served(engine, "other"), "elsewhere")
        options = ["export", *place.options()]
        assert main([*options, str(all_of_it)]) == 0
        assert main([*options, str(file), "--collection", "shop", "--learned"]) == 0
        assert main([*options, str(file)]) == 2  # it is there already
        assert main([*options, str(tmp_path / "no"), "--collection", "nowhere"]) == 2
        rows = rows_of((await client.get(EXPORT)).text)
    said = capsys.readouterr()
    assert "has impressions: 9" in said.out
    assert "has impressions: 3" in said.out
    assert "There is no collection 'nowhere'; there are: shop, other." in said.err
    assert not (tmp_path / "no").exists()
    assert rows_of(all_of_it.read_text())[:8] == rows
    log = read_clicks(file)
    assert (log.impressions, log.clicks, set(log.queries)) == (3, 1, {"query 0", "query 1"})


def test_a_store_that_goes_away_in_the_middle_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody takes the first half of an export for all of it."""
    monkeypatch.setattr(store_reader, "_AT_ONCE", 2)
    showings, calls = store_reader.StoreReader.showings, 0

    def fails(*where: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise StorageError("away")
        return showings(*where)

    file = tmp_path / "clicks.jsonl"
    documents = [{"id": number, "path": ["All"]} for number in range(4)]
    with serving(tmp_path / "data") as address, Client(address, trust_env=False) as client:
        client.create_collection("shop", documents, {"slots": 2})
        for _ in range(8):
            client.feedback(client.rank("shop", "owl"), None)
        assert client.export("shop", file) > 1000
        whole = rows_of(file.read_text())
        assert [row["outcome"] for row in whole] == ["abandoned"] * 8
        monkeypatch.setattr(store_reader.StoreReader, "showings", fails)
        with pytest.raises(ClientError, match="did not send all of it"):
            client.export("shop", tmp_path / "half.jsonl")
        assert calls == 3
        with pytest.raises(ClientError) as refused:
            client.export("nowhere", tmp_path / "half.jsonl")
        assert refused.value.status == 404
        monkeypatch.undo()
        assert client.export("shop", file, form="parquet", learned=True, until=whole[3]["time"]) > 1000
        assert pyarrow.parquet.read_table(file).to_pylist() == [one for one in whole if one["time"] < whole[3]["time"]]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["clicks.jsonl", "data"]


@pytest.mark.parametrize(
    ("propensity", "more"), [([1.0, 1.0], 0), ([math.nan, math.nan], 0), ([0.25, 1.0], 16), ([0.5, math.nan], 16)]
)
def test_what_the_log_keeps_of_propensities(propensity: list[float], more: int) -> None:
    """That all are certain, or that nobody knows, costs no byte; what stands behind a ranking is found all the same."""
    shown = np.array([[3, 5]])
    ranking = RankingArrays(shown, shown, shown * 0, np.array([[1.0, 0.5]]), np.array([propensity]))
    content = pack(ranking, b"a loan", EventTags(caller=b"somebody"))
    assert len(content) == 2 + 16 + 16 + more + 8 + 6
    assert unpack_parts(content).tags.caller == b"somebody"
    assert unpack_parts(content).loan == b"a loan"
    for kept in (unpack(content), unpack(unpack_parts(content).ranking)):
        np.testing.assert_array_equal(kept.propensity[0], propensity)
        assert kept.chance[0].tolist() == [1.0, 0.5]


def test_of_older_logs_nobody_knows() -> None:
    older = bytes([0, 2]) + np.array([3, 5, 0, 0], "<i4").tobytes()
    assert known_propensities(unpack(older)) == [None, None]
    assert unpack(older).shown.tolist() == [[3, 5]]
