"""Progress on one line of a terminal; needs nothing but Python, and is silent elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_PAUSE = 0.1  # seconds


class ProgressLine:
    """A line of standard error that is overwritten: how much is done."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._seen = sys.stderr.isatty()
        self._last = 0.0
        self._width = 0

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._width:
            self._write("")

    def tell(self, done: int, total: int) -> None:
        """Show how much is done, unless it was shown a moment ago."""
        if self._seen and time.monotonic() - self._last >= _PAUSE:
            self._last = time.monotonic()
            self._write(f"{self._what}: {done:,} of {total:,} ({100 * done // max(total, 1)} %)")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r{text.ljust(self._width)}{'' if text else chr(13)}")
        sys.stderr.flush()
        self._width = len(text)
