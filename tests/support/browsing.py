"""A real browser for tests of pages, and the marks of those that need one."""

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium")
of_the_page = [in_a_browser, pytest.mark.full]

KEYS = {role: role * 5 for role in ("admin", "read")}  # of a service whose pages want one


@contextlib.contextmanager
def sound_page(browser: Browser, **options: Any) -> Iterator[tuple[Page, list[str]]]:
    """A page on which nothing goes wrong behind the scenes, and what does; more may be told to that."""
    page = browser.new_page(**options)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page, wrong
    page.close()
    assert wrong == []


def enter(page: Page, role: str) -> None:
    """Give a page the key that it asks for."""
    page.get_by_label("Key").fill(KEYS[role])
    page.get_by_label("Key").press("Enter")
