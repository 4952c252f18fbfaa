"""What replicas pass on to each other by HTTP: it arrives as it was, where it was meant to, or is known not to have."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from zoomrank.cluster.leases import ClusterMember
from zoomrank.cluster.peer_server import (
    PEERS_KEPT,
    ForwardedRequest,
    ForwardedResponse,
    HttpPeers,
    PeerServer,
    UnansweredError,
    UnreachedError,
)
from zoomrank.service.errors import NotOwnerError, StoppingError, UnprocessableError
from zoomrank.service.http.listener import BackgroundServer, listen, url_of, uvicorn_config

TOKEN = "0123456789abcdef"  # noqa: S105
HEADERS = [
    (b"idempotency-key", "once, für alle".encode()),
    (b"content-type", b"application/json"),
    (b"x-twice", b"1"),
    (b"x-twice", b"2"),
]


class Passing:
    """Stands for the replica behind a door."""

    def __init__(self, said: Callable[[ForwardedRequest], Awaitable[ForwardedResponse]]) -> None:
        self._said = said
        self.heard: list[ForwardedRequest] = []

    async def respond_here(self, request: ForwardedRequest) -> ForwardedResponse:
        self.heard.append(request)
        return await self._said(request)


async def _fine(_: ForwardedRequest) -> ForwardedResponse:
    return ForwardedResponse(201, [(b"content-type", b"application/json"), (b"retry-after", b"1")], '{"ü": 1}'.encode())


@contextlib.asynccontextmanager
async def door(
    said: Callable[[ForwardedRequest], Awaitable[ForwardedResponse]] = _fine,
) -> AsyncIterator[tuple[Passing, ClusterMember]]:
    passing: Any = Passing(said)
    taken = listen("127.0.0.1", 0)
    listener = BackgroundServer(uvicorn_config(PeerServer(passing.respond_here, TOKEN), timeout_keep_alive=PEERS_KEPT))
    serving = asyncio.create_task(listener.serve([taken]))
    while not listener.started:
        await asyncio.sleep(0.01)
    try:
        yield passing, ClusterMember(1, url_of(taken).removeprefix("http://"), 0.0, 0.0, {}, TOKEN)
    finally:
        listener.should_exit = True
        await serving


@pytest.fixture
async def peers() -> AsyncIterator[HttpPeers]:
    made = HttpPeers()
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "asker"),
    [
        ("POST", "/v1/collections/shop/rank", b"", b'{"query": "q"}', b"12345678"),
        ("GET", "/v1/collections/a b%~ü+/query", b"query=%C3%BC%26+x&n=2", b"", None),
        ("PUT", "/v1/collections/shop", b"", bytes(range(256)) * 5000, None),
        ("DELETE", "/v1/collections/shop/queries", b"query=a%2Fb", b"", b"\x00" * 8),
    ],
)
async def test_a_request_arrives_as_it_was(
    peers: HttpPeers, method: str, path: str, query: bytes, body: bytes, asker: bytes | None
) -> None:
    async with door() as (passing, replica):
        spoofed = [(b"zoomrank-asker", b"zz"), (b"zoomrank-token", b"mine"), (b"x-request-id", b"1")]
        of_connection = [
            *spoofed,
            (b"host", b"shop.example"),
            (b"authorization", b"Bearer secret"),
            (b"connection", b"close"),
        ]
        sent = ForwardedRequest(method, path, query, [*HEADERS, *of_connection], body, asker)
        for _ in range(2):  # on a new connection, and on one that was kept
            said = await peers.ask(replica, sent, 5)
            heard = passing.heard.pop()
            own = [header for header in heard.headers if header[0] not in (b"host", b"content-length")]
            assert replace(heard, headers=own) == replace(sent, headers=HEADERS)
            assert (said.status, said.body) == (201, '{"ü": 1}'.encode())
            assert {(b"content-type", b"application/json"), (b"retry-after", b"1")} <= {*said.headers}
            assert not {b"date", b"transfer-encoding", b"connection"} & dict(said.headers).keys()


async def test_who_was_not_meant_says_so_and_hears_nothing(peers: HttpPeers) -> None:
    async with door() as (passing, replica):
        for token in ("", "0123456789abcdee"):
            said = await peers.ask(replica._replace(token=token), ForwardedRequest("GET", "/v1", b"", [], b"", None), 5)
            assert said.status == NotOwnerError.status
        assert passing.heard == []


async def test_refusals_and_failures_are_said(peers: HttpPeers) -> None:
    async def refuses(request: ForwardedRequest) -> ForwardedResponse:
        if request.path == "/refused":
            raise UnprocessableError("not that")
        raise RuntimeError("nobody expected this")

    async with door(refuses) as (_, replica):
        refused = await peers.ask(replica, ForwardedRequest("POST", "/refused", b"", [], b"", None), 5)
        assert refused.status == UnprocessableError.status
        assert b"not that" in refused.body
        failed = await peers.ask(replica, ForwardedRequest("POST", "/failed", b"", [], b"", None), 5)
        assert failed.status == 500
        assert b"expected" not in failed.body


async def test_who_is_gone_has_done_nothing_and_who_is_silent_may_have(peers: HttpPeers) -> None:
    async def sleeps(_: ForwardedRequest) -> ForwardedResponse:
        await asyncio.sleep(1)
        return ForwardedResponse(200, [], b"")

    request = ForwardedRequest("POST", "/v1/feedback", b"", [], b"{}", None)
    async with door(sleeps) as (_, replica):
        with pytest.raises(UnansweredError) as silent:
            await peers.ask(replica, request, 0.1)
        assert not isinstance(silent.value, UnreachedError)
        assert (await peers.ask(replica, request, None)).status == 200
    with pytest.raises(UnreachedError):
        await peers.ask(replica, request, 5)


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "GET"])
async def test_who_hangs_up_may_have_done_it_and_is_not_asked_twice(peers: HttpPeers, method: str) -> None:
    heard = 0

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal heard
        heard += 1
        await reader.read(10)
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    address = "{}:{}".format(*server.sockets[0].getsockname())
    with pytest.raises(UnansweredError) as lost:
        await peers.ask(
            ClusterMember(1, address, 0.0, 0.0, {}, TOKEN), ForwardedRequest(method, "/x", b"", [], b"{}", None), 5
        )
    assert not isinstance(lost.value, UnreachedError)
    assert heard == 1
    server.close()
    await server.wait_closed()


async def test_what_somebody_else_says_is_no_answer(peers: HttpPeers) -> None:
    """Who has the address of a replica that is gone cannot acknowledge anything."""

    async def fine(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        writer.close()

    server = await asyncio.start_server(fine, "127.0.0.1", 0)
    address = "{}:{}".format(*server.sockets[0].getsockname())
    with pytest.raises(UnansweredError):
        await peers.ask(
            ClusterMember(1, address, 0.0, 0.0, {}, TOKEN), ForwardedRequest("POST", "/x", b"", [], b"{}", None), 5
        )
    server.close()
    await server.wait_closed()


async def test_a_stop_is_said(peers: HttpPeers) -> None:
    async def stopped(_: ForwardedRequest) -> ForwardedResponse:
        raise asyncio.CancelledError

    async with door(stopped) as (_, replica):
        said = await peers.ask(replica, ForwardedRequest("POST", "/v1/feedback", b"", [], b"{}", None), 5)
        assert said.status == StoppingError.status


def test_several_take_one_port_together() -> None:
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(listen("127.0.0.1", 0, together=True))
        port = first.getsockname()[1]
        second = stack.enter_context(listen("127.0.0.1", port, together=True))
        assert second.getsockname() == first.getsockname()
        for one in (first, second):
            one.listen()
            one.setblocking(False)
        for _ in range(40):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 5))
        taken = [_accepted(one) for one in (first, second)]
        assert sum(taken) == 40
        assert min(taken) > 0


def _accepted(listening: socket.socket) -> int:
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            listening.accept()[0].close()
            count += 1
    return count
