"""Exact probabilities in a tree network, by passing messages: up only along the root paths of S, down to all nodes.

The message of a node u is `(log P(Z_S below u | π(u) = 0), log P(Z_S below u | π(u) = 1))`, where Z_S is the event that
no document of S is relevant. Subtrees without a document of S send (0, 0), so they cost nothing on the way up. Being
logarithms, messages do not underflow however many documents are conditioned on.

`chance[u, b]` is the probability that π(u) = 1 if the parent's bit is b; the root's two entries are both μ(root).
"""

import numpy as np

from zoomrank.compiled import allocating, compiled, inlined
from zoomrank.numbers import Array


@allocating
def _root_paths(parent: Array, leaves: Array) -> Array:
    """Return all nodes on the root paths of these leaves, ascending.

    Parents have smaller numbers than their children, so paths are merged from the largest number down. (NumPy could
    sort them; compiling that would take longer than anything else here.)
    """
    length = 1
    for leaf in leaves:
        node = leaf
        while node > 0:
            length += 1
            node = parent[node]
    nodes = np.zeros(length, np.int64)  # filled from the end; the root, 0, is the first that is kept
    current = leaves.copy()
    at = length
    largest = np.int64(1)
    while largest > 0:
        largest = np.int64(0)
        for node in current:
            largest = max(largest, node)
        at -= 1
        nodes[at] = largest
        for i in range(len(current)):
            if current[i] == largest:
                current[i] = parent[largest]
    return nodes[at:]


@inlined
def _log_average(p: float, zero: float, one: float) -> float:
    """Return log of (1 - p)·exp(zero) + p·exp(one)."""
    if p <= 0.0:
        return zero
    if p >= 1.0:
        return one
    largest = max(zero, one)
    if largest == -np.inf:
        return largest
    return float(largest + np.log((1 - p) * np.exp(zero - largest) + p * np.exp(one - largest)))


@allocating
def _send_up(parent: Array, chance: Array, leaves: Array, nodes: Array) -> tuple[Array, float]:
    """Return the messages of the nodes on the root paths, and log P(Z_S)."""
    message = np.zeros((len(nodes), 2))
    for leaf in leaves:
        message[np.searchsorted(nodes, leaf), 1] = -np.inf  # skipped, so not relevant
    for at in range(len(nodes) - 1, 0, -1):
        node = nodes[at]
        above = np.searchsorted(nodes, parent[node])
        for bit in range(2):
            message[above, bit] += _log_average(chance[node, bit], message[at, 0], message[at, 1])
    return message, _log_average(chance[0, 0], message[0, 0], message[0, 1])


@compiled
def log_skip_probability(parent: Array, chance: Array, leaves: Array) -> float:
    """Return log P(Z_S), that all these leaves are skipped. Costs |S| times the depth."""
    return _send_up(parent, chance, leaves, _root_paths(parent, leaves))[1]


@compiled
def posterior(parent: Array, chance: Array, leaves: Array) -> tuple[float, Array]:
    """Return log P(Z_S), and P(π(u) = 1 | Z_S) for every node u."""
    nodes = _root_paths(parent, leaves)
    message, log_probability = _send_up(parent, chance, leaves, nodes)
    relevant = np.empty(len(parent))
    at = 0
    for node in range(len(parent)):
        above = relevant[parent[node]] if node > 0 else 0.0
        p0, p1 = chance[node, 0], chance[node, 1]
        if at < len(nodes) and nodes[at] == node:  # evidence below: weigh the two bits by their messages
            p0 = _weigh(p0, message[at])
            p1 = _weigh(p1, message[at])
            at += 1
        relevant[node] = (1 - above) * p0 + above * p1
    return log_probability, relevant


@inlined
def _weigh(p: float, message: Array) -> float:
    """Return P(bit = 1) given the evidence below, if it was p before."""
    if p <= 0.0 or message[1] == -np.inf:
        return 0.0
    if p >= 1.0 or message[0] == -np.inf:
        return 1.0
    return float(p / (p + (1 - p) * np.exp(message[0] - message[1])))
