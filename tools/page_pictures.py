"""Take screenshots of the service's page: `python tools/page_pictures.py` writes them to docs/figures.

`zoomrank demo-service` and `zoomrank demo-experiment` run for about a minute each, and Chromium takes the screenshots.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

FOLDER = Path(__file__).parent.parent / "docs" / "figures"
IMPRESSIONS, VISITORS = 1_000, 500
WIDTH = 1200  # pixels


@contextmanager
def demo(*arguments: str) -> Iterator[str]:
    """Run a command; yield the first address that it prints."""
    command = [sys.executable, "-c", "from zoomrank.cli import main; main()", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:  # noqa: S603
        assert service.stdout is not None  # noqa: S101
        try:
            yield next(word for line in service.stdout for word in line.split() if word.startswith("http://"))
        finally:
            service.terminate()


def take_query(page: Page, address: str) -> None:
    """Take a query that has learned for a while."""
    page.goto(f"{address}/#/c/library/q/java")
    page.get_by_test_id("query-impressions").wait_for(timeout=0)
    wait_for(page, "query-impressions", IMPRESSIONS)
    keep(page, "service-query", height=1345)


def take_playground(page: Page, address: str) -> None:
    """Take the playground after some simulated visits."""
    page.goto(f"{address}/#/c/library/play")
    page.get_by_test_id("play-speed-10").click()
    page.get_by_test_id("play-start").click()
    wait_for(page, "play-visitors", VISITORS)
    page.get_by_test_id("play-pause").click()
    keep(page, "service-playground", height=1305)


def take_experiment(page: Page) -> None:
    """Take an experiment that has ended."""
    page.locator("path.js-line").first.wait_for(state="attached", timeout=0)
    keep(page, "service-experiment", height=1380)


def wait_for(page: Page, name: str, least: int) -> None:
    """Wait until a figure of the page is large enough."""
    number = "parseInt(document.querySelector(`[data-testid=${name}]`)?.textContent.replace(/[^0-9]/g, '') ?? 0)"
    page.wait_for_function(f"([name, least]) => {number} >= least", arg=[name, least], timeout=0)


def keep(page: Page, name: str, height: int) -> None:
    """Save the screen in 256 colours: that is enough, and a third of the size."""
    page.set_viewport_size({"width": WIDTH, "height": height})
    page.wait_for_timeout(3_000)  # until the charts are redrawn
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 1000}, color_scheme="light")
        with demo("demo-service", "--port", "0", "--visitors-per-second", "100") as address:
            take_query(page, address)
            take_playground(page, address)
        with demo("demo-experiment", "--keep") as address:
            page.goto(address)
            take_experiment(page)
        browser.close()
