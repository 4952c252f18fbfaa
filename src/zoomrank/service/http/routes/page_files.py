"""Files of the page: compressed once, and sent only to browsers that do not have the current version."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import threading
from functools import cache
from importlib import resources
from typing import NamedTuple

from fastapi import FastAPI, Request
from fastapi.responses import Response

from zoomrank.service.errors import NotFoundError
from zoomrank.service.http.fast_path import PAGE, PAGE_FILE

_MEDIA = {"html": "text/html; charset=utf-8", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_PAGE = resources.files("zoomrank.service.http").joinpath("page")
_INDEX, _PLOTLY = "index.html", "plotly.min.js"
_A_WHILE, _FOR_EVER = "max-age=300", "max-age=31536000, immutable"
_reading = threading.Lock()


class PageFile(NamedTuple):
    """A file, plain and compressed."""

    content: bytes
    packed: bytes
    digest: str
    media: str


def add_page_files(api: FastAPI) -> None:
    """Add the routes."""

    @api.get(PAGE.path, include_in_schema=False)
    async def index(request: Request) -> Response:
        return _response(request, await asyncio.to_thread(_read, _INDEX), "no-cache")

    @api.get(PAGE_FILE.path, include_in_schema=False)
    async def part(request: Request, file: str, v: str = "") -> Response:
        if file not in _files():
            raise NotFoundError(f"The page has no {file}.")
        found = await asyncio.to_thread(_read, file)
        return _response(request, found, _FOR_EVER if v == found.digest else _A_WHILE)


def _response(request: Request, file: PageFile, keep: str) -> Response:
    """Return a file in an encoding that the client accepts, or 304 if it has the current version."""
    is_packed = "gzip" in request.headers.get("accept-encoding", "") and len(file.packed) < len(file.content)
    tag = f'"{file.digest}-gzip"' if is_packed else f'"{file.digest}"'
    headers = {"ETag": tag, "Cache-Control": keep, "Vary": "Accept-Encoding"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if is_packed:
        headers["Content-Encoding"] = "gzip"
    return Response(file.packed if is_packed else file.content, media_type=file.media, headers=headers)


@cache
def _files() -> frozenset[str]:
    return frozenset({_PLOTLY, *(file.name for file in _PAGE.iterdir())})


def _read(name: str) -> PageFile:
    with _reading:  # compressing the largest takes most of a second: do it once
        return _page_file(name)


@cache
def _page_file(name: str) -> PageFile:
    if name == _PLOTLY:
        content = _plotly()
    else:
        address = f"page/{_PLOTLY}".encode()  # versioned by content, so browsers need not ask again
        content = _PAGE.joinpath(name).read_bytes().replace(address, address + b"?v=" + _digest(_plotly()).encode())
    media = _MEDIA.get(name.rpartition(".")[2], "application/octet-stream")
    return PageFile(content, gzip.compress(content, 9, mtime=0), _digest(content), media)


@cache
def _plotly() -> bytes:
    return resources.files("plotly").joinpath("package_data").joinpath(_PLOTLY).read_bytes()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
