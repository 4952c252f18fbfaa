"""Change `src` at random, one small change at a time, and count how many changes the tests notice.

`python -m tools.mutants --count 40 --seed 15 -- -m 'not full'` gives pytest what is after `--`. Tests that name the
changed function or module run first, then those of the mirrored folder, then all (unless `--stages 2`), until one
fails. With `--both TREE`, mutations are of functions that another checkout has, too; with `--there` they are made in
that checkout.
"""

import argparse
import ast
import copy
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SECONDS = 1200  # a mutant that takes longer hangs: caught
SKIPPED = {"annotation", "returns", "decorator_list"}
PAIRS = ["Lt LtE", "Gt GtE", "Eq NotEq", "Is IsNot", "In NotIn", "Add Sub", "And Or"]
SWAPPED: Any = {getattr(ast, a): getattr(ast, b) for one in PAIRS for a, b in (one.split(), one.split()[::-1])}


class Mutation(NamedTuple):
    """A place in a file, by line and byte, and the text that is put there."""

    file: Path
    function: str
    span: tuple[int, int, int, int]
    was: str
    text: str


def inner(node: ast.AST) -> Iterator[Any]:
    """Yield the nodes below a node that are run: no annotations, no inner functions, no parts of f-strings."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            unwanted = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.JoinedStr))
            if isinstance(child, ast.AST) and name not in SKIPPED and not unwanted:
                yield child
                yield from inner(child)


def replacement(node: Any) -> str | None:
    """Return the changed source of a node, or None where nothing is changed."""
    operator = type(node.ops[0] if isinstance(node, ast.Compare) else getattr(node, "op", None))
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await))
    if is_call or isinstance(node, (ast.AugAssign, ast.Raise)):
        return "pass"
    if isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        return "return False" if ast.unparse(node.value) == "True" else "return None"
    if operator in SWAPPED:
        other = copy.deepcopy(node)
        other.op, other.ops = SWAPPED[operator](), [SWAPPED[operator](), *getattr(node, "ops", [])[1:]]
        return f"({ast.unparse(other)})"
    if operator is ast.Not:
        return f"({ast.unparse(node.operand)})"
    number: Any = node.value if isinstance(node, ast.Constant) else None
    return f"({number + 1})" if type(number) in (int, float) else None


def mutations(tree: Path) -> dict[str, list[Mutation]]:
    """Return the mutations of each function of a checkout, by its name and syntax without its docstring."""
    found = {}
    for file in sorted((tree / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                body = node.body[ast.get_docstring(node) is not None :]
                found[f"{node.name} {ast.dump(node.args)} {[ast.dump(line) for line in body]}"] = [
                    Mutation(file, node.name, (at.lineno, at.col_offset, at.end_lineno, at.end_col_offset), was, text)
                    for at in inner(ast.Module(body, []))
                    if (text := replacement(at)) is not None and (was := ast.unparse(at))
                ]
    return found


def suites(tree: Path, mutation: Mutation) -> Iterator[list[Any]]:
    """Yield what to run: the five files that name what was changed most often, the mirrored folder, everything."""
    name = re.compile(rf"\b({mutation.function}|{mutation.file.stem})\b")
    files = sorted((tree / "tests").rglob("test_*.py"), key=lambda file: -len(name.findall(file.read_text())))
    folder = tree / "tests" / mutation.file.relative_to(tree / "src" / "zoomrank").parts[0]
    yield from filter(None, (files[:5], [folder] * folder.is_dir(), ["tests", "src"]))


def outcome(tree: Path, mutation: Mutation, options: list[str], stages: int) -> str:
    """Make the mutation in a copy of its checkout, run tests, and return what became of it."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        shutil.copytree(tree, home, ignore=shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", "site"))
        there, (first, start, last, end) = (
            mutation._replace(file=home / mutation.file.relative_to(tree)),
            mutation.span,
        )
        lines = there.file.read_bytes().splitlines(keepends=True)
        lines[first - 1 : last] = [lines[first - 1][:start] + there.text.encode() + lines[last - 1][end:]]
        there.file.write_bytes(b"".join(lines))
        settings: Any = {"cwd": home, "env": {**os.environ, "PYTHONPATH": str(home / "src")}, "timeout": SECONDS}
        for paths in list(suites(home, there))[:stages]:
            command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *options, *paths]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False, **settings)  # noqa: S603
            except subprocess.TimeoutExpired:
                return "caught: hangs"
            if done.returncode not in (0, 5):  # 5: no tests
                failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
                return f"caught: {(failed or [done.stdout[-200:]])[0][:140]}"
    return "SURVIVED"


def main() -> None:
    """Print a line per mutant, then how many were caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("--count", 40), ("--seed", 15), ("--begin", 0), ("--end", 10**9), ("--stages", 3)):
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--both", type=Path, default=ROOT, metavar="TREE")
    parser.add_argument("--there", action="store_true")
    parser.add_argument("options", nargs="*", default=["-m", "not full"])
    given = parser.parse_args()
    here, there, results = mutations(ROOT), mutations(given.both), []
    pairs = [pair for code in here if code in there for pair in zip(here[code], there[code], strict=True)]
    print(f"seed {given.seed}, {given.count} of {len(pairs)} mutations", flush=True)
    drawn = random.Random(given.seed).sample(pairs, given.count)
    for number, pair in list(enumerate(drawn))[given.begin : given.end]:
        tree, mutation = (given.both, pair[1]) if given.there else (ROOT, pair[0])
        results.append(outcome(tree, mutation, given.options, given.stages))
        place = f"{mutation.file.relative_to(tree / 'src')}:{mutation.span[0]} {mutation.function}"
        print(f"{number:3} {place}: {mutation.was} -> {mutation.text}\n    {results[-1]}", flush=True)
    print(f"caught {sum(result.startswith('caught') for result in results)} of {len(results)}")


if __name__ == "__main__":
    main()
