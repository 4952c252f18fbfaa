"""A process that makes one collection: the JSON comes in, the collection file goes out, its last line says the rest.

`Maker` starts it for what is large. Reading much JSON holds up every thread of a process of Python, so those who serve
rankings leave that to another.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from zoomrank.service.http.new_collection import make
from zoomrank.service.refusals import ServiceError

REFUSED = 3  # the status with which it ends when it refuses what was sent
_WATCH_EVERY = 0.5  # seconds
_POLITE = 10  # whoever ranks goes first


def main() -> int:
    """Make the collection, for the service whose process is named."""
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    os.nice(_POLITE)
    out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what others print is no part of a collection
    try:
        with os.fdopen(out, "wb") as file:
            made = make(sys.stdin.buffer.read(), file)
    except ServiceError as error:
        _say({"status": error.status, "code": error.code, "message": str(error)})
        return REFUSED
    _say({"name": made.name, "settings": made.settings.model_dump_json()})
    return 0


def _say(what: dict[str, object]) -> None:
    sys.stderr.write("\n" + json.dumps(what) + "\n")


def _end_with(service: int) -> None:
    """Do not outlive the service, if it is killed."""
    while os.getppid() == service:
        time.sleep(_WATCH_EVERY)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
