"""Visitors from relevance judgments of an evaluation collection (`judgment_files` reads them).

A topic is an information need, and its visitors come in kinds that mean different things by it: the subtopics of
a diversity track, or the users who rated. Each kind is a row of a `RelevanceTable`, and clicks drawn from it are
simulated, from real labels. Kinds without a relevant document are left out, since no ranking can serve them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zoomrank.errors import CatalogueError, EmptyCollectionError, ParameterError, UnknownDocumentError
from zoomrank.spaces import DocumentId, DocumentIds, RootedTree, Space
from zoomrank.users.models.relevance_table import RelevanceTable

REFUSE, SKIP = "refuse", "skip"

Opinions = Mapping[str, Mapping[str, Mapping[DocumentId, bool]]]  # topic, kind of visitor, document: relevant or not


class Judgments:
    """Topics, their kinds of visitors with weights, and the documents that each kind finds relevant.

    >>> from zoomrank.spaces import DocumentTree
    >>> tree = DocumentTree.from_paths(["A > a", "A > b", "B > c"])
    >>> judgments = Judgments({"jaguar": {"cat": {"A > a": True, "B > c": False}, "car": {"B > c": True}}})
    >>> judgments.table("jaguar", tree).greedy(slots=2).satisfaction
    1.0
    """

    def __init__(self, opinions: Opinions, weights: Mapping[tuple[str, str], float] | None = None) -> None:
        self._opinions = opinions
        self._judged: dict[str, dict[DocumentId, None]] = {}  # a dict keeps the order, so that runs repeat
        self._rows: dict[str, dict[str, list[DocumentId]]] = {}
        for topic, kinds in opinions.items():
            rows = {kind: [name for name, relevant in row.items() if relevant] for kind, row in kinds.items()}
            if any(rows.values()):
                self._rows[topic] = {kind: row for kind, row in rows.items() if row}
                self._judged[topic] = dict.fromkeys(name for row in kinds.values() for name in row)
        if not self._rows:
            raise EmptyCollectionError("No document is relevant to any visitor, so there are no visitors to simulate.")
        self._weights = dict(weights or {})
        for topic, kind in self._weights:
            if kind not in self._rows.get(topic, {}):
                raise CatalogueError(
                    f"A weight was given for the kind {kind!r} of the topic {topic!r}, which does not exist."
                )

    def __repr__(self) -> str:
        kinds = sum(map(len, self._rows.values()))
        return f"Judgments({len(self._rows)} topics, {kinds} kinds of visitors)"

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics with a relevant document, in the order in which they came."""
        return tuple(self._rows)

    def rows(self, topic: str) -> dict[str, list[DocumentId]]:
        """Return the relevant documents of each kind of visitor."""
        if topic not in self._rows:
            known = ", ".join(self.topics[:10]) + (", …" if len(self.topics) > 10 else "")
            raise CatalogueError(f"There are no judgments for the topic {topic!r}; choose one of {known}.")
        return {kind: list(row) for kind, row in self._rows[topic].items()}

    def weights(self, topic: str) -> dict[str, float]:
        """Return the relative number of visitors of each kind: 1 unless given."""
        return {kind: self._weights.get((topic, kind), 1.0) for kind in self.rows(topic)}

    def weighted(self, weights: Mapping[tuple[str, str], float]) -> Judgments:
        """Return the same judgments with these weights, by topic and kind of visitor."""
        return Judgments(self._opinions, {**self._weights, **weights})

    def judged(self, topic: str) -> list[DocumentId]:
        """Return all documents that were judged for this topic, relevant or not."""
        self.rows(topic)
        return list(self._judged[topic])

    def unknown(self, documents: DocumentIds, topic: str | None = None) -> list[DocumentId]:
        """Return the judged documents that the collection does not have: of one topic, or of all."""
        asked = self.topics if topic is None else (topic,)
        return list(dict.fromkeys(name for one in asked for name in self.judged(one) if name not in documents))

    def candidates(self, topic: str, documents: DocumentIds, unknown: str = REFUSE) -> list[DocumentId]:
        """Return the documents of the collection that were judged for this topic."""
        names = self.judged(topic)
        known = [name for name in names if name in documents]
        _allow(topic, [name for name in names if name not in documents], len(names), "judged", unknown)
        return known

    def table(self, topic: str, space: Space | RootedTree, unknown: str = REFUSE) -> RelevanceTable:
        """Return the visitors of this topic over a space; missing documents raise an error, or are skipped."""
        rows, documents = self.rows(topic), space.documents
        names = list(dict.fromkeys(name for row in rows.values() for name in row))
        _allow(topic, [name for name in names if name not in documents], len(names), "relevant", unknown)
        known = {kind: [name for name in row if name in documents] for kind, row in rows.items()}
        left = [kind for kind, row in known.items() if row]
        if not left:
            raise EmptyCollectionError(f"None of the documents relevant for the topic {topic!r} is in the collection.")
        weights = self.weights(topic)
        return RelevanceTable(space, [known[kind] for kind in left], [weights[kind] for kind in left])


def _allow(topic: str, missing: Sequence[DocumentId], of: int, kind: str, unknown: str) -> None:
    if unknown not in (REFUSE, SKIP):
        raise ParameterError(f"unknown must be {REFUSE!r} or {SKIP!r}, not {unknown!r}.")
    if missing and unknown == REFUSE:
        few = ", ".join(repr(name) for name in missing[:5]) + (", …" if len(missing) > 5 else "")
        raise UnknownDocumentError(
            f"The collection lacks {len(missing)} of the {of} documents {kind} for the topic {topic!r}: {few}. "
            'Add them, or say unknown="skip" (--unknown skip) to continue without them.'
        )
