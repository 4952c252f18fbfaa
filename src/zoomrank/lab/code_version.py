"""Version of the code that made a row: the release, and a hash of every source that rows depend on."""

from functools import cache

from zoomrank import __version__
from zoomrank.compiled import source_hash


@cache
def this_version() -> str:
    """Return the version of this code; rows can be compared only if theirs is the same."""
    return f"{__version__}+{source_hash('lab/one_run.py')[:12]}"
