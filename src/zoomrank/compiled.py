"""How zoomrank compiles: `@compiled` for kernels, `@alongside` for those beside which other threads run, `@generic` for
kernels with one body per kind of state.

Numba keeps compiled kernels on disk, but does not notice that a *callee in another file* was edited. So the
cache lives in a folder named by a hash of the package's sources: other sources, other folder, never a stale kernel.

State that kernels work on is a `NamedTuple` of arrays: unlike a jitclass it is cached across processes, and unlike
functions passed as arguments it does not defeat the cache. `@generic` picks the body by the class of that state, when
compiled and when run as plain Python (`NUMBA_DISABLE_JIT=1`) alike.
"""

import atexit
import collections
import contextlib
import functools
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numba.core.event
import numba.extending
import numpy as np
import platformdirs

Function = TypeVar("Function", bound=Callable[..., Any])
Scalar = Any  # a number inside a kernel: NumPy's and Python's own mix there

_settings: Any = numba.config  # a module that Numba fills at import
if _settings.DISABLE_JIT:
    np.seterr(over="ignore")  # whole numbers in kernels wrap around, and say nothing of it
_PACKAGE = Path(__file__).parent
_HASH_DIGITS = 16
_FORGET_AFTER_DAYS = 14
_IMPORTS = re.compile(rb"^ *from zoomrank\.([a-z0-9_.]+) import", re.MULTILINE)


def sources(*roots: str) -> dict[str, bytes]:
    """The sources that numbers come from: modules that have kernels and those named, and all that these import.

    `roots` are files such as "lab/one_run.py".
    """
    texts = {file.relative_to(_PACKAGE).as_posix(): file.read_bytes() for file in _PACKAGE.rglob("*.py")}
    wanted = {name for name, text in texts.items() if b"from zoomrank.compiled import" in text} | {*roots}
    todo = list(wanted)
    while todo:
        for module in _IMPORTS.findall(texts[todo.pop()]):
            path = module.decode().replace(".", "/")
            found = {f"{path}.py", f"{path}/__init__.py"} & texts.keys() - wanted
            wanted |= found
            todo += found
    return {name: texts[name] for name in sorted(wanted)}


def source_hash(*roots: str) -> str:
    """Name these sources: other sources, another name."""
    digest = hashlib.sha256()
    for name, text in sources(*roots).items():
        digest.update(name.encode())
        digest.update(text)
    return digest.hexdigest()[:_HASH_DIGITS]


def _cache_folder() -> Path:
    """The folder for kernels of exactly these sources; folders of other sources that nobody used lately go."""
    root = Path(_settings.CACHE_DIR or platformdirs.user_cache_dir("zoomrank")) / "zoomrank-kernels"
    folder = root / source_hash()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        for other in root.glob("[0-9a-f]" * _HASH_DIGITS):  # nothing but what this function made
            if time.time() - other.stat().st_mtime > _FORGET_AFTER_DAYS * 86_400:
                shutil.rmtree(other, ignore_errors=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:  # it cannot be written to: what it has is used, and what it lacks compiled for this process alone
        mine = Path(tempfile.mkdtemp(prefix="zoomrank-kernels-"))
        atexit.register(shutil.rmtree, mine, ignore_errors=True)
        with contextlib.suppress(OSError):  # there may be none
            shutil.copytree(folder, mine, dirs_exist_ok=True)
        return mine


class _CompilationNotice(numba.core.event.Listener):
    """Says once, on stderr, why the first call takes long."""

    said = False

    def on_start(self, event: Any) -> None:
        module = event.data["dispatcher"].py_func.__module__ or ""
        if not self.said and module.startswith("zoomrank."):
            self.said = True
            sys.stderr.write("zoomrank: compiling for this machine; this happens once\n")

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


_CACHE = _cache_folder()
_listen: Any = numba.core.event.register
_listen("numba:compile", _CompilationNotice())


# Pieces of kernels are compiled into their callers and without reference counting (they never allocate): Numba would
# otherwise count references to every array of a state on every call, which costs more than most kernels do. Nor do they
# get a way to be called from Python, which would take longer to compile than the pieces themselves.
_PIECE: Any = {"forceinline": True, "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def inlined(function: Function) -> Function:
    """Compile a piece of a kernel into its callers. It must not make arrays, and only kernels can call it."""
    return cast(Function, numba.njit(**_PIECE)(function))


def separate(function: Function) -> Function:
    """Compile a piece of a kernel that is large, or called from many places, once: compiling takes less time."""
    return cast(Function, numba.njit(**{**_PIECE, "forceinline": False})(function))


def compiled(function: Function) -> Function:
    """Compile a kernel on first use and keep it on disk. Exact arithmetic: no fastmath."""
    return _kept(function)


def alongside(function: Function) -> Function:
    """Compile a kernel that goes through a whole collection: other threads run meanwhile, as they do not beside others.

    To let them, and to have a turn again, takes longer than most kernels do.
    """
    return _kept(function, nogil=True)


def _kept(function: Function, **options: Any) -> Function:
    before = _settings.CACHE_DIR
    _settings.CACHE_DIR = str(_CACHE)  # read when the decorator runs, so others' kernels stay where they were
    try:
        return cast(Function, numba.njit(cache=True, **options)(function))
    finally:
        _settings.CACHE_DIR = before


def generic(
    function: Callable[..., Any],
) -> tuple[Callable[..., Any], Callable[[type], Callable[[Function], Function]]]:
    """Make a kernel that picks its body by the class of its first argument: returns `(kernel, register)`.

    Kernels call `kernel`; `@register(State)` adds a body. `function` itself is called, in plain Python only, for a
    class without a body.
    """
    kernel = functools.singledispatch(function)
    bodies: dict[type, Callable[..., Any]] = {}

    def choose(state: Any, *_: Any) -> Callable[..., Any] | None:
        return bodies.get(getattr(state, "instance_class", type(None)))

    # Not strict: that would demand that `choose` and every body agree in parameter names and annotations.
    numba.extending.overload(kernel, strict=False, jit_options=_PIECE)(choose)

    def register(state: type) -> Callable[[Function], Function]:
        def add(body: Function) -> Function:
            bodies[state] = body
            kernel.register(state)(body)
            return body

        return add

    return kernel, register


def flat(name: str, *parts: type) -> Any:
    """Make one flat `NamedTuple` class of the fields of several.

    States are written in parts that mean something, but compiled code counts references to everything inside a nested
    tuple each time it is touched; in a flat one it does not.
    """
    fields = [field for part in parts for field in part.__annotations__]
    module = sys._getframe(1).f_globals["__name__"]  # by which the cache finds the class again
    return collections.namedtuple(name, fields, module=module)
