"""Which code made a row: the release, and a hash of every source that rows depend on."""

import hashlib
from functools import cache
from pathlib import Path

from zoomrank import __version__
from zoomrank.compiled import source_hash

_RUNS = ("catalogue.py", "run.py", "settings.py")  # what `source_hash` leaves out: they have no kernels


@cache
def this_version() -> str:
    """Rows of one version can stand beside each other."""
    digest = hashlib.sha256(source_hash().encode())
    for name in _RUNS:
        digest.update((Path(__file__).parent / name).read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"
