"""`UserDistribution`: who visits (the 𝒫 of Section 2), and everything an all-knowing observer can say about them.

A visitor is a relevance vector π: a set of documents that are relevant to her. She reads a ranking top-down and
clicks on the first relevant document. A model of visitors supplies two things, how a visitor is drawn and what is
known of those who skip a set S of documents; means, satisfaction and the greedy optimum follow from these for every
model alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from zoomrank.errors import ImpossibleEventError, MeanError, ParameterError, SlotsError
from zoomrank.numbers import Array, Seed, whole_number
from zoomrank.spaces import DocumentId, DocumentIds
from zoomrank.spaces.ids import Positions
from zoomrank.users.best_rankings import BestRanking, greedy, optimum, optimum_bound, satisfied
from zoomrank.users.first_click import first_clicks


class UserDistribution(ABC):
    """A distribution over visitors of the documents of one collection."""

    def __init__(self, documents: DocumentIds) -> None:
        self.documents = documents

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.documents)

    # What a model supplies; documents are positions here.

    @abstractmethod
    def log_skip_probability(self, shown: Positions) -> float:
        """Log P(Z_S): nobody of S is relevant; -inf if that cannot happen."""

    @abstractmethod
    def given_skipped(self, shown: Positions) -> tuple[float, Array]:
        """Log P(Z_S), and μ(x | Z_S) for all documents x (anything, if Z_S cannot happen)."""

    @abstractmethod
    def draw(self, visitors: int, rng: np.random.Generator) -> Array:
        """Whole relevance vectors, a row per visitor."""

    @property
    @abstractmethod
    def state(self) -> Any:
        """What `clicks.first_click` draws from; its scratch space belongs to this object, one thread at a time. None
        if clicks are drawn in plain Python.
        """

    def first_clicks(self, ranking: Positions, visitors: int, rng: np.random.Generator) -> Array:
        """The slot of each visitor's first click on this ranking; the number of slots for those who leave."""
        return np.asarray(first_clicks(self.state, ranking, visitors, rng))

    # What follows from it; documents are the caller's ids here.

    def mean(self, document: DocumentId | None = None) -> Any:
        """μ(x): the chance that the document is relevant to a visitor; without one, of all in order of `documents`."""
        means = self.given_skipped(_nobody())[1]
        return means if document is None else float(means[self.documents.position(document)])

    def conditional_mean(self, shown: Iterable[DocumentId], document: DocumentId | None = None) -> Any:
        """μ(x | Z_S): the chance among visitors to whom none of the `shown` is relevant; 0 for the shown ones."""
        names = list(shown)
        log_probability, means = self.given_skipped(self.documents.positions(names))
        if log_probability == -np.inf:
            raise ImpossibleEventError(
                f"Every visitor finds one of {_few(names)} relevant; there is nobody left to ask."
            )
        return means if document is None else float(means[self.documents.position(document)])

    def satisfaction(self, ranking: Iterable[DocumentId]) -> float:
        """The fraction of visitors who find a relevant document among these."""
        return satisfied(self.log_skip_probability(self.documents.positions(ranking)))

    def greedy(self, slots: int, tie_budget: int = 64) -> BestRanking:
        """The greedy optimum: slot by slot the document most likely to be relevant to those whom the ones above missed.

        Where several are best, the paper counts the *worst* greedy ranking. All choices among ties are followed while
        `tie_budget` evaluations last; documents that a symmetry of the model exchanges count as one. Whether that was
        everything is said in `every_tie`.
        """
        return greedy(self, self._checked_slots(slots), tie_budget)

    def optimum(self, slots: int, limit: int = 1_000_000) -> BestRanking:
        """The best ranking there is, by search with bounds: for small collections. Refused after `limit`
        evaluations.
        """
        return optimum(self, self._checked_slots(slots), limit)

    def optimum_bound(self, slots: int) -> float:
        """Bound how many visitors any ranking can satisfy: at once, and often sharp."""
        return optimum_bound(self, self.greedy(slots, tie_budget=1).documents)

    def sample(self, visitors: int, seed: Seed = None) -> Array:
        """Whole relevance vectors: a row per visitor, a column per document, in the order of `documents`."""
        return self.draw(_checked_count(visitors), np.random.default_rng(seed))

    def clicks(self, ranking: Iterable[DocumentId], visitors: int, seed: Seed = None) -> Array:
        """The slot of each visitor's first click on this ranking; the number of slots for those who leave."""
        positions = self.documents.positions(ranking)
        return self.first_clicks(positions, _checked_count(visitors), np.random.default_rng(seed))

    def click(self, ranking: Sequence[DocumentId], rng: np.random.Generator) -> int | None:
        """Return the slot that one visitor clicks on, if any; a document may be shown to her twice."""
        positions = np.array([self.documents.position(document) for document in ranking], np.int64)
        slot = int(self.first_clicks(positions, 1, rng)[0])
        return None if slot == len(positions) else slot

    def symmetry_classes(self, shown: Positions) -> Array | None:  # noqa: ARG002  (nothing is known here)
        """Numbers that two documents share only if the model, given S, cannot tell them apart; None if unknown."""
        return None

    def _checked_slots(self, slots: int) -> int:
        count = whole_number(slots, "slots")
        if not 1 <= count <= len(self):
            raise SlotsError(f"{count} slots cannot be filled from {len(self)} documents.")
        return count


def mean_array(documents: DocumentIds, mean: Mapping[Any, float] | Iterable[float] | Array) -> Array:
    """One mean per document in the order of `documents`, from a mapping or an array; refused if not within [0, 1]."""
    if isinstance(mean, Mapping):
        positions = documents.positions(mean)
        values = np.full(len(documents), np.nan)
        values[positions] = list(mean.values())
        missing = np.setdiff1d(np.arange(len(documents)), positions)
        if len(missing):
            raise MeanError(f"{len(missing)} documents have no mean relevance, for example {documents[missing[0]]!r}.")
    else:
        values = np.array(mean if isinstance(mean, np.ndarray) else list(mean), dtype=np.float64)
    if values.shape != (len(documents),):
        raise MeanError(f"Means of shape {values.shape} were given for {len(documents)} documents.")
    bad = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if len(bad):
        raise MeanError(f"The mean relevance of {documents[bad[0]]!r} is {values[bad[0]]}; it must lie in [0, 1].")
    return values


def _nobody() -> Positions:
    return np.empty(0, np.int64)


def _checked_count(visitors: int) -> int:
    count = whole_number(visitors, "visitors")
    if count < 0:
        raise ParameterError(f"{count} visitors cannot be drawn.")
    return count


def _few(names: list[DocumentId]) -> str:
    return ", ".join(repr(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
