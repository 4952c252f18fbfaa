"""The document tree as learners see it: `TreeView`, random draws from a subtree, and the correlation rule.

*Draws* are uniform at each branch, as in the paper, not uniform over documents. One random number serves a whole walk
down: at a branch with m children, `r · m` picks one by its integer part and its fraction is as random as r was. A fresh
number is drawn before its bits run out.

*The correlation rule* caps an index by `max over x in u of D(x, S)`, with S the documents shown above: a visitor who
skipped S is unlikely to like documents close to it. The cap is one number for every subtree that hangs off the root
paths of S, namely the width of the node where it branches off; only subtrees on those paths need a cap of their own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zoomrank.compiled import Scalar, inlined
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.tree_shape import node_depths
from zoomrank.types import Array

LARGE = 2**15  # documents
BITS = 2.0**40  # most choices per random number: it has 53 bits, and 13 are kept in reserve


class TreeView(NamedTuple):
    """Arrays of the document tree that learners read."""

    parent: Array
    child_start: Array
    first_document: Array
    end_document: Array
    leaf: Array
    width: Array  # W(u)
    leaf_depth: Array  # depth of each document
    share: Array  # logarithm of twice a node's share of its parent's documents
    spread: Array  # W(u), less the fewer documents the node has: see `view_of`
    eligible: Array  # number of eligible documents before each (see `Eligible`); empty if all are
    even: bool  # all children of a node have equally many documents: uniform per branch is uniform over all


def view_of(tree: DocumentTree) -> TreeView:
    """Return the arrays of a tree for learners.

    The best of m documents exceeds their mean by about √(log m) standard deviations. So the spread of a node is its
    width times √(log m), and equal to it for as many documents as `LARGE`.
    """
    shape = tree.shape
    size = shape.end_document - shape.first_document
    fan = np.diff(shape.child_start)
    above = shape.parent[1:]
    even = bool((size[1:].astype(np.int64) * fan[above] == size[above]).all())
    depth = node_depths(shape.parent)[shape.leaf].astype(np.uint16)
    share = np.log(2 * size / size[shape.parent]).astype(np.float32)
    spread = (tree.width * np.sqrt(np.log(size) / np.log(LARGE))).astype(np.float32)
    return TreeView(*shape, tree.width, depth, share, spread, np.zeros(0, np.uint32), even)


@inlined
def shown_below(tree: Any, node: Scalar, shown: Array, above: Scalar) -> Scalar:
    """Count the documents shown above that lie in this subtree."""
    taken = 0
    for slot in range(above):
        if tree.first_document[node] <= shown[slot] < tree.end_document[node]:
            taken += 1
    return taken


@inlined
def size_of(tree: Any, node: Scalar) -> Scalar:
    """Count the eligible documents of a subtree."""
    first, end = np.uint64(tree.first_document[node]), np.uint64(tree.end_document[node])
    if len(tree.eligible) > 0:
        return np.int64(tree.eligible[end]) - np.int64(tree.eligible[first])
    return np.int64(end) - np.int64(first)


@inlined
def draw_document(tree: Any, node: Scalar, shown: Array, above: Scalar, rng: np.random.Generator) -> Scalar:
    """Draw a random document below the node that is not among the first `above` of `shown`; -1 if none is left."""
    place = np.uint64(node)
    taken = shown_below(tree, place, shown, above)
    document = np.int64(-1)
    if taken < size_of(tree, place):
        r = rng.random()
        if tree.even and taken == 0 and len(tree.eligible) == 0:
            document = np.int64(tree.first_document[place]) + np.int64(r * size_of(tree, place))
        else:
            document = _walk_down(tree, place, shown, above, taken, r, rng)
    return document


@inlined
def _walk_down(
    tree: Any, node: Scalar, shown: Array, above: Scalar, taken: Scalar, r: Scalar, rng: np.random.Generator
) -> Scalar:
    """Choose uniformly, at each branch, among the children that hold a document not shown above."""
    place = np.uint64(node)
    spent = 1.0
    choosy = len(tree.eligible) > 0
    while tree.child_start[place] != tree.child_start[place + np.uint64(1)]:
        start, stop = tree.child_start[place], tree.child_start[place + np.uint64(1)]
        free = np.int64(stop) - np.int64(start)
        if taken > 0 or choosy:
            for child in range(start, stop):
                if shown_below(tree, np.uint64(child), shown, above) == size_of(tree, np.uint64(child)):
                    free -= 1
        step: Scalar = 0
        if free > 1:
            if spent * free > BITS:
                r, spent = rng.random(), 1.0
            spent *= free
            step = np.int64(r * free)
            r = r * free - step
        place = start + np.uint64(step)
        if taken > 0 or choosy:  # the step counts only children with documents left
            place = np.uint64(start)
            held = shown_below(tree, place, shown, above)
            while step > 0 or held == size_of(tree, place):
                if held < size_of(tree, place):
                    step -= 1
                place += np.uint64(1)
                held = shown_below(tree, place, shown, above)
            taken = held
    return np.int64(tree.first_document[place])


@inlined
def is_exhausted(tree: Any, node: Scalar, shown: Array, above: Scalar) -> Scalar:
    """Return whether all eligible documents of a subtree are shown above."""
    return shown_below(tree, np.uint64(node), shown, above) >= size_of(tree, np.uint64(node))


@inlined
def chance_to_draw(tree: Any, node: Scalar, document: Scalar, shown: Array, above: Scalar) -> Scalar:
    """Compute the probability that `draw_document` draws a document of the subtree: the product of one over the number
    of branches to choose from, all the way up.
    """
    at = np.uint64(tree.leaf[np.uint64(document)])
    chance = 0.0 if is_exhausted(tree, at, shown, above) else 1.0
    while chance > 0.0 and at != np.uint64(node):
        at = np.uint64(tree.parent[at])
        start, stop = np.uint64(tree.child_start[at]), np.uint64(tree.child_start[at + np.uint64(1)])
        free = np.int64(stop) - np.int64(start)
        if len(tree.eligible) > 0 or shown_below(tree, at, shown, above) > 0:
            for child in range(start, stop):
                if is_exhausted(tree, child, shown, above):
                    free -= 1
        chance /= free
    return chance


# The correlation rule along the root paths of the documents above.

LARGEST_CONTEXT = 62  # documents above a slot: they are the bits of a mask


class ContextScratch(NamedTuple):
    """Root paths of the documents above, and a stack to search along them."""

    path: Array  # path[j, d] is the ancestor of document j at depth d
    path_leaf: Array  # the leaf that row j was made for
    value: Array  # of each child of an entry
    below: Array  # mask of the documents below each child of an entry
    inner: Array  # the same, for an entry further down
    stack_entry: Array  # entries to visit,
    stack_depth: Array  # their depth,
    stack_mask: Array  # and the mask of the documents below them


def largest_context(slots: int) -> int:
    """Return the maximal number of documents above a slot; a bandit used on its own gets contexts from its caller."""
    return LARGEST_CONTEXT if slots == 1 else slots


def fresh_context_scratch(tree: DocumentTree, slots: int, widest: int) -> ContextScratch:
    """Allocate scratch space for the context of any slot."""
    documents = largest_context(slots)
    stack = documents * (tree.depth + 2)
    path, leaf = np.zeros((documents, tree.depth + 1), np.uint32), np.full(documents, tree.nodes, np.int64)
    value, below, inner = (np.zeros(max(widest, 1), kind) for kind in (np.float64, np.int64, np.int64))
    return ContextScratch(path, leaf, value, below, inner, *(np.zeros(stack, np.int64) for _ in range(3)))


@inlined
def store_paths(state: Any, shown: Array, above: Scalar) -> None:
    """Store the root path of each document above, unless it is stored already."""
    for row in range(np.uint64(above)):
        document = np.uint64(shown[row])
        node = state.leaf[document]
        if state.path_leaf[row] != node:
            state.path_leaf[row] = node
            depth = np.uint64(state.leaf_depth[document])
            for below in range(depth + np.uint64(1), np.uint64(state.path.shape[1])):
                state.path[row, below] = node  # a leaf is its own descendant at all deeper levels
            while depth > 0:
                state.path[row, depth] = node
                node = state.parent[node]
                depth -= np.uint64(1)
            state.path[row, 0] = 0


@inlined
def documents_below(state: Any, node: Scalar, depth: Scalar, mask: Scalar) -> Scalar:
    """Return the mask of the documents below a node of this depth."""
    below = 0
    row = 0
    while mask >> row:
        if (mask >> row) & 1 and state.path[row, depth] == node:
            below |= 1 << row
        row += 1
    return below


@inlined
def split_mask(state: Any, below: Array, node: Scalar, depth: Scalar, mask: Scalar) -> None:
    """Store in `below` the mask of the documents below each child of a node of this depth."""
    place = np.uint64(node)
    start = np.uint64(state.child_start[place])
    for step in range(np.uint64(state.child_start[place + np.uint64(1)]) - start):
        below[step] = 0
    row, level = np.uint64(0), np.uint64(depth + 1)
    left = mask
    while left:
        if left & 1:
            below[np.uint64(state.path[row, level]) - start] |= 1 << np.int64(row)
        left >>= 1
        row += np.uint64(1)


@inlined
def farthest_from(state: Any, node: Scalar, depth: Scalar, mask: Scalar) -> Scalar:
    """Compute max over x below the node of D(x, S), where the documents of S in the mask lie below it.

    That is the width of the widest node on their paths that has a child without any of them.
    """
    farthest = 0.0
    row = 0
    while mask >> row:
        if (mask >> row) & 1:
            at, level = np.int64(node), depth
            while state.child_start[at] != state.child_start[at + 1]:
                here = documents_below(state, at, level, mask)
                held = 0
                for child in range(state.child_start[at], state.child_start[at + 1]):
                    if documents_below(state, np.int64(child), level + 1, here) != 0:
                        held += 1
                if held < np.int64(state.child_start[at + 1]) - np.int64(state.child_start[at]):
                    farthest = max(farthest, state.width[at])
                    break
                level += 1
                at = np.int64(state.path[row, level])
        row += 1
    return farthest


@inlined
def best_places(value: Array, fan: Scalar, top: Scalar) -> tuple[Scalar, Scalar]:
    """Count the values among the first `fan` that attain the top; return the count and the place of the last."""
    ties = 0
    last: Scalar = np.uint64(0)
    for step in range(np.uint64(fan)):
        best = value[step] == top
        ties += best
        last = step if best else last
    return ties, last


@inlined
def random_best(value: Array, fan: Scalar, top: Scalar, rng: np.random.Generator) -> Scalar:
    """Return the place of a value among the first `fan` that attains the top, uniformly among ties."""
    ties, _ = best_places(value, fan, top)
    skip: Scalar = np.int64(rng.random() * ties) if ties > 1 else np.int64(0)
    chosen = np.uint64(0)
    while value[chosen] != top or skip > 0:
        if value[chosen] == top:
            skip -= 1
        chosen += np.uint64(1)
    return chosen


@inlined
def chance_of_best_place(value: Array, fan: Scalar, top: Scalar, place: Scalar) -> Scalar:
    """Return the probability that `random_best` returns this place."""
    ties, _ = best_places(value, fan, top)
    return 1.0 / np.float64(ties) if value[place] == top else 0.0


def correlation_cap(tree: DocumentTree, node: int, above: Array) -> float:
    """Compute max over x below the node of D(x, S) by its definition; infinite for an empty S."""
    if len(above) == 0:
        return float("inf")
    below = slice(int(tree.shape.first_document[node]), int(tree.shape.end_document[node]))
    nearest = np.min([tree.distances(tree.documents[int(y)])[below] for y in above], axis=0)
    return float(nearest.max())
