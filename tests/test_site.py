"""The documentation, built: it is whole, loads nothing from elsewhere, and its search works without a server, too."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import zoomrank
from tests.support.browsing import in_a_browser, sound_page

ROOT = Path(__file__).parent.parent
PACKAGES = ("bandits", "client", "documents", "errors", "judging", "lab", "rankers", "spaces", "users")
LOADED = {
    "script": "src",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
}
LOADING_LINKS = {"stylesheet", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload", "icon", "manifest"}
ELSEWHERE = re.compile(r"^\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, as `make docs` builds them."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(  # noqa: S603
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    return folder


class Loads(HTMLParser):
    """What a page makes a browser fetch by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        self.found += re.findall(r"url\(['\"]?([^'\")]+)", given.get("style") or "")
        self.found += [part.split()[0] for part in (given.get("srcset") or "").split(",") if part.strip()]
        if tag in LOADED:
            self.found.append(given.get(LOADED[tag]) or "")
        if tag == "link" and LOADING_LINKS & set((given.get("rel") or "").split()):
            self.found.append(given.get("href") or "")


def read(file: Path) -> Loads:
    page = Loads()
    page.feed(file.read_text())
    return page


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    for file in pages:
        found = read(file).found
        assert found, file
        assert [address for address in found if ELSEWHERE.match(address)] == [], file
    for file in site.rglob("*.css"):
        style = file.read_text()
        addresses = re.findall(r"url\(['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)", style)
        assert [one for both in addresses for one in both if ELSEWHERE.match(one)] == [], file


def test_what_is_loaded_from_elsewhere_would_be_noticed() -> None:
    page = Loads()
    page.feed(
        '<link rel="icon" href="HTTPS://a"><img srcset="b.png 1x, //c.png 2x"><p style="background: url(http://d)">'
    )
    assert [address for address in page.found if ELSEWHERE.match(address)] == ["HTTPS://a", "//c.png", "http://d"]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_described(site: Path, package: str) -> None:
    module = importlib.import_module(f"zoomrank.{package}")
    ids = read(site / "reference" / f"{package}.html").ids
    names = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__
    ]
    public = [name for name in names if not name.startswith("_")]
    assert public
    for name in public:
        home = getattr(getattr(module, name), "__module__", module.__name__)
        assert {f"zoomrank.{package}.{name}", f"{home}.{name}"} & ids, name


def test_every_name_of_the_package_is_listed(site: Path) -> None:
    text = (site / "reference" / "index.html").read_text()
    for name in zoomrank.__all__:
        assert f"<code>zr.{name}</code></a>" in text, name


def test_references_are_made_of_what_there_is(site: Path) -> None:
    assert 'id="zoomrank-demo-service"' in (site / "reference" / "commands.html").read_text()
    paths = (site / "reference" / "http.html").read_text()
    for path in ("POST /v1/collections/{name}/rank", "POST /v1/feedback", "GET /v1/health"):
        assert f">{path}<" in paths, path


class Silent(SimpleHTTPRequestHandler):
    """A server that keeps quiet."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=site))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page on which nothing goes wrong, and that asks nobody else for anything."""
    with sound_page(browser, viewport={"width": 1280, "height": 900}, color_scheme="light") as (page, wrong):
        known = (address, "file:", "data:")
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("request", lambda asked: None if asked.url.startswith(known) else wrong.append(asked.url))
        yield page


@in_a_browser
@pytest.mark.parametrize("from_file", [False, True], ids=["served", "from a file"])
def test_the_search_finds(page: Page, site: Path, address: str, from_file: bool) -> None:
    page.goto(f"{site.as_uri() if from_file else address}/index.html")
    page.get_by_role("textbox", name="Search").press_sequentially("loses today")
    expect(page.locator(".md-search-result__item").first).to_contain_text("Where ZoomRank loses today", timeout=60_000)


@in_a_browser
def test_light_and_dark(page: Page, address: str) -> None:
    page.goto(f"{address}/index.html")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_title("Dark").click()
    assert page.evaluate(background) != light
    page.get_by_title("Light").click()
    assert page.evaluate(background) == light


@in_a_browser
def test_every_page_fits_a_phone(page: Page, site: Path, address: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for file in sorted(site.rglob("*.html")):
        page.goto(f"{address}/{file.relative_to(site).as_posix()}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, file
        broken = "[...document.images].filter((one) => one.complete && !one.naturalWidth).map((one) => one.src)"
        assert page.evaluate(broken) == [], file
