"""A folder of results: one small Parquet file per run, and a manifest.

    manifest.json                          version of zoomrank, what was asked for, the machine
    rows/two-peaks/RankCorrZoom/3.parquet  a row per checkpoint; the setting and the final number of active strategies
                                           are in the file's metadata
    times.jsonl                            duration of each run: the only file here that differs from time to time

A file appears under its name only when it is complete, and its bytes depend on its setting alone. So a sweep that was
killed can be resumed, and ends with the same bytes as one that was not, if the same version of zoomrank resumes it.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zoomrank.errors import ResultsError
from zoomrank.files import atomic_file, is_partial_file
from zoomrank.lab.recipes import Setting
from zoomrank.lab.report_pages import machine
from zoomrank.lab.run import RunRows, this_version

FORMAT = 3
_MANIFEST = "manifest.json"
_FIXED = ("kind", "study", "slots", "visits", "seed")  # fixed when a folder is created
_MORE = ("taxonomy", "judged")  # the user's own files; these may be added later
_SCHEMA = pa.schema(
    [
        ("experiment", pa.dictionary(pa.int32(), pa.string())),
        ("curve", pa.dictionary(pa.int32(), pa.string())),
        ("instance", pa.int32()),
        ("visits", pa.int64()),
        ("satisfied", pa.int64()),
        ("clicks", pa.list_(pa.int64())),
        ("expected", pa.float64()),
    ]
)


def sweep_request(kind: str, instances: int, visits: int | None, seed: int, **more: Any) -> dict[str, Any]:
    """Return what a manifest says was asked for; `kind` is the application that writes the report."""
    return {"kind": kind, **more, "instances": instances, "visits": visits, "seed": seed}


class ResultsFolder:
    """A folder of results, open for reading; `begin` opens one for writing."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        file = self.path / _MANIFEST
        try:
            self.manifest: dict[str, Any] = json.loads(file.read_text())
        except (FileNotFoundError, NotADirectoryError):
            raise ResultsError(f"{self.path} has no results: it does not contain {_MANIFEST}.") from None
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ResultsError(f"{file} cannot be read: {error}.") from None
        if not isinstance(self.manifest, dict):
            raise ResultsError(f"{file} is not a manifest of results.")
        if self.manifest.get("format") != FORMAT:
            raise ResultsError(
                f"{self.path} was written in format {self.manifest.get('format')!r}; this zoomrank reads {FORMAT}. "
                "Run it again in another folder, or use the zoomrank that wrote it."
            )

    @classmethod
    def begin(cls, path: str | os.PathLike[str], about: dict[str, Any], *, resume: bool = False) -> ResultsFolder:
        """Create a folder or, with `resume`, continue in an existing one."""
        return cls.resume(path, about) if resume else cls.create(path, about)

    @classmethod
    def create(cls, path: str | os.PathLike[str], about: dict[str, Any]) -> ResultsFolder:
        """Create a folder; one that is not empty is left untouched."""
        path = Path(path)
        if not _is_empty(path):
            hint = "pass --resume to go on, or name" if (path / _MANIFEST).exists() else "name"
            raise ResultsError(f"{path} is not empty: {hint} another folder. Nothing was changed.")
        path.mkdir(parents=True, exist_ok=True)
        _write_manifest(path, {"format": FORMAT, **about, "version": this_version(), "machine": machine()})
        return cls(path)

    @classmethod
    def resume(cls, path: str | os.PathLike[str], about: dict[str, Any]) -> ResultsFolder:
        """Continue in a folder of this version, or create it. More figures and instances may be asked for."""
        path = Path(path)
        if _is_empty(path):
            return cls.create(path, about)
        folder = cls(path)
        manifest = folder.manifest
        if manifest["version"] != this_version():
            raise ResultsError(
                f"{path} was made by zoomrank {manifest['version']}, this is {this_version()}: their rows do not "
                "belong together. Name another folder. Nothing was changed."
            )
        for name in _FIXED:
            if manifest.get(name) != about.get(name):
                raise ResultsError(
                    f"{path} was begun with {name} = {manifest.get(name)}, not {about.get(name)}. Ask for the same, or "
                    "name another folder. Nothing was changed."
                )
        for name in _MORE:
            if manifest.get(name) and about.get(name) and manifest[name] != about[name]:
                raise ResultsError(
                    f"{path} has rows of other data for --{name}. Ask for the same, or name another folder. "
                    "Nothing was changed."
                )
        if "figures" in about:
            manifest["figures"] = list(dict.fromkeys([*manifest["figures"], *about["figures"]]))
        manifest |= {name: about[name] for name in _MORE if about.get(name)}
        manifest["instances"] = max(manifest["instances"], about["instances"])
        _write_manifest(path, manifest)
        return folder

    def rows_file(self, setting: Setting) -> Path:
        """Return the path of the rows of a run."""
        return self.path / "rows" / f"{setting.id}.parquet"

    def missing(self, settings: Iterable[Setting]) -> list[Setting]:
        """Return the runs that have no rows yet; rows of the same name but another setting raise an error."""
        wanted = []
        for setting in settings:
            held = _setting_in(self.rows_file(setting))
            if held is None:
                wanted.append(setting)
            elif held != setting.to_json():
                raise ResultsError(f"{self.rows_file(setting)} holds rows of another setting. Name another folder.")
        return wanted

    def add(self, rows: RunRows, seconds: float) -> None:
        """Store the rows of a run."""
        file = self.rows_file(rows.setting)
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(file) as written:
            written.write(to_parquet(rows))
        self.note_time(rows.setting.id, seconds)

    def note_time(self, run: str, seconds: float) -> None:
        """Record how long a run took."""
        with (self.path / "times.jsonl").open("a") as times:
            times.write(json.dumps({"run": run, "seconds": round(seconds, 3)}) + "\n")

    def rows(self) -> Iterator[RunRows]:
        """Iterate over all rows, run by run."""
        for file in sorted((self.path / "rows").rglob("*.parquet")):
            yield from_parquet(file)

    def seconds(self) -> dict[str, float]:
        """Return how long each run took, where known."""
        file = self.path / "times.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return {entry["run"]: entry["seconds"] for entry in map(_or_nothing, lines) if entry}


def _is_empty(path: Path) -> bool:
    """Return whether the folder holds nothing except remains of a killed first write."""
    return not path.exists() or (path.is_dir() and all(is_partial_file(entry) for entry in path.iterdir()))


def _write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    with atomic_file(path / _MANIFEST) as written:
        written.write((json.dumps(manifest, indent=2) + "\n").encode())


def to_parquet(rows: RunRows) -> bytes:
    """Return the bytes of a run's file."""
    count = len(rows.visits)
    table = pa.table(
        {
            "experiment": pa.array([rows.setting.experiment] * count).dictionary_encode(),
            "curve": pa.array([rows.setting.curve] * count).dictionary_encode(),
            "instance": pa.array(np.full(count, rows.setting.instance, np.int32)),
            "visits": pa.array(rows.visits),
            "satisfied": pa.array(rows.satisfied),
            "clicks": pa.array(rows.clicks.tolist(), pa.list_(pa.int64())),
            "expected": pa.array(rows.expected),
        },
        schema=_SCHEMA.with_metadata({"setting": rows.setting.to_json(), "active": json.dumps(rows.active)}),
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def from_parquet(path: Path) -> RunRows:
    """Read the file of a run."""
    try:
        table = pq.read_table(path, partitioning=None)
        active = json.loads(table.schema.metadata[b"active"])
        return RunRows(
            Setting.from_json(table.schema.metadata[b"setting"].decode()),
            table["visits"].to_numpy(),
            np.array(table["clicks"].to_pylist(), np.int64),
            table["expected"].to_numpy(),
            None if active is None else tuple(active),
        )
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise ResultsError(f"{path} has no rows of a run: {error}.") from error


def _setting_in(path: Path) -> str | None:
    """Return the setting whose rows a file holds; None if the file is missing or truncated."""
    try:
        metadata: dict[bytes, bytes] = pq.read_schema(path).metadata or {}
    except (FileNotFoundError, pa.ArrowInvalid):
        return None
    return metadata.get(b"setting", b"").decode()


def _or_nothing(line: str) -> dict[str, Any] | None:
    try:
        entry: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:  # the last line of a sweep that was killed
        return None
    return entry
