"""Decorators that make kernels: functions on arrays that run as plain Python at first, and compiled once that pays.

- `@compiled`: a kernel that Python calls; `@compiled_for(seconds)`: one that may do much in a call;
- `@compiled_bulk`: one that goes through whole collections;
- `@inlined`, `@separate`, `@allocating`: pieces of kernels, compiled only as parts of the kernels that call them;
- `generic`: a piece with one body per class of state;
- `when_compiling`: what only compiled code needs, done when Numba is loaded.

Compiling the kernels of a learner takes seconds, one call of them as plain Python milliseconds, and both do the same to
the same arrays and random numbers. So a kernel is interpreted until the time spent on that shows that machine code
pays. Then it is looked up in the cache on disk, and later compiled, both beside the program; the next call uses it. A
caller that knows how much work there is says so (`expecting`), and much work waits for the compiler. Until then nothing
loads Numba, which takes longer than the first rankings.

State that kernels work on is a `NamedTuple` of arrays: unlike a jitclass it is cached across processes, and unlike
functions passed as arguments it does not defeat the cache. `generic` picks the body by the class of that state, when
compiled and when interpreted alike.

`NUMBA_DISABLE_JIT=1` never compiles; `ZOOMRANK_COMPILE=at-once` never interprets.
"""

import ast
import atexit
import collections
import contextlib
import functools
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import ModuleType
from typing import Any, TypeVar, cast

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])
Scalar = Any  # a number inside a kernel: NumPy's and Python's own mix there

# Seconds of plain Python after which it pays to look for machine code of a kernel in the cache; to compile it beside
# the program; and to wait until it is compiled, which takes less for one that goes through whole collections.
LOADING, COMPILING = 0.3, 3.0
WAITING, WAITING_FOR_BULK = 10.0, 1.0
NEVER = os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}
AT_ONCE = os.environ.get("ZOOMRANK_COMPILE") == "at-once"  # by processes that fill the cache, and by tests

# Pieces of kernels are compiled without reference counting (they never allocate): Numba would otherwise count
# references to every array of a state on every call, which costs more than most kernels do. Nor do they get a way to be
# called from Python, which would take longer to compile than the pieces themselves.
_NO_WRAPPERS: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
PIECE: Any = {"forceinline": True, "_nrt": False, **_NO_WRAPPERS}

_LARGEST_EXPONENT = 709.0
PIECES: dict[Any, dict[str, Any]] = {}  # options of Numba for each piece
KERNELS: "list[Kernel]" = []
GENERICS: dict[Any, Callable[..., Any]] = {}  # for each generic piece, what picks its body
PREPARATIONS: list[Callable[[], None]] = []


def inlined(function: Function) -> Function:
    """Compile a piece of a kernel into its callers. It must not make arrays, and only kernels can call it."""
    PIECES[function] = PIECE
    return function


def separate(function: Function) -> Function:
    """Compile a piece of a kernel that is large, or called from many places, once: compiling takes less time."""
    PIECES[function] = {**PIECE, "forceinline": False}
    return function


def allocating(function: Function) -> Function:
    """Compile a piece of a kernel that makes arrays."""
    PIECES[function] = _NO_WRAPPERS
    return function


def compiled(function: Function) -> Function:
    """Make a kernel. Exact arithmetic: no fastmath."""
    return cast(Function, Kernel(function))


def compiled_for(seconds: Callable[..., float], bulk: bool = False) -> Callable[[Any], Any]:
    """Make a kernel that may do much in a call: `seconds` of its arguments is what it takes in plain Python, about."""
    return lambda function: Kernel(function, bulk, seconds)


def compiled_bulk(function: Function) -> Function:
    """Make a kernel that goes through all of its arrays: it is compiled at once if they are large.

    It releases the GIL, so that other threads run meanwhile. To do so takes longer than most kernels; they keep it.
    """
    return cast(Function, Kernel(function, bulk=True))


def generic(
    function: Callable[..., Any],
) -> tuple[Callable[..., Any], Callable[[type], Callable[[Function], Function]]]:
    """Make a piece that picks its body by the class of its first argument: returns `(piece, register)`.

    Kernels call `piece`; `@register(State)` adds a body. `function` itself is called, in plain Python only, for a
    class without a body.
    """
    piece = functools.singledispatch(function)
    bodies: dict[type, Callable[..., Any]] = {}
    GENERICS[piece] = lambda state, *_: bodies.get(getattr(state, "instance_class", type(None)))

    def register(state: type) -> Callable[[Function], Function]:
        def add(body: Function) -> Function:
            bodies[state] = body
            piece.register(state)(body)
            return body

        return add

    return piece, register


def when_compiling(prepare: Callable[[], None]) -> Callable[[], None]:
    """Do something once, before the first kernel is compiled or loaded: such as to tell Numba of a function."""
    PREPARATIONS.append(prepare)
    return prepare


def flat(name: str, *parts: type) -> Any:
    """Make one flat `NamedTuple` class of the fields of several.

    States are written in parts that mean something, but compiled code counts references to everything inside a nested
    tuple each time it is touched; in a flat one it does not.
    """
    fields = [field for part in parts for field in part.__annotations__]
    module = sys._getframe(1).f_globals["__name__"]  # by which the cache finds the class again
    return collections.namedtuple(name, fields, module=module)


@inlined
def exp(x: Scalar) -> Scalar:
    """Return the exponential of a number.

    Kernels use this, and `math.log`: NumPy's own differ in the last digit from what Numba compiles, on some machines.
    """
    return math.exp(x) if x < _LARGEST_EXPONENT else math.inf


# Tiers: when a kernel is interpreted, and when it is compiled.

_EXPECTED: ContextVar[float] = ContextVar("expected", default=0.0)
_PER_ELEMENT = 1e-6  # seconds that a kernel takes in plain Python for an element of an array


@contextlib.contextmanager
def expecting(seconds: float) -> Iterator[None]:
    """Say how long the kernels called in this context would take in plain Python: compile them at once if that is long.

    Parameters
    ----------
    seconds
        All calls together; infinity: compile whatever is called.
    """
    token = _EXPECTED.set(seconds)
    try:
        yield
    finally:
        _EXPECTED.reset(token)


class Kernel:
    """A function on arrays that Python calls.

    Attributes
    ----------
    py_func
        The function as plain Python.
    name
        Its name in its module.
    bulk
        It goes through all of its arrays, and releases the GIL.
    dispatcher
        Numba's, once something is compiled: it calls the machine code for the types of the arguments, and `choose`
        where there is none.
    spent
        Seconds of plain Python, for each combination of classes of arguments.
    """

    def __init__(
        self, function: Callable[..., Any], bulk: bool = False, seconds: Callable[..., float] | None = None
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.bulk, self.name = function, bulk, function.__qualname__
        self._seconds = seconds
        self.dispatcher: Any = None
        self._call: Callable[..., Any] = self._interpret if NEVER else self.choose
        self.spent: dict[Any, float] = {}
        KERNELS.append(self)

    def __call__(self, *arguments: Any) -> Any:
        """Run it."""
        return self._call(*arguments)

    def __reduce__(self) -> str:
        return self.name  # pickled by its name, as functions are

    @property
    def _numba_type_(self) -> Any:
        """Type by which Numba knows it where another kernel calls it."""
        return _numba().types.Dispatcher(_numba().dispatcher_of(self))

    def use(self, dispatcher: Any) -> None:
        """Call machine code from now on, where there is some."""
        self.dispatcher = dispatcher
        self._call = dispatcher

    def choose(self, *arguments: Any) -> Any:
        """Run a call for whose types there is no machine code yet."""
        seconds = math.inf if AT_ONCE else _EXPECTED.get()
        if (
            seconds > 0.0
        ):  # with what was done before: many small pieces of work are much, and may keep a compiler waiting
            seconds += self.spent.get(_kind(arguments), 0.0)
        if self._seconds is not None:
            seconds = max(seconds, self._seconds(*arguments))
        if self.bulk:
            seconds = max(seconds, self.spent.get(None, 0.0) + _PER_ELEMENT * _elements(arguments))
        if seconds > LOADING and _prepare(self, arguments, seconds > (WAITING_FOR_BULK if self.bulk else WAITING)):
            return self.dispatcher(*arguments)
        start = time.perf_counter()
        result = self._interpret(*arguments)
        self._account(arguments, time.perf_counter() - start)
        return result

    def _interpret(self, *arguments: Any) -> Any:
        with np.errstate(over="ignore"):  # integers in kernels wrap around
            return self.py_func(*arguments)

    def _account(self, arguments: tuple[Any, ...], seconds: float) -> None:
        """Add up the time spent in plain Python; get machine code beside the program once that pays."""
        kind = None if self.bulk else _kind(arguments)
        before = self.spent.get(kind, 0.0)
        self.spent[kind] = before + seconds
        passed = [limit for limit in (LOADING, COMPILING) if before <= limit < before + seconds]
        if passed and not self.bulk:
            _prepare_beside(self, arguments, passed[-1] == COMPILING)


def _kind(arguments: tuple[Any, ...]) -> tuple[type, ...]:
    return tuple(map(type, arguments))


def tiers() -> dict[str, int]:
    """Count the kernels in use that are compiled, for whatever types, and those that are only interpreted so far."""
    found = {"compiled": 0, "interpreted": 0}
    for kernel in KERNELS:
        if kernel.dispatcher is not None and kernel.dispatcher.overloads:
            found["compiled"] += 1
        elif kernel.spent:
            found["interpreted"] += 1
    return found


# One thread at a time imports Numba and loads machine code, and none once the program ends: a thread that is in LLVM
# then could end it with an error. One process at a time compiles.
_LOADING, _COMPILING = threading.RLock(), threading.Lock()
atexit.register(_LOADING.acquire, timeout=5.0)


def _prepare(kernel: Kernel, arguments: tuple[Any, ...], compile_it: bool, quietly: bool = False) -> bool:
    """Load the machine code of a kernel for arguments of these types, or else compile it if asked to.

    What takes long to compile is compiled by another process, for the cache: only this thread waits. Returns whether
    there is machine code.
    """
    with _LOADING:
        signature = _numba().signature_of(arguments)
        if _numba().make_ready(kernel, signature, compile_it and (AT_ONCE or kernel.bulk)):
            return True
    if compile_it:
        with _COMPILING:
            _numba().fill_cache_beside(kernel, signature, quietly)
        with _LOADING:
            _numba().make_ready(kernel, signature, True)  # from the cache, unless that process could not do it
    return compile_it


def _prepare_beside(kernel: Kernel, arguments: tuple[Any, ...], compile_it: bool) -> None:
    """Do the same in a thread of its own."""
    threading.Thread(
        target=_prepare, args=(kernel, arguments, compile_it, True), name=f"prepare {kernel.name}", daemon=True
    ).start()


def _elements(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(map(_elements, value))
    return int(getattr(value, "size", 0))


def _numba() -> ModuleType:
    """Return the part that needs Numba, which takes long to import."""
    from zoomrank import numba_kernels

    return numba_kernels


def without_docstrings(source: str) -> str:
    """Return the syntax tree of a module as text: without docstrings, comments and line numbers."""
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree)
