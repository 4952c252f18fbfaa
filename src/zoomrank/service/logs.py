"""What the service logs: a line for each thing that happened, as text or as JSON, with the request that caused it."""

from __future__ import annotations

import itertools
import json
import logging
import math
import re
import secrets
import sys
import time
from contextvars import ContextVar
from typing import Literal

Format = Literal["text", "json"]

REQUEST: ContextVar[str] = ContextVar("REQUEST", default="")  # the id of the request that this is done for
SELDOM = 60.0  # seconds
_GIVEN = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_FIRST, _NUMBERS = secrets.token_hex(6), itertools.count(1)


def request_id(given: bytes | None) -> str:
    """The id of a request: what it brings, if that can be one, or a new one.

    >>> request_id(b"mine-1")
    'mine-1'
    """
    if given is not None and _GIVEN.fullmatch(given):
        return given.decode()
    return f"{_FIRST}-{next(_NUMBERS):x}"


class Seldom:
    """Logs the same kind of trouble once in a while: where one thing fails, many do."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._said = -math.inf
        self._unsaid = 0

    def say(self, what: object) -> None:
        """Log it, or count it, to be said the next time."""
        if time.monotonic() - self._said < SELDOM:
            self._unsaid += 1
            return
        more = f" (and {self._unsaid} more since this was last said)" if self._unsaid else ""
        self._log.error("%s%s", what, more)
        self._said, self._unsaid = time.monotonic(), 0


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        about = {"time": _time(record), "level": record.levelname.lower(), "message": record.getMessage().strip()}
        if request := REQUEST.get():
            about["request"] = request
        if record.exc_info:
            about["exception"] = self.formatException(record.exc_info)
        return json.dumps(about, ensure_ascii=False, default=str)


class TextLines(logging.Formatter):
    """One line for people; of an exception, its lines below it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        said = record.getMessage().strip().replace("\n", "\\n").replace("\r", "\\r")  # nobody can make lines up
        request = f" [{REQUEST.get()}]" if REQUEST.get() else ""
        line = f"{_time(record)} {record.levelname.lower()}: {said}{request}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _time(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def log_to_stderr(format_: Format) -> None:
    """Let everything that is logged in this process go to stderr, in one format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if format_ == "json" else TextLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("zoomrank").setLevel(logging.INFO)
