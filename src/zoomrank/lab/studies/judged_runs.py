"""Judge logs in worker processes, and store the results in a small file per part, so that a study can be resumed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from zoomrank.files import atomic_file
from zoomrank.lab.results_folder import ResultsFolder
from zoomrank.lab.studies.judged_logs import KINDS, LogKind, Row, judge_log

AT_ONCE = 25  # logs per part
_FOLDER = "judged"


def carry_out(folder: ResultsFolder, workers: int) -> Iterator[tuple[str, int]]:
    """Carry out the missing parts; yield the name of each finished part, and the total number."""
    manifest = folder.manifest
    (folder.path / _FOLDER).mkdir(exist_ok=True)
    parts = [(kind, start) for start in range(0, manifest["instances"], AT_ONCE) for kind in kinds_of(manifest)]
    missing = [part for part in parts if not (folder.path / _FOLDER / _name(*part)).exists()]
    with ProcessPoolExecutor(workers) as pool:
        coming = {}
        for kind, start in missing:
            numbers = range(start, min(start + AT_ONCE, manifest["instances"]))
            coming[pool.submit(_part, kind, numbers, manifest["seed"])] = _name(kind, start)
        for done in as_completed(coming):
            name = coming[done]
            rows, seconds = done.result()
            with atomic_file(folder.path / _FOLDER / name) as file:
                file.write(json.dumps(rows).encode())
            folder.note_time(name, seconds)
            yield name, len(missing)


def kinds_of(manifest: Mapping[str, Any]) -> list[LogKind]:
    """Return the kinds of logs, possibly shortened for a quick look."""
    longest = manifest["visits"] or max(kind.impressions for kind in KINDS)
    return [kind._replace(impressions=min(kind.impressions, longest)) for kind in KINDS]


def results_so_far(folder: ResultsFolder) -> dict[str, list[Row]]:
    """Return the results so far, kind by kind."""
    return {
        kind.name: [
            row
            for file in sorted((folder.path / _FOLDER).glob(f"{kind.name}.*.json"))
            for row in json.loads(file.read_text(encoding="utf-8"))
        ]
        for kind in kinds_of(folder.manifest)
    }


def _part(kind: LogKind, numbers: range, seed: int) -> tuple[list[Row], float]:
    start = time.perf_counter()
    return [row for number in numbers for row in judge_log(kind, number, seed)], time.perf_counter() - start


def _name(kind: LogKind, start: int) -> str:
    return f"{kind.name}.{start}.json"
