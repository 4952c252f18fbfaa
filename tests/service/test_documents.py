"""Documents are found by their titles, ids and addresses, and know in which queries they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.services import as_json, served
from zoomrank.documents import Collection, load_collection
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.engine import Engine
from zoomrank.service.errors import NotFoundError
from zoomrank.service.http import page_data
from zoomrank.service.http.page_details import _PIECE, search_documents

TITLES = ["Barn Owls", "Snowy owls", "ÜBER PIKES", "owl", "", "wlo", "A/B 100 %"]
IDS = ["a/1", "b 2", "C3", "ö", "x?y", "x#z", "%41"]


def _collection(ids: Any = None) -> Collection:
    named = dict(zip(IDS if ids is None else ids, TITLES, strict=True))
    urls = {id_: f"HTTP://x/{title}" for id_, title in named.items()}
    return Collection.from_taxonomy(dict.fromkeys(named, "Pages"), titles=named, urls=urls)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize(
    "text", ["OWL", "wl", "über", "Ü", "lo", "x/", "C3", "100 %", "slo", "B 2", "ö", "nothing", "ws"]
)
def test_a_search_finds_what_has_the_letters(tmp_path: Path, text: str, mapped: bool) -> None:
    collection = _collection()
    if mapped:
        collection.save(tmp_path / "file")
        collection = load_collection(tmp_path / "file")
    wanted = text.casefold()
    expected = [
        at
        for at, one in enumerate(collection)
        if any(wanted in field.casefold() for field in (one.title, one.id, one.url))
    ]
    assert search_documents(collection, text).tolist() == expected


def test_a_search_goes_over_the_edges_of_pieces(tmp_path: Path) -> None:
    count = 2 * _PIECE + 3
    titles = {f"i{at}": "ab" if at % 7 else "b" for at in range(count)}
    collection = Collection.from_taxonomy(dict.fromkeys(titles, "Pages"), titles=titles)
    collection.save(tmp_path / "file")
    mapped = load_collection(tmp_path / "file")
    expected = [at for at, title in enumerate(mapped.titles or ()) if "ab" in title]
    assert search_documents(mapped, "AB").tolist() == expected
    assert search_documents(mapped, "ba").tolist() == []  # though one ends with what the next begins with


def test_numbers_are_found_whole() -> None:
    collection = _collection([10, 20, 30, 40, 50, 60, -7])
    assert [collection.tree.documents[at] for at in search_documents(collection, "20")] == [20]
    assert [collection.tree.documents[at] for at in search_documents(collection, "-7")] == [-7]
    assert search_documents(collection, "2").tolist() == []
    assert search_documents(collection, "9" * 30).tolist() == []


async def _made(engine: Engine, collection: Collection, **settings: Any) -> Any:
    return await engine.collections.add("pages", lambda: collection, Settings(**{"slots": 2, **settings}))


async def test_pages_of_a_search(engine: Engine, client: httpx.AsyncClient) -> None:
    await _made(engine, _collection())
    path = "/v1/collections/pages/documents"
    found = as_json(await client.get(f"{path}?search=%20OWL%20&limit=2"))
    assert ([one["id"] for one in found["documents"]], found["total"]) == (["a/1", "b 2"], 3)
    found = as_json(await client.get(f"{path}?search=owl&limit=2&offset=2"))
    assert [one["title"] for one in found["documents"]] == ["owl"]
    everything = as_json(await client.get(f"{path}?search=%20"))
    assert (len(everything["documents"]), everything["total"]) == (7, 7)


@pytest.mark.parametrize("ids", [IDS, [10, 20, 30, 40, 50, 60, -7]])
async def test_a_document_by_its_id_whatever_it_is(engine: Engine, client: httpx.AsyncClient, ids: list[Any]) -> None:
    await _made(engine, _collection(ids))
    for id_, title in zip(ids, TITLES, strict=True):
        found = as_json(await client.get(f"/v1/collections/pages/documents/{quote(str(id_), safe='')}"))
        assert (found["id"], found["title"], found["queries"]) == (id_, title, [])
    for unknown in ("nobody", "1.0", "9" * 25, ""):
        refused = await client.get(f"/v1/collections/pages/documents/{unknown}")
        assert (refused.status_code, as_json(refused)["error"]) == (404, "unknown")


@pytest.mark.parametrize(
    "settings", [{}, {"similar": "words"}, {"algorithm": "RankContextZoom"}, {"algorithm": "RankUCB1"}]
)
async def test_in_which_queries_it_stands(engine: Engine, settings: dict[str, Any]) -> None:
    shop = await served(engine, **settings)
    for query, count in (("owl", 60), ("snowy owl", 40), ("pike", 3)):
        for _ in range(count):
            impression, documents = await engine.rank(shop, query)
            await engine.feedback(impression, documents[0]["id"])
    for query in ("owl", "snowy owl", "pike"):
        ranking = (await page_data.query(engine, shop, query))["ranking"]
        for slot, one in enumerate(ranking):
            found = await page_data.document(engine, shop, one["id"])
            assert (found["queries_looked_at"], found["queries_total"]) == (3, 3)
            [row] = [row for row in found["queries"] if row["query"] == query]
            assert row["slot"] == slot
            assert row["clicks"] <= row["visits"] <= row["impressions"]
            slots = [row["slot"] for row in found["queries"]]
            assert slots == sorted(slots, key=lambda slot: slot is None)
    top = (await page_data.query(engine, shop, "owl"))["ranking"][0]
    if top["documents_in_subtree"] == 1:
        [row] = [one for one in (await page_data.document(engine, shop, top["id"]))["queries"] if one["query"] == "owl"]
        assert row["clicks"] >= top["clicks"] > 0
    with pytest.raises(NotFoundError, match="There is no document “nobody”"):
        await page_data.document(engine, shop, "nobody")
