"""Change `src` at random, one small change at a time, and count how many changes the tests notice.

`python -m tools.mutants --seed 15 -- -m 'not full'` gives pytest what is after `--`. For each mutant, `--files` test
files run that most plausibly cover it, without the `--skip` most plausible, for `--seconds` (twice that where kernels
compile anew). With `--both TREE`, functions are changed that another checkout has, too; with `--there`, in it.
"""

import argparse
import ast
import copy
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CALLS, FUNCTIONS = (ast.Call, ast.Await), (ast.FunctionDef, ast.AsyncFunctionDef)
APART = *FUNCTIONS, ast.JoinedStr
LEFT_OUT = {"annotation", "returns", "decorator_list", "cases"}
PAIRS = ["Lt LtE", "Gt GtE", "Eq NotEq", "Is IsNot", "In NotIn", "Add Sub", "And Or"]
SWAPPED: Any = {getattr(ast, a): getattr(ast, b) for one in PAIRS for a, b in (one.split(), one.split()[::-1])}
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", "site")
Mutation = tuple[Path, str, Any, str]  # a file, a function and a node in it, and the text that is put there


def inner(node: ast.AST) -> Iterator[Any]:
    """Yield the nodes below a node that are run: no annotations, no inner functions, no parts of f-strings."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in LEFT_OUT and not isinstance(child, APART):
                yield from (child, *inner(child))


def replacement(node: Any) -> str:
    """Return the changed source of a node, or nothing where it stays."""
    operators, value = getattr(node, "ops", [getattr(node, "op", None)]), getattr(node, "value", node)
    if isinstance(node, ast.AugAssign | ast.Raise) or (isinstance(node, ast.Expr) and isinstance(value, CALLS)):
        return "pass"
    if isinstance(node, ast.Return) and value is not None and ast.unparse(value) != "None":
        return "return False" if ast.unparse(value) == "True" else "return None"
    if swapped := SWAPPED.get(type(operators[0])):
        other = copy.copy(node)
        other.op, other.ops = swapped(), [swapped(), *operators[1:]]
        return f"({ast.unparse(other)})"
    if isinstance(operators[0], ast.Not):
        return f"({ast.unparse(node.operand)})"
    return f"({value + 1})" if isinstance(node, ast.Constant) and type(value) in (int, float) else ""


def mutations(tree: Path) -> dict[str, list[Mutation]]:
    """Return the mutations of each function of a checkout, by its name and syntax without its docstring."""
    found = {}
    for file in sorted((tree / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, FUNCTIONS):
                body = ast.Module(node.body[ast.get_docstring(node) is not None :], [])
                changes = [(file.relative_to(tree), node.name, at, replacement(at)) for at in inner(body)]
                found[f"{node.name} {ast.dump(node.args)} {ast.dump(body)}"] = [one for one in changes if one[3]]
    return found


def plausible(tree: Path, changed: Path, function: str) -> list[Path]:
    """Return the changed file, for its examples, then tests: first those with most of its names, or in its folder."""
    public = re.findall(r"^(?:class|def|async def) ([a-zA-Z]\w+)", (tree / changed).read_text(), re.MULTILINE)
    scores = {}
    for file in sorted(tree.glob("tests/**/test_*.py"), key=lambda file: -file.stat().st_size):
        words = set(re.findall(r"\w+", file.read_text()))
        beside = 2 * (changed.parts[2] in file.parts) + (file.stem.removeprefix("test_") in changed.stem)
        scores[file.relative_to(tree)] = beside + 2 * (function in words) + min(3, len(words & {*public, changed.stem}))
    return [changed, *sorted(scores, key=scores.__getitem__, reverse=True)]


def tested(tree: Path, arguments: list[Any], seconds: int) -> tuple[int, str]:
    """Run pytest, and return its exit code (-9: out of time, so it and what it started was killed) and output."""
    limited = ["env", f"PYTHONPATH={tree / 'src'}", "timeout", "-s", "KILL", str(seconds)]
    command = [*limited, sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *arguments]
    with (tree / "output").open("w+") as output:  # a pipe would be read until all that tests started are gone
        done = subprocess.run(command, cwd=tree, stdout=output, check=False)  # noqa: S603
    return done.returncode, (tree / "output").read_text()


def outcome(tree: Path, mutation: Mutation, given: Any) -> str:
    """Make a mutation, run tests, undo it. Return the test that failed, or in capitals that none did."""
    file, function, node, text = mutation
    lines = (source := (tree / file).read_bytes()).splitlines(keepends=True)
    before, after = lines[node.lineno - 1][: node.col_offset], lines[node.end_lineno - 1][node.end_col_offset :]
    lines[node.lineno - 1 : node.end_lineno] = [before + text.encode() + after]
    (tree / file).write_bytes(b"".join(lines))
    paths = plausible(tree, file, function)[given.skip : given.skip + given.files]
    is_kernel = re.search(rf"^@.*\ndef {function}\b", source.decode(), re.MULTILINE) is not None
    code, output = tested(tree, [*given.options, *paths], given.seconds * (1 + is_kernel))
    (tree / file).write_bytes(source)
    if code in (-9, 0, 5):  # 5: there are no tests
        return "OUT OF TIME" if code == -9 else "SURVIVED"
    return str((re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE) or ["no test began"])[0])


def main() -> None:
    """Print two lines per mutant, then how many were caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in {"count": 40, "seed": 15, "files": 6, "skip": 0, "seconds": 60}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER")
    parser.add_argument("--both", type=Path, default=ROOT, metavar="TREE")
    parser.add_argument("--there", action="store_true")
    parser.add_argument("options", nargs="*", default=["-m", "not full"])
    given, results = parser.parse_args(), []
    here, there = mutations(ROOT), mutations(given.both)
    pairs = [pair for code in here if code in there for pair in zip(here[code], there[code], strict=True)]
    drawn = random.Random(given.seed).sample(pairs, given.count)
    print(f"seed {given.seed}, {given.count} of {len(pairs)} mutations", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = shutil.copytree(given.both if given.there else ROOT, Path(folder) / "tree", ignore=NOT_COPIED)
        for number in given.only or range(given.count):
            file, function, node, text = drawn[number][given.there]
            print(f"{number:3} {file}:{node.lineno} {function}: {ast.unparse(node)} -> {text}", flush=True)
            results.append(outcome(tree, drawn[number][given.there], given))
            print(f"    {results[-1]}", flush=True)
        failed = [result for result in results if not result.isupper()]
        print(f"caught {len(failed)} of {len(results)}; without mutations:", flush=True)
        print(tested(tree, sorted({*failed} - {"no test began"}) or ["--version"], 600)[1][-300:])


if __name__ == "__main__":
    main()
