"""A service in a thread of this process, on loopback and a free port, that stops by itself."""

import contextlib
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zoomrank.service.server import make_server


@contextlib.contextmanager
def serving(folder: Path, **options: Any) -> Iterator[str]:
    """The address of a service that takes requests."""
    server = make_server(folder, port=0, **options)
    said: queue.Queue[str] = queue.Queue()
    server.announce = said.put
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield said.get(timeout=120)
    finally:
        server.should_exit = True
        thread.join()
