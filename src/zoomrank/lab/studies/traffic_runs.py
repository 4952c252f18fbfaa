"""Simulate traffic, a world per process, and store the results in a small file each, so that a study can be resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from zoomrank.files import atomic_file
from zoomrank.lab.studies.query_traffic import KINDS, QUERIES, VISITS, TrafficKind, simulate_traffic

INSTANCES = 3


def kinds_of(manifest: Mapping[str, Any], folder: Path) -> list[TrafficKind]:
    """Return all kinds of traffic of a study, including those of the user's own files."""
    kinds = [*KINDS]
    if manifest.get("taxonomy"):
        file = str(folder / manifest["taxonomy"])
        kinds.append(TrafficKind("taxonomy", "leaves of the taxonomy; neighbours share two of three peaks", file=file))
    if manifest.get("judged"):
        files = tuple(str(folder / file) for file in manifest["judged"]["all"])
        kinds.append(TrafficKind("judged", "judged topics, which share nothing", file=files))
    return kinds


def carry_out(manifest: Mapping[str, Any], folder: Path, workers: int) -> Iterator[str]:
    """Carry out what is missing; yield the name of each finished part."""
    visits = VISITS if manifest["visits"] is None else min(VISITS, 10 * manifest["visits"])
    queries = max(10, QUERIES * visits // VISITS)
    missing = [
        (kind, instance)
        for instance in range(min(INSTANCES, manifest["instances"]))
        for kind in kinds_of(manifest, folder)
        if not _file(folder, kind, instance).exists()
    ]
    with ProcessPoolExecutor(workers) as pool:
        coming = {
            pool.submit(simulate_traffic, kind, instance, manifest["seed"], queries, visits): (kind, instance)
            for kind, instance in missing
        }
        for done in as_completed(coming):
            kind, instance = coming[done]
            with atomic_file(_file(folder, kind, instance)) as file:
                file.write(json.dumps(done.result()).encode())
            yield f"{kind.name}/{instance}"


def results_so_far(manifest: Mapping[str, Any], folder: Path) -> list[tuple[TrafficKind, Sequence[dict[str, Any]]]]:
    """Return the results so far."""
    results: list[tuple[TrafficKind, Sequence[dict[str, Any]]]] = []
    for kind in kinds_of(manifest, folder):
        files = [_file(folder, kind, instance) for instance in range(INSTANCES)]
        done = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
        if done:
            results.append((kind, done))
    return results


def _file(folder: Path, kind: TrafficKind, instance: int) -> Path:
    (folder / "traffic").mkdir(exist_ok=True)
    return folder / "traffic" / f"{kind.name}-{instance}.json"
