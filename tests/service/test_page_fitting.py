"""The page in a real browser, where a tree no longer fits: it says so, and makes it anew for those who may."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browsing import KEYS, enter, of_the_page, sound_page
from tests.support.serving import serving
from zoomrank.client import Client
from zoomrank.service.http.access import Keys

pytestmark = of_the_page


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Client]]:
    keys = Keys({key: role for role, key in KEYS.items()})
    with (
        serving(tmp_path_factory.mktemp("service"), keys=keys) as address,
        Client(address, KEYS["admin"], trust_env=False) as client,
    ):
        yield address, client


@pytest.fixture(params=[(1280, "light"), (360, "dark")], ids=["desk", "phone"])
def page(request: pytest.FixtureRequest, browser: Browser, service: tuple[str, Client]) -> Iterator[Page]:
    """A page on which nothing goes wrong behind the scenes, and a collection whose fishes have become too many."""
    address, client = service
    paths = [["Animals", kind] for kind in ("Fish", "Birds", "Mammals")]
    client.create_collection("shop", [{"id": f"d{at}", "path": path} for at, path in enumerate(paths)], {"slots": 2})
    client.feedback(client.rank("shop", "pike"), None)
    width, scheme = request.param
    screen = {"width": width, "height": 800}
    with sound_page(browser, base_url=address, viewport=screen, color_scheme=scheme) as (page, _):
        yield page
    client.remove_collection("shop")


def _crowd(client: Client) -> None:
    for half in (range(20), range(20, 40)):
        client.add_documents("shop", [{"id": f"fish {at}", "path": ["Animals", "Fish"]} for at in half])


def test_a_tree_that_no_longer_fits_is_made_anew(page: Page, service: tuple[str, Client]) -> None:
    _, client = service
    page.goto("/#/c/shop")
    enter(page, "read")
    about, panel = page.get_by_test_id("collection-about"), page.get_by_test_id("collection-fitting")
    expect(about).to_contain_text("levels of categories")
    expect(about).not_to_contain_text("changed")
    expect(panel).to_be_hidden()
    _crowd(client)
    expect(about).to_contain_text(", changed 2 times.")
    expect(panel).to_contain_text("The tree no longer fits")
    expect(panel).to_contain_text("Animals > Fish had 1 documents when the tree was made, and has 41 now.")
    expect(panel).to_contain_text("What was learned is carried over, document by document.")
    question = page.get_by_test_id("remake-question")
    page.get_by_test_id("remake").click()
    client.feedback(client.rank("shop", "pike"), None)
    expect(page.get_by_test_id("collection-impressions")).to_have_text("2")  # a poll leaves the question open
    expect(question).to_contain_text("Rebuild the tree of “shop”?")
    page.get_by_test_id("remake-cancel").click()
    expect(question).to_be_hidden()
    assert client.collection("shop")["edition"] == 2
    page.get_by_test_id("remake").click()
    page.get_by_test_id("remake-confirm").click()
    told = page.get_by_test_id("remake-told")
    expect(told).to_contain_text("Rebuilding a tree needs a key with the role “admin”.")
    assert client.collection("shop")["edition"] == 2
    sizes = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert sizes[0] <= sizes[1]
    page.get_by_test_id("another-key").click()
    enter(page, "admin")
    page.get_by_test_id("remake").click()
    page.get_by_test_id("remake-confirm").click()
    expect(page.get_by_test_id("remade")).to_have_text("The tree was rebuilt: this is version 3 of the catalogue.")
    expect(panel).not_to_contain_text("The tree no longer fits")
    expect(about).to_contain_text(", changed 3 times.")
    assert client.collection("shop")["crowded"] == []
    assert client.query("shop", "pike")["impressions"] == 2
