"""The page in a real browser, for those who look: curves, lists, the catalogue, and words where there is nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browsing import of_the_page, sound_page
from tests.support.serving import serving
from zoomrank.cli import sample_library as sample
from zoomrank.client import Client

pytestmark = of_the_page

BRANCHES = [f"Department {letter} with a long name" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
ODD = "a/b ?#%"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A library with a good query, a bad one, one that falls and a new one; a wide taxonomy; one that nobody asked."""
    with serving(tmp_path_factory.mktemp("service")) as address, Client(address, trust_env=False) as client:
        client.create_collection("library", sample.library())
        for query, clicks in (("good", "x" * 150), ("bad", "." * 30), ("falling", "x" * 90 + "." * 40), ("new", "x")):
            _visitors(client, "library", query, clicks)
        paths = [[branch, f"Shelf {shelf}"] for branch in BRANCHES for shelf in range(3)]
        wide = [{"id": f"{ODD}{at}", "title": f"Thing {at}", "path": path} for at, path in enumerate(paths * 2)]
        client.create_collection("wide", wide)
        _visitors(client, "wide", "thing", "x." * 60)
        client.create_collection("silent", sample.library())
        yield address


def _visitors(client: Client, collection: str, query: str, clicks: str) -> None:
    """A visitor for each letter, who clicks what is on top if it is an x."""
    for letter in clicks:
        shown = client.rank(collection, query)
        client.feedback(shown, shown.ids[0] if letter == "x" else None)


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page on which nothing goes wrong behind the scenes."""
    with sound_page(browser, base_url=address, viewport={"width": 1280, "height": 900}) as (page, _):
        yield page


def test_a_query_has_a_learning_curve(page: Page) -> None:
    page.goto("/#/c/library/q/falling")
    expect(page.get_by_test_id("query-curve").locator("path.js-line").first).to_be_attached()
    said = page.get_by_test_id("curve-words")
    expect(said).to_contain_text("Of its last 30 impressions, 0 % were satisfied, of its first hundred 90 %.")
    expect(said).to_contain_text("Of the first 20 answers, before much was learned, 20 were clicks")
    page.goto("/#/c/library/q/new")
    expect(page.get_by_test_id("curve-words")).to_contain_text("A curve needs a hundred impressions.")
    expect(page.get_by_test_id("query-curve")).to_be_hidden()


def test_numbers_of_a_document_agree(page: Page, address: str) -> None:
    with Client(address, trust_env=False) as client:
        ranking = client.query("library", "good")["ranking"]
    page.goto("/#/c/library/q/good")
    for place, document in enumerate(ranking):
        shown = page.get_by_test_id("query-document").nth(place)
        expect(shown).to_contain_text(document["why"])
        unseen = "Estimate from other slots and similar documents"
        (expect(shown).not_to_contain_text if document["visits"] else expect(shown).to_contain_text)(unseen)
    fills = page.locator(".ranking .fill").evaluate_all("all => all.map((one) => parseFloat(one.style.width))")
    marks = page.locator(".ranking .mark").evaluate_all("all => all.map((one) => parseFloat(one.style.left))")
    assert len(fills) == len(marks) == 5
    assert all(fill <= mark for fill, mark in zip(fills, marks, strict=True))


def test_queries_are_searched_and_sorted(page: Page) -> None:
    page.goto("/#/c/library")
    links = page.get_by_test_id("query-link")
    expect(links).to_have_text(["good", "falling", "bad", "new"])
    trends = page.get_by_test_id("trend")
    expect(trends.nth(0)).to_have_attribute("aria-label", "steady: 100 % of the last visitors, 100 % of all")
    expect(trends.nth(1)).to_have_text("▼")
    expect(trends.nth(2)).to_have_attribute("aria-label", "too early to say")
    page.get_by_label("First").select_option("worst")
    expect(links).to_have_text(["bad", "new", "falling", "good"])
    page.get_by_label("First").select_option("trend")
    expect(links.first).to_have_text("falling")
    page.get_by_label("Search").fill("OO")
    expect(links).to_have_text(["good"])
    page.get_by_label("Search").fill("<i>")
    expect(page.get_by_test_id("overview-queries")).to_contain_text("No query has “<i>” in it.")
    expect(page.get_by_label("Search")).to_be_focused()


def test_a_collections_page_begins_with_it(page: Page) -> None:
    page.goto("/#/c/library")
    expect(page.get_by_test_id("collection-documents")).to_have_text("336")
    expect(page.get_by_test_id("collection-queries")).to_have_text("4")
    expect(page.get_by_test_id("collection-impressions")).to_have_text("311")
    expect(page.get_by_test_id("collection-satisfied")).to_have_text("77 %")
    expect(page.get_by_test_id("overview-collections")).to_have_count(0)


@pytest.mark.parametrize("seconds", [3600, 86_400, 7 * 86_400, 30 * 86_400, 90 * 86_400])
def test_activity_goes_back_ninety_days(page: Page, seconds: int) -> None:
    page.goto("/#/c/library")
    expect(page.get_by_test_id("overview-impressions")).to_have_text("311")
    page.get_by_test_id(f"period-{seconds}").click()
    expect(page.get_by_test_id(f"period-{seconds}")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_test_id("overview-impressions")).to_have_text("311")
    expect(page.get_by_test_id("overview-activity").locator("g.point").first).to_be_attached()


def test_the_catalogue_is_searched_and_leads_to_a_document(page: Page) -> None:
    page.goto("/#/c/wide")
    page.get_by_test_id("open-documents").click()
    told = page.get_by_test_id("documents-told")
    expect(told).to_contain_text("1 to 50 of 156 documents")
    page.get_by_test_id("documents-next").click()
    expect(told).to_contain_text("51 to 100 of 156 documents")
    page.get_by_label("Search title, id or address").fill("thing 10")
    expect(told).to_contain_text("1 to 11 of 11 documents with “thing 10”")  # 10, and 100 to 109
    page.get_by_label("Search title, id or address").fill("no such thing")
    expect(told).to_have_text("No document has “no such thing” in its title, id or address.")
    page.get_by_label("Search title, id or address").fill("thing 100")
    page.get_by_test_id("document-link").click()
    expect(page.get_by_role("heading", name="Thing 100", exact=True)).to_be_visible()
    expect(page.get_by_test_id("document-id")).to_have_text(f"{ODD}100")


def test_a_document_says_in_which_queries_it_stands(page: Page, address: str) -> None:
    with Client(address, trust_env=False) as client:
        top = client.query("wide", "thing")["ranking"][0]
    page.goto("/#/c/wide/q/thing")
    page.get_by_role("link", name=f"About {top['title']}", exact=True).click()
    row = page.get_by_test_id("document-queries").locator("tbody tr")
    expect(row).to_have_count(1)
    expect(row.locator("td").nth(1)).to_have_text("1")
    page.get_by_test_id("standing-query").click()
    expect(page.get_by_role("heading", name="thing", exact=True)).to_be_visible()


def test_there_are_words_where_there_is_nothing(page: Page) -> None:
    for route, name, words in (
        ("/#/c/nowhere", "collection-unknown", "There is no collection “nowhere”. These exist:"),
        ("/#/c/silent", "overview-queries", "No queries yet."),
        ("/#/c/silent", "activity-empty", "No visitors in this period."),
        ("/#/c/silent", "collection-satisfied", "not known yet"),
        ("/#/c/silent/q/never", "problem", "Nobody has asked “never” in “silent” yet."),
        ("/#/c/silent/d/never", "problem", "There is no document “never” in “silent”, or no more."),
        ("/#/c/nowhere/documents", "problem", "There is no collection “nowhere”"),
    ):
        page.goto("/")
        expect(page.get_by_test_id("overview-collections")).to_be_visible()
        page.goto(route)
        expect(page.get_by_test_id(name)).to_contain_text(words)


@pytest.mark.parametrize("width", [360, 1280])
def test_the_tree_keeps_its_labels(browser: Browser, address: str, width: int) -> None:
    page = browser.new_page(base_url=address, viewport={"width": width, "height": 800})
    page.goto("/#/c/wide/q/thing")
    labels = page.get_by_test_id("zoom-tree").locator("text.slicetext")
    expect(labels.filter(has_text="Department A")).to_have_count(1)
    drawn = "all => all.filter((one) => one.getBoundingClientRect().width > 20).map((one) => one.textContent)"
    shown = [label for label in labels.evaluate_all(drawn) if label.startswith("Department")]
    assert len(shown) == 24  # all that are told apart; the rest are “others”
    sizes = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert sizes[0] <= sizes[1]
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("route", ["/#/c/library", "/#/c/wide/documents", "/#/c/library/q/falling"])
def test_it_fits_a_phone(browser: Browser, address: str, scheme: str, route: str) -> None:
    page = browser.new_page(base_url=address, viewport={"width": 360, "height": 740}, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(route)
    expect(page.locator(".panel").first).to_be_visible()
    page.wait_for_timeout(500)
    sizes = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    page.close()
    assert sizes[0] <= sizes[1]
