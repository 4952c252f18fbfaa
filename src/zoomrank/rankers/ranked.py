"""`Ranked`: one bandit per slot, as Section 4.1 of the paper composes them.

Slots choose from the top down. A click on slot i rewards slot i, the slots above get nothing, and the slots below
stay as if the round had not happened. Without a click every slot gets nothing.

A person is never shown a document twice. A slot draws its document among those of its subtree that are not shown
above; if none is left, it shows some other document instead, and is charged as if its own pick had been skipped. With
`duplicates=True` slots choose as in the paper, where a document may be shown again (and is skipped again).

A ranking can be restricted to eligible documents, and documents can be removed for good. What was learned stays: of the
rest nothing changes, and a removed document that comes back is known.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from zoomrank.bandits.interface import Bandit, Feedback, is_roomy, learn_from, roomy, select, subtree
from zoomrank.bandits.state.tree_view import draw_document
from zoomrank.compiled import Scalar, compiled, inlined
from zoomrank.dice import Dice, rolled
from zoomrank.errors import FeedbackError, ParameterError, RepeatedFeedbackError, SlotsError, UnknownDocumentError
from zoomrank.numbers import Array, Seed, whole_number
from zoomrank.rankers.explanation import SlotExplanation
from zoomrank.spaces import DocumentId, DocumentIds, DocumentTree, Eligible

MOST_SLOTS = 60


class Impressions(NamedTuple):
    """Rankings as kernels see them: a row each, a column per slot."""

    shown: Array  # documents
    pick: Array  # the document that the slot's strategy picked: the one shown unless that was shown above already
    strategy: Array
    chance: Array


@inlined
def fill(state: Any, out: Impressions, row: Scalar, duplicates: Scalar, rng: np.random.Generator) -> None:
    """Rank: choose slot by slot, from the top down."""
    shown = out.shown[row]
    for slot in range(out.shown.shape[1]):
        strategy, chance = select(state, slot, shown, slot, rng)
        node = subtree(state, slot, strategy)
        pick = np.int64(state.first_document[node])
        document = np.int64(-1)
        own = True
        while document < 0:  # twice only if all it could show is shown above: another document, which earns it nothing
            document = draw_document(state, node, shown, 0 if duplicates else slot, rng)
            if own and document >= 0:
                pick = document
            own = False
            node = 0
        shown[slot] = document
        out.pick[row, slot] = pick
        out.strategy[row, slot] = strategy
        out.chance[row, slot] = chance


@inlined
def absorb(state: Any, seen: Impressions, row: Scalar, click: Scalar) -> None:
    """Learn: every slot down to the click, or all of them."""
    shown = seen.shown[row]
    for slot in range(min(click + 1, seen.shown.shape[1])):
        pick = seen.pick[row, slot]
        reward = 1 if slot == click and pick == shown[slot] else 0
        learn_from(state, slot, Feedback(seen.strategy[row, slot], pick, seen.chance[row, slot], reward), shown, slot)


@compiled
def rank_rows(state: Any, out: Impressions, start: Scalar, duplicates: Scalar, dice: Any) -> Scalar:
    """Rank row after row; stops where there is no room, and says where."""
    rng = rolled(dice)
    for row in range(start, len(out.shown)):
        if not roomy(state):
            return row
        fill(state, out, row, duplicates, rng)
    return len(out.shown)


@compiled
def learn_rows(state: Any, seen: Impressions, clicks: Array, start: Scalar) -> Scalar:
    """Learn row after row; stops where there is no room, and says where."""
    for row in range(start, len(clicks)):
        if not roomy(state):
            return row
        absorb(state, seen, row, clicks[row])
    return len(clicks)


@dataclass(frozen=True, slots=True)
class Ranking:
    """A ranking to show, and what its ranker needs to learn from the answer, however late that comes."""

    documents: list[DocumentId]
    number: int  # counts the ranker's rankings
    ranker: str  # which ranker made it
    impressions: Impressions  # one row
    edition: int = 0  # of the collection, which may have grown since


@dataclass(frozen=True)
class Rankings:
    """Many rankings, made without learning in between; a sequence of `Ranking`s."""

    ids: DocumentIds
    first_number: int
    ranker: str
    impressions: Impressions
    edition: int = 0

    @cached_property
    def documents(self) -> list[list[DocumentId]]:
        """The documents of each ranking; their positions in the tree are `impressions.shown`."""
        return [self.ids.at(shown) for shown in self.impressions.shown.tolist()]

    def __len__(self) -> int:
        return len(self.impressions.shown)

    def __getitem__(self, row: int) -> Ranking:
        at = range(len(self))[row]
        part = Impressions(*(array[at : at + 1] for array in self.impressions))
        return Ranking(self.ids.at(part.shown[0]), self.first_number + at, self.ranker, part, self.edition)


class Ranked:
    """A ranker of k slots with a fresh copy of one bandit in each of them.

    >>> from zoomrank.bandits import Zooming
    >>> ranker = Ranked(Zooming(DocumentTree.exponential(depth=10)), slots=5, seed=7)
    >>> ranking = ranker.rank()
    >>> len(set(ranking.documents))
    5
    >>> ranker.learn(ranking, click=2)
    """

    def __init__(self, bandit: Bandit, slots: int, *, seed: Seed = None, duplicates: bool = False) -> None:
        self.slots = whole_number(slots, "slots")
        if not 1 <= self.slots <= min(len(bandit.tree), MOST_SLOTS):
            raise SlotsError(
                f"{self.slots} slots cannot be filled from {len(bandit.tree)} documents ({MOST_SLOTS} slots at most)."
            )
        self.bandit = bandit
        self.tree: DocumentTree = bandit.tree
        self.duplicates = bool(duplicates)
        self._dice = Dice(np.random.default_rng(seed))
        self.name = uuid.uuid4().hex  # rankings of other rankers are told apart by it
        self.state = bandit.fresh_state(self.slots)
        self.made = 0  # rankings
        self.answered = bytearray()  # a bit for each of them
        self.present: Eligible | None = None  # all documents but those that were removed, once some were
        self.moves: list[Array] = []  # where the documents of each earlier edition of the collection stand now

    @property
    def rng(self) -> np.random.Generator:
        """Where all chance comes from."""
        return self._dice.generator

    def rank(self, eligible: Eligible | Iterable[DocumentId] | None = None) -> Ranking:
        """Choose a ranking to show to one visitor; of eligible documents only, if some are named."""
        return self.rank_many(1, eligible)[0]

    def rank_many(self, count: int, eligible: Eligible | Iterable[DocumentId] | None = None) -> Rankings:
        """Choose rankings for many visitors at once, without learning in between."""
        count = whole_number(count, "count")
        if count < 0:
            raise SlotsError(f"{count} rankings cannot be made.")
        out = self.choose(count, eligible)
        first = self.made
        self.made += count
        return Rankings(self.tree.documents, first, self.name, out, len(self.moves))

    def choose(
        self, count: int, eligible: Eligible | Iterable[DocumentId] | None = None, slots: int | None = None
    ) -> Impressions:
        """Choose rankings, maybe of fewer slots, and nothing else: for those who keep account of rankings and answers
        themselves.
        """
        wanted = self.slots if slots is None else slots
        out = empty_impressions(count, wanted)
        allowed = self._allowed(eligible, wanted)
        row = 0
        while row < count:
            state = self.state if allowed is None else self.state._replace(eligible=allowed.counts)
            row = rank_rows(state, out, row, self.duplicates, self._dice.handle)
            if row < count:
                self.make_room()
        return out

    def remove(self, documents: Iterable[DocumentId]) -> None:
        """Never show these documents again, until they are `restored`."""
        self._restrict((self.present or Eligible.everything(self.tree.documents)).without(documents))

    def restore(self, documents: Iterable[DocumentId]) -> None:
        """Show these documents again; what was known of them is known still."""
        if self.present is not None:
            chosen = self.present.chosen.copy()
            chosen[self.tree.documents.positions(documents)] = True
            self._restrict(Eligible(self.tree.documents, chosen))

    def grow(self, tree: DocumentTree) -> None:
        """Go on with a tree that has grown from this ranker's: all that was learned is kept, answers to rankings that
        were made before still count, and new documents join the subtrees that they are in.
        """
        if tree.grown_from is None or tree.grown_from.fingerprint != self.tree.fingerprint:
            raise ParameterError("A ranker can only move to a tree that was made by its own tree's grown().")
        self.bandit, self.state = self.bandit.transplanted(self.state, tree)
        place = tree.documents.positions(self.tree.documents)
        self.moves = [place[move] for move in self.moves] + [place]
        if self.present is not None:
            chosen = np.ones(len(tree), bool)
            chosen[place] = self.present.chosen
            self.present = Eligible(tree.documents, chosen)
        self.tree = tree

    def _up_to_date(self, impressions: Impressions, edition: int) -> Impressions:
        """Rankings of an earlier edition, with their documents where they stand now."""
        if edition == len(self.moves):
            return impressions
        move = self.moves[edition]
        return impressions._replace(shown=move[impressions.shown], pick=move[impressions.pick])

    def _restrict(self, present: Eligible) -> None:
        check_eligible(self.bandit, present, self.slots)
        self.present = None if len(present) == len(self.tree) else present

    def _allowed(self, eligible: Eligible | Iterable[DocumentId] | None, slots: int) -> Eligible | None:
        """What may be shown: the eligible documents that are present; None if that is all."""
        if eligible is None:
            return self.present
        if not isinstance(eligible, Eligible):
            eligible = Eligible.only(self.tree.documents, eligible)
        elif eligible.documents is not self.tree.documents:
            raise UnknownDocumentError("The eligible documents are those of another collection.")
        allowed = eligible if self.present is None else eligible & self.present
        check_eligible(self.bandit, allowed, slots)
        return allowed

    def learn(self, ranking: Ranking, click: int | None) -> None:
        """Learn from the answer to a ranking: the 0-based slot of the first click, or None if there was none."""
        self._check_made(ranking.ranker, ranking.number, 1)
        byte, bit = divmod(ranking.number, 8)
        self._make_space(ranking.number + 1)
        if self.answered[byte] >> bit & 1:
            raise RepeatedFeedbackError(f"Ranking {ranking.number} has had its feedback already.")
        self.absorb(self._up_to_date(ranking.impressions, ranking.edition), self._slots([click]))
        self.answered[byte] |= 1 << bit

    def learn_many(self, rankings: Rankings, clicks: Sequence[int | None] | Array) -> None:
        """Learn from the answers to many rankings, in their order; all of them or, if one is refused, none.

        An array of integers says "no click" by the number of slots, as `users.clicks` does.
        """
        if len(clicks) != len(rankings):
            raise FeedbackError(f"{len(clicks)} answers were given to {len(rankings)} rankings.")
        slots = self._slots(clicks)
        numbers = self._unanswered(rankings.ranker, rankings.first_number, len(rankings))
        self.absorb(self._up_to_date(rankings.impressions, rankings.edition), slots)
        self._mark(numbers)

    def explain(self, ranking: Ranking) -> list[SlotExplanation]:
        """Why each document of a ranking stands where it stands, as the slots' learners see it now."""
        self._check_made(ranking.ranker, ranking.number, 1)
        return self.reasons(self._up_to_date(ranking.impressions, ranking.edition))

    def reasons(self, current: Impressions) -> list[SlotExplanation]:
        """The same, for a ranking whose documents stand where they stand now."""
        shown = current.shown[0]
        rows = []
        for slot, document in enumerate(self.tree.documents.at(shown)):
            found = self.bandit.strategy_of(self.state, slot, shown[:slot], int(current.pick[0, slot]))
            size = int(self.tree.shape.end_document[found.node]) - int(self.tree.shape.first_document[found.node])
            mean = found.clicks / found.plays if found.plays else 0.0
            index = min(found.index, found.cap)
            rows.append(
                SlotExplanation(
                    document,
                    self.tree.name(found.node),
                    size,
                    found.plays,
                    found.clicks,
                    mean,
                    found.radius,
                    found.cap,
                    index,
                )
            )
        return rows

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ranker to a file that `zoomrank.load` reads; the format is described in `ranker_file.py`."""
        from zoomrank.rankers.ranker_file import save  # the file knows all rankers, so it cannot be imported above them

        save(self, path)

    def make_room(self) -> None:
        """Give the state more room: kernels stop and ask for it."""
        self.state = self.bandit.larger(self.state)

    @property
    def learned(self) -> dict[str, Array]:
        """What the ranker has learned: the arrays of its state, without the tree and without scratch space."""
        return {
            name: array
            for name, array in self.state._asdict().items()
            if isinstance(array, np.ndarray) and name not in self.bandit.not_saved
        }

    def settle_room(self) -> None:
        """Have the room that the next round may need, and nothing that choosing left behind: the state then depends on
        what was learned alone.
        """
        while not is_roomy(self.state):
            self.make_room()
        self.bandit.forget_searches(self.state)

    def absorb(self, impressions: Impressions, clicks: Array) -> None:
        """Learn from rankings and the clicked slots (the number of slots for none), and nothing else: see `choose`."""
        row = learn_rows(self.state, impressions, clicks, 0)
        while row < len(clicks):
            self.make_room()
            row = learn_rows(self.state, impressions, clicks, row)

    def _slots(self, clicks: Sequence[int | None] | Array) -> Array:
        """The clicked slots as kernels want them: the number of slots for no click."""
        if isinstance(clicks, np.ndarray) and clicks.dtype.kind in "iu":
            slots = clicks.astype(np.int64)
            outside = slots[(slots < 0) | (slots > self.slots)]
        else:
            given = [None if click is None else whole_number(click, "click") for click in clicks]
            outside = np.array([slot for slot in given if slot is not None and not 0 <= slot < self.slots])
            slots = np.array([self.slots if slot is None else slot for slot in given], dtype=np.int64)
        if len(outside):
            raise FeedbackError(
                f"A click on slot {outside[0]} is outside the ranking: slots are 0 to {self.slots - 1}."
            )
        return slots

    def _check_made(self, ranker: str, first: int, count: int) -> None:
        if ranker != self.name or first + count > self.made:
            raise FeedbackError("This ranking was made by another ranker.")

    def _unanswered(self, ranker: str, first: int, count: int) -> Array:
        """The numbers of these rankings; refused if one of them has had its feedback."""
        self._check_made(ranker, first, count)
        self._make_space(first + count)
        numbers = np.arange(first, first + count)
        bits = np.frombuffer(self.answered, np.uint8)[numbers >> 3] >> (numbers & 7) & 1
        if bits.any():
            raise RepeatedFeedbackError(f"Ranking {numbers[bits.argmax()]} has had its feedback already.")
        return numbers

    def _make_space(self, count: int) -> None:
        missing = (count + 7) // 8 - len(self.answered)
        if missing > 0:
            self.answered.extend(bytes(missing))

    def _mark(self, numbers: Array) -> None:
        bits = (1 << (numbers & 7)).astype(np.uint8)
        np.bitwise_or.at(np.frombuffer(self.answered, np.uint8), numbers >> 3, bits)


def empty_impressions(rows: int, slots: int) -> Impressions:
    """Room for this many rankings."""
    shown, pick, strategy = (np.zeros((rows, slots), np.int64) for _ in range(3))
    return Impressions(shown, pick, strategy, np.zeros((rows, slots)))


def check_eligible(bandit: Bandit, allowed: Eligible, slots: int) -> None:
    """Refuse to choose among some documents only where a bandit cannot, or where they are fewer than the slots."""
    if not bandit.restrictable:
        raise ParameterError(
            "This ranker cannot choose among some documents only; ZoomRank, RankThompson and RankRandom can."
        )
    if len(allowed) < slots:
        raise SlotsError(f"{slots} slots cannot be filled: only {len(allowed)} documents may be shown.")
