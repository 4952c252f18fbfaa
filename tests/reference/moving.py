"""Learners that move to another tree, literally: what each subtree has of its own is counted again where it goes."""

import math

import numpy as np

from tests.reference.learners import LoanZooming, PathZooming, Visits
from zoomrank.spaces import Movement


def told(visits: Visits) -> list[int]:
    """All subtrees that are told apart from others, in the order in which they were."""
    return [0] + [child for u in visits.apart for child in visits.tree.children[u]]


def move(old: Visits, new: Visits, movement: Movement) -> None:
    """Fill a learner that is fresh with what another has learned on another tree."""
    node = {u: int(movement.node[u]) for u in told(old)}
    apart: set[int] = set()
    for u in told(old):
        path = new.tree.path(node[u])
        own = {
            (counts, i): table[u, i] - sum(table[child, i] for child in old.children(u))
            for counts, table in (("n", old.n), ("r", old.r))
            for i in range(old.slots)
        }
        for w in path:
            for i in range(old.slots):
                new.n[w, i] += own["n", i]
                new.r[w, i] += own["r", i]
        if u in old.apart and new.tree.children[path[0]]:
            apart |= set(path)
        if any(own["n", i] for i in range(old.slots)):
            apart |= set(path[1:])
    new.apart = dict.fromkeys(sorted(apart))
    origin = {node[u]: u for u in told(old) if movement.stays[u]}
    for w in told(new):
        remember(old, new, movement, w, [u for u in told(old) if node[u] == w])
    if isinstance(old, LoanZooming) and isinstance(new, LoanZooming):
        move_loan(old, new, origin)
    if isinstance(old, PathZooming) and isinstance(new, PathZooming):
        move_bounds(old, new, origin)


def remember(old: Visits, new: Visits, movement: Movement, w: int, those: list[int]) -> None:
    """The document that a subtree remembers, of one who was it or has become part of it."""
    found = []
    for u in those:
        if u in old.last and bool(old.gains(u)) == bool(new.gains(w)):
            document, slot, reward = old.last[u]
            place = int(movement.document[document])
            if place in new.tree.below(w):
                found.append((not movement.stays[u], (place, slot, reward)))
    if found:
        new.last[w] = min(found, key=lambda one: one[0])[1]


def looked_at_anew(old: Visits, new: Visits, origin: dict[int, int]) -> list[int]:
    """Where visits have come or gone; and what is new below that, parents first."""
    found: list[int] = []
    for w in told(new):
        if w not in origin:
            if new.total(w) or new.tree.parent[w] in found:
                found.append(w)
        elif any((new.n[w, i], new.r[w, i]) != (old.n[origin[w], i], old.r[origin[w], i]) for i in range(old.slots)):
            found.append(w)
    return found


def move_loan(old: LoanZooming, new: LoanZooming, origin: dict[int, int]) -> None:
    new.credit, new.habit = old.credit, old.habit
    for w in told(new):
        if w in origin:
            u = origin[w]
            new.score[w], new.weight[w], new.faith[w] = old.score[u], old.weight[u], old.faith[u]
            for i in range(old.slots):
                new.lent[w, i] = old.lent[u, i]
    for w in looked_at_anew(old, new, origin):
        if w not in origin:
            new.weight[w] = float(np.float32(new.weigh(w)))
            new.faith[w] = float(np.float32(1 / (1 + math.exp(-new.weigh(w)))))


def move_bounds(old: PathZooming, new: PathZooming, origin: dict[int, int]) -> None:
    anew = looked_at_anew(old, new, origin)
    for w in told(new):
        if w in origin and w not in anew:
            new.due[w] = old.due[origin[w]]
            for i in range(old.slots):
                for table in ("known", "mean", "want"):
                    getattr(new, table)[w, i] = getattr(old, table)[origin[w], i]
    for w in anew:
        new.due[w] = new.total(w) + new.total(w) // 8 + 1
        for i in range(old.slots):
            new.look_again(w, i)
            new.want[w, i] = float(np.float32(new.in_want(w, i)))
