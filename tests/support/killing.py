"""Servers that are killed: a nursery that starts them at once, clients that remember what they were told, and a check.

`python -m tests.support.killing` is the nursery: it has everything imported and compiled, and forks a server for every
line that it reads. When its input ends, as it does when the tests end, however they end, so do all of its servers.
"""

import contextlib
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.services import Audit, Place, audit, key_of, run, served
from zoomrank.service.engine import Engine
from zoomrank.service.experiments import ArmSpec, visitor_digest
from zoomrank.service.learners.log_audit import begun, read_log_from
from zoomrank.service.storage.events import ABANDONED, TIMED_OUT, UNSEEN, VOIDED, WAITING, ArmVisit, unpack_parts

SETTINGS: dict[str, Any] = {"slots": 3, "feedback_within": 1.0}  # some feedback comes too late
VISITORS = 400
ARMS = [ArmSpec("now", 0.4, None), ArmSpec("other", 0.4, {"seed": 5})]  # of an experiment; some visitors are in none
QUERIES = [f"query {number}" for number in range(12)]
OUTAGES = 0.2  # of lives, before which there was none for a while
_TIMEOUT = 30


def main() -> None:
    """Fork servers."""
    from zoomrank.service.learners import housekeeping, learner_events
    from zoomrank.service.server import make_server

    learner_events.SNAPSHOT_EVERY, housekeeping.SWEEP_EVERY = 100, 0.05  # more of everything that can be interrupted
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    children = []
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            server = make_server(Path(order["folder"]), port=0, store=order["address"], memory=order["memory"])
            server.announce = lambda address: print(json.dumps({"pid": os.getpid(), "address": address}), flush=True)
            server.run()
            os._exit(0)
        children.append(child)
        print(json.dumps({"pid": child}), flush=True)
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


class Nursery:
    """Starts servers that have nothing to import any more."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.killing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def start(self, place: Place, memory: int) -> tuple[int, str]:
        """A server's process, and its address."""
        pid = self.begin(place, memory)
        said = self._said()
        assert said["pid"] == pid
        return pid, said["address"]

    def begin(self, place: Place, memory: int) -> int:
        """A server's process; nobody waits until it serves."""
        assert self._process.stdin is not None
        order = {"folder": str(place.folder), "address": place.address, "memory": memory}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._said(pid_only=True)["pid"])

    def _said(self, pid_only: bool = False) -> dict[str, Any]:
        assert self._process.stdout is not None
        while True:
            line = self._process.stdout.readline()
            assert line, "a server did not start"
            said: dict[str, Any] = json.loads(line)
            if pid_only == ("address" not in said):  # that of one that was killed as it said so is not wanted
                return said

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.__exit__(None, None, None)


@contextlib.contextmanager
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    try:
        yield made
    finally:
        made.close()


def kill(pid: int) -> None:
    """kill -9, and wait until it is gone."""
    os.kill(pid, signal.SIGKILL)
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.002)


@dataclass
class Memory:
    """What clients were told, and what they never heard back about."""

    shown: dict[str, list[str]] = field(default_factory=dict)  # impressions that were acknowledged
    told: dict[str, str | None] = field(default_factory=dict)  # feedback that was acknowledged
    unsure: dict[str, str | None] = field(default_factory=dict)  # feedback that was sent
    asked: dict[str, str] = field(default_factory=dict)  # requests that nobody has heard of, by their keys: the query
    answered: dict[str, tuple[str, str]] = field(default_factory=dict)  # the others: the query and the impression
    query: dict[str, str] = field(default_factory=dict)  # of impressions that were acknowledged
    seen: dict[str, bool] = field(default_factory=dict)  # those said to be seen, and whether that was acknowledged
    voids: dict[tuple[str, float, float], bool] = field(default_factory=dict)  # of a query between two times, likewise
    there: dict[str, str | None] = field(default_factory=dict)  # where documents are that come and go; None: gone
    changing: dict[str, str | None] = field(default_factory=dict)  # where they will be, if that was heard
    counted: int = 0  # in the experiment
    changes: int = 0
    asked_again: int = 0
    voided: int = 0
    repeated: int = 0
    expired: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def is_void(self, impression: str) -> bool | None:
        """Whether an impression is void; None if nobody knows."""
        query, time_ = self.query[impression], int(impression.split("-")[2], 16) / 1000
        heard = {
            known for (about, since, until), known in self.voids.items() if about == query and since <= time_ < until
        }
        return True if True in heard else None if heard else False


def _who(key: str) -> dict[str, str]:
    """The visitor of a request; some have no name."""
    number = int(key, 16)
    return {"visitor": f"v{number % VISITORS}"} if number % 3 else {}


class Client(threading.Thread):
    """Asks and reports until it is cut off."""

    def __init__(self, address: str, memory: Memory, seed: int) -> None:
        super().__init__(daemon=True)
        self.host = address.removeprefix("http://")
        self.memory = memory
        self.random = random.Random(seed)
        self.stopping = False
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            connection = http.client.HTTPConnection(self.host, timeout=_TIMEOUT)
            with contextlib.closing(connection):
                while not self.stopping:
                    self._visit(connection)
        except (OSError, http.client.HTTPException):
            pass  # the server was killed
        except BaseException as error:  # noqa: BLE001  (the test has to know)
            self.failure = error

    def _post(self, connection: http.client.HTTPConnection, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def _visit(self, connection: http.client.HTTPConnection) -> None:
        impression, documents = self._ask(connection)
        fate = self.random.random()
        if fate > 0.7:
            self._say_seen(connection, impression)
        if fate > 0.95:
            self._void(connection, self.random.choice(QUERIES))
        if fate < 0.85:
            self._tell(connection, impression, self.random.choice([*documents, None]))
        if fate < 0.3:  # once more what was said before, or what may not have arrived, or what waits since another life
            with self.memory.lock:
                known = [*list(self.memory.unsure.items())[:3], *list(self.memory.told.items())[-5:]]
                known += [(one, None) for one in list(self.memory.shown)[-30:] if one not in self.memory.told][:2]
            if known:
                self._tell(connection, *self.random.choice(known))

    def _ask(self, connection: http.client.HTTPConnection) -> tuple[str, list[str]]:
        """Ask something new, or once more what nobody has heard of, or what somebody has: under a key each."""
        memory = self.memory
        with memory.lock:
            key, query = f"{self.random.getrandbits(64):x}", self.random.choice(QUERIES)
            if memory.asked and self.random.random() < 0.5:
                key, query = memory.asked.popitem()
            elif memory.answered and self.random.random() < 0.1:
                key, (query, _) = self.random.choice(list(memory.answered.items())[-20:])
            memory.asked[key] = query
        body = {"query": query, "slots": 3} | _who(key)
        status, ranking = self._post(connection, "/v1/collections/shop/rank", body, **{"Idempotency-Key": key})
        assert status == 200, ranking
        impression, documents = ranking["impression"], [one["id"] for one in ranking["documents"]]
        with memory.lock:
            memory.asked.pop(key, None)
            memory.asked_again += key in memory.answered
            assert memory.answered.setdefault(key, (query, impression)) == (query, impression), "another impression"
            assert memory.shown.setdefault(impression, documents) == documents
            memory.query[impression] = query
        return impression, documents

    def _say_seen(self, connection: http.client.HTTPConnection, impression: str) -> None:
        with self.memory.lock:
            self.memory.seen.setdefault(impression, False)
        status, content = self._post(connection, "/v1/seen", {"impression": impression})
        assert status in (200, 410), (status, content)
        with self.memory.lock:
            self.memory.seen[impression] |= status == 200

    def _void(self, connection: http.client.HTTPConnection, query: str) -> None:
        now = round(time.time(), 3)
        span = (query, now - 0.3, now - 0.1)
        with self.memory.lock:
            self.memory.voids[span] = False
        status, content = self._post(
            connection, "/v1/collections/shop/void", dict(zip(("query", "since", "until"), span, strict=True))
        )
        assert status == 200, content
        with self.memory.lock:
            self.memory.voids[span] = True
            self.memory.voided += content["impressions"]

    def _tell(self, connection: http.client.HTTPConnection, impression: str, clicked: str | None) -> None:
        with self.memory.lock:
            before = impression in self.memory.told
            said = self.memory.told if before else self.memory.unsure
            clicked = said.setdefault(impression, clicked)  # nobody says something else when she is asked again
        status, content = self._post(connection, "/v1/feedback", {"impression": impression, "clicked": clicked})
        assert status in (200, 410), (status, content)
        with self.memory.lock:
            if status == 410:
                self.memory.expired += 1
                self.memory.unsure.pop(impression, None)
                return
            assert not (before and content["status"] == "learned"), "applied twice"
            self.memory.repeated += content["status"] == "repeated"
            self.memory.told[impression] = clicked
            self.memory.unsure.pop(impression, None)


class Keeper(Client):
    """Lets documents come and go, some at a time, until she is cut off."""

    def _visit(self, connection: http.client.HTTPConnection) -> None:
        changes: list[dict[str, Any]] = []
        meant: dict[str, str | None] = {}
        for name in self.random.sample([f"k{number}" for number in range(30)], self.random.randint(1, 4)):
            if self.memory.there.get(name) is not None and self.random.random() < 0.5:
                changes.append({"remove": name})
                meant[name] = None
            else:
                meant[name] = f"Branch {self.random.randrange(6)}"
                changes.append({"put": name, "path": ["All", meant[name]]})
        with self.memory.lock:
            self.memory.changing = meant
        status, content = self._post(connection, "/v1/collections/shop/changes", {"changes": changes})
        assert status == 200, content
        with self.memory.lock:
            self.memory.there |= meant
            self.memory.changing = {}
            self.memory.changes += 1
        time.sleep(0.02)


def _check_documents(engine: Engine, memory: Memory) -> None:
    """What was acknowledged has happened; what nobody has heard of has happened as a whole, or not at all."""
    version = engine.collections.find("shop").version
    ids = version.tree.documents
    places = {
        name: version.path(ids.position(name))[-1] if name in ids else None for name in memory.there | memory.changing
    }
    before = {name: memory.there.get(name) for name in places}
    assert places in (before, before | memory.changing), "a change was lost, or half of one was made"
    memory.there, memory.changing = places, {}


def _check_experiment(engine: Engine, memory: Memory) -> None:
    """What is counted of an experiment is what the log says, and each visitor met her arm, and counts once."""
    shop = engine.collections.find("shop")
    experiment = engine.experiments.find(shop, "first")
    rows = engine.store.read.arm_visits(experiment.id)
    kept = {ArmVisit(experiment.id, arm, minute, kind): count for minute, arm, kind, count in rows if count}
    in_log: Counter[ArmVisit] = Counter()
    homes = {}
    for number, collection in engine.store.database.query("SELECT id, collection FROM learners"):
        homes[number] = collection
        begins = begun(engine.store.read, engine.collections.by_id[collection], number)
        in_log.update(read_log_from(begins, engine.store.read.events(number)).arm_visits)
    assert kept == in_log, "an experiment counts something else than the log has"
    visitors = engine.store.read.visitors(experiment.id)
    assert len(set(visitors)) == len(visitors)
    memory.counted = len(visitors)
    for key, (_, impression) in memory.answered.items():
        who = _who(key).get("visitor")
        if who is not None:
            digest = visitor_digest(experiment.salt, who)
            arm = experiment.arm_of(digest)
            met = shop if arm is None else experiment.arms[arm].served
            assert homes[key_of(impression)[0]] == met.id, "she met another arm"
            assert arm is None or digest in visitors, "who was shown something was not remembered"


def check(place: Place, memory: Memory) -> Audit:
    """Nothing acknowledged is lost, nothing is there twice, and what comes back is what the whole log makes."""
    found: Audit = run(_checked(place, memory))
    place.opened.clear()
    return found


async def _checked(place: Place, memory: Memory) -> Audit:
    engine = Engine(place.open(), place.folder)
    await engine.start()
    engine._stop_housekeeping()
    try:
        found = await audit(engine)
        _check_requests(engine)
        _check_documents(engine, memory)
        _check_experiment(engine, memory)
        unseen = engine.collections.find("shop").settings.no_feedback == "unseen"
    finally:
        await engine.stop()
    for impression in memory.shown:
        assert key_of(impression) in found.outcomes, "an impression was lost"
        is_void, outcome = memory.is_void(impression), found.outcomes[key_of(impression)]
        assert is_void is None or is_void == (outcome == VOIDED), "void, and it counts; or not, and it does not"
        if unseen:
            assert outcome != TIMED_OUT or impression in memory.seen, "learned, though nobody has seen it"
            assert outcome != UNSEEN or not memory.seen.get(impression), "not learned, though somebody has"
    for impression, clicked in memory.told.items():
        slot = ABANDONED if clicked is None else memory.shown[impression].index(clicked)
        assert found.outcomes[key_of(impression)] in (slot, VOIDED), "feedback was lost"
    for impression, clicked in memory.unsure.items():
        slot = ABANDONED if clicked is None else memory.shown[impression].index(clicked)
        assert found.outcomes[key_of(impression)] in (WAITING, slot, TIMED_OUT, UNSEEN, VOIDED)
    return found


def _check_requests(engine: Engine) -> None:
    """Each request that came with a key, however often, has one impression."""
    rows = engine.store.database.query(f"SELECT shown FROM events WHERE outcome = {WAITING}")  # noqa: S608
    requests = [unpack_parts(bytes(shown)).tags.request for (shown,) in rows]
    assert None not in requests
    assert len(set(requests)) == len(requests), "a request was answered twice"


def torment(
    place: Place, kills: int, seed: int, clients: int = 4, longest: float = 0.6, **settings: Any
) -> dict[str, int]:
    """Kill a server again and again at random moments under load; check after every kill."""
    random_ = random.Random(seed)
    memory, found = Memory(), Audit()
    during_start = outages = 0
    make_collection(place, **settings)
    with nursery() as servers:
        for life in range(kills):
            budget = random_.choice([0, 100_000, 2**30])  # with evictions, and without
            if random_.random() < 0.15:
                pid = servers.begin(place, budget)  # killed while it starts
                time.sleep(random_.random() * 0.1)
                kill(pid)
                during_start += 1
                found = check(place, memory)
                continue
            if random_.random() < OUTAGES:  # nobody could report anything for longer than feedback is waited for
                time.sleep(1.2)
                outages += 1
            pid, address = servers.start(place, budget)
            threads = [Client(address, memory, seed * 1_000_000 + life * 100 + number) for number in range(clients)]
            threads.append(Keeper(address, memory, seed * 1_000_000 + life * 100 + clients))
            for thread in threads:
                thread.start()
            time.sleep(random_.random() * longest)
            kill(pid)
            for thread in threads:
                thread.stopping = True
                thread.join(_TIMEOUT)
                assert not thread.is_alive()
                if thread.failure is not None:
                    raise thread.failure
            found = check(place, memory)
    return {
        "kills": kills,
        "while starting": during_start,
        "outages": outages,
        "impressions acknowledged": len(memory.shown),
        "feedback acknowledged": len(memory.told),
        "changes acknowledged": memory.changes,
        "asked again": memory.asked_again,
        "voids acknowledged": sum(memory.voids.values()),
        "impressions void": sum(outcome == VOIDED for outcome in found.outcomes.values()),
        "said to be seen": sum(memory.seen.values()),
        "repeated": memory.repeated,
        "expired": memory.expired,
        "never heard of": len(memory.unsure),
        "impressions in the log": len(found.outcomes),
        "outcomes in the log": found.closed,
        "learners": found.learners,
        "loans in the log": found.loans,
        "visitors counted": memory.counted,
    }


def make_collection(place: Place, **settings: Any) -> None:
    """Create the small collection with an experiment, and stop."""
    run(_created(place, settings))
    place.opened.clear()


async def _created(place: Place, settings: dict[str, Any]) -> None:
    engine = Engine(place.open(), place.folder)
    await engine.start()
    shop = await served(engine, **SETTINGS, **settings)
    await engine.experiments.create(shop, "first", ARMS)
    await engine.stop()


if __name__ == "__main__":
    main()
