"""What a service says of itself, alone and among others: who serves, who has what, and how much there is to do."""

import asyncio
import socket

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.replicas import Member, company
from tests.support.services import Clock, Place, started
from zoomrank.service.http.access import LoadMeter
from zoomrank.service.storage.ownership import PARTITIONS


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoomrank.cluster.membership.RENEW_EVERY", 0.2)


async def test_requests_of_late_are_those_of_the_last_whole_seconds(sqlite: Place) -> None:
    clock = Clock(100.5)
    async with started(sqlite) as engine:
        load = LoadMeter(engine, steady=clock)
        for second in range(20):
            for _ in range(second):
                load.count("rank", 200, 0.002)
            clock.time += 1
        says = load.says()
        assert says["requests_per_second"] == sum(range(15, 20)) / 5
        assert load.says() == says  # whoever asks, and how often
        assert says["requests"] == [["rank", 200, 190]]
        assert sum(says["times"]["rank"]["buckets"]) == 190
        clock.time += 3
        assert load.says()["requests_per_second"] == sum(range(18, 20)) / 5
        clock.time += 100
        assert load.says()["requests_per_second"] == 0


async def test_a_service_that_is_alone_is_one_replica_with_everything(client: httpx.AsyncClient) -> None:
    said = (await client.get("/v1/replicas")).json()
    (alone,) = said["replicas"]
    assert (said["partitions"], said["free"]) == (PARTITIONS, 0)
    assert (alone["partitions"], alone["chair"], alone["name"]) == (PARTITIONS, True, socket.gethostname())
    assert 0 <= alone["silent"] < 1
    assert alone["load"]["host"] == socket.gethostname()
    await client.get("/v1/health")
    text = (await client.get("/metrics")).text
    assert f'zoomrank_partitions{{replica="{socket.gethostname()}"}} 256.0\n' in text
    assert "zoomrank_partitions_nobody_has 0.0\n" in text
    assert "zoomrank_replicas 1.0\n" in text
    assert "zoomrank_learners 0.0\n" in text
    assert 'zoomrank_requests_total{kind="health",status="200"} 1.0\n' in text
    assert 'zoomrank_request_seconds_count{kind="health"} 1.0\n' in text


async def _told(client: httpx.AsyncClient, metric: str, **labels: str) -> dict[str, float]:
    """A metric of each replica."""
    found = {}
    for family in text_string_to_metric_families((await client.get("/metrics")).text):
        for sample in family.samples:
            if sample.name == metric and {**sample.labels, **labels} == sample.labels:
                assert sample.labels["replica"] not in found
                found[sample.labels["replica"]] = sample.value
    return found


async def test_each_replica_tells_of_all(on_postgres: Place) -> None:
    async with company(on_postgres, "a", "b") as together:
        a, b = together.members.values()
        for _ in range(7):
            await a.client.get("/v1/health")
        await asyncio.sleep(1)  # some renewals
        for member in (a, b):
            said = (await member.client.get("/v1/replicas")).json()
            rows = {row["name"]: row for row in said["replicas"]}
            assert {name: row["partitions"] for name, row in rows.items()} == {"a": 128, "b": 128}
            assert said["free"] == 0
            assert [row["chair"] for row in rows.values()] == [True, False]
            assert all(row["load"]["process"] > 0 and row["silent"] < 2 for row in rows.values())
            assert await _told(member.client, "zoomrank_partitions") == {"a": 128, "b": 128}
            health = {"kind": "health"}
            assert await _told(member.client, "zoomrank_requests_total", **health, status="200") == {"a": 7}
            assert await _told(member.client, "zoomrank_request_seconds_count", **health) == {"a": 7}
            assert (await _told(member.client, "zoomrank_failed_writes_total")).keys() == {"a", "b"}


async def _cut_off(member: Member) -> None:
    """Have a replica neither heard of, nor hear of others, as if it could not reach PostgreSQL."""
    member.membership._stopped.set()
    await asyncio.to_thread(member.membership._thread.join)


async def test_one_of_which_nothing_is_heard_and_what_nobody_has(on_postgres: Place) -> None:
    async with company(on_postgres, "a", "b") as together:
        a, b = together.members.values()
        await _cut_off(a)
        await asyncio.sleep(1.5)
        for member in (a, b):  # what the first knows is old, and it says so
            rows = (await member.client.get("/v1/replicas")).json()["replicas"]
            assert rows[0]["silent"] > 1
        await _cut_off(b)  # so that it does not take them at once
        with b.membership.database.leases._acting.use() as connection:
            connection.execute("UPDATE partitions SET owner = NULL WHERE number >= 200")
            connection.execute("UPDATE replicas SET ended = now() WHERE id = %s", (a.engine.store.database.writer_id,))
        b.ownership.renew(b.membership.database.leases.renew({}), 0.0)
        said = (await b.client.get("/v1/replicas")).json()
        assert said["free"] > 0
        assert [row["name"] for row in said["replicas"]] == ["b"]
        assert f"zoomrank_partitions_nobody_has {said['free']}.0\n" in (await b.client.get("/metrics")).text
