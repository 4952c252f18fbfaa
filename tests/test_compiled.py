"""Kernels are the same with and without compilation, are kept on disk, and never outlive their sources.

`tests/test_tiers.py` has the change from one to the other.
"""

import ast
import copy
import gc
import importlib
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import zoomrank
from zoomrank.compiled import allocating, compiled, compiled_bulk, inlined, separate
from zoomrank.numba_kernels import kernel_key
from zoomrank.rng import KernelRng, rng_from_handle

SMALL = """
import zoomrank as zr
users = zr.users.two_peaks(zr.DocumentTree.exponential(depth=5, branching=2), seed=1, reading="mixture")
print(users.clicks([0, 9, 17], 40, seed=3).tolist())
"""  # few kernels, for what is true of any
THROW = f"""
import numpy as np
from zoomrank.compiled import compiled
from {KernelRng.__module__} import {KernelRng.__name__}, {rng_from_handle.__name__}
@compiled
def throw(handle):
    return {rng_from_handle.__name__}(handle).random()
dice = {KernelRng.__name__}(np.random.default_rng(5))
print(throw(dice.handle))
"""  # one kernel
SCRIPT = """
import numpy as np, zoomrank as zr
tree = zr.DocumentTree.exponential(depth=5, branching=2)
users = zr.users.two_peaks(tree, seed=1, reading="mixture")
print(users.clicks([0, 9, 17], 40, seed=3).tolist())
print(users.sample(3, seed=4).astype(int).tolist())
print(users.conditional_mean([4, 5]).round(12).tolist())
print(zr.users.two_peaks(tree, seed=1, reading="mutations").greedy(3))
for kind in zr.ZoomRank, zr.RankThompson:
    ranker = kind(tree, slots=3, seed=5)
    for visit in range(15):
        ranking = ranker.rank()
        print(ranking.documents)
        ranker.learn(ranking, visit % 3)
"""


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it in a process that compiles whatever it calls."""
    command = [sys.executable, "-W", "error", "-c", script]
    environment = {**os.environ, "ZOOMRANK_COMPILE": "at-once", **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603


def test_plain_python_gives_the_same_draws() -> None:
    """With the kernels that other tests use, so that they are compiled once for all; and here, not a second time."""
    fast, again, plain = run(SCRIPT), run(SCRIPT), run(SCRIPT, NUMBA_DISABLE_JIT="1")
    assert fast.stdout == again.stdout == plain.stdout
    assert again.stderr == ""


def package_copy(folder: Path) -> Path:
    """A copy of the package, in which what is edited counts: for `PYTHONPATH`."""
    shutil.copytree(Path(zoomrank.__file__).parent, folder / "zoomrank", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_kernels_outlive_edited_comments_and_are_shared_by_clones(tmp_path: Path) -> None:
    run(SMALL)
    clone = package_copy(tmp_path)
    for file in clone.rglob("*.py"):
        file.write_text(f"# edited\n{file.read_text()}")
    assert run(SMALL, PYTHONPATH=str(clone)).stderr == ""


def test_compiled_once_and_said_so_and_again_after_a_callee_in_another_file_was_edited(tmp_path: Path) -> None:
    """Numba alone would go on using a kernel whose callee is another one now."""
    clone, environment = package_copy(tmp_path), {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    first, second = run(THROW, **environment), run(THROW, **environment)
    edit(clone / f"{KernelRng.__module__.replace('.', '/')}.py", "handle[0], handle[1]", "handle[1 - 1], handle[1]")
    third = run(THROW, **environment)
    assert first.stderr.count("this happens once") == third.stderr.count("this happens once") == 1
    assert second.stderr == ""
    assert first.stdout == second.stdout == third.stdout
    assert len(list((tmp_path / "zoomrank-kernels").iterdir())) == 2


PIECES = """
from typing import NamedTuple
from zoomrank.compiled import generic, inlined

def _no_body(state, *_):
    raise TypeError

weigh, on_weigh = generic(_no_body)

@inlined
def square(x):
    "Squared."
    return x * x

def unused(x):
    return x
"""
STATES = """
from typing import NamedTuple
from edited.pieces import on_weigh

SCALE = 3.0
OFFSET = 5.0

class Cold(NamedTuple):
    x: float
    y: float

class Warm(NamedTuple):
    x: float
    y: float

@on_weigh(Cold)
def _cold(state):
    return state.x * SCALE

@on_weigh(Warm)
def _warm(state):
    return state.x + state.y
"""
KERNELS = """
from edited import pieces
from edited.pieces import square, weigh
from zoomrank.compiled import compiled, separate
from edited.states import OFFSET, SCALE

@compiled
def kernel(state, much=2):
    "Weigh."
    if much > 3:  # a comment
        return
    state.x + pieces.square(weigh(state)) * SCALE + OFFSET
"""


def key(folder: Path, *edits: tuple[str, str, str]) -> str:
    """The key of a kernel of a small package in which this was edited."""
    package = folder / str(len(list(folder.iterdir()))) / "edited"
    package.mkdir(parents=True)
    for name, text in (("__init__", ""), ("pieces", PIECES), ("states", STATES), ("kernels", KERNELS)):
        (package / f"{name}.py").write_text(text)
    for name, old, new in edits:
        edit(package / f"{name}.py", old, new)
    for name in [name for name in sys.modules if name.partition(".")[0] == "edited"]:
        del sys.modules[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(package.parent)
        kernels, states = (importlib.import_module(f"edited.{name}") for name in ("kernels", "states"))
    typeof: Any = numba.typeof
    return kernel_key(kernels.kernel, (typeof(states.Cold(1.0, 2.0)), numba.int64))


def test_a_kernel_is_known_by_its_code_wherever_it_is(tmp_path: Path) -> None:
    assert key(tmp_path) == key(tmp_path)


@pytest.mark.parametrize(
    "edited",
    [
        ("kernels", "# a comment", "# another one"),
        ("kernels", "@compiled", "\n\n# further down\n@compiled"),
        ("kernels", '"Weigh."', '"Weigh a state, for somebody who reads this."'),
        ("kernels", '    "Weigh."\n', ""),
        ("kernels", "def kernel(state, much=2)", "def kernel(state: int, much: int = 2) -> None"),
        ("pieces", '    "Squared."\n', ""),
        ("pieces", "    return x\n", "    return 2 * x\n"),  # a function that no kernel calls
        ("states", "state.x + state.y", "state.x - state.y"),  # a body for another class
    ],
)
def test_the_key_of_a_kernel_stays(tmp_path: Path, edited: tuple[str, str, str]) -> None:
    assert key(tmp_path, edited) == key(tmp_path)


@pytest.mark.parametrize(
    "edited",
    [
        ("kernels", "much > 3", "much > 4"),
        ("kernels", "much=2", "much=3"),
        ("kernels", "@compiled", "@separate"),
        ("kernels", "import OFFSET, SCALE", "import SCALE as OFFSET, OFFSET as SCALE"),
        ("kernels", "pieces.square", "square"),
        ("pieces", "x * x", "x * x * x"),
        ("pieces", "inlined", "separate"),
        ("states", "SCALE = 3.0", "SCALE = 3"),
        ("states", "OFFSET = 5.0", "OFFSET = 5.5"),
        ("states", "SCALE = 3.0\nOFFSET = 5.0", "SCALE = 5.0\nOFFSET = 3.0"),
        ("states", "class Cold(NamedTuple):\n    x: float", "class Cold(NamedTuple):\n    w: float"),
        ("states", "state.x * SCALE", "state.y * SCALE"),  # the body for the class among the arguments
    ],
)
def test_the_key_of_a_kernel_changes(tmp_path: Path, edited: tuple[str, str, str]) -> None:
    assert key(tmp_path, edited) != key(tmp_path)


def uncalled_kernels(source: str) -> set[str]:
    """Private kernels of a module that nothing but kernels calls."""
    roots, called = set(), set()
    for node in ast.parse(source).body:
        marks = {mark.id for mark in getattr(node, "decorator_list", ()) if isinstance(mark, ast.Name)}
        if isinstance(node, ast.FunctionDef) and marks & {compiled.__name__, compiled_bulk.__name__}:
            roots.add(node.name)
        elif not marks & {inlined.__name__, separate.__name__, allocating.__name__}:
            called |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    return {name for name in roots if name.startswith("_")} - called


def test_private_kernels_that_only_kernels_call_are_pieces_of_them() -> None:
    """A kernel gets a way to be called from Python and a place in the cache: in vain, if only kernels call it."""
    sources = {file: file.read_text() for file in Path(zoomrank.__file__).parent.rglob("*.py")}
    kernels = {file: text for file, text in sources.items() if "from zoomrank.compiled import" in text}
    assert {file: found for file, text in kernels.items() if (found := uncalled_kernels(text))} == {}


def test_old_kernels_go_and_nothing_else_does(tmp_path: Path) -> None:
    kernels = tmp_path / "zoomrank-kernels"
    old, foreign = kernels / ("0123456789abcdef"), tmp_path / "zoomrank-results"
    mine = kernels / "notes"
    for folder in (old, foreign, mine):
        folder.mkdir(parents=True)
        os.utime(folder, (0, 0))
    run("import zoomrank as zr; zr.DocumentTree.exponential(3)", NUMBA_CACHE_DIR=str(tmp_path))
    assert not old.exists()
    assert foreign.exists()
    assert mine.exists()


def test_a_home_that_cannot_be_written_to(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    result = run(
        "import zoomrank; print(len(zoomrank.DocumentTree.exponential(3)))", NUMBA_CACHE_DIR=str(blocked / "x")
    )
    assert result.stdout == "8\n"


def test_kernels_of_a_folder_that_cannot_be_written_to_are_used(tmp_path: Path) -> None:
    tiny = "import zoomrank as zr; print(len(zr.DocumentTree.exponential(3)))"
    run(tiny, NUMBA_CACHE_DIR=str(tmp_path))
    blocked = """
import os
def refused(*_):
    raise PermissionError("a root that is read-only")
os.mkdir = os.utime = os.replace = refused
"""
    assert run(blocked + tiny, NUMBA_CACHE_DIR=str(tmp_path)).stderr == ""  # nothing had to be compiled


@compiled
def _throws(handle: Any) -> Any:
    rng = rng_from_handle(handle)
    return rng.random(), rng.beta(2.0, 3.0), rng.integers(0, 1000)


def test_dice_are_the_generator_they_were_made_of() -> None:
    generator, same = np.random.default_rng(5), np.random.default_rng(5)
    dice = KernelRng(generator)
    for _ in range(100):
        assert _throws(dice.handle) == (same.random(), same.beta(2.0, 3.0), same.integers(0, 1000))
        assert generator.random() == same.random()  # both move the same one on


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda dice: pickle.loads(pickle.dumps(dice))])  # noqa: S301
def test_copied_dice_go_their_own_way(copied: Callable[[KernelRng], KernelRng]) -> None:
    dice = KernelRng(np.random.default_rng(5))
    other = copied(dice)
    first = [_throws(dice.handle) for _ in range(3)]
    del dice
    gc.collect()
    assert [_throws(other.handle) for _ in range(3)] == first
