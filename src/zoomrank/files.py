"""Files that are written atomically and durably."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_UNFINISHED = ".part"


@contextmanager
def atomic_file(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a file for writing that gets its name when it is complete; a private file is readable by its owner only."""
    target = Path(path)
    part = target.parent / f".{secrets.token_hex(8)}{_UNFINISHED}"
    with open(part, "xb", opener=_open_private if private else None) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(part, target)
        except BaseException:
            os.unlink(part)
            raise


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def is_partial_file(path: Path) -> bool:
    """Return whether this is the rest of an incomplete file, left by a process that was killed."""
    return path.name.startswith(".") and path.name.endswith(_UNFINISHED)
