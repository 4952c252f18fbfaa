"""Files that appear whole or not at all, and are on the disk when they do."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to, which takes its name when it is complete."""
    target = Path(path)
    with tempfile.NamedTemporaryFile(dir=target.resolve().parent, delete=False) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise
