"""All learners of a `QueryRank` in one file, verified by checksum before use. Never a pickle.

| bytes | what | |---|---| | 8 | `zoomqrys` | | 4 | format version, little-endian like all numbers here | | 8 | length
of the header | | … | header: JSON with the settings, the tree of queries, the queries that reported, and the lengths of
the parts below | | … | the vectors of groups, then for each query its learner and its report | | 32 | SHA-256 of
everything before |

The tree of documents is not in the file (see `rankers/ranker_file.py`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from zoomrank.bandits import LoanZooming
from zoomrank.errors import FileFormatError
from zoomrank.files import atomic_file
from zoomrank.queries.lending import report_from_bytes, report_to_bytes
from zoomrank.queries.placing import PLACERS, QueryGroups, QueryPlacer
from zoomrank.queries.query_rank import QueryRank
from zoomrank.queries.query_tree import QueryTree
from zoomrank.rankers.ranker_file import PREFIX, checked_header, tree_of
from zoomrank.spaces import DocumentTree

MAGIC = b"zoomqrys"
VERSION = 1


def save(ranker: QueryRank, path: str | os.PathLike[str]) -> None:
    """Write everything to a file, atomically."""
    queries, learners = ranker.queries, ranker.learners()
    reports = {number: report_to_bytes(report) for number, report in ranker.lending.reports.items()}
    leaders = queries.placing.leaders
    header = json.dumps(
        {
            "parameters": ranker.bandit.settings,
            "slots": ranker.slots,
            "lend": ranker.lend,
            "live": ranker.live,
            "seed": ranker.seed,
            "name": ranker.name,
            "tree": {"fingerprint": ranker.tree.fingerprint, "recipe": ranker.tree.recipe},
            "placing": {"kind": queries.placing.kind, **queries.placing.settings},
            "groups": [queries.groups.parent, queries.groups.label],
            "leaders": list(leaders.shape),
            "queries": [queries.queries, queries.group],
            "known": [[group, list(known.items())] for group, known in ranker.lending.known.items()],
            "learners": [[number, len(content)] for number, content in learners.items()],
            "reports": [[number, len(content)] for number, content in reports.items()],
        }
    ).encode()
    parts = (PREFIX.pack(MAGIC, VERSION, len(header)), header, leaders.astype("<f4").tobytes())
    digest = hashlib.sha256()
    with atomic_file(path) as file:
        for part in (*parts, *learners.values(), *reports.values()):
            digest.update(part)
            file.write(part)
        file.write(digest.digest())


def load(path: str | os.PathLike[str], tree: DocumentTree | None = None) -> QueryRank:
    """Load a ranker of queries; it continues exactly where the saved one was."""
    content = Path(path).read_bytes()
    header, start = _read(content, path)
    ranker = QueryRank(
        tree_of(header["tree"], tree),
        _queries(header, content, start),
        header["slots"],
        parameters=header["parameters"],
        lend=header["lend"],
        live=header["live"],
        seed=header["seed"],
    )
    start += 4 * header["leaders"][0] * header["leaders"][1]
    learners, start = _pieces(content, start, header["learners"])
    reports, _ = _pieces(content, start, header["reports"])
    ranker.lending.reports = {number: report_from_bytes(report) for number, report in reports.items()}
    ranker.lending.known = {group: dict(known) for group, known in header["known"]}
    ranker.restore(header["name"], learners)
    return ranker


def _pieces(content: bytes, start: int, sizes: Iterable[tuple[int, int]]) -> tuple[dict[int, bytes], int]:
    """Read one piece of bytes per query; return them and the end of the last."""
    found = {}
    for number, size in sizes:
        found[number] = content[start : start + size]
        start += size
    return found, start


def _read(content: bytes, path: str | os.PathLike[str]) -> tuple[dict[str, Any], int]:
    header, end = checked_header(content, MAGIC, VERSION, path)
    strange = set(header["parameters"]) ^ set(LoanZooming(DocumentTree.exponential(depth=1)).settings)
    if strange:
        raise FileFormatError(f"{path} was saved by another version of zoomrank with other parameters: {strange}.")
    return header, end


def _queries(header: dict[str, Any], content: bytes, start: int) -> QueryTree:
    about = dict(header["placing"])
    kind = about.pop("kind")
    groups = QueryGroups()
    groups.parent, groups.label = header["groups"]
    rows, dimensions = header["leaders"]
    leaders = np.frombuffer(content, "<f4", rows * dimensions, start).reshape(rows, dimensions).copy()
    placing: QueryPlacer = PLACERS[kind](**about) if kind in PLACERS else QueryPlacer(groups)
    placing.restore(groups, leaders)
    queries = QueryTree(placing)
    for query, group in zip(*header["queries"], strict=True):
        queries.put(query, group)
    return queries
