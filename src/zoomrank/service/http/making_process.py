"""Process that builds one collection: JSON in, collection file out, remaining data on its last line.

`Maker` starts it for large uploads. Parsing much JSON blocks every thread of a Python process, so the processes that
serve rankings leave it to another.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from zoomrank.service.http.new_collection import make
from zoomrank.service.refusals import ServiceError

INVALID_UPLOAD = 3  # exit status if the upload is invalid
_WATCH_EVERY = 0.5  # seconds
_POLITE = 10  # niceness: ranking goes first


def main() -> int:
    """Build the collection for the service whose process id is given."""
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    os.nice(_POLITE)
    out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # libraries may print, which must not end up in the collection
    try:
        with os.fdopen(out, "wb") as file:
            made = make(sys.stdin.buffer.read(), file)
    except ServiceError as error:
        _say({"status": error.status, "code": error.code, "message": str(error)})
        return INVALID_UPLOAD
    _say({"name": made.name, "settings": made.settings.model_dump_json()})
    return 0


def _say(what: dict[str, object]) -> None:
    sys.stderr.write("\n" + json.dumps(what) + "\n")


def _end_with(service: int) -> None:
    """Exit when the service is gone, even if it was killed."""
    while os.getppid() == service:
        time.sleep(_WATCH_EVERY)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
