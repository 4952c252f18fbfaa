"""Tree networks by brute force: every assignment of bits to nodes, with its probability (Algorithm 1, line by line)."""

from collections.abc import Sequence
from itertools import combinations, permutations, product

Vector = tuple[int, ...]  # relevance of each document
Table = dict[Vector, float]  # probability of each relevance vector


def network_table(
    parents: Sequence[int], root_mean: float, q0: Sequence[float], q1: Sequence[float], leaves: Sequence[int]
) -> Table:
    """The distribution over relevance vectors; `parents[0] == 0` is the root, and parents come before children."""
    table: Table = {}
    for bits in product((0, 1), repeat=len(parents)):
        probability = root_mean if bits[0] else 1 - root_mean
        for node in range(1, len(parents)):
            b = bits[parents[node]]
            mutation = (q0, q1)[b][node]
            probability *= mutation if bits[node] != b else 1 - mutation
        vector = tuple(bits[leaf] for leaf in leaves)
        table[vector] = table.get(vector, 0.0) + probability
    return table


def mix(tables: Sequence[Table], shares: Sequence[float]) -> Table:
    mixed: Table = {}
    for table, share in zip(tables, shares, strict=True):
        for vector, probability in table.items():
            mixed[vector] = mixed.get(vector, 0.0) + share * probability
    return mixed


def skip_probability(table: Table, skipped: Sequence[int]) -> float:
    return sum(p for vector, p in table.items() if not any(vector[x] for x in skipped))


def conditional_mean(table: Table, skipped: Sequence[int], document: int) -> float:
    both = sum(p for vector, p in table.items() if vector[document] and not any(vector[x] for x in skipped))
    return both / skip_probability(table, skipped)


def discorrelation(table: Table, skipped: Sequence[int], x: int, y: int) -> float:
    differ = sum(p for v, p in table.items() if v[x] != v[y] and not any(v[s] for s in skipped))
    return differ / skip_probability(table, skipped)


def worst_greedy(table: Table, documents: int, slots: int) -> float:
    """The satisfaction of the worst greedy ranking: a ranking is greedy if every slot adds as much as any could."""
    worst = 1.0
    for ranking in permutations(range(documents), slots):
        greedy = True
        for slot in range(slots):
            above = list(ranking[:slot])
            left = skip_probability(table, above)
            gains = [left - skip_probability(table, [*above, x]) for x in range(documents)]
            if gains[ranking[slot]] < max(gains) - 1e-12:
                greedy = False
                break
        if greedy:
            worst = min(worst, 1 - skip_probability(table, ranking))
    return worst


def best(table: Table, documents: int, slots: int) -> float:
    return max(1 - skip_probability(table, ranking) for ranking in combinations(range(documents), slots))
