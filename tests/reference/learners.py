"""The paper's algorithms, line by line, in plain dicts and lists. Slow, and importing nothing from the learners.

A tree is its lists of children; nodes are numbered as in the collection under test, so that "the j-th child" means
the same.
"""

import math
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

import numpy as np

from tests.reference.every_outcome import every_outcome
from tests.reference.largest_draw import Draw, of_largest


class Tree:
    def __init__(self, parents: list[int], width: list[float], leaves: list[int]) -> None:
        self.parent, self.width, self.leaves = parents, width, leaves
        self.children: list[list[int]] = [[] for _ in parents]
        for node in range(1, len(parents)):
            self.children[parents[node]].append(node)
        self.document = {leaf: i for i, leaf in enumerate(leaves)}
        self.depth = [len(self.path(node)) - 1 for node in range(len(parents))]
        self.ineligible: set[int] = set()

    def path(self, node: int) -> list[int]:
        """From the node up to the root."""
        path = [node]
        while path[-1] != 0:
            path.append(self.parent[path[-1]])
        return path

    def below(self, node: int) -> list[int]:
        if not self.children[node]:
            return [self.document[node]]
        return [x for child in self.children[node] for x in self.below(child)]

    def eligible(self, node: int) -> bool:
        return bool(set(self.below(node)) - self.ineligible)

    def distance(self, x: int, y: int) -> float:
        theirs = set(self.path(self.leaves[y]))
        return self.width[next(node for node in self.path(self.leaves[x]) if node in theirs)]

    def ancestor(self, document: int, depth: int) -> int:
        """The node above a document at this depth; the document itself if it lies higher."""
        path = self.path(self.leaves[document])[::-1]
        return path[min(depth, len(path) - 1)]

    def draw(self, node: int, shown: list[int], rng: np.random.Generator) -> int | None:
        """Uniformly at each branch among children that have something left; one random number while its bits last."""
        out = set(shown) | self.ineligible
        if not set(self.below(node)) - out:
            return None
        r, spent = rng.random(), 1.0
        while self.children[node]:
            free = [child for child in self.children[node] if set(self.below(child)) - out]
            step = 0
            if len(free) > 1:
                if spent * len(free) > 2.0**40:
                    r, spent = rng.random(), 1.0
                spent *= len(free)
                step = int(r * len(free))
                r = r * len(free) - step
            node = free[step]
        return self.document[node]


def one_of(values: list[float], rng: np.random.Generator) -> int:
    """The position of the largest value, uniformly among those that attain it."""
    tied = [i for i, value in enumerate(values) if value == max(values)]
    return tied[int(rng.random() * len(tied))] if len(tied) > 1 else tied[0]


class Learner(Protocol):
    def select(self, above: list[int], rng: np.random.Generator) -> tuple[int, float]:
        """A node to draw from, and the probability of that choice."""

    def update(self, pick: int, above: list[int], chance: float, reward: int) -> None: ...


class Zooming:
    """Algorithm 3."""

    def __init__(self, tree: Tree, constant: float, correlated: bool = False) -> None:
        self.tree, self.constant, self.correlated = tree, constant, correlated
        self.active = {0}
        self.n, self.r = {0: 0}, {0: 0}

    def radius(self, u: int) -> float:
        return math.sqrt(self.constant / (1 + self.n[u]))

    def index(self, u: int) -> float:
        mean = self.r[u] / self.n[u] if self.n[u] else 0.0
        return mean + 2 * self.radius(u)

    def cap(self, u: int, above: list[int]) -> float:
        """The correlation rule: max over x in u of D(x, S)."""
        if not self.correlated or not above:
            return math.inf
        return max(min(self.tree.distance(x, y) for y in above) for x in self.tree.below(u))

    def value(self, u: int, above: list[int]) -> float:
        if u in self.active:
            return min(self.index(u), self.cap(u, above))
        return max(self.value(child, above) for child in self.tree.children[u])

    def select(self, above: list[int], rng: np.random.Generator) -> tuple[int, float]:
        u = 0
        while u not in self.active:
            children = self.tree.children[u]
            u = children[one_of([self.value(child, above) for child in children], rng)]
        return u, 1.0

    def update(self, pick: int, above: list[int], chance: float, reward: int) -> None:
        u = next(node for node in self.tree.path(self.tree.leaves[pick]) if node in self.active)
        self.n[u] += 1
        self.r[u] += reward
        if self.radius(u) < self.tree.width[u]:
            self.active.remove(u)
            for child in self.tree.children[u]:
                self.active.add(child)
                self.n[child] = self.r[child] = 0


class ContextualZooming:
    """Algorithm 4, with context nodes as sorted tuples; without a context it is Algorithm 3."""

    def __init__(self, tree: Tree, constant: float, scale: float) -> None:
        self.tree, self.constant, self.scale = tree, constant, scale
        self.plain = Zooming(tree, constant)
        self.refined: set[Any] = set()
        self.n: dict[Any, int] = {}
        self.r: dict[Any, int] = {}

    def key(self, u: int, level: int, above: list[int]) -> Any:
        return u, level, tuple(sorted(self.tree.ancestor(y, level) for y in above))

    def width(self, key: Any) -> float:
        u, _, context = key
        return float(self.scale * (self.tree.width[u] + 4 * sum(self.tree.width[v] for v in context)))

    def radius(self, key: Any) -> float:
        return math.sqrt(self.constant / (1 + self.n.get(key, 0)))

    def index(self, key: Any) -> float:
        n = self.n.get(key, 0)
        return self.width(key) + (self.r[key] / n if n else 0.0) + self.radius(key)

    def children(self, u: int) -> list[int]:
        return self.tree.children[u] or [u]

    def value(self, u: int, level: int, above: list[int]) -> float:
        key = self.key(u, level, above)
        if key not in self.refined:
            cap = max(min(self.tree.distance(x, y) for y in above) for x in self.tree.below(u))
            return min(self.index(key), cap)
        return max(self.value(child, level + 1, above) for child in self.children(u))

    def select(self, above: list[int], rng: np.random.Generator) -> tuple[int, float]:
        if not above:
            return self.plain.select(above, rng)
        u, level = 0, 0
        while self.key(u, level, above) in self.refined:
            children = self.children(u)
            u = children[one_of([self.value(child, level + 1, above) for child in children], rng)]
            level += 1
        return u, 1.0

    def update(self, pick: int, above: list[int], chance: float, reward: int) -> None:
        if not above:
            self.plain.update(pick, above, chance, reward)
            return
        level = 0
        while self.key(self.tree.ancestor(pick, level), level, above) in self.refined:
            level += 1
        key = self.key(self.tree.ancestor(pick, level), level, above)
        self.n[key] = self.n.get(key, 0) + 1
        self.r[key] = self.r.get(key, 0) + reward
        if self.radius(key) < self.width(key):
            self.refined.add(key)


class UCB1:
    def __init__(self, nodes: list[int], tree: Tree, constant: float) -> None:
        self.nodes, self.tree, self.constant = nodes, tree, constant
        self.n, self.r = [0] * len(nodes), [0] * len(nodes)

    def index(self, arm: int) -> float:
        mean = self.r[arm] / self.n[arm] if self.n[arm] else 0.0
        return mean + 2 * math.sqrt(self.constant / (1 + self.n[arm]))

    def select(self, above: list[int], rng: np.random.Generator) -> tuple[int, float]:
        return self.nodes[one_of([self.index(arm) for arm in range(len(self.nodes))], rng)], 1.0

    def update(self, pick: int, above: list[int], chance: float, reward: int) -> None:
        path = self.tree.path(self.tree.leaves[pick])
        arm = next(i for i, node in enumerate(self.nodes) if node in path)
        self.n[arm] += 1
        self.r[arm] += reward


class KLUCB:
    """KL-UCB over documents; time is read off a clock that is looked at when it has grown by an eighth."""

    def __init__(self, tree: Tree, constant: float) -> None:
        self.tree, self.constant = tree, constant
        self.n, self.r = [0] * len(tree.leaves), [0] * len(tree.leaves)
        self.t, self.seen, self.due = 0, 1, 1

    def index(self, x: int) -> float:
        if self.n[x] == 0:
            return math.inf
        p = self.r[x] / self.n[x]
        budget = self.constant * (math.log(self.seen) + 3 * math.log(max(math.log(self.seen), 1)))
        low, high = p, 1.0
        for _ in range(40):
            q = (low + high) / 2
            kl = math.inf if q == 1 else sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)
            low, high = (q, high) if self.n[x] * kl <= budget else (low, q)
        return low

    def select(self, above: list[int], rng: np.random.Generator) -> tuple[int, float]:
        return self.tree.leaves[one_of([self.index(x) for x in range(len(self.n))], rng)], 1.0

    def update(self, pick: int, above: list[int], chance: float, reward: int) -> None:
        self.t += 1
        if self.t >= self.due:
            self.seen, self.due = self.t, self.t + self.t // 8 + 1
        self.n[pick] += 1
        self.r[pick] += reward


class CascadeKLUCB:
    """Slot i shows the i-th best; all slots are one learner."""

    def __init__(self, shared: KLUCB, slot: int) -> None:
        self.shared, self.slot = shared, slot

    def select(self, above: list[int], rng: np.random.Generator) -> tuple[int, float]:
        values = [-1.0 if x in above else self.shared.index(x) for x in range(len(self.shared.n))]
        return self.shared.tree.leaves[one_of(values, rng)], 1.0

    def update(self, pick: int, above: list[int], chance: float, reward: int) -> None:
        time = self.shared.t, self.shared.seen, self.shared.due
        self.shared.update(pick, above, chance, reward)
        if self.slot > 0:
            self.shared.t, self.shared.seen, self.shared.due = time


class Visits:
    """Counts of all slots along paths. A node's children are told apart at the first visit after a click, or after
    `patience` visits, or as many as it has documents if those are fewer; one visit tells the children of one node apart
    at most. The clicked document, or else the last one, is remembered until then, and its visit is the only one that a
    child inherits.
    """

    def __init__(self, tree: Tree, slots: int, patience: int) -> None:
        self.tree, self.slots, self.patience = tree, slots, patience
        self.n, self.r = ({(u, i): 0 for u in range(len(tree.parent)) for i in range(slots)} for _ in range(2))
        self.apart: dict[int, None] = {}  # in the order in which they were told apart
        self.last: dict[int, tuple[int, int, int]] = {}

    def total(self, u: int) -> int:
        return sum(self.n[u, i] for i in range(self.slots))

    def gains(self, u: int) -> int:
        return sum(self.r[u, i] for i in range(self.slots))

    def children(self, u: int) -> list[int]:
        return self.tree.children[u] if u in self.apart else []

    def holder(self, u: int, document: int) -> int:
        return next(child for child in self.tree.children[u] if document in self.tree.below(child))

    def count(self, u: int, i: int, reward: int) -> None:
        self.n[u, i] += 1
        self.r[u, i] += reward

    def visit(self, i: int, pick: int, reward: int) -> list[int]:
        """Count a visit; returns the path from the smallest subtree that is told apart up to the root."""
        path = [0]
        settled = False
        while True:
            u = path[-1]
            ripe = self.gains(u) > 0 or self.total(u) >= min(self.patience, len(self.tree.below(u)))
            if ripe and not settled and u not in self.apart and self.tree.children[u]:
                self.apart[u] = None
                settled = True
                if u in self.last:  # it is not if the document is gone
                    heir = self.holder(u, self.last[u][0])
                    self.last[heir] = self.last[u]
                    self.count(heir, *self.last[u][1:])
            self.count(u, i, reward)
            if u not in self.apart:
                if reward or not self.gains(u):
                    self.last[u] = (pick, i, reward)
                return path[::-1]
            path.append(self.holder(u, pick))


class TreeThompson:
    """Beta beliefs about the children of a node once they are told apart; the best draw, capped, leads down."""

    def __init__(self, visits: Visits, slot: int, prior: float = 1.0, correlated: bool = True) -> None:
        self.tree, self.visits, self.slot = visits.tree, visits, slot
        self.prior, self.correlated = prior, correlated

    def cap(self, u: int, above: list[int]) -> float:
        if not above or not self.correlated:
            return math.inf
        return max(min(self.tree.distance(x, y) for y in above) for x in self.tree.below(u))

    def draw(self, u: int, above: list[int], rng: np.random.Generator) -> float:
        if not self.tree.eligible(u):
            return -1.0
        plays, clicks = self.visits.n[u, self.slot], self.visits.r[u, self.slot]
        return min(float(rng.beta(self.prior + clicks, 1 + plays - clicks)), self.cap(u, above))

    def select(self, above: list[int], rng: np.random.Generator) -> tuple[int, float]:
        u = 0
        while self.visits.children(u):
            children = self.visits.children(u)
            u = children[one_of([self.draw(child, above, rng) for child in children], rng)]
        return u, 1.0

    def odds(self, above: list[int]) -> dict[int, float]:
        """How likely each strategy is, by integrals over what is drawn at each branch."""
        found, ahead = dict[int, float](), [(0, 1.0)]
        while ahead:
            u, chance = ahead.pop()
            children = [child for child in self.visits.children(u) if self.tree.eligible(child)]
            draws = [self.believed(child, above) for child in children]
            ahead += [(child, chance * of_largest(draws, at)) for at, child in enumerate(children)]
            if not children:
                found[u] = chance
        return found

    def believed(self, u: int, above: list[int]) -> Draw:
        plays, clicks = self.visits.n[u, self.slot], self.visits.r[u, self.slot]
        return Draw(self.prior + clicks, 1 + plays - clicks, self.cap(u, above))

    def update(self, pick: int, above: list[int], chance: float, reward: int) -> None:
        self.visits.visit(self.slot, pick, reward)


class ExploreThenCommit:
    """Every document `looks` times, in passes of random order, once the slot above has committed; then the first one
    that had as many clicks as any.
    """

    def __init__(self, tree: Tree, looks: int, above: "ExploreThenCommit | None") -> None:
        self.tree, self.looks, self.above = tree, looks, above
        self.waiting, self.done = list(range(len(tree.leaves))), list[int]()
        self.n, self.r = [0] * len(tree.leaves), [0] * len(tree.leaves)
        self.leader: int | None = None

    def has_committed(self) -> bool:
        return min(self.n) == self.looks

    def has_begun(self) -> bool:
        return self.above is None or self.above.has_committed()

    def select(self, above: list[int], rng: np.random.Generator) -> tuple[int, float]:
        if not self.has_begun():
            return self.tree.leaves[int(rng.random() * len(self.n))], 1 / len(self.n)
        if self.has_committed():
            assert self.leader is not None
            return self.tree.leaves[self.leader], 1.0
        return self.tree.leaves[self.waiting[int(rng.random() * len(self.waiting))]], 1.0

    def update(self, pick: int, above: list[int], chance: float, reward: int) -> None:
        if chance < 1 or not self.has_begun() or self.has_committed() or pick not in self.waiting:
            return
        self.n[pick] += 1
        self.r[pick] += reward
        if self.leader is None or self.r[pick] > self.r[self.leader]:
            self.leader = pick
        self.waiting[self.waiting.index(pick)] = self.waiting[0]
        self.waiting = self.waiting[1:]
        self.done.append(pick)
        if not self.waiting:
            self.waiting, self.done = self.done, []


class EXP3:
    def __init__(self, nodes: list[int], tree: Tree, horizon: float) -> None:
        self.nodes, self.tree = nodes, tree
        arms = len(nodes)
        self.gamma = min(1.0, math.sqrt(arms * math.log(arms) / ((math.e - 1) * horizon)))
        self.w = [1.0] * arms

    def select(self, above: list[int], rng: np.random.Generator) -> tuple[int, float]:
        r = rng.random()
        arms, total = len(self.w), sum(self.w)
        if r < self.gamma:
            arm = int(r / self.gamma * arms)
        else:
            target = (r - self.gamma) / (1 - self.gamma) * total
            arm = 0
            while arm < arms - 1 and target >= self.w[arm]:
                target -= self.w[arm]
                arm += 1
        return self.nodes[arm], (1 - self.gamma) * self.w[arm] / total + self.gamma / arms

    def update(self, pick: int, above: list[int], chance: float, reward: int) -> None:
        path = self.tree.path(self.tree.leaves[pick])
        arm = next(i for i, node in enumerate(self.nodes) if node in path)
        self.w[arm] *= math.exp(self.gamma * reward / (chance * len(self.w)))


class Grid:
    """Phase i: the subtrees of depth i as arms, for (their number) / W^2 rounds; the last phase for ever. Those who
    replay show each new bandit everything that was ever seen.
    """

    def __init__(
        self,
        tree: Tree,
        kind: str,
        constant: float = 1.0,
        start: int = 0,
        stretch: float = 1.0,
        replay: bool = False,
    ) -> None:
        self.tree, self.kind, self.constant = tree, kind, constant
        self.stretch, self.replay = stretch, replay
        self.seen: list[tuple[int, int]] = []
        self.begin(min(start, max(tree.depth)))

    def begin(self, depth: int) -> None:
        self.depth = depth
        nodes = [u for u in range(len(self.tree.parent)) if self.tree.depth[u] == depth]
        widest = max(self.tree.width[u] for u in nodes)
        scale = widest or max(
            self.tree.width[u] for u in range(len(self.tree.parent)) if self.tree.depth[u] == max(depth - 1, 0)
        )
        nodes += [u for u in sorted(self.tree.leaves) if self.tree.depth[u] < depth]
        nominal = math.ceil(self.stretch * (len(nodes) / scale**2 if scale else len(nodes)))
        last = widest == 0 or depth == max(self.tree.depth)
        self.left = math.inf if last else nominal
        if self.kind == "UCB1":
            self.bandit: Learner = UCB1(nodes, self.tree, self.constant)
        else:
            self.bandit = EXP3(nodes, self.tree, nominal)
        for pick, reward in self.seen if self.replay else []:
            self.bandit.update(pick, [], 1.0, reward)

    def select(self, above: list[int], rng: np.random.Generator) -> tuple[int, float]:
        return self.bandit.select(above, rng)

    def update(self, pick: int, above: list[int], chance: float, reward: int) -> None:
        self.bandit.update(pick, above, chance, reward)
        self.seen.append((pick, reward))
        self.left -= 1
        if self.left == 0:
            self.begin(self.depth + 1)


class Anytime:
    """Phase i: a fresh learner for 2^i rounds."""

    def __init__(self, make: Any) -> None:
        self.make, self.phase, self.left = make, 0, 1
        self.bandit: Learner = make(1)

    def select(self, above: list[int], rng: np.random.Generator) -> tuple[int, float]:
        return self.bandit.select(above, rng)

    def update(self, pick: int, above: list[int], chance: float, reward: int) -> None:
        self.bandit.update(pick, above, chance, reward)
        self.left -= 1
        if self.left == 0:
            self.phase += 1
            self.left = 2**self.phase
            self.bandit = self.make(self.left)


class Ranked:
    """One learner per slot; slots below the click are left alone."""

    def __init__(self, tree: Tree, learners: list[Learner], duplicates: bool, seed: int) -> None:
        self.tree, self.learners, self.duplicates = tree, learners, duplicates
        self.rng = np.random.default_rng(seed)

    def choose(self, slot: int, shown: list[int], rng: np.random.Generator) -> tuple[int, int, float, int]:
        """The document of a slot, the one that its learner picked, the chance of that choice, and the node."""
        node, chance = self.learners[slot].select(shown, rng)
        document, pick = self.drawn(node, shown, rng)
        return document, pick, chance, node

    def drawn(self, node: int, shown: list[int], rng: np.random.Generator) -> tuple[int, int]:
        """The document of a slot whose learner chose a node, and the one that it picked."""
        document = self.tree.draw(node, [] if self.duplicates else shown, rng)
        pick = self.tree.below(node)[0] if document is None else document
        if document is None:
            document = self.tree.draw(0, shown, rng)
        assert document is not None
        return document, pick

    def rank(self) -> tuple[list[int], list[int], list[float]]:
        shown: list[int] = []
        picks: list[int] = []
        chances: list[float] = []
        for slot in range(len(self.learners)):
            document, pick, chance, _ = self.choose(slot, shown, self.rng)
            shown.append(document)
            picks.append(pick)
            chances.append(chance)
        return shown, picks, chances

    def odds(self, slot: int, shown: list[int]) -> dict[int, Fraction]:
        """How likely each document is in a slot, given those above."""
        learner = self.learners[slot]
        if not isinstance(learner, TreeThompson):
            return every_outcome(lambda rng: self.choose(slot, shown, rng)[0])
        found: dict[int, Fraction] = {}
        for node, chance in learner.odds(shown).items():  # whose draws have too many outcomes
            for document, more in every_outcome(partial(self._document, node, shown)).items():
                found[document] = found.get(document, Fraction(0)) + Fraction(chance) * more
        return found

    def _document(self, node: int, shown: list[int], rng: np.random.Generator) -> int:
        return self.drawn(node, shown, rng)[0]

    def learn(self, shown: list[int], picks: list[int], chances: list[float], click: int) -> None:
        for slot, learner in enumerate(self.learners[: click + 1]):
            if picks[slot] < 0:  # it is gone
                continue
            reward = int(slot == click and picks[slot] == shown[slot])
            learner.update(picks[slot], shown[:slot], chances[slot], reward)


class PathZooming(Visits):
    """All slots of ZoomRank at once."""

    def __init__(
        self,
        tree: Tree,
        slots: int,
        confidence: float = 0.25,
        growth: float = 2.0,
        optimism: float = 0.125,
        borrow: float = 30.0,
        prior: float = 4.0,
        correlated: bool = True,
        patience: int = 1,
    ) -> None:
        super().__init__(tree, slots, patience)
        self.prior = prior
        self.passed_down = 0
        self.confidence, self.growth, self.optimism, self.borrow = confidence, growth, optimism, borrow
        self.correlated = correlated
        nodes = range(len(tree.parent))
        self.known = {(u, i): math.inf for u in nodes for i in range(slots)}  # I(u), when last looked at
        self.mean = dict.fromkeys(self.known, -1.0)  # of a single document, when last looked at
        self.want = dict.fromkeys(self.known, 0.0)  # of visits, as passed down to the children
        self.due = dict.fromkeys(nodes, 0)

    def own(self, above: list[int]) -> tuple[int, ...]:
        """The leaves of the documents above that are told apart from all others."""
        leaves = dict.fromkeys(self.tree.leaves[x] for x in above)
        return tuple(leaf for leaf in leaves if self.tree.parent[leaf] in self.apart)

    def evidence(self, u: int, i: int, without: tuple[int, ...] = (), share: float = 1.0) -> tuple[float, float]:
        """Own visits and clicks, and those of other slots, but at most `borrow` of them, and a share of their clicks;
        without the visits of some leaves.
        """
        plays, clicks = (float(c[u, i] - sum(c[x, i] for x in without)) for c in (self.n, self.r))
        total, gains = (float(c(u) - sum(map(c, without))) for c in (self.total, self.gains))
        others = total - plays
        if others > 0:
            lent = min(self.borrow, others)
            clicks += share * lent * (gains - clicks) / others
            plays += lent
        return plays, clicks

    def evidence_given(self, u: int, i: int, above: list[int]) -> tuple[float, float]:
        """What counts below skipped documents: theirs does not, but each is `prior` visits without a click; and what
        other slots lend is mostly about the same visitors, unless at the top.
        """
        held = [x for x in above if x in self.tree.below(u)]
        near = bool(held) and u != 0
        if u != 0 and not held:
            near = self.tree.parent[u] != 0
        plays, clicks = self.evidence(u, i, self.own(held), 0.1 if near else 1.0)
        return plays + self.prior * len(held), clicks

    @staticmethod
    def log(visits: float) -> float:
        """Of a number with few digits."""
        digits, doublings = int(visits), 0.0
        while digits >= 4096:
            digits, doublings = digits // 16, doublings + 4
        return float(np.log(max(digits, 1))) + math.log(2) * doublings

    def believed(self, u: int, i: int, above: list[int] | None = None) -> tuple[float, float]:
        """The evidence, and `prior` visits that went as the parent's did; given what is above, if that matters."""
        find = self.evidence if above is None else partial(self.evidence_given, above=above)
        plays, clicks = find(u, i)
        if u != 0:
            around, gained = find(self.tree.parent[u], i)
            plays += self.prior
            clicks += self.prior * gained / max(around, 1)
        return plays, clicks

    @staticmethod
    def upper(mean: float, plays: float, c: float) -> float:
        a, mean = c / plays, min(mean, 1.0)
        return (mean + a + math.sqrt(a * a + 2 * mean * (1 - mean) * a)) / (1 + 2 * a)

    def in_want(self, u: int, i: int, above: list[int] | None = None) -> float:
        """How much it is in want of visits, by itself and with its parent."""
        plays, _ = self.believed(u, i, above)
        if plays < 1:
            return 0.0
        parent = self.tree.parent[u] if u else 0
        around, _ = self.evidence(parent, i) if above is None else self.evidence_given(parent, i, above)
        share = float(np.float32(np.log(2 * len(self.tree.below(u)) / len(self.tree.below(parent)))))
        shared = max(0.0, self.want[parent, i] - math.log(4)) if u else 0.0
        return max(0.0, self.log(around) - self.log(plays) + share + shared)

    def index(self, u: int, i: int, above: list[int] | None = None) -> float:
        plays, clicks = self.believed(u, i, above)
        if plays < 1:
            return math.inf
        new = 300 / (self.n[0, i] + 1 + 300)
        c = self.confidence * ((i + 1) / self.slots) * (1 + self.growth * (1 - new) * self.in_want(u, i, above))
        best_of = math.sqrt(float(np.log(len(self.tree.below(u)))) / float(np.log(2**15)))
        spread = float(np.float32(self.tree.width[u] * best_of))
        return (self.upper(clicks / plays, plays, c) + self.optimism * spread) * (1 - 0.05 * new)

    def near(self, u: int, above: list[int]) -> bool:
        """Whether it, or else its parent, holds a document above."""
        around = self.tree.below(self.tree.parent[u] if u else 0)
        return self.correlated and any(x in around for x in above)

    def hope(self, u: int, i: int, above: list[int]) -> float:
        """What is known, and not more than what is above allows."""
        return min(self.known[u, i], self.index(u, i, above)) if self.near(u, above) else self.known[u, i]

    def seen(self, u: int, i: int, above: list[int]) -> float:
        """The mean of a single document, and not more than what is above allows."""
        mean = self.mean[u, i]
        if mean >= 0 and self.near(u, above) and not set(above) & set(self.tree.below(u)):
            plays, clicks = self.believed(u, i, above)
            mean = min(mean, clicks / plays)
        return mean

    def look_again(self, u: int, i: int) -> None:
        self.known[u, i] = float(np.float32(self.index(u, i)))
        plays, clicks = self.believed(u, i)
        if not self.tree.children[u]:
            self.mean[u, i] = float(np.float32(clicks / plays)) if plays >= 1 else -1.0

    def pass_down(self, u: int, i: int) -> None:
        """All within a subtree share its want."""
        self.passed_down += 1
        self.want[u, i] = float(np.float32(self.in_want(u, i)))
        for child in self.children(u):
            self.look_again(child, i)
            self.pass_down(child, i)

    def look_below(self, u: int, i: int) -> None:
        for child in self.children(u):
            self.look_again(child, i)
            want, passed = self.in_want(child, i), self.want[child, i]
            if abs(want - passed) >= 1 and max(want, passed) > math.log(4):
                self.pass_down(child, i)

    def cap(self, u: int, above: list[int]) -> float:
        if not above or not self.correlated:
            return math.inf
        return max(min(self.tree.distance(x, y) for y in above) for x in self.tree.below(u))

    def record(self, u: int, i: int, above: list[int]) -> float:
        """The best mean, under the cap, of an eligible document that is told apart; -1 if there is none below."""
        if self.children(u):
            return max(self.record(child, i, above) for child in self.children(u))
        return min(self.seen(u, i, above), self.cap(u, above)) if self.tree.eligible(u) else -1.0

    def value(self, u: int, i: int, above: list[int]) -> float:
        """The best document below: by its record, or the worst of what it, its ancestors from u on, the cap allow."""
        if not self.tree.eligible(u):
            return -1.0
        below = [self.value(child, i, above) for child in self.children(u)]
        hope = min(self.hope(u, i, above), max(below) if below else self.cap(u, above))
        return max(self.record(u, i, above), hope)

    def select(self, i: int, above: list[int], rng: np.random.Generator) -> tuple[int, float]:
        u = 0
        while self.children(u):
            settled = self.record(u, i, above) == self.value(u, i, above)
            by = self.record if settled else self.value
            u = self.children(u)[one_of([by(child, i, above) for child in self.children(u)], rng)]
        return u, 1.0

    def update(self, i: int, pick: int, reward: int) -> None:
        for u in self.visit(i, pick, reward):  # from the smallest up
            if self.total(u) >= self.due[u]:
                self.due[u] = self.total(u) + self.total(u) // 8 + 1
                for slot in range(self.slots):
                    self.look_again(u, slot)
                    self.want[u, slot] = float(np.float32(self.in_want(u, slot)))
                    self.look_below(u, slot)

    def each(self) -> list[Learner]:
        """One face per slot."""
        return [PathSlot(self, i) for i in range(self.slots)]


class LoanZooming(PathZooming):
    """All slots of a query's ZoomRank, with a loan that is believed as far as it has predicted answers."""

    def __init__(self, tree: Tree, slots: int, **how: Any) -> None:
        super().__init__(tree, slots, **how)
        self.credit, self.habit, self.reconsidered = 0.0, 0.0, 0
        self.doubt = max(self.prior, 1.0)
        self.lent = {(u, i): (0.0, 0.0) for u in range(len(tree.parent)) for i in range(slots)}
        self.score, self.weight = (dict.fromkeys(range(len(tree.parent)), 0.0) for _ in range(2))
        self.faith = dict.fromkeys(range(len(tree.parent)), 0.0)

    def evidence(self, u: int, i: int, without: tuple[int, ...] = (), share: float = 1.0) -> tuple[float, float]:
        plays, clicks = super().evidence(u, i, without, share)
        visits, clicked = self.lent[u, i]
        for x in without:
            visits, clicked = visits - self.lent[x, i][0], clicked - self.lent[x, i][1]
        return plays + self.faith[u] * max(visits, 0.0), clicks + self.faith[u] * max(clicked, 0.0)

    def told(self) -> list[int]:
        """All that is told apart, in the order in which it was."""
        return [0] + [child for u in self.apart for child in self.tree.children[u]]

    def weigh(self, u: int) -> float:
        """Its own score, and nine tenths of what was found out around it."""
        if u == 0:
            return self.score[0] + self.credit
        return self.score[u] + 0.9 * (self.weight[self.tree.parent[u]] - self.score[u])

    def believe(self, u: int) -> None:
        """How far it and all below it are believed."""
        weight = self.weigh(u)
        self.weight[u] = float(np.float32(weight))
        self.faith[u] = float(np.float32(1 / (1 + math.exp(-weight))))
        for child in self.children(u):
            self.believe(child)

    def take(self, node: list[int], visits: Any, clicks: Any, credit: float) -> None:
        """Another loan, scored by all that was seen before it."""
        self.lent = dict.fromkeys(self.lent, (0.0, 0.0))
        for row, u in enumerate(node):
            if u != 0 and self.tree.parent[u] not in self.apart:
                self.tell_apart(self.tree.parent[u])
            for i in range(self.slots):
                self.lent[u, i] = float(np.float32(visits[row, i])), float(np.float32(clicks[row, i]))
        self.habit = max(-5.0, min(5.0, 0.75 * (self.habit + self.score[0])))
        self.credit = credit + self.habit
        self.judge_all()
        self.look_at(0)

    def tell_apart(self, u: int) -> None:
        self.apart[u] = None
        if u in self.last:
            heir = self.holder(u, self.last[u][0])
            self.last[heir] = self.last[u]
            self.count(heir, *self.last[u][1:])

    def look_at(self, u: int) -> None:
        """Look again at a subtree and all within it."""
        self.believe(u)
        for i in range(self.slots):
            self.look_again(u, i)
            self.pass_down(u, i)

    @staticmethod
    def luck(plays: int, clicks: int, strength: float, mean: float) -> float:
        """The logarithm of the chance of these visits, one after the other."""
        found, seen = 0.0, strength
        for times, expected in ((clicks, strength * mean), (plays - clicks, strength * (1 - mean))):
            for turn in range(times):
                found += math.log((expected + turn) / seen)
                seen += 1
        return found

    def judge_all(self) -> None:
        overall = (self.gains(0) + self.doubt * 0.1) / (self.total(0) + self.doubt)
        score = dict.fromkeys(self.score, np.float32(0))
        for u in self.told():
            news = 0.0
            for i in range(self.slots):
                plays, clicks, (lent, clicked) = self.n[u, i], self.r[u, i], self.lent[u, i]
                if not self.children(u) and plays and lent:
                    mean = (clicked + self.doubt * overall) / (lent + self.doubt)
                    news += self.luck(plays, clicks, lent + self.doubt, mean)
                    news -= self.luck(plays, clicks, self.doubt, overall)
            for up in self.up(u) if news else []:
                score[up] = np.float32(float(score[up]) + news)
        self.score = {u: float(np.float32(max(-6.0, min(6.0, float(score[u]))))) for u in score}

    def up(self, u: int) -> list[int]:
        """From a node to the root."""
        return [u] if u == 0 else [u, *self.up(self.tree.parent[u])]

    def judge(self, i: int, pick: int, reward: int) -> None:
        """Who knew better: one who has seen what was seen here, or one who was lent visits to it as well."""
        u, around, alone = 0, 0.1, 0.1
        while True:
            plays, clicks = PathZooming.evidence(self, u, i)
            around, alone = alone, (clicks + self.doubt * alone) / (plays + self.doubt)
            if u not in self.apart:
                break
            u = self.holder(u, pick)
        visits, clicked = self.lent[u, i]
        both = (clicks + clicked + self.doubt * around) / (plays + visits + self.doubt)
        news = math.log(both / alone) if reward else math.log((1 - both) / (1 - alone))
        news = max(-2.0, min(2.0, news))
        for up in self.up(u) if news else []:
            self.score[up] = float(np.float32(max(-6.0, min(6.0, self.score[up] + news))))

    def update(self, i: int, pick: int, reward: int) -> None:
        self.judge(i, pick, reward)
        super().update(i, pick, reward)
        u = 0
        while u in self.apart:
            u = self.holder(u, pick)
        moved = [up for up in self.up(u) if abs(self.weigh(up) - self.weight[up]) >= 0.5]
        if moved:
            self.reconsidered += 1
            self.look_at(moved[-1])


class PathSlot:
    def __init__(self, paths: PathZooming, slot: int) -> None:
        self.paths, self.slot = paths, slot

    def select(self, above: list[int], rng: np.random.Generator) -> tuple[int, float]:
        return self.paths.select(self.slot, above, rng)

    def update(self, pick: int, above: list[int], chance: float, reward: int) -> None:
        self.paths.update(self.slot, pick, reward)
