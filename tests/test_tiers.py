"""Tiers: a kernel that is interpreted first and compiled later makes the same choices, with the same state."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zoomrank as zr
from zoomrank import compiled
from zoomrank.compiled import KERNELS, expecting
from zoomrank.rankers.registry import RANKERS

TREE = zr.DocumentTree.exponential(depth=6)
SLOTS, VISITS = 4, 150
QUERIES = [f"query {number % 3} {number}" for number in range(5)]


@contextlib.contextmanager
def tier(name: str) -> Iterator[None]:
    """Compile all kernels that are called within, or interpret them all."""
    for kernel in KERNELS:
        kernel._call = kernel.choose if name == "compiled" else kernel._interpret
    with expecting(np.inf):
        yield
    for kernel in KERNELS:
        kernel._call = kernel.dispatcher or kernel.choose


def always(name: str) -> Callable[[int], str]:
    return lambda visit: name


def switched(visits: set[int]) -> Callable[[int], str]:
    """The tier changes after each of these visits, as far as they go."""
    return lambda visit: "compiled" if sum(one <= visit for one in visits) % 2 else "interpreted"


def made(name: str) -> Any:
    if name == "QueryRank":
        ranker = zr.QueryRank(TREE, zr.QueryTree.by_words(), SLOTS, live=3, seed=3)
        ranker.name = "the same in all runs"
        return ranker
    kind: Any = RANKERS[name]
    return kind(TREE, SLOTS, seed=3, **({"horizon": 3_000} if kind.bandit_kind.needs_horizon else {}))


def loaded(ranker: Any, folder: Path) -> Any:
    ranker.save(folder / "saved")
    return (
        zr.QueryRank.load(folder / "saved")
        if isinstance(ranker, zr.QueryRank)
        else zr.load(folder / "saved", ranker.tree)
    )


def learned(ranker: Any) -> bytes:
    """Everything that a ranker has learned, bit for bit."""
    if isinstance(ranker, zr.QueryRank):
        return b"".join(ranker.learners().values())
    return b"".join(np.asarray(part).tobytes() for part in ranker.state)


def live(name: str, tier_at: Callable[[int], str], folder: Path, visits: int, seed: int = 8) -> tuple[Any, bytes]:
    """Let a ranker rank and learn: some restricted lists, late feedback, growth, saved and loaded in between."""
    chance, ranker, tree = np.random.default_rng(seed), made(name), TREE
    alone = not isinstance(ranker, zr.QueryRank)
    shown, late = [], []
    for visit in range(visits):
        with tier(tier_at(visit)):
            asked: list[Any] = [] if alone else [QUERIES[int(chance.integers(len(QUERIES)))]]
            options: dict[str, Any] = {}
            if chance.random() < 0.1 and (not alone or ranker.bandit.restrictable):
                options["eligible"] = chance.permutation(len(TREE))[: 2 * SLOTS].tolist()
            ranking = ranker.rank(*asked, **options)
            shown.append((ranking.documents, repr(ranking.propensities)))
            near = [abs(tree.documents.position(document) - 21) for document in ranking.documents]
            liked = 0.5 * np.exp(-np.array(near) / 4) + 0.02 > chance.random(SLOTS)
            late.append((ranking, int(np.argmax(liked)) if liked.any() else None))
            while len(late) > 6 * chance.random():
                ranker.learn(*late.pop(int(chance.integers(len(late)))))
            if chance.random() < 0.02:
                if alone and ranker.bandit.growable:
                    tree = tree.grown({f"new {visit}": int(chance.integers(len(TREE)))})
                    ranker.grow(tree)
                ranker = loaded(ranker, folder)
    return shown, learned(ranker)


@pytest.mark.parametrize("name", [*RANKERS, "QueryRank"])
def test_all_tiers_make_the_same_choices_and_states(name: str, tmp_path: Path) -> None:
    after_half = switched({VISITS // 2})
    runs = [live(name, one, tmp_path, VISITS) for one in (always("interpreted"), always("compiled"), after_half)]
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.full
@pytest.mark.parametrize("name", [*RANKERS, "QueryRank"])
def test_in_two_thousand_visits(name: str, tmp_path: Path) -> None:
    runs = [live(name, one, tmp_path, 2_000) for one in (always("interpreted"), switched({1_000}), always("compiled"))]
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.parametrize("name", ["ZoomRank", "RankContextZoom", "QueryRank"])
@settings(max_examples=5)
@given(visits=st.sets(st.integers(0, VISITS), max_size=12), seed=st.integers(0, 1_000))
def test_a_tier_may_change_at_any_moment(
    name: str, visits: set[int], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("switched")
    before, after = (live(name, one, folder, VISITS, seed) for one in (always("compiled"), switched(visits)))
    assert before == after


BESIDE = """
import time
from zoomrank import compiled
compiled.LOADING = compiled.COMPILING = 0.0  # it pays from the first call on
import zoomrank as zr
users = zr.users.two_peaks(zr.DocumentTree.exponential(depth=5, branching=2), seed=1)
before = users.clicks([0, 9, 17], 40, seed=3).tolist()
kernel = next(kernel for kernel in compiled.KERNELS if kernel.name == "first_clicks")
assert kernel.dispatcher is None or not kernel.dispatcher.overloads
end = time.monotonic() + 300
while compiled.tiers()["compiled"] == 0 and time.monotonic() < end:
    time.sleep(0.01)
print(users.clicks([0, 9, 17], 40, seed=3).tolist() == before, compiled.tiers())
"""


@pytest.mark.full
def test_a_kernel_is_compiled_beside_the_program_and_then_used(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    shown = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "error", "-c", BESIDE], env=environment, capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("True {'compiled': 1")
    assert shown.stderr == ""
    assert list((tmp_path / "zoomrank-kernels").glob("*/first_clicks*.nbi"))


ENDS_SOON = """
from zoomrank import compiled
compiled.LOADING = compiled.COMPILING = 0.0
import zoomrank as zr
ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=5), slots=2, seed=1)
ranker.learn(ranker.rank(), click=0)
print("done")
"""


def test_a_program_may_end_while_a_kernel_is_prepared() -> None:
    shown = subprocess.run([sys.executable, "-c", ENDS_SOON], capture_output=True, text=True, check=True)  # noqa: S603
    assert (shown.stdout, shown.stderr) == ("done\n", "")


def test_much_work_in_small_pieces_waits_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many short simulations do, which keep all cores from the compiler; a service does not, as it says nothing."""
    waited: list[bool] = []

    def prepare(_: Any, __: Any, compile_it: bool) -> bool:
        waited.append(compile_it)
        return False

    monkeypatch.setattr(compiled, "_prepare", prepare)
    monkeypatch.setattr(compiled, "AT_ONCE", False)
    kernel = compiled.Kernel(lambda number: number)
    compiled.KERNELS.remove(kernel)
    kernel.spent[(int,)] = compiled.WAITING
    assert kernel.choose(1) == 1
    assert waited == []
    with expecting(0.01):
        assert kernel.choose(1) == 1
    assert waited == [True]
    with expecting(0.01):  # of other types there was none
        kernel.choose("")
    assert waited == [True]


def test_work_that_is_known_to_be_much_waits_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few visitors are interpreted, many are not."""
    asked = []
    monkeypatch.setattr("zoomrank.compiled._prepare", lambda kernel, _, compile_it: asked.append(compile_it))
    users = zr.users.two_peaks(TREE, seed=1)
    kernel = next(kernel for kernel in KERNELS if kernel.name == "first_clicks")
    monkeypatch.setattr(kernel, "_call", kernel.choose)
    users.clicks([1, 2], 10, seed=1)
    assert asked == []
    with expecting(1_000.0):
        users.clicks([1, 2], 10, seed=1)
    assert asked == [True]


FIRST_VISIT = """
import sys
import zoomrank as zr
ranker = zr.ZoomRank(zr.DocumentTree.from_paths({"owl": "Birds", "hen": "Birds", "pike": "Fish"}), slots=2, seed=1)
ranker.learn(ranker.rank(), click=0)
ranker.explain(ranker.rank())
print([name for name in ("numba", "scipy", "zoomrank.lab", "zoomrank.users") if name in sys.modules])
"""


@pytest.mark.parametrize("script", [FIRST_VISIT, "import zoomrank; print([])"])
def test_first_visits_load_no_compiler(script: str) -> None:
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert shown.stdout == "[]\n"


def test_help_loads_no_compiler() -> None:
    script = "import sys; from zoomrank.cli import main; main(['--help'])"
    shown = subprocess.run(  # noqa: S603
        [sys.executable, "-X", "importtime", "-c", script], capture_output=True, text=True, check=True
    )
    assert "usage: zoomrank" in shown.stdout
    assert not {"numba", "numpy", "scipy"} & {line.rpartition("|")[2].strip() for line in shown.stderr.splitlines()}
