"""MkDocs hook: the limits of the service, from the constants that hold them."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from zoomrank.service.catalogue.settings import (
    LONGEST_NAME,
    LONGEST_QUERY,
    LONGEST_STEP,
    MOST_DIMENSIONS,
    MOST_NAMED,
    MOST_SLOTS,
    MOST_STEPS,
)
from zoomrank.service.copies import IDLE, MOST
from zoomrank.service.experiments import MOST_ARMS
from zoomrank.service.http.access import SHORTEST_KEY, SMALL_BODY
from zoomrank.service.http.app import LARGEST_BODY
from zoomrank.service.http.listener import TIME_LIMITS
from zoomrank.service.idempotency import KEPT_FOR, MOST_KEPT
from zoomrank.wire import LARGEST_BATCH, MOST_RANKINGS

PAGE = "reference/limits.md"
_MEGABYTE = 2**20
_TEXT = f"""# Limits

Look up how large, long or slow a request may be.

| limit | value |
|---|---|
| name of a collection | {LONGEST_NAME} letters, digits, `.`, `_` and `-` |
| query | {LONGEST_QUERY} letters, also after folding, and not only spaces |
| slots of a ranking | {MOST_SLOTS} |
| `about` of a query | a path of {MOST_STEPS} steps of {LONGEST_STEP} letters, or {MOST_DIMENSIONS:,} numbers |
| document ids | all texts of up to 1,000 letters, or all whole numbers |
| `eligible`, `excluded` | {MOST_NAMED:,} ids each; as many documents as slots must be left, unless `fewer` is true |
| request to rank, or feedback | {SMALL_BODY // _MEGABYTE} MB, complete within {TIME_LIMITS.small_body:.0f} seconds |
| rankings of one batch | {MOST_RANKINGS} |
| feedback of one batch | {LARGEST_BATCH:,} |
| new collection | {LARGEST_BODY // _MEGABYTE} MB (`--largest-body`), as JSON a million documents |
| pause in a body | {TIME_LIMITS.pause:.0f} seconds |
| headers | complete within {TIME_LIMITS.headers:.0f} seconds |
| idempotency keys | kept for {KEPT_FOR / 60:.0f} minutes, the last {MOST_KEPT:,} of them |
| copies in the playground | {MOST}, each for {IDLE / 60:.0f} minutes without use; the longest unused goes first |
| arms of an experiment | 2 to {MOST_ARMS} |
| key | {SHORTEST_KEY} letters or more |

A request that arrives too slowly is answered with 408 `timeout`, or its connection is closed. Collections larger than
256 KB are made by a separate process, one at a time, so that rankings go on meanwhile. How many queries a collection
keeps and how many new ones a key may ask are [settings](settings.md).
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    files.append(File.generated(config, PAGE, content=_TEXT))
    return files
