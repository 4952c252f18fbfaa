"""A real browser for tests of pages, and the mark of those that need one."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium")
of_the_page = [in_a_browser, pytest.mark.xdist_group("page")]  # one browser
