"""The files of the page on the wire: packed, and not sent again to those who have them."""

import gzip
import re

import httpx
import pytest

FOR_EVER = "max-age=31536000, immutable"


@pytest.mark.parametrize("path", ["/", "/page/app.js", "/page/style.css", "/page/icon.svg", "/page/charts.js"])
async def test_files_are_packed_for_those_who_can_unpack_them(client: httpx.AsyncClient, path: str) -> None:
    plain = await client.get(path, headers={"Accept-Encoding": "identity"})
    packed = await client.get(path, headers={"Accept-Encoding": "gzip, br"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert plain.content == packed.content  # the client unpacks it
    assert int(packed.headers["content-length"]) < len(plain.content)
    assert plain.headers["etag"] != packed.headers["etag"]
    for one, kind in ((plain, "identity"), (packed, "gzip")):
        assert one.headers["vary"] == "Accept-Encoding"
        given = {"Accept-Encoding": kind, "If-None-Match": one.headers["etag"]}
        same = await client.get(path, headers=given)
        assert (same.status_code, same.content) == (304, b"")
        assert same.headers["etag"] == one.headers["etag"]
        other = await client.get(path, headers={**given, "If-None-Match": '"another"'})
        assert other.status_code == 200
    assert plain.headers["cache-control"] in ("no-cache", "max-age=300")
    assert (await client.get(path, params={"v": "made-up"})).headers["cache-control"] != FOR_EVER


async def test_the_largest_file_is_small_on_the_wire_and_kept_for_ever(client: httpx.AsyncClient) -> None:
    script = (await client.get("/page/charts.js")).text
    (address,) = re.findall(r'"(page/plotly\.min\.js[^"]*)"', script)
    assert "?v=" in address
    async with client.stream("GET", f"/{address}", headers={"Accept-Encoding": "gzip"}) as response:
        assert response.headers["cache-control"] == FOR_EVER
        wire = b"".join([piece async for piece in response.aiter_raw()])
    assert len(wire) < 1_500_000
    whole = await client.get("/page/plotly.min.js", headers={"Accept-Encoding": "identity"})
    assert whole.headers["cache-control"] == "max-age=300"
    assert gzip.decompress(wire) == whole.content


async def test_what_is_no_file_of_the_page(client: httpx.AsyncClient) -> None:
    for path in ("/page/none.js", "/page/app.py", "/page/"):
        refused: httpx.Response = await client.get(path)
        assert refused.status_code == 404
