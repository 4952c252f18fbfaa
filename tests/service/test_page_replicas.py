"""The page in a real browser, with several replicas: who has what, who is not heard of, and what nobody has."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.browsing import of_the_page, sound_page
from tests.support.serving import serving
from zoomrank.cli import sample_library as sample
from zoomrank.client import Client

expect.set_options(timeout=60_000)  # milliseconds; how fast a browser draws on a busy machine is not what is tested

pytestmark = of_the_page


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("service")) as found, Client(found, trust_env=False) as client:
        client.create_collection("shop", sample.library(), {"slots": 2})
        for query in ("owl", "pike", "oak"):
            client.feedback(client.rank("shop", query), None)
        yield found


@pytest.fixture(params=[(1280, "light"), (390, "dark")], ids=["desk", "phone"])
def page(request: pytest.FixtureRequest, browser: Browser, address: str) -> Iterator[Page]:
    width, scheme = request.param
    screen = {"width": width, "height": 800}
    with sound_page(browser, base_url=address, viewport=screen, color_scheme=scheme) as (page, _):
        yield page


def _replica(number: int, partitions: int, **more: Any) -> dict[str, Any]:
    load = {
        "requests_per_second": 212.4 * number,
        "learners": 1840 * number,
        "learner_bytes": number * 68 * 2**20,
        "writes": 90_412 * number,
        "failed_writes": 0,
        "process": 4710 + number,
        "host": f"shop-{number}",
    }
    about = {"number": number, "name": f"replica-{number}", "since": time.time() - 3000 * number, "silent": 0.4}
    return {**about, "partitions": partitions, "chair": number == 1, "load": load, **more}


def _say(page: Page, replicas: list[dict[str, Any]], free: int = 0) -> None:
    """Have the service say, from now on, that these serve."""

    def respond(route: Route) -> None:
        route.fulfill(json={"replicas": replicas, "partitions": 256, "free": free})

    page.unroute("**/v1/replicas")
    page.route("**/v1/replicas", respond)


def _fits(page: Page) -> None:
    sizes = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert sizes[0] <= sizes[1]
    for row in page.get_by_test_id("replica").all():
        assert row.evaluate("row => row.scrollWidth <= row.clientWidth + 1")


def test_one_that_is_alone_is_not_told_of(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_test_id("overview-impressions")).to_have_text("3")
    expect(page.get_by_test_id("overview-replicas")).to_be_hidden()
    expect(page.get_by_test_id("replicas-note")).to_be_hidden()


def test_who_serves_follows_by_itself(page: Page) -> None:
    _say(page, [_replica(1, 128), _replica(2, 128)])
    page.goto("/")
    rows = page.get_by_test_id("replica")
    expect(rows).to_have_count(2)
    first = rows.nth(0)
    for text in (
        "replica-1",
        "process 4711 on shop-1",
        "coordinator",
        "128",
        "212 a second",
        "1,840, 68 MB",
        "50 min",
    ):
        expect(first).to_contain_text(text)
    expect(rows.nth(1)).not_to_contain_text("coordinator")
    fill = rows.nth(1).locator(".fill").evaluate("one => one.offsetWidth / one.parentElement.offsetWidth")
    assert fill == pytest.approx(0.5, abs=0.05)
    expect(page.get_by_test_id("replica-silent")).to_have_count(0)
    expect(page.get_by_test_id("replicas-note")).to_be_hidden()
    _fits(page)
    broken = {**_replica(1, 1)["load"], "failed_writes": 3}
    long = _replica(3, 0, name="a-name-that-is-longer-than-any-" * 4, load=None)
    _say(page, [_replica(1, 128, silent=3.2, load=broken), _replica(2, 90), long], free=38)
    expect(rows).to_have_count(3)
    expect(first.get_by_test_id("replica-silent")).to_have_text("no heartbeat for 3 s")
    expect(first).to_contain_text("3 failed")
    expect(rows.nth(2)).to_contain_text("no report yet")
    note = page.get_by_test_id("replicas-note")
    expect(note).to_contain_text("38 of 256 partitions are without an owner")
    expect(note).to_contain_text("No heartbeat from replica-1")
    _fits(page)
    _say(page, [_replica(2, 255)], free=1)  # the last one, which has not taken everything yet
    expect(rows).to_have_count(1)
    expect(note).to_contain_text("1 of 256 partitions is without an owner")
    _say(page, [_replica(2, 256)])
    expect(page.get_by_test_id("overview-replicas")).to_be_hidden()
    expect(note).to_be_hidden()
    page.goto("/#/c/shop")
    expect(page.get_by_test_id("collection-impressions")).to_have_text("3")
    expect(page.get_by_test_id("overview-replicas")).to_be_hidden()
