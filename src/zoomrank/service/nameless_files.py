"""Anonymous temporary files in the folder of the service: uploads, results being built, and mapped collections.

Without a name no other process can delete, truncate or alter such a file; truncating a mapped file would crash this
process. The system removes it when the process ends, however it ends.
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
_HAS_THEM = os.name == "posix"  # elsewhere an open file cannot be unlinked


def temp_file(folder: Path) -> IO[bytes]:
    """Return an anonymous file for reading and writing; an in-memory one where the system has none."""
    if not _HAS_THEM:
        return io.BytesIO()
    folder.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryFile(dir=folder)


def filled(file: IO[bytes], pieces: Iterable[bytes]) -> str:
    """Write chunks to a file; return their SHA-256."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        file.write(piece)
    file.flush()
    return digest.hexdigest()


def chunks_of(file: IO[bytes], size: int = _PIECE) -> Iterator[bytes]:
    """Yield the content of a file from its start, chunk by chunk."""
    file.seek(0)
    while piece := file.read(size):
        yield piece


def digest_of(file: IO[bytes]) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    for piece in chunks_of(file):
        digest.update(piece)
    return digest.hexdigest()
