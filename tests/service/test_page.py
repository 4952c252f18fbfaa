"""The page in a real browser: what a person sees and does, on a desk and on a phone, by mouse and by keyboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.browsing import of_the_page, sound_page
from tests.support.serving import serving
from zoomrank.cli import sample_library as sample
from zoomrank.client import Client
from zoomrank.service.http.access import Keys

QUERY = "java"
MANY = 24  # similar queries: more than the page lists
HOSTILE = "<img src=x onerror=alert(1)>"

expect.set_options(timeout=60_000)  # milliseconds; how fast a browser draws on a busy machine is not what is tested

pytestmark = of_the_page


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A library whose visitors have clicked a little."""
    with serving(tmp_path_factory.mktemp("service")) as address, Client(address, trust_env=False) as client:
        client.create_collection("library", sample.library())
        for query in (QUERY, HOSTILE):
            _visitors(client, query, 60)
        client.create_collection("alike", sample.library(), {"similar": "words"})
        for number in range(MANY):
            _visitors(client, f"snowy owl {number}", 3, "alike")
        yield address


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page on which nothing goes wrong behind the scenes."""
    with sound_page(browser, base_url=address, viewport={"width": 1280, "height": 900}) as (page, wrong):
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        yield page


def _number(page: Page, name: str) -> int:
    return int("".join(filter(str.isdigit, page.get_by_test_id(name).inner_text())))


def test_the_overview_leads_to_a_query(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_test_id("overview-collections")).to_contain_text("library")
    expect(page.get_by_test_id("overview-queries")).to_contain_text(QUERY)
    page.get_by_test_id("query-link").filter(has_text=QUERY).first.click()
    expect(page.get_by_test_id("query-document")).to_have_count(5)
    assert page.get_by_test_id("query-impressions").inner_text().find("60") >= 0


def test_the_ranking_is_the_next_visitors(page: Page, address: str) -> None:
    with Client(address, trust_env=False) as client:
        known = client.query("library", QUERY)["ranking"]
        page.goto(f"/#/c/library/q/{QUERY}")
        ranking = page.get_by_test_id("query-ranking")
        for document in known:
            expect(ranking).to_contain_text(document["title"])
            expect(ranking).to_contain_text(document["why"])
        assert client.rank("library", QUERY).ids == [document["id"] for document in known]


def test_what_is_tried_is_marked_and_counted(page: Page, address: str) -> None:
    with Client(address, trust_env=False) as client:
        there = (client.query("library", one["query"]) for one in client.queries("library"))
        known = next(one for one in there if any(document["trial"] for document in one["ranking"]))
    page.goto(f"/#/c/library/q/{quote(known['query'])}")
    documents = page.get_by_test_id("query-document")
    expect(documents).to_have_count(5)
    marked = [documents.nth(place).get_by_test_id("on-trial").count() == 1 for place in range(5)]
    assert marked == [document["trial"] for document in known["ranking"]]
    assert any(marked)
    panel = page.get_by_test_id("query-trials")
    assert known["forecast"] is not None
    for slot, row in zip(known["forecast"]["slots"], panel.locator("tbody tr").all(), strict=True):
        if slot["tried"]:
            expect(row).to_contain_text(slot["tried"][0]["label"])
        expect(row).to_contain_text("%")
    expect(page.get_by_test_id("trials-cost")).to_contain_text("clicks a day")


def test_similar_queries_are_named_with_what_they_are_worth(page: Page, address: str) -> None:
    with Client(address, trust_env=False) as client:
        support = client.query("alike", "snowy owl 0")["support"]
        assert support is not None
        assert len(support["lenders"]) == MANY - 1
        page.goto("/#/c/alike/q/Snowy%20%20Owl%200")
        expect(page.get_by_role("heading", name="snowy owl 0", exact=True)).to_be_visible()
        said = page.get_by_test_id("support-sentence")
        expect(said).to_contain_text(f"borrowed from {MANY - 1} queries, with {100 * support['faith']:.0f} % trust.")
        lenders = page.get_by_test_id("lender")
        expect(lenders).to_have_count(20)
        assert lenders.all_inner_texts() == [one["query"] for one in support["lenders"][:20]]
        expect(page.get_by_test_id("query-support").locator("tbody tr").first).to_contain_text("3")
        nearest = lenders.first.inner_text()
        lenders.first.click()
        expect(page.get_by_role("heading", name=nearest, exact=True)).to_be_visible()
        client.create_collection("alone", sample.library(), {"similar": "words", "fold": False})
        client.rank("alone", "Pizza")
    page.goto("/#/c/alone/q/Pizza")
    expect(page.get_by_test_id("query-support")).to_contain_text("Nothing has been borrowed yet.")
    page.goto(f"/#/c/library/q/{QUERY}")
    expect(page.get_by_test_id("query-document")).to_have_count(5)
    expect(page.get_by_test_id("query-support")).to_be_hidden()


@pytest.mark.parametrize(
    ("collection", "said"),
    [("library", "Each query learns alone."), ("alike", "Queries with similar words borrow")],
)
def test_a_collection_says_how_its_queries_are_alike(page: Page, collection: str, said: str) -> None:
    page.goto(f"/#/c/{collection}")
    queries = page.get_by_test_id("overview-queries")
    expect(queries).to_contain_text("Queries that differ only in case, spaces or Unicode form are treated as one.")
    expect(queries).to_contain_text(said)


def _visitors(client: Client, query: str, count: int, collection: str = "library") -> None:
    """So many visitors who click here and there."""
    for number in range(count):
        shown = client.rank(collection, query)
        client.feedback(shown, shown.ids[number % 7] if number % 7 < len(shown.ids) else None)


def test_the_zoom_tree_refines_itself(page: Page, address: str) -> None:
    with Client(address, trust_env=False) as client:
        _visitors(client, "refined", 2)
        page.goto("/#/c/library/q/refined")
        drawn = page.get_by_test_id("zoom-tree").locator("path.surface")
        expect(drawn.first).to_be_visible()
        before = drawn.count()
        _visitors(client, "refined", 40)
        expect(drawn.nth(before)).to_be_attached()  # more of it than there was


def _known(address: str, query: str = QUERY) -> Any:
    """All that the service says of a query and its collection, but for the time of day."""
    with Client(address, trust_env=False) as client:
        rows = client.queries("library")
        return client.collection("library"), rows, client.query("library", query) if query in str(rows) else None


def _wait_for_visitors(page: Page, least: int) -> None:
    there = "document.querySelector('[data-testid=play-visitors]')?.innerText.replace(/[^0-9]/g, '')"
    page.wait_for_function(f"() => Number({there}) >= {least}", timeout=60_000)


def _play(page: Page, query: str) -> None:
    page.goto(f"/#/c/library/play/{query}")
    expect(page.get_by_test_id("play-document")).to_have_count(5)


@pytest.mark.parametrize("query", [QUERY, "never asked"])
def test_playing_teaches_a_copy_and_nobody_else(page: Page, address: str, query: str) -> None:
    before = _known(address)
    _play(page, query)
    who = page.get_by_test_id("play-who")
    expect(who).to_contain_text("Nothing reaches the real query")
    expect(who).to_contain_text(
        "“never asked” has not been asked yet" if query != QUERY else f"A copy of “{QUERY}” learns"
    )
    page.reload()
    expect(page.get_by_test_id("play-document")).to_have_count(5)
    page.get_by_test_id("play-document").first.click()
    _wait_for_visitors(page, 1)
    page.get_by_test_id("play-none").click()
    _wait_for_visitors(page, 2)
    expect(page.get_by_test_id("play-satisfied")).to_contain_text("1 (50")
    page.get_by_test_id("play-speed-10").click()
    page.get_by_test_id("play-start").click()
    _wait_for_visitors(page, 40)
    page.get_by_test_id("play-pause").click()
    expect(page.get_by_test_id("play-none")).to_be_enabled()
    sent = _number(page, "play-visitors")
    assert _number(page, "play-satisfied") > 0
    page.get_by_test_id("open-query").click()  # of the copy
    expect(page.get_by_test_id("query-copy")).to_contain_text("This is the copy that learns in the playground.")
    start = 0 if before[2] is None or query != QUERY else before[2]["impressions"]
    expect(page.get_by_test_id("query-impressions")).to_have_text(f"{start + sent + 1:,}")  # one waits
    expect(page.get_by_test_id("query-document")).to_have_count(5)
    expect(page.get_by_test_id("zoom-tree").locator("path.surface").first).to_be_visible()
    assert _known(address) == before
    if query == QUERY:
        page.get_by_role("link", name="See the query itself").click()
        expect(page.get_by_test_id("query-copy")).to_have_count(0)
        expect(page.get_by_test_id("query-impressions")).to_have_text(f"{start:,}")


def test_visitors_go_on_while_one_looks_elsewhere(page: Page) -> None:
    _play(page, "watched")
    page.get_by_test_id("play-speed-10").click()
    page.get_by_test_id("play-start").click()
    _wait_for_visitors(page, 10)
    page.get_by_test_id("open-query").click()
    expect(page.get_by_test_id("query-copy")).to_be_visible()
    chip = page.get_by_test_id("simulation-chip")
    before = chip.get_by_role("link").inner_text()
    expect(chip.get_by_role("link")).not_to_have_text(before)
    chip.get_by_role("link").click()
    expect(page.get_by_test_id("play-who")).to_contain_text("an empty copy")
    page.get_by_test_id("play-pause").click()


def test_the_real_query_is_taught_by_who_says_so_twice(page: Page, address: str) -> None:
    with Client(address, trust_env=False) as client:
        _visitors(client, "taught", 4)
        _play(page, "taught")
        page.get_by_test_id("play-teach").click()
        question = page.get_by_test_id("teach-question")
        expect(question).to_contain_text("Clicks here will be learned by “taught”, for every visitor.")
        page.get_by_test_id("teach-cancel").click()
        expect(question).to_be_hidden()
        expect(page.get_by_test_id("play-teach")).not_to_be_checked()
        page.get_by_test_id("play-document").first.click()
        _wait_for_visitors(page, 1)
        assert client.query("library", "taught")["impressions"] == 4
        page.get_by_test_id("play-teach").click()
        page.get_by_test_id("teach-confirm").click()
        expect(page.get_by_test_id("play-teach")).to_be_checked()
        expect(page.get_by_test_id("play-who")).to_contain_text(
            "Clicks here are learned by “taught”, for every visitor."
        )
        page.get_by_test_id("play-document").first.click()
        _wait_for_visitors(page, 1)
        page.get_by_test_id("play-speed-10").click()
        page.get_by_test_id("play-start").click()
        _wait_for_visitors(page, 20)
        page.get_by_test_id("play-pause").click()
        expect(page.get_by_test_id("play-none")).to_be_enabled()
        sent = _number(page, "play-visitors")
        taught = client.query("library", "taught")
        assert taught["learned"] == 4 + sent
        assert taught["satisfied"] > 0
        page.get_by_test_id("play-teach").click()  # enough
        expect(page.get_by_test_id("play-who")).to_contain_text("Nothing reaches the real query")
        page.get_by_test_id("play-document").first.click()
        _wait_for_visitors(page, 1)
        assert client.query("library", "taught")["learned"] == 4 + sent


def test_starting_anew_forgets_the_copy_alone(page: Page, address: str) -> None:
    before = _known(address)
    _play(page, QUERY)
    first = page.get_by_test_id("play-ranking").inner_text()
    for visitor in range(1, 4):
        page.get_by_test_id("play-none").click()
        _wait_for_visitors(page, visitor)
    page.get_by_test_id("play-fresh").click()
    expect(page.get_by_test_id("play-visitors")).to_have_text("0")
    expect(page.get_by_test_id("play-ranking")).to_have_text(first, use_inner_text=True)
    assert _known(address) == before


def test_a_copy_that_is_gone_is_made_again(browser: Browser, address: str) -> None:
    page = browser.new_page(base_url=address)
    _play(page, QUERY)
    gone = {"error": "unknown", "message": "There is no such copy. Make a new one."}
    path = "**/v1/copies/*/feedback"
    page.route(path, lambda route: route.fulfill(status=404, json=gone))
    page.get_by_test_id("play-none").click()
    expect(page.get_by_test_id("play-who")).to_contain_text("The previous copy has expired")
    expect(page.get_by_test_id("play-document")).to_have_count(5)
    expect(page.get_by_test_id("problem")).to_be_hidden()
    page.unroute(path)
    page.get_by_test_id("play-none").click()
    _wait_for_visitors(page, 1)
    lost: list[str] = []

    def lose(route: Route) -> None:
        """The copy that is asked first is gone, however many ask it at once; the next one is there."""
        lost[:] = lost or [route.request.url]
        if route.request.url == lost[0]:
            route.fulfill(status=404, json=gone)
        else:
            route.continue_()

    page.route("**/v1/copies/*/rank", lose)
    page.get_by_test_id("play-speed-10").click()
    page.get_by_test_id("play-start").click()
    _wait_for_visitors(page, 12)
    assert lost
    expect(page.get_by_test_id("problem")).to_be_hidden()
    page.close()


def test_spaces_are_no_query(page: Page) -> None:
    _play(page, "keys")
    page.get_by_test_id("play-query").fill("   ")
    page.get_by_test_id("play-ask").click()
    said = page.get_by_test_id("play-query").evaluate("element => element.validationMessage")
    assert said == "Type something besides spaces."
    assert page.url.endswith("/play/keys")
    page.get_by_test_id("play-query").fill("other keys")
    page.get_by_test_id("play-ask").click()
    expect(page.get_by_test_id("play-who")).to_contain_text("other keys")


def test_who_may_only_read_may_play_and_not_teach(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    keys = Keys({"k" * 16: "admin", "r" * 16: "read"})
    with serving(tmp_path_factory.mktemp("readers"), keys=keys) as address:
        with Client(address, "k" * 16, trust_env=False) as client:
            client.create_collection("library", sample.library())
        page = browser.new_page(base_url=address)
        page.goto("/#/c/library/play")
        page.get_by_test_id("key-input").fill("r" * 16)
        page.get_by_test_id("key-save").click()
        expect(page.get_by_test_id("play-document")).to_have_count(5)
        page.get_by_test_id("play-document").first.click()
        _wait_for_visitors(page, 1)
        page.get_by_test_id("play-teach").click()
        page.get_by_test_id("teach-confirm").click()
        expect(page.get_by_test_id("key-form")).to_contain_text("teaching a query from here one with “admin”")
        page.close()


def test_titles_and_queries_are_text_and_nothing_else(page: Page) -> None:
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    page.goto("/")
    expect(page.get_by_test_id("overview-queries")).to_contain_text(HOSTILE)
    page.get_by_test_id("query-link").filter(has_text=HOSTILE).first.click()
    expect(page.get_by_test_id("query-document")).to_have_count(5)
    assert page.locator("img[src=x]").count() == 0


def test_the_keyboard_is_enough(page: Page) -> None:
    page.goto("/#/c/library/play/keys")
    expect(page.get_by_test_id("play-document").first).to_be_visible()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.testid || ''") == "play-none":
            break
    assert page.evaluate("document.activeElement.dataset.testid") == "play-none"
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("play-document")).to_have_count(5)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("route", ["/", f"/#/c/library/q/{QUERY}", "/#/c/alike/q/snowy%20owl%200", "/#/c/library/play"])
def test_it_fits_a_phone(browser: Browser, address: str, scheme: Any, route: str) -> None:
    page = browser.new_page(base_url=address, viewport={"width": 360, "height": 740}, color_scheme=scheme)
    page.goto(route)
    expect(page.locator("main")).to_be_visible()
    page.wait_for_timeout(500)
    sizes: dict[str, int] = json.loads(
        page.evaluate("JSON.stringify({there: document.documentElement.scrollWidth, seen: window.innerWidth})")
    )
    page.close()
    assert sizes["there"] <= sizes["seen"]


def test_a_key_is_asked_for(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving(tmp_path_factory.mktemp("keys"), keys=Keys({"k" * 16: "admin"})) as address:
        page = browser.new_page(base_url=address)
        page.goto("/")
        page.get_by_test_id("key-input").fill("k" * 16)
        page.get_by_test_id("key-save").click()
        expect(page.get_by_test_id("overview-empty")).to_be_visible()
        page.close()
