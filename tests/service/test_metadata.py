"""Titles, urls and texts change without another version of the tree: no learner moves, and none chooses otherwise."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.replicas import company
from tests.support.services import Place, as_json, audit, client_of, served, small_collection, started
from zoomrank.documents import Collection, change_placement, versions
from zoomrank.documents.change_application import apply_changes
from zoomrank.documents.versions import COLUMNS, CollectionVersion
from zoomrank.errors import ChangeError
from zoomrank.service import catalogue_updates
from zoomrank.service.catalogue import version_history
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine
from zoomrank.service.errors import StorageError
from zoomrank.service.experiments import ArmSpec
from zoomrank.service.rank_options import RankOptions
from zoomrank.service.storage.events import MOVED

SHOP = "/v1/collections/shop"
QUERIES = ("owl", "snowy owl", "pike")

Shown = list[list[str]]


def _title(shop: ServedCollection, document: str) -> str:
    return str(shop.version.document(shop.tree.documents.position(document))["title"])


def _moves(engine: Engine) -> int:
    return int(engine.store.database.query("SELECT COUNT(*) FROM events WHERE outcome = ?", (MOVED,))[0][0])


async def _visits(engine: Engine, shop: ServedCollection, count: int) -> Shown:
    """Visitors who click what begins with d1; returns what each was shown."""
    shown = []
    for number in range(count):
        name, documents = await engine.rank(shop, QUERIES[number % len(QUERIES)])
        ids = [one["id"] for one in documents]
        await engine.feedback(name, next((one for one in ids if one.startswith("d1")), None))
        shown.append(ids)
    return shown


async def _lives(place: Place, with_titles: bool, settings: dict[str, Any]) -> Shown:
    """Three lives of a service, the second of which ends in a crash."""
    shown: Shown = []
    for life in range(3):
        async with started(place, crash=life == 1) as engine:
            shop = await served(engine, **settings)
            for turn in range(4):
                shown += await _visits(engine, shop, 12)
                if with_titles:
                    await engine.updates.change(shop, [{"change": "d111", "title": f"{life}.{turn}", "url": "/"}])
                    assert _title(shop, "d111") == f"{life}.{turn}"
                if turn == 2:
                    await engine.housekeep()
            assert shop.version.number == 0
            assert _moves(engine) == 0
            await audit(engine)
    return shown


@pytest.mark.parametrize(
    "settings", [{}, {"similar": "words"}, {"algorithm": "RankUCB1"}], ids=["alone", "neighbours", "UCB1"]
)
async def test_choices_are_those_without_the_change(place: Place, tmp_path: Path, settings: dict[str, Any]) -> None:
    control = Place(tmp_path / "control")
    try:
        assert await _lives(place, True, settings) == await _lives(control, False, settings)
    finally:
        control.close()
    async with started(place) as engine:
        assert _title(engine.collections.find("shop"), "d111") == "2.3"


@pytest.mark.parametrize("crash", [False, True])
async def test_a_title_is_served_and_survives_and_no_log_has_an_event_of_it(place: Place, crash: bool) -> None:
    async with started(place, crash=crash) as engine, client_of(engine) as client:
        shop = await served(engine)
        await _visits(engine, shop, 9)
        learner = await engine.known(shop, "owl")
        version, tree, events, noted = shop.version, shop.tree, engine.store.read.last("events"), learner.noted
        said = await client.patch(f"{SHOP}/documents/d111", json={"title": "Barn owls", "url": "/owls"})
        assert as_json(said) == {
            "edition": 0,
            "documents": 36,
            "added": 0,
            "changed": 1,
            "removed": 0,
            "categories": 0,
        }
        assert shop.version is version is learner.version
        assert shop.tree is tree is version.collection.tree
        found = as_json(await client.get(f"{SHOP}/documents/d111"))
        assert (found["title"], found["url"]) == ("Barn owls", "/owls")
        found = as_json(await client.get(f"{SHOP}/documents?search=barn"))
        assert [one["id"] for one in found["documents"]] == ["d111"]
        _, documents = await engine.rank(shop, "owl", RankOptions(eligible=["d111"], fewer=True))
        assert documents == [{"id": "d111", "title": "Barn owls", "url": "/owls"}]
        assert learner.noted == noted + 1  # the ranking
        assert engine.store.read.last("events") != events
    async with started(place) as engine:
        shop = engine.collections.find("shop")
        assert (shop.version.number, shop.version.revision) == (0, 1)
        assert _title(shop, "d111") == "Barn owls"
        assert _moves(engine) == 0
        await audit(engine)


async def test_a_later_tree_is_another_version_and_keeps_titles(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Titles and trees change in any order; files are stored now and then, of revisions of both kinds."""
    monkeypatch.setattr(catalogue_updates, "_MOST_REVISIONS", 3)
    random_, titles = random.Random(1), {"d000": "The first"}

    version = revision = 0
    for life in range(6):
        async with started(place, crash=life % 2 == 1) as engine:
            shop = await served(engine)
            for turn in range(8):
                await _visits(engine, shop, 3)
                revision += 1
                if random_.random() < 0.3:
                    new = f"n{life}{turn}"
                    await engine.updates.change(shop, [{"add": new, "path": "All > Branch 1", "title": new}])
                    version, titles[new] = revision, new
                else:
                    one = random_.choice(list(shop.tree.documents))
                    titles[one] = f"{one} in {life}"
                    await engine.updates.change(shop, [{"change": one, "title": titles[one]}])
                assert (shop.version.number, shop.version.revision) == (version, revision)
            assert {one.id: one.title for one in shop.version.collection if one.title} == titles
            await audit(engine)
    assert 0 < version < revision


async def test_stores_in_which_learners_moved_for_a_title_go_on(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier services began another version with every change, and learners moved to it."""

    async def before() -> None:
        async with started(place) as engine:
            shop = await served(engine)
            await _visits(engine, shop, 9)
            await engine.updates.change(shop, [{"change": "d111", "title": "Owls"}])
            await _visits(engine, shop, 5)
            await engine.housekeep()
            await engine.updates.change(shop, [{"change": "d112", "title": "Pikes"}])
            await engine.rank(shop, "owl")
            assert shop.version.number == 2

    async def since() -> None:
        for crash in (True, False):
            async with started(place, crash=crash) as engine:
                shop = engine.collections.find("shop")
                assert (shop.version.number, _title(shop, "d111"), _title(shop, "d112")) == (0, "Owls", "Pikes")
                moves = _moves(engine)
                assert moves > 0
                await audit(engine)
                await _visits(engine, shop, 9)
                await engine.housekeep()
                assert _moves(engine) == moves
                assert {learner.version for _, learner in engine.learners} == {shop.version}
        async with started(place) as engine:
            shop = engine.collections.find("shop")
            await engine.updates.change(shop, [{"remove": "d000"}])
            await _visits(engine, shop, 9)
            assert (await engine.known(shop, "owl")).version.number == 3
            await audit(engine)

    with monkeypatch.context() as patched:
        for module in (versions, catalogue_updates, version_history):
            patched.setattr(module, "is_metadata", lambda _: False)
        await before()
    await since()


async def test_titles_are_those_of_all_arms(place: Place) -> None:
    async with started(place, crash=True) as engine:
        shop = await served(engine)
        arms = [ArmSpec("now", 0.5, None), ArmSpec("alike", 0.5, {"similar": "words"})]
        experiment = await engine.experiments.create(shop, "first", arms)
        await _visits(engine, shop, 60)  # of whom each meets an arm by chance
        await engine.updates.change(shop, [{"change": "d111", "title": "Owls"}])
        for arm in experiment.arms:
            assert _title(arm.served, "d111") == "Owls"
            assert (await engine.known(arm.served, "owl")).version is arm.served.version
        await _visits(engine, shop, 12)
        assert _moves(engine) == 0
    async with started(place) as engine:
        for one in engine.collections.find("shop").family:
            assert _title(one, "d111") == "Owls"
        await audit(engine)


async def test_a_title_whose_write_seemed_to_fail_is_served_with_the_next(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(place) as engine:
        shop = await served(engine)
        await _visits(engine, shop, 3)
        store, add = engine.store, engine.store.add_version

        def lost(*arguments: Any) -> None:
            add(*arguments)
            patched.setattr(store.read, "last_version", _fail)
            raise StorageError("The connection was lost.")

        with monkeypatch.context() as patched:
            patched.setattr(store, "add_version", lost)
            with pytest.raises(StorageError):
                await engine.updates.change(shop, [{"change": "d111", "title": "Owls"}])
        assert _title(shop, "d111") == ""
        version = await engine.updates.change(shop, [{"change": "d112", "title": "Pikes"}])
        assert (version.number, version.revision) == (0, 2)
        assert (_title(shop, "d111"), _title(shop, "d112")) == ("Owls", "Pikes")
        assert _moves(engine) == 0


def _fail(_: int) -> int:
    raise StorageError("The connection was lost.")


@pytest.mark.full
async def test_replicas_serve_the_title_that_one_of_them_changed(on_postgres: Place) -> None:
    async with company(on_postgres, "a", "b") as together:
        a, b = together.members.values()
        documents = [{"id": f"d{number}", "path": ["All", f"Branch {number % 3}"]} for number in range(9)]
        made = {"name": "docs", "documents": documents, "settings": {"slots": 2}}
        said = await a.client.post("/v1/collections", json=made)
        assert said.status_code == 201, said.text
        await together.settled()
        for query in QUERIES:
            assert (await b.client.post("/v1/collections/docs/rank", json={"query": query})).status_code == 200
        said = await b.client.patch("/v1/collections/docs/documents/d1", json={"title": "Owls"})
        assert as_json(said)["edition"] == 0
        for member in (a, b):
            await member.membership._sync.catch_up()
            docs = member.engine.collections.find("docs")
            assert (docs.version.number, docs.version.revision, _title(docs, "d1")) == (0, 1, "Owls")
        assert _moves(a.engine) == 0


@pytest.mark.parametrize("titles", [True, False])
def test_metadata_is_what_the_rebuilt_tree_would_have(titles: bool) -> None:
    """The general way of applying changes rebuilds everything: it comes to the same."""
    random_ = random.Random(1)
    numbers = Collection.from_taxonomy({number: f"All > {number % 5}" for number in range(40)})
    edition = CollectionVersion.first(small_collection() if titles else numbers)
    edition = edition.changed(edition.placed([{"remove": edition.id_of(3)}]))
    for _ in range(50):
        ids = random_.choices(list(edition.collection.tree.documents), k=random_.randint(1, 4))
        names = random_.sample(COLUMNS, random_.randint(1, 3))
        changes = [{"change": one, **{name: random_.choice(["", "owl", "Käuze"]) for name in names}} for one in ids]
        placed = edition.placed(changes)
        assert placed == change_placement.placed(edition, changes)
        twin, edition = apply_changes(edition, placed), edition.changed(placed)
        assert list(edition.collection) == list(twin.collection)
        assert edition.collection.tree.fingerprint == twin.collection.tree.fingerprint
        for name in ("documents", "nodes", "heirs", "marks"):
            assert np.array_equal(getattr(edition, name), getattr(twin, name))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"change": "nobody", "title": "x"}, "there is no document 'nobody'"),
        ({"change": "d000", "title": 1}, '"title" must be a string'),
        ({"change": "d000"}, "nothing of it is changed"),
        ({"change": 7, "title": "x"}, "are strings; 7 is none"),
        ({"change": "d000", "color": "x"}, '"color" says nothing'),
    ],
)
def test_a_wrong_change_of_metadata_is_an_error_as_all_others_are(change: dict[str, Any], words: str) -> None:
    edition = CollectionVersion.first(small_collection())
    with pytest.raises(ChangeError, match=words):
        edition.placed([{"change": "d001", "title": "fine"}, change])
