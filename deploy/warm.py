"""Let a service do once what services do, so that the kernels that it needs are in the cache.

A step of the Dockerfile, and of `python -m tests.support.kernels`. Kernels are kept in `NUMBA_CACHE_DIR`, and are found
there by every process that has the same code.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from zoomrank.client import Client

DOCUMENTS = [{"id": number, "path": ["all", f"{number % 5}", f"{number % 15}"]} for number in range(60)]
TEXTS = [{"id": f"t{number}", "text": f"text {number} of {number % 7}"} for number in range(60)]


def main() -> None:
    """Serve a few visitors."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(  # noqa: S603
            [Path(sys.executable).with_name("zoomrank"), "serve", "--port", "0", "--data", folder],
            stdout=subprocess.PIPE,
            text=True,
        )
        with process:
            assert process.stdout is not None  # noqa: S101
            address = re.search(r"http://\S+", process.stdout.readline())
            assert address is not None, "the service did not start"  # noqa: S101
            with Client(address[0], trust_env=False, timeout=600.0) as client:
                for name, documents, similar in (("paths", DOCUMENTS, "off"), ("texts", TEXTS, "words")):
                    client.create_collection(name, documents, {"similar": similar})
                    visit(client, name, [one["id"] for one in documents])
            process.terminate()
        if process.returncode != 0:
            raise SystemExit("warm.py: the service did not stop as it should")


def visit(client: Client, collection: str, ids: list[Any]) -> None:
    """Rank and learn, for all and for some; look at what was learned; take something back; change a document."""
    for query in ("one", "one more", "another one"):
        for number in range(12):
            shown = client.rank(collection, query, eligible=ids[10:40] if number % 4 == 3 else None)
            client.feedback(shown, shown.ids[number % 5] if number % 3 else None)
        client.query(collection, query)
        client.tree(collection, query)
    client.void(collection, query="one", since=0)
    client.change_documents(collection, [{"change": ids[0], "title": "Another"}])


if __name__ == "__main__":
    main()
