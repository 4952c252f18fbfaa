"""Documents from files: taxonomies, tables and vectors, in common formats.

| ending | what |
|---|---|
| `.csv`, `.tsv` | a table with a line of column names; TSV has no quotes |
| `.jsonl`, `.ndjson` | an object on each line |
| `.parquet` | a table; vectors are a column of lists |
| `.npy` | vectors, mapped rather than read |
| `.txt` and others | a taxonomy: `A > B > C` on each line, or `id : A > B > C`; `#` begins a comment |

Columns are found by their usual names, or by those that `columns={"id": "sku"}` gives.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np

from zoomrank.errors import DuplicateDocumentError, MissingExtraError, SourceError, ZoomrankError
from zoomrank.types import Array

PathLike = str | os.PathLike[str]
Table = dict[str, list[Any]]  # from the meaning of a column (id, title, url, text, path, vector) to its values

USUAL_NAMES = {
    "id": ("id", "docid", "documentid", "key", "gid", "sku"),
    "title": ("title", "name", "heading", "label"),
    "url": ("url", "link", "href", "uri"),
    "text": ("text", "snippet", "body", "content", "abstract", "description"),
    "path": ("path", "category", "categorypath", "categories", "taxonomy", "breadcrumb"),
    "vector": ("vector", "embedding", "vectors", "embeddings"),
}
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
_LONGEST_FIELD = 1 << 27


def read_table(path: PathLike, columns: Mapping[str, str] | None = None, needs: Iterable[str] = ("id",)) -> Table:
    """Read the documents of a table (CSV, TSV, JSONL or Parquet).

    Parameters
    ----------
    path : path-like
        The file.
    columns : mapping of str to str, optional
        The names of columns that differ from the usual ones, such as `{"id": "sku"}`.
    needs : iterable of str
        The columns that must exist, among id, title, url, text, path and vector.

    Returns
    -------
    dict of str to list
        The columns found, by their meaning.
    """
    file, names, read = read_columns(path)
    found = chosen_columns(file, names, columns or {}, USUAL_NAMES, needs)
    table = {meaning: read[name] for meaning, name in found.items()}
    if not any(table.values()):
        raise SourceError(f"{path} is empty: it has no documents.")
    for meaning in ("title", "url", "text"):
        if meaning in table:
            table[meaning] = ["" if value is None else str(value) for value in table[meaning]]
    if "id" in table:
        table["id"] = _ids(file, table["id"])
    return table


def read_columns(path: PathLike) -> tuple[Path, list[str], Table]:
    """Read any table as it is: the file, the names of its columns, and their values."""
    file = existing(path)
    kind = file.suffix.lower()
    if kind == ".parquet":
        table = _opened_parquet(file)
        return file, list(table.schema_arrow.names), _LazyColumns(table)
    if kind in (".csv", ".tsv"):
        return file, *_delimited(file, "\t" if kind == ".tsv" else ",")
    if kind in (".jsonl", ".ndjson"):
        rows = list(_each_object(file))
        names = dict.fromkeys(name for row in rows for name in row)
        return file, list(names), {name: [row.get(name) for row in rows] for name in names}
    raise SourceError(f"{path} is not a table that can be read: give a .csv, .tsv, .jsonl or .parquet file.")


class RowByRow(NamedTuple):
    """A table whose rows are read one after the other, so that its size does not matter."""

    names: list[str]  # of its columns
    rows: Callable[[Sequence[str]], Iterator[Sequence[Any]]]  # values of some columns, row by row


def read_rows(file: Path | IO[bytes], kind: str) -> RowByRow:
    """Read a table of a kind (an ending, such as ".jsonl") row by row. A CSV or TSV file must have a name."""
    if kind in (".jsonl", ".ndjson"):
        found = dict.fromkeys(name for row in _each_object(file) for name in row)
        return RowByRow(list(found), lambda chosen: (list(map(row.get, chosen)) for row in _each_object(file)))
    if kind == ".parquet":
        table = _opened_parquet(file)
        return RowByRow(list(table.schema_arrow.names), lambda chosen: _each_parquet_row(table, chosen))
    names, columns = read_columns(cast(Path, file))[1:]
    return RowByRow(names, lambda chosen: zip(*(columns[name] for name in chosen), strict=True))


def _each_parquet_row(table: Any, chosen: Sequence[str]) -> Iterator[Sequence[Any]]:
    with _parquet_errors("The table"):
        for batch in table.iter_batches(columns=list(chosen)):
            yield from zip(*(batch.column(name).to_pylist() for name in chosen), strict=True)


def named(file: Path | IO[bytes]) -> str:
    """Return the name of a file for errors, which may have none."""
    return str(file) if isinstance(file, Path) else "The uploaded file"


def read_taxonomy(path: PathLike, columns: Mapping[str, str] | None = None) -> Table:
    """Read a taxonomy from a table, or from a text file with a path on each line.

    Parameters
    ----------
    path : path-like
        The file. Lines of a text file are `Animals > Birds`, or `id : Animals > Birds`.
    columns : mapping of str to str, optional
        Which column of a table is which where names are unusual, such as `{"path": "shelf"}`.

    Returns
    -------
    dict of str to list
        A "path" for each document, and the other columns of the file.
    """
    file = existing(path)
    if not is_text(path):
        table = read_table(path, columns, needs=("path",))
        for row, steps in enumerate(table["path"]):
            if not isinstance(steps, str | list) or not steps:
                raise SourceError(f"{path} has no path in row {row + 1}.")
        return table
    ids, paths = [], []
    for _, line in _lines(file):
        before, colon, after = line.partition(" : ")
        ids.append(before.strip() if colon and " > " not in before else None)
        paths.append((after if ids[-1] is not None else line).strip())
    if not paths:
        raise SourceError(f"{path} is empty: it has no paths.")
    named = sum(document is not None for document in ids)
    if 0 < named < len(ids):
        raise SourceError(f"{path} has an id in {named} of {len(ids)} lines; give one in all of them or in none.")
    return {"id": _ids(file, ids), "path": paths} if named else {"path": paths}


def read_vectors(path: PathLike, columns: Mapping[str, str] | None = None) -> tuple[Array, Table]:
    """Read vectors from a `.npy` or Parquet file.

    Parameters
    ----------
    path : path-like
        The file.
    columns : mapping of str to str, optional
        Which column of a Parquet file is which where names are unusual, such as `{"vector": "embedding"}`.

    Returns
    -------
    vectors : ndarray
        A row for each document.
    table : dict of str to list
        The other columns of the file; none for a `.npy` file.
    """
    file = existing(path)
    if file.suffix.lower() == ".npy":
        try:
            return np.load(file, mmap_mode="r", allow_pickle=False), {}
        except (ValueError, EOFError) as error:
            raise SourceError(f"{path} is not a NumPy array that can be read: {error}") from error
    if file.suffix.lower() != ".parquet":
        raise SourceError(f"{path} has no vectors that can be read: give a .npy or .parquet file.")
    table = read_table(path, columns, needs=("vector",))
    rows = table.pop("vector")
    sizes = {None if row is None else len(row) for row in rows}
    if len(sizes) > 1 or None in sizes:
        raise SourceError(f"Vectors in {path} are missing, or differ in length.")
    return np.array(rows, np.float32), table


def is_text(path: PathLike) -> bool:
    """Return whether a taxonomy in this file would be lines of paths, not a table."""
    return Path(path).suffix.lower() not in TABLES


def existing(path: PathLike) -> Path:
    """Return the path, if the file exists and is not empty."""
    file = Path(path)
    if not file.is_file():
        raise SourceError(f"There is no file {path}.")
    if file.stat().st_size == 0:
        raise SourceError(f"{path} is empty.")
    return file


@contextmanager
def name_in_errors(path: PathLike) -> Iterator[None]:
    """Prefix errors about rows with the name of their file."""
    try:
        yield
    except SourceError:
        raise
    except ZoomrankError as error:
        raise SourceError(f"{path}: {error}") from error


def chosen_columns(
    file: Path | str,
    names: list[str],
    columns: Mapping[str, str],
    meanings: Mapping[str, tuple[str, ...]],
    needs: Iterable[str],
) -> dict[str, str]:
    """Return which column has which meaning: as the caller says, else by its usual names."""
    there = f"its columns are {', '.join(map(repr, names))}"
    for meaning, name in columns.items():
        if meaning not in meanings:
            raise SourceError(f"Columns can mean {', '.join(meanings)}, but not {meaning!r}.")
        if name not in names:
            raise SourceError(f"{file} has no column {name!r}; {there}.")
    plain = {re.sub(r"[\s_-]", "", name).lower(): name for name in reversed(names)}
    found = dict(columns)
    for meaning, usual in meanings.items():
        guess = next((plain[name] for name in usual if name in plain), None)
        if guess is not None and guess not in found.values():
            found.setdefault(meaning, guess)
    for meaning in needs:
        if meaning not in found:
            raise SourceError(
                f"{file} has no column for the {meaning}; {there}. Name it: columns={{{meaning!r}: ...}}."
            )
    return found


def _ids(file: Path, given: list[Any]) -> list[Any]:
    """Return whole numbers if all ids are, strings otherwise; none missing, none twice."""
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in given)
    ids: list[Any] = given if whole else ["" if value is None else str(value) for value in given]
    first: dict[Any, int] = {}
    for row, document in enumerate(ids):
        if document == "":
            raise SourceError(f"{file} has no id in row {row + 1}.")
        if first.setdefault(document, row) != row:
            raise DuplicateDocumentError(
                f"{file} has the id {document!r} twice, in rows {first[document] + 1} and {row + 1}."
            )
    return ids


def _lines(file: Path | IO[bytes]) -> Iterator[tuple[int, str]]:
    """Iterate over the nonblank lines, with their numbers; a file that is open stays open."""
    try:
        with file.open("rb") if isinstance(file, Path) else nullcontext(file) as content:
            content.seek(0)
            text = io.TextIOWrapper(content, encoding="utf-8-sig")
            try:
                for number, line in enumerate(text, start=1):
                    if line.strip() and not line.lstrip().startswith("#"):
                        yield number, line.rstrip("\n")
            finally:
                with suppress(ValueError):  # a consumer that stopped early may have closed it
                    text.detach()
    except UnicodeDecodeError as error:
        raise SourceError(f"{named(file)} is not UTF-8 text: {error.reason} at byte {error.start}.") from error


def _delimited(file: Path, delimiter: str) -> tuple[list[str], Table]:
    limit = csv.field_size_limit(_LONGEST_FIELD)
    try:
        with file.open(encoding="utf-8-sig", newline="") as text:
            dialect: Any = {"quoting": csv.QUOTE_NONE} if delimiter == "\t" else {"strict": True}
            reader = csv.reader(text, delimiter=delimiter, **dialect)
            names = next(reader, [])
            rows = []
            for row in reader:
                if row and len(row) != len(names):
                    raise SourceError(f"{file} has {len(row)} fields in line {reader.line_num}, not {len(names)}.")
                if row:
                    rows.append(row)
    except (csv.Error, UnicodeDecodeError) as error:
        raise SourceError(f"{file} cannot be read as a table: {error}.") from error
    finally:
        csv.field_size_limit(limit)
    return names, {name: [row[at] for row in rows] for at, name in enumerate(names)}


def _each_object(file: Path | IO[bytes]) -> Iterator[dict[str, Any]]:
    for number, line in _lines(file):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:  # also a number with thousands of digits, or deep nesting
            raise SourceError(f"{named(file)} has no JSON object in line {number}: {error}.") from error
        if not isinstance(row, dict):
            raise SourceError(f"{named(file)} has a {type(row).__name__} in line {number}, not a JSON object.")
        yield row


class _LazyColumns(dict[str, Any]):
    """Columns that are read when needed, since a table may have many unused ones."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __missing__(self, name: str) -> list[Any]:
        with _parquet_errors("The table"):
            values: list[Any] = self.table.read([name]).column(0).to_pylist()
        return values


def _opened_parquet(file: Path | IO[bytes]) -> Any:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtraError("Parquet files need pyarrow: pip install 'zoomrank[documents]'.") from error
    with _parquet_errors(named(file)):
        return ParquetFile(file)


@contextmanager
def _parquet_errors(called: str) -> Iterator[None]:
    """Raise what a damaged file makes pyarrow raise as a `SourceError`."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, ValueError, OverflowError, TypeError, KeyError) as error:
        raise SourceError(f"{called} is not a Parquet file that can be read: {error}") from error
