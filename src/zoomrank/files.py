"""Files that appear whole or not at all, and are on the disk when they do."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_UNFINISHED = ".part"


@contextmanager
def whole_file(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to, which takes its name when it is complete; nobody else may read one that is private."""
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


def is_unfinished(path: Path) -> bool:
    """Whether this is what a process that was killed left of a file that never was complete."""
    return path.name.startswith(".") and path.name.endswith(_UNFINISHED)
