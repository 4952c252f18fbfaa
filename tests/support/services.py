"""What tests of the service share: a small collection, a clock, engines that stop or crash, an audit of the log."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from zoomrank.documents import Collection
from zoomrank.documents.versions import CollectionVersion
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.catalogue.served_version import ServedVersion
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.catalogue.version_history import VersionHistory
from zoomrank.service.engine import Engine
from zoomrank.service.http import page_data
from zoomrank.service.http.access import Keys
from zoomrank.service.http.app import make_app
from zoomrank.service.learners.log_audit import begun, read_log_from
from zoomrank.service.storage.events import ABANDONED, TIMED_OUT, WAITING, Outcome, unpack_parts
from zoomrank.service.storage.postgres_store import PostgresDatabase
from zoomrank.service.storage.sqlite_store import SQLiteDatabase
from zoomrank.service.storage.store import Store
from zoomrank.service.storage.store_snapshot import PostgresSnapshot, SQLiteSnapshot, StoreSnapshot, open_store
from zoomrank.service.verification import verify

START = 1_700_000_000.0  # an ordinary day
LONGEST = 300.0  # seconds that an async test may take: the first call of a kernel compiles it
BRANCHES, TWIGS, LEAVES = 4, 3, 3


@dataclass
class Clock:
    """Time that passes when a test says so."""

    time: float = START

    def __call__(self) -> float:
        return self.time

    def pass_by(self, seconds: float) -> None:
        self.time += seconds


@dataclass
class Place:
    """Where a service keeps everything: a folder, and a database if it is not in that folder."""

    folder: Path
    address: str | None = None
    opened: list[Store] = field(default_factory=list)

    def open(self) -> Store:
        store = open_store(self.folder, self.address)
        self.opened.append(store)
        return store

    def options(self) -> list[str]:
        """What a command is told to find it."""
        return ["--data", str(self.folder), *(["--store", self.address] if self.address else [])]

    def close(self) -> None:
        for store in self.opened:
            store.close()


def small_collection() -> Collection:
    """36 documents, three levels deep."""
    return Collection.from_taxonomy(
        {
            f"d{branch}{twig}{leaf}": ("All", f"Branch {branch}", f"Twig {branch}{twig}")
            for branch in range(BRANCHES)
            for twig in range(TWIGS)
            for leaf in range(LEAVES)
        },
        titles={"d000": "The first"},
    )


def only_edition(collection: Collection, settings: Settings) -> VersionHistory:
    """A collection that nobody keeps, and that has never changed."""
    return VersionHistory(ServedVersion(0, CollectionVersion.first(collection), settings))


def kept_digest(store: Store, collection: int) -> str | None:
    """The digest of a collection's first file."""
    whole = store.read.whole_version(collection, 0)
    return None if whole is None else whole.digest


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in a new event loop, for tests and processes that are not async themselves."""
    return asyncio.run(asyncio.wait_for(work, LONGEST))


@contextlib.asynccontextmanager
async def started(
    place: Place, now: Callable[[], float] | None = None, budget: int = 2**30, crash: bool = False
) -> AsyncIterator[Engine]:
    """An engine; at the end it stops, or is left as a crash leaves it."""
    engine = Engine(place.open(), place.folder, budget, now or Clock())
    await engine.start(housekeeping=False)  # tests sweep when they want to
    try:
        yield engine
    finally:
        await (engine.abandon() if crash else engine.stop())


async def served(engine: Engine, name: str = "shop", **settings: Any) -> ServedCollection:
    """The small collection, served."""
    if name in engine.collections.by_name:
        return engine.collections.by_name[name]
    return await engine.collections.add(name, small_collection, Settings(**{"slots": 3, **settings}))


@contextlib.asynccontextmanager
async def client_of(
    engine: Engine, keys: Keys | None = None, largest_body: int = 2**24, origins: Sequence[str] = ()
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the HTTP application of an engine that was started."""
    transport = httpx.ASGITransport(app=make_app(engine, keys, largest_body, origins), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


@dataclass
class Audit:
    """What the log of a store says."""

    outcomes: dict[tuple[int, int], Outcome] = field(default_factory=dict)  # of each (learner, impression)
    learners: int = 0
    loans: int = 0

    @property
    def closed(self) -> int:
        return sum(outcome != WAITING for outcome in self.outcomes.values())


async def audit(engine: Engine) -> Audit:
    """Check that log, learners, counts and activity agree: every learner is what its whole log makes of it."""
    with contextlib.closing(look_at(engine.store)) as view:
        findings = verify(view).findings
    assert findings == [], findings
    found = Audit()
    activity: dict[int, Counter[Outcome]] = {}
    for number, collection, query in engine.store.database.query(
        "SELECT id, collection, query FROM learners ORDER BY id"
    ):
        where = engine.collections.by_id[collection]
        replayed = begun(engine.store.read, where, number)
        log = read_log_from(replayed, engine.store.read.events(number))
        found.outcomes |= {(number, impression): outcome for impression, outcome in log.outcomes.items()}
        shown = [event.shown for _, event in log.events if event.outcome == WAITING]
        found.loans += sum(bool(content and unpack_parts(content).loan) for content in shown)
        for (_, outcome), count in log.counted.items():
            activity.setdefault(collection, Counter())[outcome] += count
        replayed.replay(event for _, event in log.events)
        live = await engine.learners.find(where, query)
        assert live is not None
        assert live.number == number
        assert live.counts == replayed.counts
        assert live.snapshot() == replayed.snapshot(), f"learner {number} is not what its log makes of it"
        found.learners += 1
        assert where.neighbours is None or number in where.neighbours.queries
    for collection in engine.collections.by_id:
        for _, outcome, count in engine.store.read.folded(collection):
            activity.setdefault(collection, Counter())[outcome] += count
    _audit_counts(engine, activity)
    assert sum(engine.learners.queries.values()) == found.learners
    return found


def look_at(store: Store) -> StoreSnapshot:
    """A look at what a store has, beside whoever works in it."""
    if isinstance(store.database, SQLiteDatabase):
        return SQLiteSnapshot(store.database.path)
    assert isinstance(store.database, PostgresDatabase)
    return PostgresSnapshot(store.database.server.address)


def _audit_counts(engine: Engine, activity: dict[int, Counter[Outcome]]) -> None:
    """Check what is said of collections against the log."""
    for counts in (engine.store.read.outcomes(), engine.outcomes):
        assert {collection: +outcomes for collection, outcomes in counts.items() if +outcomes} == activity
    for served in engine.collections.by_name.values():
        outcomes = sum((activity.get(one.id, Counter()) for one in served.family), Counter())
        about = page_data.about(engine, served)
        assert about["impressions"] == outcomes[WAITING]
        assert about["satisfied"] == sum(outcomes[slot] for slot in range(served.settings.slots))
        assert about["abandoned"] == outcomes[ABANDONED] + outcomes[TIMED_OUT]


def key_of(impression: str) -> tuple[int, int]:
    """The learner and the number of an impression's name."""
    learner, number, *_ = impression.split("-")
    return int(learner, 16), int(number, 16)


def as_json(response: httpx.Response) -> Any:
    return json.loads(response.content)
