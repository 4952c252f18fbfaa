"""A folder of results: one small Parquet file per run, and a page that says what made them.

    manifest.json                          which zoomrank, which figures, which machine
    rows/two-peaks/RankCorrZoom/3.parquet  a row per look; the setting stands in the file's metadata
    times.jsonl                            how long each run took: the one thing here that differs from time to time

A file appears under its name only when it is whole, and its bytes depend on its setting alone. So a sweep that was
killed goes on where it was, and ends with the same bytes as one that was not.
"""

from __future__ import annotations

import io
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zoomrank.errors import ResultsError
from zoomrank.lab.code_version import this_version
from zoomrank.lab.recipes import Setting
from zoomrank.lab.run import Rows

FORMAT = 1
_MANIFEST = "manifest.json"
_SCHEMA = pa.schema(
    [
        ("experiment", pa.dictionary(pa.int32(), pa.string())),
        ("curve", pa.dictionary(pa.int32(), pa.string())),
        ("instance", pa.int32()),
        ("round", pa.int64()),
        ("satisfied", pa.int64()),
        ("clicks", pa.list_(pa.int64())),
        ("expected", pa.float64()),
    ]
)


class Store:
    """A folder of results, open for reading; `Store.create` and `Store.resume` open one for writing."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        path = self.folder / _MANIFEST
        try:
            self.manifest: dict[str, Any] = json.loads(path.read_text())
        except (FileNotFoundError, NotADirectoryError):
            raise ResultsError(f"{self.folder} has no results: there is no {_MANIFEST} in it.") from None
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ResultsError(f"{path} cannot be read: {error}.") from None
        if not isinstance(self.manifest, dict) or self.manifest.get("format") != FORMAT:
            raise ResultsError(
                f"{self.folder} was written in format {self.manifest.get('format')!r}; this zoomrank reads {FORMAT}."
                if isinstance(self.manifest, dict)
                else f"{path} is no manifest of results."
            )

    @classmethod
    def create(cls, folder: str | os.PathLike[str], about: dict[str, Any]) -> Store:
        """Start a folder; one that has anything in it is left alone."""
        path = Path(folder)
        if not _is_fresh(path):
            hint = "pass --resume to go on, or name" if (path / _MANIFEST).exists() else "name"
            raise ResultsError(f"{path} is not empty: {hint} another folder. Nothing was changed.")
        path.mkdir(parents=True, exist_ok=True)
        _write(path / _MANIFEST, _manifest_bytes({**about, "version": this_version(), "machine": machine()}))
        return cls(path)

    @classmethod
    def resume(cls, folder: str | os.PathLike[str], about: dict[str, Any]) -> Store:
        """Go on in a folder that this version began, or start it. More figures and instances may be asked for."""
        path = Path(folder)
        if _is_fresh(path):
            return cls.create(path, about)
        store = cls(path)
        if store.manifest["version"] != this_version():
            raise ResultsError(
                f"{path} was made by zoomrank {store.manifest['version']}, this is {this_version()}: their rows do not "
                "belong together. Name another folder. Nothing was changed."
            )
        for name in ("rounds", "seed"):
            if store.manifest[name] != about[name]:
                raise ResultsError(
                    f"{path} was begun with {name} = {store.manifest[name]}, not {about[name]}. Ask for the same, or "
                    "name another folder. Nothing was changed."
                )
        figures = dict.fromkeys([*store.manifest["figures"], *about["figures"]])
        instances = max(store.manifest["instances"], about["instances"])
        store.manifest.update(figures=list(figures), instances=instances)
        _write(path / _MANIFEST, _manifest_bytes(store.manifest))
        return store

    def path(self, setting: Setting) -> Path:
        """Where the rows of a run are, or will be."""
        return self.folder / "rows" / f"{setting.id}.parquet"

    def missing(self, settings: Iterable[Setting]) -> list[Setting]:
        """The runs that have no rows yet; rows of the same name but another setting are refused."""
        wanted = []
        for setting in settings:
            held = _setting_in(self.path(setting))
            if held is None:
                wanted.append(setting)
            elif held != setting.to_json():
                raise ResultsError(f"{self.path(setting)} holds rows of another setting. Name another folder.")
        return wanted

    def add(self, rows: Rows, seconds: float) -> None:
        """Keep the rows of a run."""
        path = self.path(rows.setting)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, to_parquet(rows))
        with (self.folder / "times.jsonl").open("a") as times:
            times.write(json.dumps({"run": rows.setting.id, "seconds": round(seconds, 3)}) + "\n")

    def rows(self) -> Iterator[Rows]:
        """All rows there are, run by run."""
        for path in sorted((self.folder / "rows").rglob("*.parquet")):
            yield from_parquet(path)

    def seconds(self) -> dict[str, float]:
        """How long each run took, as far as that is known."""
        path = self.folder / "times.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return {entry["run"]: entry["seconds"] for entry in map(_or_nothing, lines) if entry}


def _is_fresh(folder: Path) -> bool:
    """Whether nothing is there but what a kill may have left of the very first file."""
    return not folder.exists() or (folder.is_dir() and all(p.name.endswith(".part") for p in folder.iterdir()))


def to_parquet(rows: Rows) -> bytes:
    """The bytes of a run's file."""
    count = len(rows.round)
    table = pa.table(
        {
            "experiment": pa.array([rows.setting.experiment] * count).dictionary_encode(),
            "curve": pa.array([rows.setting.curve] * count).dictionary_encode(),
            "instance": pa.array(np.full(count, rows.setting.instance, np.int32)),
            "round": pa.array(rows.round),
            "satisfied": pa.array(rows.satisfied),
            "clicks": pa.array(rows.clicks.tolist(), pa.list_(pa.int64())),
            "expected": pa.array(rows.expected),
        },
        schema=_SCHEMA.with_metadata({"setting": rows.setting.to_json()}),
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def from_parquet(path: Path) -> Rows:
    """Read the file of a run."""
    try:
        table = pq.read_table(path, partitioning=None)
        return Rows(
            Setting.from_json(table.schema.metadata[b"setting"].decode()),
            table["round"].to_numpy(),
            np.array(table["clicks"].to_pylist(), np.int64),
            table["expected"].to_numpy(),
        )
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise ResultsError(f"{path} holds no rows of a run: {error}.") from error


def machine() -> dict[str, Any]:
    """What the runs are made on: enough to compare times, nothing that names it."""
    packages = ("numba", "numpy", "pyarrow", "scipy")
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or sys.platform


def _setting_in(path: Path) -> str | None:
    """The setting whose rows a file holds; None if there is no such file, or it was cut short."""
    try:
        metadata: dict[bytes, bytes] = pq.read_schema(path).metadata or {}
    except (FileNotFoundError, pa.ArrowInvalid):
        return None
    return metadata.get(b"setting", b"").decode()


def _manifest_bytes(about: dict[str, Any]) -> bytes:
    return (json.dumps({"format": FORMAT, **about}, indent=2) + "\n").encode()


def _write(path: Path, content: bytes) -> None:
    """All of it or nothing: a reader, or a kill, never meets half a file."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _or_nothing(line: str) -> dict[str, Any] | None:
    try:
        entry: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:  # the last line of a sweep that was killed
        return None
    return entry


def about_sweep(figures: Sequence[str], instances: int, rounds: int | None, seed: int) -> dict[str, Any]:
    """What a manifest says was asked for."""
    return {"figures": list(figures), "instances": instances, "rounds": rounds, "seed": seed}
