"""Draw a random document of a subtree: uniformly at each branch, as in the paper, not uniformly over documents.

One random number serves a whole walk down: at a branch with m children, `r · m` picks one by its integer part and its
fraction is as random as r was. A fresh number is drawn before its bits run out.
"""

from typing import Any, NamedTuple

import numpy as np

from zoomrank.compiled import Scalar, inlined
from zoomrank.numbers import Array
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.trees.shape import node_depths

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
    eligible: Array  # number of eligible documents before each (see `Eligible`); empty if all are
    even: bool  # all children of a node have equally many documents: uniform per branch is uniform over all


def view_of(tree: DocumentTree) -> TreeView:
    """Return the arrays of a tree for learners."""
    shape = tree.shape
    size = shape.end_document - shape.first_document
    fan = np.diff(shape.child_start)
    above = shape.parent[1:]
    even = bool((size[1:].astype(np.int64) * fan[above] == size[above]).all())
    depth = node_depths(shape.parent)[shape.leaf].astype(np.uint16)
    return TreeView(*shape, tree.width, depth, np.zeros(0, np.uint32), even)


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
