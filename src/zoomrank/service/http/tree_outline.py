"""The part of a learner's tree that visitors have shaped, in few enough nodes to draw."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from zoomrank.service.served_collection import ServedCollection

_WIDEST = 24  # children drawn per node; the others are drawn as one


def zoom_tree(served: ServedCollection, state: Any, limit: int) -> list[dict[str, Any]]:
    """Return nodes, parents before children; the most visited parts are opened first."""
    if not hasattr(state, "gains") or not hasattr(state, "child"):  # a learner without counts along paths
        return [_node(served, None, 0, 0, 0)]
    widest = max(1, min(_WIDEST, limit - 2))
    nodes = [_node(served, None, 0, int(state.total[0]), int(state.gains[0]))]
    open_ones = [(-int(state.total[0]), 0, 0)]
    while open_ones:
        _, entry, parent = heapq.heappop(open_ones)
        first, fan = int(state.child[entry]), int(state.fan[entry])
        if first == 0:
            continue
        if len(nodes) + min(fan, widest + 1) > limit:
            break
        children = np.arange(first, first + fan)
        ranked = children[np.argsort(-state.total[children].astype(np.int64), kind="stable")]
        for child in np.sort(ranked[:widest]).tolist():
            visits, clicks = int(state.total[child]), int(state.gains[child])
            heapq.heappush(open_ones, (-visits, child, int(state.node[child])))
            nodes.append(_node(served, parent, int(state.node[child]), visits, clicks))
        if fan > widest:
            nodes.append(_others(served, parent, state, ranked[widest:]))
    return nodes


def _node(served: ServedCollection, parent: int | None, node: int, visits: int, clicks: int) -> dict[str, Any]:
    shape = served.tree.shape
    documents = int(shape.end_document[node]) - int(shape.first_document[node])
    return {
        "id": node,
        "parent": parent,
        "label": served.label(node),
        "documents": documents,
        "visits": visits,
        "clicks": clicks,
        "estimate": clicks / visits if visits else 0.0,
        "leaf": bool(shape.child_start[node] == shape.child_start[node + 1]),
        "others": False,
    }


def _others(served: ServedCollection, parent: int, state: Any, entries: Any) -> dict[str, Any]:
    shape, nodes = served.tree.shape, state.node[entries]
    documents = int((shape.end_document[nodes].astype(np.int64) - shape.first_document[nodes]).sum())
    visits, clicks = int(state.total[entries].sum()), int(state.gains[entries].sum())
    return {
        "id": -1 - parent,
        "parent": parent,
        "label": f"{len(entries)} others",
        "documents": documents,
        "visits": visits,
        "clicks": clicks,
        "estimate": clicks / visits if visits else 0.0,
        "leaf": False,
        "others": True,
    }
