"""Tree networks laid side by side in one `ForestState`, from which clicks are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from zoomrank.compiled import compiled
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentIds
from zoomrank.users.first_click import ForestState

if TYPE_CHECKING:
    from zoomrank.users.models.tree_network import TreeNetwork


def forest_state(networks: Sequence[TreeNetwork], shares: Array, documents: DocumentIds) -> ForestState:
    """Combine networks for drawing, with their nodes numbered consecutively."""
    starts = np.concatenate([[0], np.cumsum([network.tree.nodes for network in networks])]).astype(np.int64)
    leaves = []
    for start, network in zip(starts[:-1], networks, strict=True):
        leaf = _deciding_nodes(network.tree.shape.parent, network.chance, network.tree.shape.leaf)
        same = network.documents is documents
        leaves.append(start + (leaf if same else leaf[network.documents.positions(documents)]))
    return ForestState(
        cumulative_share=np.cumsum(shares),
        root=starts[:-1].copy(),
        decider=np.stack(leaves).astype(np.uint32),
        parent=np.concatenate([s + n.tree.shape.parent for s, n in zip(starts[:-1], networks, strict=True)]).astype(
            np.uint32
        ),
        chance=np.concatenate([network.chance for network in networks]),
        mark=np.zeros(starts[-1], np.int64),
        path=np.zeros(max(network.tree.depth for network in networks) + 1, np.uint32),
        visitor=np.zeros(2, np.uint64),
    )


@compiled
def _deciding_nodes(parent: Array, chance: Array, leaf: Array) -> Array:
    """Return, for each leaf, the highest node that it cannot differ from: drawing can stop there."""
    top = np.arange(len(parent))
    for node in range(1, len(parent)):
        if chance[node, 0] == 0.0 and chance[node, 1] == 1.0:
            top[node] = top[parent[node]]
    return top[leaf]
