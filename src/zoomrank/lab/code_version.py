"""The version of the code that made a row: the release, and a hash of every source that rows depend on."""

import hashlib
import re
from functools import cache
from pathlib import Path

from zoomrank import __version__
from zoomrank.compiled import without_docstrings

_PACKAGE = Path(__file__).parents[1]
_ROOT = "lab/one_run.py"
_IMPORTS = re.compile(r"^ *from zoomrank\.([a-z0-9_.]+) import", re.MULTILINE)


@cache
def this_version() -> str:
    """Return the version: rows of one version can stand beside each other, whatever comments and docstrings say."""
    digest = hashlib.sha256()
    for name, text in sources().items():
        digest.update(f"{name}\n{without_docstrings(text)}\n".encode())
    return f"{__version__}+{digest.hexdigest()[:12]}"


def sources() -> dict[str, str]:
    """Return the sources that rows come from, by file: those of runs and of all kernels, and all that these import."""
    texts = {file.relative_to(_PACKAGE).as_posix(): file.read_text("utf-8") for file in _PACKAGE.rglob("*.py")}
    wanted = {name for name, text in texts.items() if "from zoomrank.compiled import" in text} | {_ROOT}
    todo = list(wanted)
    while todo:
        for module in _IMPORTS.findall(texts[todo.pop()]):
            path = module.replace(".", "/")
            found = {f"{path}.py", f"{path}/__init__.py"} & texts.keys() - wanted
            wanted |= found
            todo += found
    return {name: texts[name] for name in sorted(wanted)}
