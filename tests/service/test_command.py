"""`zoomrank serve`: says where it is, stops when it is told to, and goes on where it was."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.killing import make_collection
from tests.support.services import Place
from zoomrank.cli import main


@contextlib.contextmanager
def serving(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command in a process of its own, which does not outlive the test."""
    command = "import sys; from zoomrank.cli import main; sys.exit(main())"
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", command, "serve", "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("zoomrank serves on http://127.0.0.1:"), process.communicate()
            yield process, line.split()[3].removeprefix("http://")
        finally:
            process.kill()


def _ask(address: str, method: str, path: str, body: Any = None, key: str = "") -> tuple[int, Any]:
    with contextlib.closing(http.client.HTTPConnection(address, timeout=60)) as connection:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def test_it_stops_when_told_to_and_goes_on(sqlite: Place) -> None:
    make_collection(sqlite)
    keys = sqlite.folder / "keys.txt"
    keys.write_text(f"rank {'r' * 20}\nread {'s' * 20}\n")
    for life, stop in enumerate((signal.SIGTERM, signal.SIGINT)):
        with serving("--data", str(sqlite.folder), "--keys", str(keys)) as (process, address):
            assert _ask(address, "GET", "/v1/ready") == (200, {"status": "ready"})
            assert _ask(address, "GET", "/v1/collections")[0] == 401
            assert _ask(address, "GET", "/v1/collections/shop", key="s" * 20)[1]["impressions"] == life
            assert _ask(address, "POST", "/v1/collections/shop/rank", {"query": "owl"}, "r" * 20)[0] == 200
            if life == 0:
                assert "Another zoomrank service" in _said_when_refused(sqlite.folder)
            process.send_signal(stop)
            process.wait(60)


def _said_when_refused(folder: Path) -> str:
    """What a second service in the same folder says."""
    command = "import sys; from zoomrank.cli import main; sys.exit(main())"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", command, "serve", "--port", "0", "--data", str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr


def test_what_it_refuses_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, said in (
        (["--host", "0.0.0.0"], "keys are needed"),  # noqa: S104
        (["--keys", str(tmp_path / "none.txt")], "none.txt"),
        (["--store", "mysql://here"], "postgresql://"),
        (["--store", "postgresql:///x?host=/nowhere"], "cannot be reached"),
    ):
        assert main(["serve", "--port", "0", "--data", str(tmp_path / "data"), *options]) == 2
        assert said in capsys.readouterr().err
    assert os.listdir(tmp_path) in ([], ["data"])
