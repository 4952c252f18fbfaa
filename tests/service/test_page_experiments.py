"""The page in a real browser, with an experiment: begun with a form, looked at, an arm stopped, another promoted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browsing import KEYS, enter, of_the_page, sound_page
from tests.support.services import Clock
from tests.support.serving import serving
from zoomrank.cli import sample_library as sample
from zoomrank.client import Client
from zoomrank.service.catalogue.settings import ALGORITHMS
from zoomrank.service.http.access import Keys

expect.set_options(timeout=60_000)  # milliseconds; how fast a browser draws on a busy machine is not what is tested

pytestmark = of_the_page


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock(1_790_000_000.0)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> Iterator[tuple[str, Client]]:
    keys = Keys({key: role for role, key in KEYS.items()})
    with (
        serving(tmp_path_factory.mktemp("service"), keys=keys, now=clock) as address,
        Client(address, KEYS["admin"], trust_env=False) as client,
    ):
        yield address, client


@pytest.fixture(params=[(1280, "light"), (390, "dark")], ids=["desk", "phone"])
def page(request: pytest.FixtureRequest, browser: Browser, service: tuple[str, Client]) -> Iterator[Page]:
    """A page on which nothing goes wrong behind the scenes, and a library."""
    address, client = service
    # ZoomRank finds the book that everybody likes so soon that no arm is better.
    client.create_collection("shop", sample.library(), {"slots": 2, "algorithm": "RankThompson"})
    width, scheme = request.param
    screen = {"width": width, "height": 800}
    with sound_page(browser, base_url=address, viewport=screen, color_scheme=scheme) as (page, _):
        yield page
    client.remove_collection("shop")


def _visits(client: Client, clock: Clock, number: int) -> None:
    """Visitors who like whatever is on top if it is a certain book, and come two a minute."""
    for _ in range(number):
        clock.time += 30
        shown = client.rank("shop", "owl", visitor=f"visitor {clock.time}")
        client.feedback(shown, shown.ids[0] if shown.ids[0] == _book() else None)


def _book() -> str:
    return str(sample.library().tree.documents[0])


def _fits(page: Page) -> None:
    sizes = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert sizes[0] <= sizes[1]


def _fill_in(page: Page) -> None:
    """As it is, the book that everybody likes, and another learner."""
    page.get_by_test_id("begin-name").fill("first")
    page.get_by_test_id("begin-more").click()
    for place, (name, share, kind) in enumerate((("now", 40, "now"), ("book", 40, "fixed"), ("ucb", 20, "learned"))):
        arm = page.get_by_test_id("begin-arm").nth(place)
        arm.get_by_test_id("arm-name").fill(name)
        arm.get_by_test_id("arm-share").fill(str(share))
        arm.get_by_test_id("arm-kind").select_option(kind)
    page.get_by_test_id("arm-fixed").nth(1).fill(_book())
    algorithms = page.get_by_test_id("arm-algorithm").nth(2)
    assert tuple(algorithms.locator("option").all_inner_texts()) == ALGORITHMS
    algorithms.select_option("RankUCB1")
    page.get_by_test_id("arm-explore").nth(2).fill("5")


def test_an_experiment_from_its_beginning_to_its_end(page: Page, service: tuple[str, Client], clock: Clock) -> None:
    _, client = service
    page.goto("/#/c/shop")
    enter(page, "admin")
    page.get_by_test_id("open-experiments").click()
    expect(page.get_by_test_id("experiments-empty")).to_contain_text("There are no experiments yet.")
    _fill_in(page)
    page.get_by_test_id("arm-share").first.fill("60")
    page.get_by_test_id("begin-start").click()
    expect(page.get_by_test_id("begin-told")).to_contain_text("sum to 1.2, which is more than 1")
    _fits(page)
    page.get_by_test_id("arm-share").first.fill("40")
    page.get_by_test_id("begin-start").click()
    says, arms = page.get_by_test_id("experiment-says"), page.get_by_test_id("experiment-arm")
    expect(says).to_contain_text("Nothing is known yet about book compared with now.")
    expect(page.get_by_test_id("experiment-difference")).to_be_hidden()
    expect(arms.nth(0)).to_contain_text("the collection as it is")
    expect(arms.nth(1)).to_contain_text(f"always {_book()}")
    expect(arms.nth(2)).to_contain_text("algorithm RankUCB1; explore 0.05")
    _visits(client, clock, 300)
    clock.time += 60
    expect(says).to_contain_text("book satisfies more visitors than now: between +")
    told = client.experiment("shop", "first")
    expect(page.get_by_test_id("experiment-arms")).to_contain_text("300 of 300 so far")
    expect(arms.nth(1)).to_contain_text(f"{told['arms'][1]['visitors']}")
    difference = told["arms"][1]["difference"]
    assert difference is not None
    expect(arms.nth(1)).to_contain_text(f"+{100 * difference['estimate']:.1f} points")
    for chart, lines in (("experiment-difference", 6), ("experiment-shares", 3)):  # two edges of a band, and the middle
        expect(page.get_by_test_id(chart).locator(".scatterlayer path.js-line")).to_have_count(lines)
    _fits(page)
    page.get_by_test_id("stop-arm").nth(2).click()
    question = page.get_by_test_id("stop-arm-question")
    expect(question).to_contain_text("Visitors of “ucb” get the collection as it is from now on")
    page.get_by_test_id("stop-arm-cancel").click()
    expect(question).to_be_hidden()
    assert client.experiment("shop", "first")["arms"][2]["stopped"] is None
    page.get_by_test_id("stop-arm").nth(2).click()
    page.get_by_test_id("stop-arm-confirm").click()
    expect(arms.nth(2)).to_contain_text("stopped")
    expect(page.get_by_test_id("stop-arm")).to_have_count(2)
    page.get_by_test_id("arm-link").nth(1).click()
    expect(page.get_by_test_id("query-link")).to_have_text("owl")
    expect(page.get_by_test_id("collection-experiment")).to_contain_text(
        "This is the arm “book” of the experiment first."
    )
    page.get_by_test_id("experiment-note").click()
    page.get_by_test_id("promote").nth(1).click()
    expect(page.get_by_test_id("promote-question")).to_contain_text("“book” serves all visitors of “shop” from now on")
    page.get_by_test_id("promote-confirm").click()
    expect(says).to_contain_text("book was promoted.")
    assert client.collection("shop")["settings"]["shows"] == [_book()]
    page.get_by_test_id("remove").click()
    page.get_by_test_id("remove-confirm").click()
    expect(page.get_by_test_id("experiments-empty")).to_be_visible()
    assert client.experiments("shop") == []


def test_who_may_only_read_looks_and_has_no_buttons(page: Page, service: tuple[str, Client]) -> None:
    _, client = service
    client.create_experiment(
        "shop", "second", [{"name": "a", "share": 0.5}, {"name": "b", "share": 0.5, "settings": {}}]
    )
    page.goto("/#/c/shop")
    enter(page, "read")
    note = page.get_by_test_id("collection-experiment")
    expect(note).to_contain_text("An experiment is running: second.")
    page.get_by_test_id("experiment-note").click()
    expect(page.get_by_test_id("experiment-arm")).to_have_count(2)
    assert page.locator("#page button").count() == 0
    page.goto("/#/c/shop/experiments")
    expect(page.get_by_test_id("experiments-list")).to_contain_text("Running")
    assert page.locator("#page form, #page button").count() == 0
    page.evaluate("sessionStorage.clear()")
    page.reload()
    enter(page, "admin")
    expect(page.get_by_test_id("experiments-begin")).to_contain_text("Only one experiment runs at a time")
    page.get_by_test_id("experiment-link").click()
    page.get_by_test_id("stop").click()
    expect(page.get_by_test_id("stop-question")).to_contain_text("All visitors of “shop” get the collection as it is")
    page.get_by_test_id("stop-confirm").click()
    expect(page.get_by_test_id("remove")).to_be_visible()
    assert client.experiment("shop", "second")["ended"] is not None
    page.goto("/#/c/shop")
    expect(page.get_by_test_id("collection-impressions")).to_be_visible()
    expect(note).to_be_empty()
