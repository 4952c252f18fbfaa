"""Files without a name, in the folder of the service: what is being sent or made, and what collections are mapped from.

Nobody can delete, shorten or alter one. A file that is shortened while it is mapped would take the whole process with
it. And nothing is left of one when the process ends, however it ends.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

_PIECE = 2**20
_HAS_THEM = os.name == "posix"  # elsewhere a file that is open cannot lose its name


def nameless_file(folder: Path) -> IO[bytes]:
    """A file that only this process has, to write to and to read; in memory where the system has none of that kind."""
    if not _HAS_THEM:
        return io.BytesIO()
    folder.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryFile(dir=folder)


def filled(file: IO[bytes], pieces: Iterable[bytes]) -> str:
    """Write pieces to a file; returns their SHA-256."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        file.write(piece)
    file.flush()
    return digest.hexdigest()


def pieces_of(file: IO[bytes], size: int = _PIECE) -> Iterator[bytes]:
    """A file from its beginning, piece by piece."""
    file.seek(0)
    while piece := file.read(size):
        yield piece


def digest_of(file: IO[bytes]) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    for piece in pieces_of(file):
        digest.update(piece)
    return digest.hexdigest()
