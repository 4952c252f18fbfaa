"""The files of the page, as they lie in the package."""

from __future__ import annotations

from functools import cache
from importlib import resources

from fastapi import FastAPI
from fastapi.responses import Response

from zoomrank.service.http.known_paths import PAGE, PAGE_FILE
from zoomrank.service.refusals import NotFoundError

_MEDIA = {"html": "text/html; charset=utf-8", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_PAGE = resources.files("zoomrank.service.http").joinpath("page")


def add_page_files(api: FastAPI) -> None:
    """Add the routes."""

    @api.get(PAGE.path, include_in_schema=False)
    async def index() -> Response:
        return Response(_file("index.html"), media_type=_MEDIA["html"])

    @api.get(PAGE_FILE.path, include_in_schema=False)
    async def part(file: str) -> Response:
        if file == "plotly.min.js":
            content = _plotly()
        elif file in _files():
            content = _file(file)
        else:
            raise NotFoundError(f"The page has no {file}.")
        media = _MEDIA.get(file.rpartition(".")[2], "application/octet-stream")
        return Response(content, media_type=media, headers={"Cache-Control": "max-age=300"})


@cache
def _files() -> frozenset[str]:
    return frozenset(file.name for file in _PAGE.iterdir())


@cache
def _file(name: str) -> bytes:
    return _PAGE.joinpath(name).read_bytes()


@cache
def _plotly() -> bytes:
    return resources.files("plotly").joinpath("package_data").joinpath("plotly.min.js").read_bytes()
