"""Clients that stop in the middle: they are told, their connections go away, and they cannot keep the service from
stopping.
"""

import contextlib
import http.client
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.test_command import serving as serving_command
from tests.support.killing import make_collection
from tests.support.services import Place
from zoomrank.service.http.listener import TimeLimits
from zoomrank.service.server import Server, make_server

QUICK = TimeLimits(headers=0.3, pause=0.3, small_body=0.6)
HEAD = b"POST /v1/collections/shop/rank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
RANK = json.dumps({"query": "owl"}).encode()
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n" % len(RANK) + RANK
HALF_HEADERS = HEAD[:60]
HALF_BODY = HEAD + b"Content-Length: 100\r\n\r\n{"
HALF_UPLOAD = HEAD.replace(b"/shop/rank", b"") + b"Content-Length: 1000\r\n\r\n{"


@contextlib.contextmanager
def _serving(place: Place, limits: TimeLimits) -> Iterator[tuple[Server, int]]:
    make_collection(place)
    server = make_server(place.folder, port=0, limits=limits)
    said: queue.Queue[str] = queue.Queue()
    server.announce = said.put
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server, int(said.get(timeout=120).rpartition(":")[2])
    finally:
        server.should_exit = True
        thread.join()


def _connected(port: int, first: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(first)
    return connection


def _rest(connection: socket.socket) -> bytes:
    """All that comes until it is closed."""
    with connection:
        parts = []
        while part := connection.recv(2**16):
            parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("piece", [b"x-more: " + b"y" * 1000 + b"\r\n", b"z" * 1000])
def test_headers_without_end_are_refused(sqlite: Place, piece: bytes) -> None:
    """Many fields, or one; also on a connection that has served a request before."""
    with _serving(sqlite, TimeLimits()) as (_, port):
        with _connected(port, WHOLE) as connection:
            assert connection.recv(2**16).startswith(b"HTTP/1.1 200 ")
            connection.sendall(HEAD + b"x-one: ")
            with contextlib.suppress(ConnectionError):
                for _ in range(20_000):
                    connection.sendall(piece)
                pytest.fail("20 MB of headers were taken")
        begun = HEAD + b"x-one: "
        with _connected(port, begun + b"y" * (2**16 + 1 - len(begun))) as connection:
            assert _rest(connection).startswith(b"HTTP/1.1 431 ")
        with _connected(port, HEAD + b"x-one: " + b"y" * 2**15 + b"\r\n" + WHOLE[len(HEAD) :]) as connection:
            assert connection.recv(2**16).startswith(b"HTTP/1.1 200 ")


def test_those_who_stop_in_the_middle_are_told_and_go_away(sqlite: Place) -> None:
    with _serving(sqlite, QUICK) as (server, port):
        hanging = [_connected(port, HALF_HEADERS if number % 2 else HALF_BODY) for number in range(300)]
        for number, connection in enumerate(hanging):
            said = _rest(connection)
            assert said.startswith(b"HTTP/1.1 408 "), said
            assert json.loads(said.partition(b"\r\n\r\n")[2])["error"] == "timeout"
            assert (b"headers" if number % 2 else b"body") in said.partition(b"\r\n\r\n")[2]
        with _connected(port, WHOLE) as other:
            assert other.recv(2**16).startswith(b"HTTP/1.1 200 ")
            while len(server.server_state.connections) > 1 or server.server_state.tasks:
                time.sleep(0.01)


@pytest.mark.parametrize("first", [b"", b"\r\n", WHOLE, WHOLE + b"\r\n", WHOLE + HALF_HEADERS, WHOLE + HALF_BODY])
def test_whatever_came_before(sqlite: Place, first: bytes) -> None:
    """Nothing at all, empty lines, a whole request and half of another."""
    with _serving(sqlite, QUICK) as (server, port):
        server.config.timeout_keep_alive = 1
        said = _rest(_connected(port, first))
        assert said.startswith(b"HTTP/1.1 200 ") == first.startswith(b"POST")
        if not first:
            assert said == b""


def test_slow_bodies_may_take_their_time_if_they_are_large(sqlite: Place) -> None:
    """A byte now and then keeps an upload going, and a ranking no longer than a ranking may take."""
    with _serving(sqlite, TimeLimits(headers=10, pause=1.0, small_body=1.5)) as (_, port):
        upload, rank = _connected(port, HALF_UPLOAD), _connected(port, HALF_BODY)
        rank.setblocking(False)
        told = b""
        while not told:
            time.sleep(0.2)
            upload.sendall(b" ")
            with contextlib.suppress(BlockingIOError):
                told = rank.recv(2**16)
                break
            with contextlib.suppress(OSError):
                rank.sendall(b" ")
        assert told.startswith(b"HTTP/1.1 408 ")
        rank.close()
        upload.sendall(b" " * 999)  # all that was promised, and it is heard
        said = upload.recv(2**16)
        assert not said.startswith(b"HTTP/1.1 408 ")
        upload.close()


def test_headers_that_come_letter_by_letter(sqlite: Place) -> None:
    with _serving(sqlite, QUICK) as (_, port):
        connection = _connected(port)
        with contextlib.suppress(OSError):
            for letter in HEAD * 100:
                connection.sendall(bytes([letter]))
                time.sleep(0.02)
        with contextlib.suppress(ConnectionResetError):
            assert _rest(connection).startswith(b"HTTP/1.1 408 ")


def test_a_request_in_many_pieces_is_served(sqlite: Place) -> None:
    with _serving(sqlite, TimeLimits()) as (_, port), _connected(port) as connection:
        for _ in range(3):
            for start in range(0, len(WHOLE), 10):
                connection.sendall(WHOLE[start : start + 10])
                time.sleep(0.001)
            response = connection.recv(2**16)
            while b"documents" not in response:  # the body may come by itself
                response += connection.recv(2**16)
            assert response.startswith(b"HTTP/1.1 200 ")


def _learners_written(place: Place) -> bool:
    store = place.open()
    try:
        return bool(store.database.query("SELECT COUNT(*) FROM snapshots")[0][0])
    finally:
        store.close()


def test_a_stop_ends_though_clients_hang(sqlite: Place) -> None:
    make_collection(sqlite)
    with serving_command("--data", str(sqlite.folder)) as (process, address):
        port = int(address.rpartition(":")[2])
        with _connected(port, WHOLE) as other:
            assert other.recv(2**16).startswith(b"HTTP/1.1 200 ")
        hanging = [_connected(port, first) for first in (b"", HALF_HEADERS, HALF_BODY, HALF_UPLOAD) for _ in range(5)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        for connection in hanging:
            connection.close()
        assert process.stderr is not None
        said = process.stderr.read()
        assert "all data is saved" in said
        assert "Traceback" not in said
    assert _learners_written(sqlite)


def test_a_second_signal_ends_at_once(sqlite: Place) -> None:
    make_collection(sqlite)
    with serving_command("--data", str(sqlite.folder)) as (process, address):
        hanging = _connected(int(address.rpartition(":")[2]), HALF_BODY)
        process.send_signal(signal.SIGTERM)
        hanging.settimeout(0.5)
        with contextlib.suppress(TimeoutError, ConnectionResetError):
            assert hanging.recv(1) == b"", "it waits for this request"
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        assert process.stderr is not None
        assert "Cancel" not in process.stderr.read()  # it did not wait until it had to give it up
        hanging.close()


def test_a_stop_while_a_collection_is_made(sqlite: Place) -> None:
    with serving_command("--data", str(sqlite.folder)) as (process, address):
        documents = [{"id": number, "path": [f"a{number % 77}", f"b{number % 777}"]} for number in range(300_000)]
        body = json.dumps({"name": "large", "documents": documents})
        connection = http.client.HTTPConnection(address, timeout=60)
        connection.request("POST", "/v1/collections", body, {"Content-Type": "application/json"})
        while not (made := _children(process.pid)):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())["message"]) == (503, "The service is stopping.")
        connection.close()
        assert process.wait(60) == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in made)
    assert sorted(file.name for file in sqlite.folder.iterdir()) == ["lock", "zoomrank.sqlite"]


def _children(pid: int) -> list[int]:
    """The processes that make a collection for a service."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread or a process that has ended meanwhile
            for child in (task / "children").read_text().split():
                if b"builder_process" in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(int(child))
    return found


def test_a_service_that_is_killed_in_the_middle_of_an_upload_leaves_nothing(sqlite: Place) -> None:
    with serving_command("--data", str(sqlite.folder)) as (process, address):
        hanging = _connected(
            int(address.rpartition(":")[2]), HALF_UPLOAD.replace(b" 1000", b" 10000000") + b" " * 2**22
        )
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
        hanging.close()
    assert {file.name.partition("-")[0] for file in sqlite.folder.iterdir()} == {"lock", "zoomrank.sqlite"}


def test_what_is_damaged_is_said_in_words_by_the_command(sqlite: Place) -> None:
    make_collection(sqlite)
    store = sqlite.open()
    store._change("UPDATE contents SET bytes = ?", (b"noise",))
    store.close()
    command = "import sys; from zoomrank.cli import main; sys.exit(main())"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", command, "serve", "--port", "0", "--data", str(sqlite.folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "“shop” is damaged" in done.stderr
    assert "zoomrank restore" in done.stderr
    assert "Traceback" not in done.stderr


HANGING = """
import sys, time
from pathlib import Path
from zoomrank.service import server, write_queue
server.LONGEST_STOP = 1.0
write_queue.WriteQueue._is_quick = lambda _: False
write_queue.WriteQueue._write = lambda *_: time.sleep(1000)
server.make_server(Path(sys.argv[1]), port=0, announce=lambda address: print(address, flush=True)).run()
"""


def test_a_stop_ends_though_the_store_hangs(sqlite: Place) -> None:
    make_collection(sqlite)
    command = [sys.executable, "-c", HANGING, str(sqlite.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        with _connected(int(process.stdout.readline().rpartition(":")[2]), WHOLE):
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "Stopping took more than 1 seconds" in said
