"""What a query tells others: visits and clicks of the subtrees in which it has found something.

A report is small, whatever the query has learned, and no subtree counts for more than some visits: a busy query must
not be all that its neighbours hear of.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.numbers import Array

ROWS = 128  # the most subtrees that a report tells of
CAP = 100.0  # the most visits that a subtree counts for


class Report(NamedTuple):
    """A row for each subtree, in the order of their numbers; the root first, every other below its parent."""

    node: Array
    visits: Array  # [row, slot]
    clicks: Array  # [row, slot]
    score: float  # how well its own loan has predicted its answers


def report_of(state: Any) -> Report:
    """What a learner has to tell.

    It tells of what has the most clicks or, among equals, the most visits. No parent has fewer of either than its
    children, and parents stand before them: so nothing is told of without its parent.
    """
    filled = int(state.filled[0])
    seen = np.flatnonzero(state.total[:filled])
    if len(seen) > ROWS:
        key = state.gains[seen].astype(np.int64) << 32 | state.total[seen]
        seen = seen[np.argsort(-key, kind="stable")[:ROWS]]
    entry = seen[np.argsort(state.node[seen], kind="stable")]
    share = np.minimum(1.0, CAP / state.total[entry]).astype(np.float32)[:, None]
    visits, clicks = state.plays[entry] * share, state.clicks[entry] * share
    return Report(state.node[entry].astype(np.uint32), visits, clicks, float(state.score[0]))
