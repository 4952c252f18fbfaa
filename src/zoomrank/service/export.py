"""Export of impressions and their outcomes, one row per impression, in the order in which they were shown.

Rows are read page by page, so memory stays small. An export contains every impression shown before it starts, with the
feedback present when its page is read, including feedback after the requested time span. `docs/export.schema.json`
describes a line of JSON; Parquet has the same columns.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as arrow
from pyarrow import parquet

from zoomrank.errors import ParameterError
from zoomrank.rankers.feedback import VisitorActions
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.catalogue.version_history import VersionHistory
from zoomrank.service.feedback import acts_of_notes, acts_of_outcome
from zoomrank.service.storage.events import (
    ABANDONED,
    SEEN,
    TIMED_OUT,
    UNSEEN,
    VOIDED,
    WAITING,
    Event,
    ImpressionSigner,
    bounds,
    is_note,
    is_satisfied,
    known_propensities,
    unpack,
    unpack_parts,
)
from zoomrank.service.storage.store_reader import StoredCollection, StoreReader
from zoomrank.spaces import DocumentId
from zoomrank.types import Array

FORMATS = ("jsonl", "parquet")
_ENDS = {ABANDONED: "abandoned", TIMED_OUT: "timed_out", UNSEEN: "unseen", WAITING: "waiting"}
_LEARNED = ("satisfied", "abandoned", "timed_out")

Row = dict[str, Any]
Progress = Callable[[int, int], None]  # progress: (events read, total)
IdsOf = Callable[[Array], list[DocumentId]]  # maps document numbers of the log to ids


class ExportSource(NamedTuple):
    """A collection to export."""

    id: int
    name: str
    satisfied_by: str
    ids: IdsOf


class ExportFilter(NamedTuple):
    """Filter: impressions shown in a time span, optionally only those that were learned from."""

    since: float | None = None  # seconds since 1970
    until: float | None = None
    learned: bool = False


def exported(view: StoreReader, stored: StoredCollection, folder: Path) -> ExportSource:
    """Read from a store the collection to export, without a running service."""
    settings = Settings.model_validate_json(stored.settings)
    newest = VersionHistory.kept(view, stored, settings, folder).newest
    return ExportSource(stored.id, stored.name, settings.satisfied_by, newest.ids)


def pages(
    store: StoreReader,
    signer: ImpressionSigner,
    one: ExportSource,
    wish: ExportFilter,
    tell: Progress = lambda _, __: None,
) -> Iterator[list[Row]]:
    """Yield the rows of a collection, page by page."""
    place, last = 0, store.last("events")
    start, end = bounds(wish.since, wish.until)
    while showings := store.showings(one.id, start, end, place, last):
        before, place = place, showings[-1][0]
        more: dict[tuple[int, int], list[Event]] = defaultdict(list)
        for line in store.beside_showings(one.id, start, end, before, place):
            more[line.learner, line.number].append(line)
        rows = [_row(signer, one, query, event, more[event.learner, event.number]) for _, query, event in showings]
        yield [row for row in rows if not wish.learned or (row["outcome"] in _LEARNED and not row["void"])]
        tell(place, last)


def _row(signer: ImpressionSigner, one: ExportSource, query: str, shown: Event, more: list[Event]) -> Row:
    content = shown.shown or b""
    ranking, caller = unpack(content), unpack_parts(content).tags.caller
    ids = one.ids(ranking.shown[0])
    end = next((line for line in more if is_satisfied(line.outcome) or line.outcome in _ENDS), None)
    outcome = WAITING if end is None else end.outcome
    slot = outcome if is_satisfied(outcome) else None
    noted = acts_of_notes([line.outcome for line in more if is_note(line.outcome)])
    acts = noted.and_(acts_of_outcome(outcome, one.satisfied_by))
    kinds = {line.outcome for line in more}
    return {
        "impression": signer.name(shown.learner, shown.number, shown.time),
        "collection": one.name,
        "query": query,
        "time": shown.time,
        "shown": ids,
        "propensity": known_propensities(ranking),
        "outcome": "satisfied" if slot is not None else _ENDS[outcome],
        "slot": slot,
        "clicked": None if slot is None else ids[slot],
        **_named(acts, ids),
        "seen": SEEN in kinds,
        "answered": None if end is None else end.time,
        "void": VOIDED in kinds,
        "asker": None if caller is None else caller.hex(),
    }


def _named(acts: VisitorActions, ids: list[DocumentId]) -> Row:
    clicked, purchased, disliked = (
        [ids[slot] for slot in sorted(some)] for some in (acts.clicked, acts.purchased, acts.disliked)
    )
    looked_at = acts.looked_at or None
    return {"clicks": clicked, "purchased": purchased, "disliked": disliked, "looked_at": looked_at}


def json_lines(rows: Iterable[Row]) -> bytes:
    """Return rows as lines of JSON."""
    return "".join([json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows]).encode()


def write_jsonl(file: IO[bytes], some: Iterable[list[Row]]) -> int:
    """Write pages as lines of JSON; return the number of rows."""
    count = 0
    for rows in some:
        file.write(json_lines(rows))
        count += len(rows)
    return count


def write_parquet(file: IO[bytes], some: Iterable[list[Row]], rows_at_once: int = 20_000) -> int:
    """Write pages to a Parquet file in row groups; return the number of rows."""
    count, waiting, writer = 0, list[Row](), None
    try:
        for rows in chain(some, [None]):
            waiting += rows or []
            if rows is None or len(waiting) >= rows_at_once:
                if writer is None:
                    columns = _columns(waiting)
                    writer = parquet.ParquetWriter(file, columns, compression="zstd")
                if waiting:
                    writer.write_table(_table(waiting, columns))
                count, waiting = count + len(waiting), []
    finally:
        if writer is not None:
            writer.close()
    return count


def _table(rows: list[Row], columns: arrow.Schema) -> arrow.Table:
    try:
        return arrow.Table.from_pylist(rows, schema=columns)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
        raise ParameterError(
            "Document ids are numbers in one collection and texts in another, which cannot share a Parquet column: "
            "export one collection at a time, or as JSON lines."
        ) from error


def _columns(rows: list[Row]) -> arrow.Schema:
    """Return the schema. Document ids of a collection are either all strings or all integers."""
    one = arrow.int64() if any(isinstance(row["shown"][0], int) for row in rows[:1]) else arrow.string()
    many, text, when = arrow.list_(one), arrow.string(), arrow.float64()
    kinds = {
        "impression": text,
        "collection": text,
        "query": text,
        "time": when,
        "shown": many,
        "propensity": arrow.list_(arrow.float64()),
        "outcome": text,
        "slot": arrow.int8(),
        "clicked": one,
        "clicks": many,
        "purchased": many,
        "disliked": many,
        "looked_at": arrow.int8(),
        "seen": arrow.bool_(),
        "answered": when,
        "void": arrow.bool_(),
        "asker": text,
    }
    return arrow.schema(list(kinds.items()))


WRITERS = {"jsonl": write_jsonl, "parquet": write_parquet}
