"""What queries lend, word by word: dictionaries, one number at a time."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

Counts = dict[int, tuple[list[float], list[float]]]  # of a node: visits and clicks in each slot


def told(node: list[int], parent: list[int], plays: Any, clicks: Any, rows: int, cap: float) -> Counts:
    """What a learner has to tell: the subtrees with the most clicks, or else visits; parents first among equals."""
    seen = [at for at in range(len(node)) if sum(plays[at]) > 0]
    seen.sort(key=lambda at: (-sum(clicks[at]), -sum(plays[at]), at))
    report: Counts = {}
    for at in seen[:rows]:
        share = min(1.0, cap / sum(plays[at]))
        report[node[at]] = [share * n for n in plays[at]], [share * r for r in clicks[at]]
        assert at == 0 or parent[node[at]] in report
    return report


def worth(reports: list[Counts], depth: list[int], first: float, doubt: float, most: float) -> dict[int, float]:
    """How many visits a pool is worth, by depth."""
    nodes = sorted({u for report in reports for u in report})
    between: dict[int, float] = defaultdict(float)
    luck: dict[int, float] = defaultdict(float)
    for u in nodes:
        each = [(sum(report[u][0]), sum(report[u][1])) for report in reports if u in report]
        n, r = sum(n for n, _ in each), sum(r for _, r in each)
        p = r / n
        if len(each) > 1:
            spread = sum((clicks - visits * p) ** 2 / visits for visits, clicks in each)
            between[depth[u]] += spread - (len(each) - 1) * p * (1 - p)
            luck[depth[u]] += (n - sum(visits**2 for visits, _ in each) / n) * p * (1 - p)
    found, share = {}, first
    for level in range(max(depth[u] for u in nodes) + 1):
        share = (max(between[level], 0) + doubt * share) / (luck[level] + doubt)
        found[level] = min(most, max(0.0, 1 / max(share, 1e-9) - 1))
    return found


def lent(
    levels: list[list[Counts]], depth: list[int], slots: int, borrow: float, first: float, doubt: float, most: float
) -> Counts:
    """What all levels lend together, before it is decided what there is room for."""
    loan: Counts = {}
    reports: list[Counts] = []
    for level in levels:
        if not level:
            continue
        reports += level  # a wider pool holds the narrower ones
        limit = worth(reports, depth, first, doubt, most)
        for u in sorted({u for report in reports for u in report}):
            visits, clicks = loan.setdefault(u, ([0.0] * slots, [0.0] * slots))
            n, r = ([sum(report[u][k][i] for report in reports if u in report) for i in range(slots)] for k in (0, 1))
            for i in range(slots):
                others = sum(n) - n[i]
                share = min(borrow, others) / others if others > 0 else 0.0
                seen, clicked = n[i] + share * others, r[i] + share * (sum(r) - r[i])
                more = min(limit[depth[u]], min(seen, most) - visits[i])
                if seen > 0 and more > 0:
                    visits[i] += more
                    clicks[i] += more * clicked / seen
    return loan
