"""Hold the wording rules that a program can hold: `python -m tools.lint_words`, part of `make lint`.

- Docstrings open with a verb or a noun. One that opens with "What", "Who" or "Whether" makes the reader solve a riddle
  before learning what the thing is.
- No "somebody", "nobody" or "she" for a process, a caller or a request: naming the actor (the owner, the client, the
  visitor) says the same and cannot be misread.
- Modules are nouns. A gerund hints at an activity and leaves open what is inside; those of the field are listed.
- A class name means one thing in the whole package, so that a search for it finds one thing.
- No folder holds more modules than a reader takes in at a glance.
- The package stays within its budget of code: what is added is paid for by what is removed.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from tools.counts import PACKAGE, ROOT, lines_of_code

MOST_MODULES_IN_A_FOLDER = 15
MOST_LINES_OF_CODE = 30_000
RIDDLE = re.compile(
    r"(What|Who|Whom|Whose|Where|Whether|How|Which|When|Nobody|Somebody|Whoever|Anybody|Everybody|As|If)\b"
)
PRONOUN = re.compile(r"\b(somebody|nobody|whoever|anybody|everybody|whom|she|her|hers)\b", re.IGNORECASE)
# Words that the field uses for the thing itself, not for an activity.
NOUNS = {
    "clustering",
    "contextual_zooming",
    "covering",
    "forwarding",
    "housekeeping",
    "judging",
    "path_zooming",
    "query_zooming",
    "ranking",
    "zooming",
}
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every docstring."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every comment."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def wording(path: Path, tree: ast.Module, text: str) -> Iterator[str]:
    """Yield what one file says in words that the rules ban."""
    name = path.relative_to(ROOT)
    for line, docstring in docstrings(tree):
        if RIDDLE.match(docstring):
            yield f"{name}:{line}: open the docstring with a verb or a noun: {docstring.splitlines()[0]}"
    for line, words in [*docstrings(tree), *comments(text)]:
        found = PRONOUN.search(words)
        if found:
            yield f"{name}:{line}: name the actor instead of “{found.group()}”"


def findings() -> Iterator[str]:
    """Yield everything that breaks a rule."""
    classes = defaultdict(list)
    folders: Counter[Path] = Counter()
    code = 0
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        tree = ast.parse(text)
        folders[path.parent] += 1
        code += lines_of_code(path)
        yield from wording(path, tree, text)
        name = path.parent.name if path.stem == "__init__" else path.stem
        if name.endswith("ing") and name not in NOUNS:
            yield f"{path.relative_to(ROOT)}: name the module by a noun"
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    for name, places in classes.items():
        if len(places) > 1:
            yield f"{' and '.join(places)}: two classes are called {name}: give one of them another name"
    for folder, count in folders.items():
        if count > MOST_MODULES_IN_A_FOLDER:
            yield f"{folder.relative_to(ROOT)}: {count} modules; merge some, {MOST_MODULES_IN_A_FOLDER} are the most"
    if code > MOST_LINES_OF_CODE:
        yield f"src: {code:,} lines of code; remove some, {MOST_LINES_OF_CODE:,} are the budget"


def main() -> None:
    """Print the findings; exit with 1 if there are any."""
    found = list(findings())
    for finding in found:
        print(finding)
    if found:
        sys.exit(1)
    print("The wording rules are kept.")


if __name__ == "__main__":
    main()
