"""The page in a real browser, in short: from the overview to the ranking of a query."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browsing import in_a_browser, sound_page
from tests.support.services import small_collection
from tests.support.serving import serving
from zoomrank.client import Client

expect.set_options(timeout=60_000)  # milliseconds: a busy machine draws slowly

pytestmark = in_a_browser


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A service with one collection and one query that visitors have asked."""
    with serving(tmp_path) as address, Client(address, trust_env=False) as client:
        client.create_collection("shop", small_collection())
        for _ in range(3):
            ranking = client.rank("shop", "owl")
            client.feedback(ranking, ranking.ids[0])
        yield address


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page on which no script fails and nothing is written to the console as an error."""
    with sound_page(browser, base_url=address, viewport={"width": 1280, "height": 900}) as (page, wrong):
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        yield page


def test_from_the_overview_to_the_ranking_of_a_query(page: Page, address: str) -> None:
    with Client(address, trust_env=False) as client:
        known = client.query("shop", "owl")["ranking"]
    page.goto("/")
    expect(page.get_by_test_id("overview-collections")).to_contain_text("shop")
    page.get_by_test_id("query-link").filter(has_text="owl").first.click()
    expect(page.get_by_test_id("query-document")).to_have_count(5)
    ranking = page.get_by_test_id("query-ranking")
    for document in known:
        expect(ranking).to_contain_text(document["why"])
    expect(page.get_by_test_id("query-impressions")).to_contain_text("3")
