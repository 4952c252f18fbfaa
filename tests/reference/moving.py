"""Learners that move to another tree, literally: what each subtree has of its own is counted again where it goes."""

import math
from typing import Any

import numpy as np

from tests.reference.learners import LoanZooming, PathZooming, Visits
from zoomrank.spaces import Remap


def told(visits: Visits) -> list[int]:
    """All subtrees that are told apart from others, in the order in which they were."""
    return [0] + [child for u in visits.apart for child in visits.tree.children[u]]


def move(old: Visits, new: Visits, movement: Remap) -> None:
    """Fill a learner that is fresh with what another has learned on another tree."""
    node = {u: int(movement.node[u]) for u in told(old)}
    apart: set[int] = set()
    n, r = leave_behind(old, new, movement)
    for u in told(old):
        path = new.tree.path(node[u])
        some = False
        for i in range(old.slots):
            plays, clicks = (table[u, i] - sum(table[child, i] for child in old.children(u)) for table in (n, r))
            some = some or plays > 0
            for w in path:
                new.n[w, i] += plays
                new.r[w, i] += clicks
        if u in old.apart and new.tree.children[path[0]]:
            apart |= set(path)
        if some:
            apart |= set(path[1:])
    new.apart = dict.fromkeys(sorted(apart))
    origin = {node[u]: u for u in told(old) if movement.stays[u]}
    for w in told(new):
        remember(old, new, movement, w, [u for u in told(old) if node[u] == w])
    if isinstance(old, LoanZooming) and isinstance(new, LoanZooming):
        move_loan(old, new, origin)
    if isinstance(old, PathZooming) and isinstance(new, PathZooming):
        move_bounds(old, new, origin)


def leave_behind(old: Visits, new: Visits, movement: Remap) -> tuple[dict[Any, int], dict[Any, int]]:
    """Visits and clicks as they will be moved: a document that leaves a category which stays takes 30 visits along."""
    n, r = dict(old.n), dict(old.r)
    for u in told(old)[1:]:
        category = old.tree.parent[u]
        stays = movement.stays[u] and movement.stays[category]
        leaves = stays and int(movement.node[category]) not in new.tree.path(int(movement.node[u]))
        if not old.tree.children[u] and leaves and old.total(u) > 30:
            for i in range(old.slots):
                n[u, i] = old.n[u, i] * 30 // old.total(u)
                r[u, i] = (2 * old.r[u, i] * n[u, i] + old.n[u, i]) // max(2 * old.n[u, i], 1)
    return n, r


def remember(old: Visits, new: Visits, movement: Remap, w: int, those: list[int]) -> None:
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
    """Where visits have come or gone, or what is around is something else; and what is new below, parents first."""
    found: list[int] = []
    for w in told(new):
        if w not in origin:
            if new.total(w) or new.tree.parent[w] in found:
                found.append(w)
        else:
            u = origin[w]
            elsewhere = w > 0 and origin.get(new.tree.parent[w]) != old.tree.parent[u]
            if elsewhere or any((new.n[w, i], new.r[w, i]) != (old.n[u, i], old.r[u, i]) for i in range(old.slots)):
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
