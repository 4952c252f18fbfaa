"""`Neighbours`: the tree of a collection's queries, their reports, and the loans that learners get of them.

All of this only decides the next loan. Past loans stand in the log, with the ranking that they were made for, so
learners do not depend on it: the tree of queries may be another one after a start, and the last reports may be lost in
a crash. Both are harmless: a learner whose last report was lost lends what it reported before, until it reports again.

A query joins when it is asked for the first time, before that is durable. If the write fails, it stays in the tree and
has nothing to lend: no learner has borrowed from it, since all events after it failed with it. If the write succeeded
after all, it is there already. Only the first vector is undone, since it fixes the dimension of the others.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from zoomrank.queries import QueryTree
from zoomrank.queries.loans import (
    GrantedLoan,
    LoanRegistry,
    QueryReport,
    next_exchange_at,
    report_from_bytes,
    report_of,
    report_to_bytes,
)
from zoomrank.service.catalogue.served_version import ServedVersion
from zoomrank.service.catalogue.settings import LONGEST_STEP, MOST_DIMENSIONS, MOST_STEPS
from zoomrank.service.errors import UnprocessableError
from zoomrank.service.storage.events import StoredReport

SEPARATOR = " > "  # between the steps of a path
_MOVE_AT_ONCE = 64  # reports

About = str | list[str] | list[float]

_TREES = {"words": QueryTree.by_words, "paths": QueryTree.by_paths, "vectors": QueryTree.by_vectors}


class Neighbours:
    """The queries of one collection, by the ids of their learners."""

    def __init__(self, similar: str, version: ServedVersion) -> None:
        self.similar = similar
        self._version = version
        self._bandit: Any = version.bandit
        self._begin()

    def _begin(self) -> None:
        self.queries: QueryTree = _TREES[self.similar]()  # type: ignore[operator]
        self.lending = LoanRegistry(self.queries, self._bandit.tree, self._bandit.parameters.borrow)
        self._told: dict[int, int] = {}  # number of answers at each learner's last report
        self._first: tuple[int, int] | None = None  # the first learner with a vector, and its dimension

    def read_back(self, learners: Iterable[tuple[int, str, str | None]], reports: Iterable[StoredReport]) -> None:
        """Load stored learners, in the order of their ids, and their reports."""
        for learner in learners:
            self.join(*learner)
        for report in reports:
            self._take(report)

    @property
    def told(self) -> Mapping[int, int]:
        """Number of answers at the last report of each known learner; 0 if it has not reported."""
        return {int(learner): self._told.get(int(learner), 0) for learner in self.queries.queries}

    def hear(self, learners: Iterable[tuple[int, str, str | None]], reports: Iterable[StoredReport]) -> None:
        """Take queries of other replicas, and their newer reports."""
        for learner, query, about in learners:
            if learner not in self.queries:
                self.join(learner, query, about)
        for report in reports:
            if report.answers != self._told.get(report.learner, 0):  # it can be fewer: impressions may be made void
                self._take(report)

    # The tree of queries.

    def checked(self, about: About | None) -> str | None:
        """Return a query's `about` as JSON; UnusableError if this collection cannot use it."""
        if about is None:
            return None
        if self.similar == "words":
            raise UnprocessableError("Queries of this collection are alike by their words: leave `about` out.")
        return json.dumps(self._path(about) if self.similar == "paths" else self._vector(about))

    def _path(self, about: About) -> list[str]:
        steps = about.split(SEPARATOR) if isinstance(about, str) else about
        path = [step.strip() for step in steps if isinstance(step, str)]
        if len(path) < len(steps):
            raise UnprocessableError(
                "Queries of this collection are alike by their paths: `about` is a path, such as “Animals > Cats”."
            )
        if not 1 <= len(path) <= MOST_STEPS or not all(1 <= len(step) <= LONGEST_STEP for step in path):
            raise UnprocessableError(f"A path has 1 to {MOST_STEPS} steps of 1 to {LONGEST_STEP} letters.")
        return path

    def _vector(self, about: About) -> list[float]:
        if isinstance(about, str) or not all(isinstance(number, int | float) for number in about):
            raise UnprocessableError(
                "Queries of this collection are alike by their vectors: `about` is a list of numbers."
            )
        wanted = len(about) if self._first is None else self._first[1]
        if len(about) != wanted or not 1 <= wanted <= MOST_DIMENSIONS:
            most = f"1 to {MOST_DIMENSIONS}" if self._first is None else str(wanted)
            raise UnprocessableError(f"A vector of this collection's queries has {most} numbers, not {len(about)}.")
        vector = [float(number) for number in about]
        with np.errstate(over="ignore", under="ignore"):
            length = float(np.linalg.norm(np.array(vector).astype(np.float32)))
        if not 0 < length < np.inf:
            raise UnprocessableError(
                "A vector has a direction: finite numbers, not all of them 0, and none beyond 1e18."
            )
        return vector

    def join(self, learner: int, query: str, about: str | None) -> None:
        """Add a new query to the tree; `about` is what `checked` returned."""
        said = None if about is None else json.loads(about)
        if self.similar == "vectors" and said is not None:
            if self._first is None:
                self._first = (learner, len(said))
            elif self._first[1] != len(said):  # two came at once, before the first had joined
                said = None
        self.queries.add(learner, query if self.similar == "words" else said)

    def forget(self, refused: Collection[int]) -> None:
        """Forget the reports of learners whose write failed, so that nothing is borrowed from them."""
        if self._first is not None and self._first[0] in refused:
            self._begin_again(refused)
        for learner in refused:
            self._told.pop(learner, None)
            if learner in self.queries:
                number = self.queries.number(learner)
                self.lending.reports.pop(number, None)
                for known in self.lending.known.values():
                    known.pop(number, None)

    def _begin_again(self, refused: Collection[int]) -> None:
        """Undo the first vector. All others with one came later and failed too: the rest is in one group."""
        before, told = self.lending, self._told
        self._begin()
        for number, learner in enumerate(before.queries.queries):
            if learner not in refused:
                self.queries.put(learner, 0)
                if number in before.reports:
                    self._take(StoredReport(int(learner), told[int(learner)], report_to_bytes(before.reports[number])))

    # Reports and loans.

    def is_due(self, learner: int, answers: int) -> bool:
        """Return whether a learner's next report is due."""
        return answers >= next_exchange_at(self._told.get(learner, 0))

    def report(self, learner: int, state: Any, answers: int, version: ServedVersion) -> StoredReport:
        """Take a learner's report, from the version in which it is, and return it for the store."""
        report = StoredReport(learner, answers, report_to_bytes(version.numbered_report(report_of(state))))
        self._take(report)
        return report

    def _take(self, report: StoredReport) -> None:
        """Take a report in its stored form, so that loans are the same after a start."""
        self._told[report.learner] = report.answers
        if report.learner in self.queries:
            told = self._version.placed_report(report_from_bytes(report.content))
            if not len(told.node):  # all its nodes are gone
                return
            self.lending.tell(self.queries.number(report.learner), told, report.answers)

    async def move_to_newest(self, version: ServedVersion) -> None:
        """Remap all reports to a newer version, also those that arrive meanwhile."""
        moved: dict[int, tuple[QueryReport, QueryReport]] = {}
        before = self._version
        for count, (query, report) in enumerate(list(self.lending.reports.items())):
            moved[query] = report, version.placed_report(before.numbered_report(report))
            if count % _MOVE_AT_ONCE == _MOVE_AT_ONCE - 1:
                await asyncio.sleep(0)
        newest: dict[int, QueryReport] = {}
        for query, report in self.lending.reports.items():
            known, there = moved.get(query, (None, None))
            if there is None or known is not report:
                there = version.placed_report(before.numbered_report(report))
            newest[query] = there
        self._version, self._bandit = version, version.bandit
        self.lending.move_to(version.tree, newest)

    def grant(self, learner: int) -> GrantedLoan | None:
        """Return the loan for a learner now, with the ids of the lenders; None if no query near it has reported."""
        if learner not in self.queries:  # its first write seemed to fail, and succeeded
            self.queries.put(learner, 0)
        granted = self.lending.grant(self.queries.number(learner))
        if granted is None:
            return None
        return GrantedLoan(granted.loan, tuple(int(self.queries.queries[lender]) for lender in granted.lenders))
