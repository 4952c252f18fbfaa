"""Logging of the service: one line per record, as text or JSON, with the id of the request that caused it."""

from __future__ import annotations

import json
import logging
import math
import sys
import time
from contextvars import ContextVar
from typing import Literal

Format = Literal["text", "json"]

REQUEST: ContextVar[str] = ContextVar("REQUEST", default="")  # id of the request being handled
SELDOM = 60.0  # seconds


class RateLimitedLogger:
    """Rate-limited logger for one kind of failure, since many requests fail together."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._said = -math.inf
        self._unsaid = 0

    def say(self, what: object) -> None:
        """Log a message, or count it for the next time."""
        if time.monotonic() - self._said < SELDOM:
            self._unsaid += 1
            return
        more = f" (and {self._unsaid} more since the last message)" if self._unsaid else ""
        self._log.error("%s%s", what, more)
        self._said, self._unsaid = time.monotonic(), 0


class JsonFormatter(logging.Formatter):
    """Formatter: one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        about = {"time": _time(record), "level": record.levelname.lower(), "message": record.getMessage().strip()}
        if request := REQUEST.get():
            about["request"] = request
        if record.exc_info:
            about["exception"] = self.formatException(record.exc_info)
        return _printable(json.dumps(about, ensure_ascii=False, default=str))


class TextFormatter(logging.Formatter):
    """Formatter: one line of text per record, followed by its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        request = f" [{REQUEST.get()}]" if REQUEST.get() else ""
        line = f"{_time(record)} {record.levelname.lower()}: {_printable(record.getMessage().strip())}{request}"
        trace = self.formatException(record.exc_info).splitlines() if record.exc_info else []
        return "\n".join([line, *map(_printable, trace)])


def _printable(text: str) -> str:
    """Escape, as JSON does, what a terminal would obey or a reader would not see: no forged lines, no colours."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


def _time(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def log_to_stderr(format_: Format) -> None:
    """Send all log records of this process to stderr in one format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if format_ == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("zoomrank").setLevel(logging.INFO)
