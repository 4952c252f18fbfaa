"""The client for pages, in a real browser: a small shop, against the service itself and against one that fails."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.browsing import of_the_page
from tests.support.serving import serving
from zoomrank.client import Client
from zoomrank.service.http.access import Keys

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "send-feedback-from-pages.md"
MODULE = ROOT / "clients" / "javascript" / "zoomrank.js"
KEYS = {role: role[0] * 20 for role in ("admin", "rank", "feedback")}
PRODUCTS = [{"id": f"p{number}", "title": f"Product {number}", "path": ["All", f"{number % 3}"]} for number in range(9)]
SLOTS = 3

expect.set_options(timeout=60_000)


@contextlib.contextmanager
def site(app: Any) -> Iterator[str]:
    """The origin of a web site of our own."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A visitor who has never been here."""
    context = browser.new_context(viewport={"width": 800, "height": 600})
    yield context
    context.close()


def shop_of_the_docs(address: str) -> Any:
    """The application that docs/how-to/send-feedback-from-pages.md shows."""
    (code,) = re.findall(r"```python[^\n]*\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    for said, meant in (
        ("http://127.0.0.1:8000", address),
        ("RANK-KEY", KEYS["rank"]),
        ("FEEDBACK-KEY", KEYS["feedback"]),
        ('FileResponse("zoomrank.js"', f'FileResponse("{MODULE}"'),
    ):
        assert said in code
        code = code.replace(said, meant)
    known: dict[str, Any] = {}
    exec(compile(code, PAGE.name, "exec", dont_inherit=True), known)  # noqa: S102
    return known["app"]


class Shop:
    """The shop of the docs, its service, and who looks after both."""

    def __init__(self, origin: str, service: str, owner: Client) -> None:
        self.origin, self.service, self.owner = origin, service, owner

    def known(self, query: str, **least: int) -> dict[str, Any]:
        """What the service knows of a query, as soon as it knows as much as is waited for."""
        until = time.monotonic() + 60
        while True:
            found: dict[str, Any] = dict(self.owner.query("shop", query))
            if time.monotonic() > until or all(found[name] >= count for name, count in least.items()):
                return found
            time.sleep(0.05)

    def exported(self, query: str, **wanted: Any) -> dict[str, Any]:
        """The impression of a query as exports have it, as soon as they have what is waited for."""
        header, path = {"Authorization": f"Bearer {KEYS['admin']}"}, "/v1/collections/shop/export"
        until = time.monotonic() + 60
        while True:
            lines = httpx.get(self.service + path, headers=header, trust_env=False).text.splitlines()
            (row,) = [row for row in map(json.loads, lines) if row["query"] == query]
            if time.monotonic() > until or wanted.items() <= row.items():
                return dict(row)
            time.sleep(0.05)

    def show(self, page: Page, query: str) -> list[str]:
        """Make a page of the shop that shows a ranking, as `shown`; says which documents."""
        found = self.owner.rank("shop", query)
        ranked = {"impression": found.impression, "documents": [{"id": one} for one in found.ids]}
        page.goto(f"{self.origin}/product/other")
        page.evaluate(
            """async ({ ranked, ...options }) => {
                window.client = new (await import("/zoomrank.js")).Client(options);
                window.shown = client.impression(ranked);
            }""",
            {"url": self.service, "key": KEYS["feedback"], "ranked": ranked},
        )
        return [str(one) for one in found.ids]

    def seen(self) -> int:
        """How many impressions were said to be on somebody's screen."""
        header = {"Authorization": f"Bearer {KEYS['admin']}"}
        text = httpx.get(f"{self.service}/metrics", headers=header, trust_env=False).text
        return sum(int(float(count)) for count in re.findall(r'outcome="seen"} (\S+)', text))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A service on one origin, and a shop on another that may give it feedback."""
    keys = Keys({key: role for role, key in KEYS.items()})
    holder: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:  # each has to know the other's address first
        await holder[0](scope, receive, send)

    with (
        pytest.MonkeyPatch.context() as patch,
        site(app) as origin,
        serving(tmp_path_factory.mktemp("service"), keys=keys, origins=[origin]) as address,
        Client(address, KEYS["admin"], trust_env=False) as owner,
    ):
        patch.setenv("NO_PROXY", "127.0.0.1")
        owner.create_collection("shop", PRODUCTS, {"slots": SLOTS, "no_feedback": "unseen"})
        holder.append(shop_of_the_docs(address))
        yield Shop(origin, address, owner)


@pytest.fixture
def page(context: BrowserContext, shop: Shop) -> Page:
    page = context.new_page()
    page.set_default_timeout(60_000)
    return page


def notes(page: Page) -> list[dict[str, Any]]:
    """What the browser remembers of impressions."""
    kept = page.evaluate("Object.entries(localStorage).filter(([key]) => key.startsWith('zoomrank '))")
    return [json.loads(text) for _, text in kept]


def listen(page: Page) -> list[dict[str, Any]]:
    """The answers that a page gives from now on, without the name of the impression."""
    bodies: list[dict[str, Any]] = []

    def hear(request: Any) -> None:
        if request.method == "POST" and request.url.endswith("/v1/feedback"):
            body = json.loads(request.post_data)
            bodies.append({name: value for name, value in body.items() if name != "impression"})

    page.on("request", hear)
    return bodies


def wait_until_heard(page: Page) -> None:
    page.wait_for_function(
        "Object.entries(localStorage).some(([key, text]) => key.startsWith('zoomrank ') && JSON.parse(text).said)"
    )


class TestWithTheService:
    """The shop of docs/how-to/send-feedback-from-pages.md; service and shop are of different origins."""

    pytestmark = of_the_page

    def test_a_click_that_leaves_the_page_is_learned(self, page: Page, shop: Shop) -> None:
        page.goto(f"{shop.origin}/search?q=click")
        page.get_by_role("link").nth(1).click()
        expect(page.get_by_role("heading")).to_be_visible()
        known = shop.known("click", satisfied=1)
        assert (known["satisfied"], known["abandoned"], known["clicks_by_slot"][1]) == (1, 0, 1)

    def test_a_click_that_nobody_heard_is_said_by_the_next_page(self, page: Page, shop: Shop) -> None:
        page.add_init_script(
            "if (!localStorage.online) window.fetch = () => Promise.reject(new TypeError('Failed to fetch'));"
        )
        page.goto(f"{shop.origin}/search?q=lost")
        page.get_by_role("link").first.click()
        expect(page.get_by_role("heading")).to_be_visible()
        (note,) = notes(page)
        assert "said" not in note
        assert shop.known("lost")["satisfied"] == 0
        page.evaluate("localStorage.online = 1")
        page.goto(f"{shop.origin}/product/other")
        assert shop.known("lost", satisfied=1)["satisfied"] == 1
        wait_until_heard(page)
        page.reload()  # it is not said for ever
        assert shop.known("lost")["impressions"] == 1

    def test_a_look_and_leaving_without_a_click(self, page: Page, shop: Shop) -> None:
        before = shop.seen()
        page.goto(f"{shop.origin}/search?q=leave")
        wait_until_heard(page)
        assert shop.seen() == before + 1
        assert shop.known("leave")["waiting"] == 1
        page.goto(f"{shop.origin}/product/other")
        known = shop.known("leave", abandoned=1)
        assert (known["abandoned"], known["satisfied"]) == (1, 0)

    def test_nothing_is_said_of_a_page_that_nobody_has_looked_at(self, page: Page, shop: Shop) -> None:
        before = shop.seen()
        page.goto(f"{shop.origin}/search?q=glance")
        page.goto(f"{shop.origin}/product/other")  # within a second
        page.goto(f"{shop.origin}/search?q=look")
        wait_until_heard(page)
        assert shop.seen() == before + 1
        assert shop.known("glance")["waiting"] == 1

    def test_all_that_is_known_is_said_each_time(self, page: Page, shop: Shop) -> None:
        bodies = listen(page)
        top, middle, bottom = shop.show(page, "much")
        page.evaluate("id => shown.dislike(id)", bottom)  # not before there is an answer
        page.evaluate("id => shown.click(id)", middle)
        row = shop.exported("much", clicks=[middle])
        assert (row["clicked"], row["disliked"], row["purchased"]) == (middle, [bottom], [])
        page.evaluate("id => shown.click(id)", top)
        assert shop.exported("much", clicks=[top, middle])["clicked"] == middle  # what satisfied her stays
        assert page.evaluate("id => client.purchase(id)", top) is True
        assert shop.exported("much", purchased=[top])["disliked"] == [bottom]
        assert page.evaluate("id => client.purchase(id)", bottom) is False
        page.wait_for_function(
            "Object.values(localStorage).some((text) => JSON.parse(text).said?.includes('purchased'))"
        )
        page.evaluate("client.flush()")
        page.goto(f"{shop.origin}/product/other")
        one, two = {"clicked": middle, "disliked": [bottom]}, {"clicked": [middle, top], "disliked": [bottom]}
        assert bodies == [one, two, {**two, "purchased": [top]}]

    def test_a_purchase_on_a_later_page(self, page: Page, shop: Shop) -> None:
        page.goto(f"{shop.origin}/search?q=buy")
        page.get_by_role("link").nth(2).click()
        page.get_by_role("link", name="Buy").click()
        expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
        bought = page.url.rpartition("/")[2]
        row = shop.exported("buy", purchased=[bought])
        assert row["purchased"] == row["clicks"] == [row["shown"][2]]

    def test_only_what_was_on_the_screen_was_looked_at(self, page: Page, shop: Shop) -> None:
        page.add_init_script(
            "addEventListener('DOMContentLoaded', () => document.querySelectorAll('li').forEach("
            "(item, slot) => (item.style.marginTop = slot ? '900px' : 0)))"
        )
        page.goto(f"{shop.origin}/search?q=screen")
        wait_until_heard(page)
        page.goto(f"{shop.origin}/product/other")
        row = shop.exported("screen", outcome="abandoned")
        assert (row["outcome"], row["looked_at"], row["seen"]) == ("abandoned", 1, True)
        assert shop.known("screen")["examined_by_slot"] == [1, 0, 0]

    def test_pages_of_other_origins_are_not_heard(self, page: Page, shop: Shop) -> None:
        with site(shop_of_the_docs(shop.service)) as origin:
            page.goto(f"{origin}/search?q=elsewhere")
            page.get_by_role("link").first.click()
            expect(page.get_by_role("heading")).to_be_visible()
            page.goto(f"{shop.origin}/search?q=here")
            page.get_by_role("link").first.click()
            assert shop.known("here", satisfied=1)["satisfied"] == 1
            assert shop.known("elsewhere")["waiting"] == 1


class Stub:
    """A server of one's own that writes down what it hears, and responds as it is told to."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any], str | None]] = []
        self.replies: list[int] = []
        self.app = FastAPI()
        self.app.get("/", response_class=HTMLResponse)(self.page)
        self.app.get("/zoomrank.js")(lambda: FileResponse(MODULE, media_type="text/javascript"))
        self.app.post("/ranking/v1/{what}")(self.hear)

    def page(self, far: int = SLOTS, key: str = "") -> str:
        """A ranking whose slots from one on are below the screen."""
        items = "".join(
            f'<p style="margin-top: {900 * (slot == far)}px"><a href="#{slot}">{slot}</a>' for slot in range(SLOTS)
        )
        ranked = json.dumps({"impression": "i-1", "documents": [{"id": 10 + slot} for slot in range(SLOTS)]})
        options = json.dumps({"url": "/ranking/", **({"key": key} if key else {})})
        return f"""<!doctype html>{items}<script type="module">
            import {{ Client }} from "/zoomrank.js";
            window.client = new Client({options});
            window.shown = client.impression({ranked});
            shown.watch(document.querySelectorAll("p"));
        </script>"""

    async def hear(self, what: str, request: Request) -> Response:
        assert request.headers["content-type"] == "application/json"
        self.heard.append((what, await request.json(), request.headers.get("authorization")))
        return Response("{}", self.replies.pop(0) if self.replies else 200)

    def bodies(self, count: int, what: str = "feedback") -> list[dict[str, Any]]:
        """What was said, as soon as so much was."""
        until = time.monotonic() + 60
        while True:
            found = [body for path, body, _ in self.heard if path == what]
            if len(found) >= count or time.monotonic() > until:
                return found
            time.sleep(0.02)


@pytest.fixture
def stub() -> Iterator[tuple[Stub, str]]:
    stub = Stub()
    with site(stub.app) as origin:
        yield stub, origin


class TestWhatIsSaid:
    """Against a server that writes it down."""

    pytestmark = of_the_page

    @pytest.fixture
    def page(self, context: BrowserContext, stub: tuple[Stub, str]) -> Page:
        page = context.new_page()
        page.goto(stub[1])
        page.wait_for_function("window.shown")
        return page

    def test_ids_that_are_numbers_stay_numbers(self, page: Page, stub: tuple[Stub, str]) -> None:
        server, _ = stub
        page.evaluate("shown.dislike('12'); shown.click('11'); shown.click(10); client.purchase('11')")
        bodies = sorted(server.bodies(3), key=len)  # they are on their way at once
        assert bodies[-1] == {"impression": "i-1", "clicked": [11, 10], "disliked": [12], "purchased": [11]}
        assert {key for _, _, key in server.heard} == {None}

    def test_what_is_scrolled_to_is_looked_at(self, page: Page, stub: tuple[Stub, str]) -> None:
        server, origin = stub
        page.goto(f"{origin}/?far=2")
        assert len(server.bodies(1, "seen")) == 1
        page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        page.wait_for_function("Object.values(localStorage).some((text) => JSON.parse(text).seen === 3)")
        assert len(server.bodies(1, "seen")) == 1  # once is enough
        page.goto("about:blank")
        assert server.bodies(1) == [{"impression": "i-1", "clicked": None}]

    @pytest.mark.parametrize("kind", ["click", "auxclick"])
    def test_links_are_listened_to(self, page: Page, stub: tuple[Stub, str], kind: str) -> None:
        page.get_by_role("link").nth(2).dispatch_event(kind, {"button": int(kind == "auxclick")})
        assert stub[0].bodies(1)[0]["clicked"] == 12

    def test_other_buttons_and_other_places_are_no_clicks(self, page: Page, stub: tuple[Stub, str]) -> None:
        page.get_by_role("link").first.dispatch_event("auxclick", {"button": 2})
        page.locator("p").first.dispatch_event("click", {"button": 0})
        page.get_by_role("link").nth(1).dispatch_event("click", {"button": 0})
        assert [body["clicked"] for body in stub[0].bodies(1)] == [11]

    def test_what_fails_is_said_again_and_what_is_refused_is_not(self, page: Page, stub: tuple[Stub, str]) -> None:
        server, _ = stub
        server.replies += [503, 429]
        page.evaluate("shown.click(10)")
        assert server.bodies(3) == [{"impression": "i-1", "clicked": 10}] * 3
        wait_until_heard(page)
        server.replies += [409]
        page.evaluate("shown.click(11)")
        assert len(server.bodies(4)) == 4
        page.wait_for_function("Object.values(localStorage).some((text) => JSON.parse(text).said?.includes('[10,11]'))")
        page.evaluate("client.flush()")
        assert len(server.bodies(4)) == 4

    def test_a_key_goes_along(self, page: Page, stub: tuple[Stub, str]) -> None:
        server, origin = stub
        page.goto(f"{origin}/?key=known-to-all")
        page.wait_for_function("window.shown")
        page.evaluate("shown.click(10)")
        server.bodies(1)
        assert server.heard[-1][2] == "Bearer known-to-all"

    def test_without_keepalive_a_beacon_is_sent(self, context: BrowserContext, stub: tuple[Stub, str]) -> None:
        server, origin = stub
        context.add_init_script("delete Request.prototype.keepalive; window.fetch = undefined;")
        page = context.new_page()
        page.goto(origin)
        page.wait_for_function("window.shown")
        page.evaluate("shown.click(10)")
        page.goto("about:blank")
        assert server.bodies(1)[0] == {"impression": "i-1", "clicked": 10}

    def test_a_browser_that_keeps_nothing(self, context: BrowserContext, stub: tuple[Stub, str]) -> None:
        server, origin = stub
        context.add_init_script(
            "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no', 'SecurityError'); }})"
        )
        page = context.new_page()
        page.goto(origin)
        page.wait_for_function("window.shown")
        page.evaluate("shown.click(10); shown.click(11)")
        assert server.bodies(2)[-1] == {"impression": "i-1", "clicked": [10, 11]}

    def test_old_notes_are_forgotten_and_others_are_left_alone(self, page: Page, stub: tuple[Stub, str]) -> None:
        page.evaluate("localStorage.setItem('cart', 'mine')")
        page.evaluate("shown.click(10)")
        wait_until_heard(page)
        page.evaluate("import('/zoomrank.js').then((module) => new module.Client({url: '/elsewhere', keep: 0}))")
        assert len(notes(page)) == 1
        page.evaluate("import('/zoomrank.js').then((module) => new module.Client({url: '/ranking', keep: 0}))")
        assert notes(page) == []
        assert page.evaluate("localStorage.getItem('cart')") == "mine"

    def test_what_was_not_shown_and_what_was_nothing(self, page: Page, stub: tuple[Stub, str]) -> None:
        said = page.evaluate("(() => { try { shown.click('13'); } catch (error) { return error.message; } })()")
        assert said == "Document 13 was not shown in this impression."
        page.evaluate("""() => {
            const nothing = client.impression({impression: null, documents: []});
            nothing.watch(document.querySelectorAll("p"));
            nothing.seen();
            for (const what of ["click", "purchase", "dislike"]) nothing[what](10);
            nothing.leave();
            document.querySelector("a").click(); // which the other one watches
        }""")
        assert [body["clicked"] for body in stub[0].bodies(1)] == [10]
        page.goto("about:blank")
        assert {body["impression"] for _, body, _ in stub[0].heard} == {"i-1"}


def test_types_are_those_of_the_module() -> None:
    """Both have the same classes with the same methods."""

    def classes(text: str, begins: str) -> dict[str, set[str]]:
        found = re.findall(begins + r" class (\w+) {\n(.*?)\n}", text, flags=re.DOTALL)
        return {name: set(re.findall(r"^  (?:async )?(\w+)\(", body, flags=re.MULTILINE)) for name, body in found}

    module = MODULE.read_text()
    declared = classes(MODULE.with_suffix(".d.ts").read_text(), "export declare")
    assert declared.keys() == {"Client", "Impression"}
    declared["Impression"].add("constructor")  # which is private
    assert classes(module, "export") == declared
    assert module.count("\n") <= 200
    assert "import " not in re.sub(r"/\*.*?\*/", "", module, flags=re.DOTALL)
