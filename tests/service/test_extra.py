"""Without its extra the service says what to install, whatever of it is imported and whatever is missing."""

import pkgutil
import subprocess
import sys

import pytest

import zoomrank.service

NEEDED = ("fastapi", "plotly", "prometheus_client", "pydantic", "uvicorn")
SAID = "pip install 'zoomrank[service]'"


def _run(code: str, *missing: str) -> subprocess.CompletedProcess[str]:
    """Run Python in which some packages are not installed."""
    hide = f"import sys; sys.modules.update(dict.fromkeys({missing!r}))\n"
    return subprocess.run([sys.executable, "-c", hide + code], capture_output=True, text=True, check=False)  # noqa: S603


@pytest.mark.parametrize("missing", NEEDED)
def test_whatever_is_missing(missing: str) -> None:
    done = _run("import zoomrank.service", missing)
    assert f"zoomrank.errors.MissingExtraError: The service needs {missing}: {SAID}" in done.stderr


def test_whatever_is_imported() -> None:
    names = [module.name for module in pkgutil.walk_packages(zoomrank.service.__path__, "zoomrank.service.")]
    assert "zoomrank.service.http.schema" in names
    code = f"""
import importlib
from zoomrank.errors import MissingExtraError
for name in {names!r}:
    try:
        importlib.import_module(name)
    except MissingExtraError as error:
        print(name, error)
"""
    done = _run(code, *NEEDED, "httpx", "pydantic_core", "starlette", "typing_extensions")
    said = done.stdout.splitlines()
    assert [line.split()[0] for line in said] == names, done.stderr
    assert all(SAID in line for line in said)


def test_the_command_ends_in_a_sentence() -> None:
    done = _run("from zoomrank.cli import main; sys.exit(main(['serve', '--port', '0']))", *NEEDED, "pydantic_core")
    assert done.returncode == 2
    assert SAID in done.stderr
    assert "Traceback" not in done.stderr
