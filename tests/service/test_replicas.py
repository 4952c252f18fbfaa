"""Several replicas in one database: whichever is asked, it is as if there were one; one that is gone is replaced."""

import asyncio
import contextlib
import json
import time
from typing import Any

import httpx
import pytest

from tests.support.replicas import DOOR, Company, Member, company
from tests.support.services import Place, started
from zoomrank.client import Client
from zoomrank.service.errors import FencedError, StorageError
from zoomrank.service.rank_options import Caller
from zoomrank.service.storage.ownership import COORDINATOR, PARTITIONS, partition_in, partition_of
from zoomrank.service.storage.store_snapshot import open_snapshot, open_store
from zoomrank.service.verification import verify

QUERIES = [f"query {number}" for number in range(24)]
RANK, FEEDBACK = "/v1/collections/docs/rank", "/v1/feedback"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoomrank.cluster.membership.RENEW_EVERY", 0.2)


async def _made(member: Member, **settings: Any) -> None:
    documents = [{"id": f"d{at:02}", "path": ["All", f"Branch {at // 9}", f"Twig {at // 3}"]} for at in range(36)]
    body = {"name": "docs", "documents": documents, "settings": {"slots": 3, **settings}}
    said = await member.client.post("/v1/collections", json=body)
    assert said.status_code == 201, said.text


async def _posted(member: Member, path: str, body: Any, **headers: str) -> Any:
    said = await member.client.post(path, json=body, headers=headers)
    assert said.status_code < 300, said.text
    return said.json()


async def _visit(member: Member, query: str, other: Member | None = None, **more: Any) -> Any:
    """A ranking asked from one replica, and what became of it told to another."""
    ranked = await _posted(member, RANK, {"query": query, **more})
    clicked = ranked["documents"][0]["id"]
    said = await _posted(other or member, FEEDBACK, {"impression": ranked["impression"], "clicked": clicked})
    assert said["status"] == "learned"
    return ranked


def _owner(together: Company, query: str) -> Member:
    """Who looks after a query."""
    collection = next(iter(together.members.values())).engine.collections.find("docs").id
    return next(one for one in together.members.values() if partition_of(collection, query) in one.engine.ownership)


def _verified(place: Place, impressions: int) -> None:
    with contextlib.closing(open_snapshot(place.folder, place.address)) as view:
        verdict = verify(view)
    assert verdict.findings == []
    assert verdict.checked["impressions"] == impressions


async def test_whichever_replica_is_asked_it_is_as_if_there_were_one(on_postgres: Place) -> None:
    async with company(on_postgres, "a", "b", "c") as together:
        a, b, c = together.members.values()
        await _made(b)
        for at, query in enumerate(QUERIES):
            await _visit((a, b, c)[at % 3], query, (b, c, a)[at % 3])
        assert together.passed > 0
        for member in (a, b, c):
            await asyncio.sleep(0.3)  # sums are looked up a few times a second
            about = (await member.client.get("/v1/collections/docs")).json()
            assert (about["queries"], about["impressions"]) == (24, 24)
            listed = (await member.client.get("/v1/collections/docs/queries")).json()
            assert listed["total"] == 24
            why = await member.client.get("/v1/collections/docs/query", params={"query": "query 7"})
            assert why.json()["impressions"] == 1
        held = [member.engine.ownership.partitions for member in (a, b, c)]
        assert sorted(partition for some in held for partition in some) == list(range(PARTITIONS))
        for member in (a, b, c):
            assert all(partition_in(one.number) in member.engine.ownership for _, one in member.engine.learners)
    _verified(on_postgres, 24)


@pytest.mark.full
async def test_many_reports_at_once_each_reach_the_one_who_has_it(on_postgres: Place) -> None:
    async with company(on_postgres, "a", "b") as together:
        a, b = together.members.values()
        await _made(a)
        shown = [await _posted(a, RANK, {"query": query}) for query in QUERIES]
        reports = [{"impression": one["impression"], "clicked": None} for one in shown]
        reports.append({"impression": "x", "clicked": None})
        for member, status in ((b, "learned"), (a, "repeated")):  # with the chair and without
            said = (await _posted(member, "/v1/feedback/batch", {"feedback": reports}))["results"]
            assert [one.get("status") for one in said[:-1]] == [status] * 24
            assert [one["impression"] for one in said[:-1]] == [one["impression"] for one in shown]
            assert said[-1]["error"] == "unknown"
    _verified(on_postgres, 24)


@pytest.mark.full
async def test_nobody_waits_for_ever_for_a_machine_that_is_lost(on_postgres: Place) -> None:
    """One that never says anything again, not even that it is gone."""
    async with company(on_postgres, "a", "b") as together:
        a, b = together.members.values()
        await _made(a)
        await _visit(a, QUERIES[0])
        together.lost.add("b")
        voiding = asyncio.create_task(a.client.post("/v1/collections/docs/void", json={"since": 0, "until": 1e10}))
        await asyncio.sleep(0.5)
        assert not voiding.done()  # it may take its time
        await b.crash()
        del together.members["b"]
        assert (await voiding).status_code == 503
        await together.settled()
        said = await _posted(a, "/v1/collections/docs/void", {"since": 0, "until": 1e10})
        assert said["impressions"] == 1


@pytest.mark.full
async def test_a_replica_that_comes_takes_its_share_while_visitors_go_on(on_postgres: Place) -> None:
    async with company(on_postgres, "a") as together:
        a = together.members["a"]
        await _made(a)
        visits, done = 0, False

        async def go_on(query: str) -> None:
            nonlocal visits
            while not done:
                await _visit(a, query)
                visits += 1

        going = [asyncio.create_task(go_on(query)) for query in QUERIES[:8]]
        await together.join("b")
        await together.settled()
        await together.members["b"].stop()
        del together.members["b"]
        await together.settled()
        done = True
        await asyncio.gather(*going)
    _verified(on_postgres, visits)


@pytest.mark.full
async def test_one_that_crashed_is_taken_over_with_all_that_it_knew(on_postgres: Place) -> None:
    async with company(on_postgres, "a", "b") as together:
        a, b = together.members.values()
        await _made(a)
        key = {"Idempotency-Key": "once"}
        asked = next(query for query in QUERIES if _owner(together, query) is b)
        for _ in range(3):
            await _visit(a, asked)
        waiting = await _posted(a, RANK, {"query": asked}, **key)
        learner = await b.engine.known(b.engine.collections.find("docs"), asked)
        known = learner.snapshot()
        await b.crash()
        del together.members["b"]
        again = await _posted(a, RANK, {"query": asked}, **key)  # passed on in vain, until it is a's
        assert again["impression"] == waiting["impression"]
        taken = await a.engine.known(a.engine.collections.find("docs"), asked)
        assert taken is not learner
        assert taken.snapshot() == known
        said = await _posted(a, FEEDBACK, {"impression": waiting["impression"], "clicked": None})
        assert said["status"] == "learned"
        await together.settled()
        assert COORDINATOR in a.engine.ownership
    _verified(on_postgres, 4)


async def test_one_that_was_taken_for_gone_can_write_nothing(on_postgres: Place) -> None:
    async with company(on_postgres, "a", "b") as together:
        a, b = together.members.values()
        await _made(a)
        asked = next(query for query in QUERIES if _owner(together, query) is b)
        await _visit(a, asked)
        store, number = b.engine.store, b.engine.store.database.writer_id
        with a.membership.database.leases._acting.use() as connection:  # as if nothing had been heard of it
            connection.execute("UPDATE replicas SET ended = now() WHERE id = %s", (number,))
            connection.execute("UPDATE partitions SET owner = NULL WHERE owner = %s", (number,))
        learner = await b.engine.known(b.engine.collections.find("docs"), asked)
        before = len(list(store.read.events(learner.number)))
        with pytest.raises(StorageError):
            await b.engine.rank(b.engine.collections.find("docs"), asked)
        with pytest.raises(FencedError):
            store.hide_collection(1)
        await _eventually(b, lambda one: one.engine.store.database.writer_id > number)  # it has joined anew
        await together.settled()
        learner = await _owner(together, asked).engine.known(a.engine.collections.find("docs"), asked)
        assert len(list(store.read.events(learner.number))) == before
        await _visit(b, asked)
    _verified(on_postgres, 2)


@pytest.mark.full
async def test_what_is_made_changed_and_removed_reaches_all(on_postgres: Place) -> None:
    async with company(on_postgres, "a", "b", "c") as together:
        a, b, c = together.members.values()
        await _made(c, no_feedback="abandoned")
        for query in QUERIES:
            await _visit(b, query)
        added = await _posted(b, "/v1/collections/docs/documents", {"documents": [{"id": "new", "path": ["All"]}]})
        for member in (a, b, c):
            await _eventually(
                member, lambda one: one.engine.collections.find("docs").version.number == added["edition"]
            )
            eligible = await _posted(member, RANK, {"query": "query 1", "eligible": ["new"], "fewer": True})
            assert [one["id"] for one in eligible["documents"]] == ["new"]
        void = await _posted(a, "/v1/collections/docs/void", {"since": 0, "until": 1e10, "dry_run": True})
        assert (void["impressions"], void["queries"]) == (27, 24)
        void = await _posted(b, "/v1/collections/docs/void", {"since": 0, "until": 1e10})
        assert (void["impressions"], void["queries"]) == (27, 24)
        gone = await c.client.delete("/v1/collections/docs")
        assert gone.status_code == 200, gone.text
        for member in (a, b, c):
            said = await member.client.post(RANK, json={"query": "owl"})
            assert said.status_code == 404
            assert not len(member.engine.learners)
    _verified(on_postgres, 0)


async def _eventually(member: Member, is_so: Any) -> None:
    for _ in range(200):
        if is_so(member):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(member.name)


@pytest.mark.full
async def test_an_experiment_counts_each_visitor_once_whomever_she_meets(on_postgres: Place) -> None:
    async with company(on_postgres, "a", "b") as together:
        a, b = together.members.values()
        await _made(a)
        arms = [{"name": "A", "share": 0.5}, {"name": "B", "share": 0.5, "settings": {"parameters": {"prior": 2}}}]
        await _posted(b, "/v1/collections/docs/experiments", {"name": "new", "arms": arms})
        for member in (a, b):
            await _eventually(member, lambda one: one.engine.experiments.of(one.engine.collections.find("docs")))
        for visitor in range(20):
            for at, query in enumerate(QUERIES[:4]):
                await _visit((a, b)[at % 2], query, visitor=f"visitor {visitor}")
        found = (await a.client.get("/v1/collections/docs/experiments/new")).json()
        assert sum(arm["visitors"] for arm in found["arms"]) == 20
        stopped = await _posted(a, "/v1/collections/docs/experiments/new/promote", {"arm": "B"})
        assert stopped["promoted"] == "B"
        for member in (a, b):
            await _eventually(member, lambda one: one.engine.collections.find("docs").stored.home is not None)
        await _posted(b, "/v1/collections/docs/experiments/new/promote", {"arm": "A"})
        for member in (a, b):
            await _eventually(member, lambda one: one.engine.collections.find("docs").stored.home is None)
        await together.settled()
        gone = await b.client.delete("/v1/collections/docs")  # with its experiment
        assert gone.status_code == 200, gone.text
        for member in (a, b):
            assert not member.engine.collections.by_id
        await together.join("c")
        await together.settled()
    _verified(on_postgres, 0)


async def test_alone_or_with_others(on_postgres: Place) -> None:
    """From one service to several and back: the numbers are the same, and those who were there before cannot go on."""
    async with company(on_postgres, "a", "b") as together:
        await _made(together.members["a"])
        ranked = await _posted(together.members["b"], RANK, {"query": "owl"})
        with pytest.raises(StorageError, match="Another zoomrank service uses this database"):
            open_store(on_postgres.folder, on_postgres.address)
    async with started(on_postgres, now=time.time) as engine:
        assert await engine.feedback(ranked["impression"], None) == "learned"
        with pytest.raises(StorageError, match="works alone"):
            await Company(on_postgres).join("c")
    async with company(on_postgres, "c") as together:
        said = await together.members["c"].client.post(
            FEEDBACK, json={"impression": ranked["impression"], "clicked": None}
        )
        assert said.json()["status"] == "repeated"


@pytest.mark.full
async def test_each_sweeps_its_own(on_postgres: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoomrank.service.learners.housekeeping.REMOVE_EVERY", 0.0)
    async with company(on_postgres, "a", "b") as together:
        a, b = together.members.values()
        await _made(a, feedback_within=0.2, asked_again_within=0.2, keep_events=3600)
        for query in QUERIES:
            await _posted(b, RANK, {"query": query})
        for _ in range(100):
            await asyncio.sleep(0.1)
            await a.engine.housekeep()
            await b.engine.housekeep()
            if not a.engine.store.read.count_queries():
                return
        raise AssertionError("queries that were asked once were not removed")


async def test_what_a_lost_lease_leaves_behind_is_not_written_by_the_next(on_postgres: Place) -> None:
    async with company(on_postgres, "a") as together:
        a = together.members["a"]
        await _made(a)
        docs = a.engine.collections.find("docs")
        await _visit(a, "owl")
        learner = await a.engine.known(docs, "owl")
        number = a.engine.store.database.writer_id
        event, _ = learner.show(time.time(), 3, None, None)
        a.engine.learner_events.append(docs, learner, event)  # on its way to the store, and nobody has written it yet
        with a.membership.database.leases._acting.use() as connection:
            connection.execute("UPDATE replicas SET ended = now() WHERE id = %s", (number,))
            connection.execute("UPDATE partitions SET owner = NULL WHERE owner = %s", (number,))
        await _eventually(a, lambda one: one.engine.store.database.writer_id > number)
        await together.settled()
        again = await a.engine.known(docs, "owl")
        assert again.ranker.made == 1
        await _visit(a, "owl")
    _verified(on_postgres, 2)


@pytest.mark.full
async def test_who_hangs_up_and_asks_again_hears_of_the_same_impression(on_postgres: Place) -> None:
    async with company(on_postgres, "a") as together:
        a = together.members["a"]
        await _made(a)
        docs, once = a.engine.collections.find("docs"), Caller(idempotency_key="key")
        await a.engine.rank(docs, "owl")
        asking = asyncio.create_task(a.engine.rank(docs, "owl", caller=once))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
        await a.engine.rank(docs, "owl", caller=once)
    _verified(on_postgres, 2)


BATCH = f"{RANK}/batch"


async def test_each_ranking_of_a_batch_is_made_by_the_owner_of_its_query(on_postgres: Place) -> None:
    async with company(on_postgres, "a", "b") as together:
        a, b = together.members.values()
        await _made(a)
        asked, key = {"requests": [{"query": query} for query in QUERIES]}, {"Idempotency-Key": "once"}
        passed = together.passed
        first = (await _posted(a, BATCH, asked, **key))["results"]
        assert together.passed == passed + 1  # one part to the other replica, and no word to others afterwards
        assert [one["query"] for one in first] == QUERIES
        assert (await _posted(b, BATCH, asked, **key))["results"] == first
        for one in first:
            await _posted(b, FEEDBACK, {"impression": one["impression"], "clicked": None})
        said = await a.client.post(BATCH, json={"requests": [*asked["requests"], {"query": "owl", "slots": 0}]})
        assert (said.status_code, said.json()["message"][:18]) == (422, "requests.24.slots:")
        said = await b.client.post("/v1/collections/none/rank/batch", json=asked)
        assert said.status_code == 404
        wrong = await _posted(b, BATCH, {"requests": [{"query": "owl", "slots": 9}, {"query": "pike"}]})
        assert [one.get("error") for one in wrong["results"]] == ["unusable", None]
    _verified(on_postgres, 25)


async def test_a_batch_follows_partitions_that_have_just_moved(on_postgres: Place) -> None:
    """Where a replica knows late of the owner, only what was refused is asked for again, and each visitor counts."""
    async with company(on_postgres, "a", "b") as together:
        a, b = together.members.values()
        await _made(a)
        arms = [{"name": "A", "share": 0.5}, {"name": "B", "share": 0.5, "settings": {"seed": 1}}]
        await _posted(a, "/v1/collections/docs/experiments", {"name": "new", "arms": arms})
        owners = a.ownership.members.owners
        stale = a.ownership.members._replace(owners=dict.fromkeys(owners, b.ownership.number))
        a.ownership.renew(stale, time.monotonic())
        said = await _posted(a, BATCH, {"requests": [{"query": query, "visitor": query} for query in QUERIES]})
        assert all(one.get("impression") for one in said["results"])
        found = (await a.client.get("/v1/collections/docs/experiments/new")).json()
        assert sum(arm["visitors"] for arm in found["arms"]) == len(QUERIES)
    _verified(on_postgres, len(QUERIES))


@pytest.mark.full
async def test_a_batch_waits_for_the_next_owner(on_postgres: Place) -> None:
    async with company(on_postgres, "a", "b") as together:
        a, b = together.members.values()
        await _made(a)
        asked, key = {"requests": [{"query": query} for query in QUERIES]}, {"Idempotency-Key": "once"}
        first = await _posted(b, BATCH, asked, **key)
        await b.crash()
        del together.members["b"]
        assert await _posted(a, BATCH, asked, **key) == first
        await together.settled()
    _verified(on_postgres, len(QUERIES))


class Network:
    """The way of a client to the replicas: by a load balancer that takes them in turn, or to one of them."""

    def __init__(self, together: Company) -> None:
        self._together = together
        self._loop = asyncio.get_running_loop()
        self._turn = 0
        self.url = "http://balancer"
        self.asked: list[str] = []  # hosts

    def respond(self, request: httpx.Request) -> httpx.Response:
        """Respond in the thread of a client."""
        members = self._together.members
        self.asked.append(request.url.host)
        if request.url.host == "balancer":
            self._turn += 1
            member = [*members.values()][self._turn % len(members)]
        else:
            assert request.url.port == DOOR
            found = members.get(f"{request.url.host}:1")
            if found is None:
                raise httpx.ConnectTimeout("gone", request=request)
            member = found
        kept = {name: value for name, value in request.headers.items() if name == "idempotency-key"}
        asked = member.client.post(request.url.path, json=json.loads(request.content), headers=kept)
        said = asyncio.run_coroutine_threadsafe(asked, self._loop).result(60)
        return httpx.Response(said.status_code, content=said.content, headers=said.headers)

    def client(self, **options: Any) -> Client:
        return Client(self.url, transport=httpx.MockTransport(self.respond), backoff=0.001, **options)


async def test_a_client_that_knows_the_owners_has_nothing_forwarded(on_postgres: Place) -> None:
    async with company(on_postgres, "a:1", "b:1", "c:1") as together:
        await _made(together.members["a:1"])
        network = Network(together)

        def visits(client: Client) -> int:
            before = together.passed
            for query in QUERIES:
                shown = client.rank("docs", query)
                assert client.feedback(shown, shown.ids[0]) == "learned"
            return together.passed - before

        with network.client() as usual, network.client(direct=True) as direct:
            for _ in range(2):
                assert await asyncio.to_thread(visits, usual) >= len(QUERIES)  # at most one of two meets the owner
            await asyncio.to_thread(visits, direct)  # hears of the owners
            for _ in range(2):
                assert await asyncio.to_thread(visits, direct) == 0
            assert network.asked[-2 * len(QUERIES) :].count("balancer") == 0
            await together.members["b:1"].stop()
            del together.members["b:1"]
            await together.settled()
            network.asked.clear()
            await asyncio.to_thread(visits, direct)  # hears of the new owners
            assert network.asked.count("b") == 1  # all of what it had is forgotten at once
            assert await asyncio.to_thread(visits, direct) == 0
    _verified(on_postgres, 7 * len(QUERIES))
