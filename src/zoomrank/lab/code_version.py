"""Which code made a row: the release, and a hash of every source that rows depend on."""

from functools import cache

from zoomrank import __version__
from zoomrank.compiled import source_hash


@cache
def this_version() -> str:
    """Rows of one version can stand beside each other."""
    return f"{__version__}+{source_hash('lab/one_run.py')[:12]}"
