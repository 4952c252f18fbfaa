"""Decorators that compile kernels, and the cache that keeps compiled kernels on disk.

- `@compiled`: a kernel that Python calls; `@compiled_nogil`: one beside which other threads run;
- `@inlined`, `@separate`, `@allocating`: pieces of kernels, compiled only as parts of the kernels that call them;
- `generic`: a piece with one body per class of state.

Numba keeps compiled kernels too, but by the file that defines them: it does not notice an edited *callee in another
file*, and compiles again after an edited comment or in another clone. Here a kernel is kept under a key of all the code
that goes into it (see `kernel_key`): a stale kernel is never loaded, and no other edit makes one compile again.

State that kernels work on is a `NamedTuple` of arrays: unlike a jitclass it is cached across processes, and unlike
functions passed as arguments it does not defeat the cache. `generic` picks the body by the class of that state, when
compiled and when run as plain Python (`NUMBA_DISABLE_JIT=1`) alike.
"""

import ast
import collections
import contextlib
import dis
import enum
import functools
import hashlib
import inspect
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numba
import numba.core.event
import numba.extending
import numpy as np
import platformdirs
from numba.core import caching, types
from numba.core.dispatcher import Dispatcher

Function = TypeVar("Function", bound=Callable[..., Any])
Scalar = Any  # a number inside a kernel: NumPy's and Python's own mix there

_settings: Any = numba.config  # a module that Numba fills at import
if _settings.DISABLE_JIT:
    np.seterr(over="ignore")  # integers in kernels wrap around without a warning

# Pieces of kernels are compiled without reference counting (they never allocate): Numba would otherwise count
# references to every array of a state on every call, which costs more than most kernels do. Nor do they get a way to be
# called from Python, which would take longer to compile than the pieces themselves.
_NO_WRAPPERS: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_PIECE: Any = {"forceinline": True, "_nrt": False, **_NO_WRAPPERS}


def inlined(function: Function) -> Function:
    """Compile a piece of a kernel into its callers. It must not make arrays, and only kernels can call it."""
    return cast(Function, numba.njit(**_PIECE)(function))


def separate(function: Function) -> Function:
    """Compile a piece of a kernel that is large, or called from many places, once: compiling takes less time."""
    return cast(Function, numba.njit(**{**_PIECE, "forceinline": False})(function))


def allocating(function: Function) -> Function:
    """Compile a piece of a kernel that makes arrays."""
    return cast(Function, numba.njit(**_NO_WRAPPERS)(function))


def compiled(function: Function) -> Function:
    """Compile a kernel on first use and keep it on disk. Exact arithmetic: no fastmath."""
    return _cached(function)


def compiled_nogil(function: Function) -> Function:
    """Compile a kernel that goes through a whole collection: it releases the GIL, so that other threads run meanwhile.

    To release and take the GIL takes longer than most kernels do; the others keep it.
    """
    return _cached(function, nogil=True)


def _cached(function: Function, **options: Any) -> Function:
    kernel = numba.njit(**options)(function)
    if not _settings.DISABLE_JIT:
        kernel._cache = _KernelCache(kernel)  # what `cache=True` assigns, too
    return cast(Function, kernel)


def generic(
    function: Callable[..., Any],
) -> tuple[Callable[..., Any], Callable[[type], Callable[[Function], Function]]]:
    """Make a piece that picks its body by the class of its first argument: returns `(piece, register)`.

    Kernels call `piece`; `@register(State)` adds a body. `function` itself is called, in plain Python only, for a
    class without a body.
    """
    piece = functools.singledispatch(function)
    bodies: dict[type, Callable[..., Any]] = {}

    def choose(state: Any, *_: Any) -> Callable[..., Any] | None:
        return bodies.get(getattr(state, "instance_class", type(None)))

    # Not strict: that would demand that `choose` and every body agree in parameter names and annotations.
    numba.extending.overload(piece, strict=False, jit_options=_PIECE)(choose)

    def register(state: type) -> Callable[[Function], Function]:
        def add(body: Function) -> Function:
            plain = getattr(body, "py_func", body)  # a piece is compiled again as part of this one
            bodies[state] = plain
            piece.register(state)(plain)
            return body

        return add

    return piece, register


def flat(name: str, *parts: type) -> Any:
    """Make one flat `NamedTuple` class of the fields of several.

    States are written in parts that mean something, but compiled code counts references to everything inside a nested
    tuple each time it is touched; in a flat one it does not.
    """
    fields = [field for part in parts for field in part.__annotations__]
    module = sys._getframe(1).f_globals["__name__"]  # by which the cache finds the class again
    return collections.namedtuple(name, fields, module=module)


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


_listen: Any = numba.core.event.register
_listen("numba:compile", _CompilationNotice())


# The cache: a folder per kernel and signature, named by its key.

_FOLDER = Path(_settings.CACHE_DIR or platformdirs.user_cache_dir("zoomrank")) / "zoomrank-kernels"
_KEY_DIGITS = 16
_FORGET_AFTER_DAYS = 14
_index_file: Any = caching.IndexDataCacheFile
_NAMED_TUPLE: Any = types.BaseNamedTuple
_TUPLE: Any = types.BaseTuple


class _Format(caching.CompileResultCacheImpl):
    """Numba's way to write a compiled kernel to a file."""

    def __init__(self) -> None:  # no locator: the folder is known
        pass


class _KernelCache(caching._Cache):
    """The cache of one kernel: loads and saves what was compiled for a signature."""

    cache_path = str(_FOLDER)
    _format: Any = _Format()

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def load_overload(self, signature: Any, context: Any) -> Any:
        context.refresh()
        folder, file = self._file(signature, context.codegen())
        found = None
        with contextlib.suppress(OSError):  # what cannot be read is compiled, and a folder may belong to another user
            found = file.load(signature)
            os.utime(folder)
        return found and self._format.rebuild(context, found)

    def save_overload(self, signature: Any, result: Any) -> None:
        if result.library.has_dynamic_globals:  # addresses of this process
            return
        folder, file = self._file(signature, result.codegen)
        with contextlib.suppress(OSError):  # without a folder that can be written to, it is compiled in every process
            folder.mkdir(parents=True, exist_ok=True)
            file.save(signature, self._format.reduce(result))
            _forget_unused()

    def _file(self, signature: Any, codegen: Any) -> tuple[Path, Any]:
        # One folder per signature: what two processes write there at the same time is the same.
        folder = _FOLDER / kernel_key(self._kernel, signature, codegen.magic_tuple())
        return folder, _index_file(str(folder), self._kernel.__qualname__, "")

    def enable(self) -> None:
        """Never disabled."""

    def disable(self) -> None:
        """Never disabled."""

    def flush(self) -> None:
        """Other processes may use what is there."""


@functools.cache  # once in every process that compiles
def _forget_unused() -> None:
    for folder in _FOLDER.glob("[0-9a-f]" * _KEY_DIGITS):
        with contextlib.suppress(OSError):  # another process may have removed it
            if time.time() - folder.stat().st_mtime > _FORGET_AFTER_DAYS * 86_400:
                shutil.rmtree(folder, ignore_errors=True)


# The key: a hash of all that goes into the machine code of a kernel.


def kernel_key(kernel: Any, signature: Any, target: Any = ()) -> str:
    """Return the hash of all that a kernel is compiled from, for arguments of these types.

    That is the code of the kernel and of every piece that it calls, in whatever module, and the constants and classes
    that they name. Of a `generic` piece only the bodies for classes count that are among the arguments or named by the
    code. Comments, docstrings, line numbers and the places of files do not count.

    Parameters
    ----------
    kernel
        What `compiled` or `compiled_nogil` made of a function.
    signature
        Numba's types of the arguments.
    target
        The machine that it is compiled for.
    """
    ingredients = _Ingredients()
    ingredients.add(kernel)
    for kind in _classes(signature):
        ingredients.add(kind)
    versions = sys.implementation.cache_tag, numba.__version__, np.__version__
    text = repr((versions, target, signature, _PIECE, ingredients.written()))
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_DIGITS]


def _classes(kind: Any) -> Iterator[type]:
    """Yield the classes of the named tuples in a Numba type, or in a tuple of types."""
    if isinstance(kind, _NAMED_TUPLE):
        yield kind.instance_class
    if isinstance(kind, (tuple, _TUPLE)):
        for part in kind:
            yield from _classes(part)


class _Ingredients:
    """Functions and classes that a kernel is compiled from, numbered in the order in which its code names them."""

    def __init__(self) -> None:
        self._things: list[Any] = []
        self._numbers: dict[int, int] = {}  # by id: `_things` keeps them alive
        self._bodies: set[int] = set()

    def add(self, thing: Any) -> str:
        """Number a function or a class, unless it has one. Return its number; of a constant, what it is."""
        if isinstance(thing, tuple):
            return f"{type(thing)} {[self.add(part) for part in thing]}"
        if isinstance(thing, np.ndarray):
            return f"{thing.dtype} {thing.shape} {thing.tobytes().hex()}"
        if _is_foreign(thing):
            return f"{thing.__module__}.{thing.__name__}"
        if not isinstance(thing, (Dispatcher, FunctionType, type)):
            return f"{type(thing)} {thing!r}"
        if id(thing) not in self._numbers:
            self._numbers[id(thing)] = len(self._things)
            self._things.append(thing)
        return f"#{self._numbers[id(thing)]}"

    def written(self) -> list[str]:
        """Describe everything that was added, and all that it names, and what that names."""
        lines: list[str] = []
        chosen: list[str] = []
        while len(lines) < len(self._things):
            lines += [self._describe(thing) for thing in self._things[len(lines) :]]
            if len(lines) == len(self._things):  # so all classes are known: bodies for them may add more
                chosen = self._choose_bodies()
        return lines + chosen

    def _choose_bodies(self) -> list[str]:
        pieces = [thing for thing in self._things if _is_generic(thing)]
        classes = [thing for thing in self._things if isinstance(thing, type) and thing is not object]
        chosen = [(piece, kind, piece.registry[kind]) for piece in pieces for kind in classes if kind in piece.registry]
        self._bodies |= {id(body) for _, _, body in chosen}
        return [" ".join(map(self.add, row)) for row in chosen]

    def _describe(self, thing: Any) -> str:
        if isinstance(thing, Dispatcher):
            return self._code(thing.py_func, repr(sorted(thing.targetoptions.items())))
        name = f"{thing.__module__}.{thing.__qualname__}"
        if isinstance(thing, type):
            return f"{name} {_members(thing)}"
        if _is_generic(thing):
            return name
        # Kernels can call another plain function because an overload in its module tells Numba what it does.
        return self._code(thing, "" if id(thing) in self._bodies else _module_code(thing.__module__))

    def _code(self, function: Any, options: str) -> str:
        digest, names = _instructions(function.__code__)
        cells = [self.add(cell.cell_contents) for cell in function.__closure__ or ()]
        defaults = [self.add(value) for value in function.__defaults__ or ()]
        named = [(name, self._named(function.__globals__, name.split("."))) for name in names]
        return f"{function.__module__}.{function.__qualname__} {options} {digest} {cells} {defaults} {named}"

    def _named(self, namespace: dict[str, Any], path: list[str]) -> str:
        """Add what a dotted name stands for, as far as modules lead to it."""
        first, *rest = path
        if first not in namespace:
            return "built in"
        if rest and isinstance(namespace[first], ModuleType):
            return self._named(vars(namespace[first]), rest)
        return self.add(namespace[first])


def _is_generic(thing: Any) -> bool:
    return isinstance(thing, FunctionType) and hasattr(thing, "registry")


def _is_foreign(thing: Any) -> bool:
    """Return whether this is a function or class of Python, NumPy or Numba, whose versions are in the key."""
    package = str(getattr(thing, "__module__", "")).partition(".")[0]
    return hasattr(thing, "__name__") and (package in {"numba", "numpy"} or package in sys.stdlib_module_names)


def _members(kind: type) -> str:
    if issubclass(kind, enum.Enum):
        return repr([(name, member.value) for name, member in kind.__members__.items()])
    return repr((getattr(kind, "_fields", ()), getattr(kind, "_field_defaults", {})))


@functools.cache
def _instructions(code: CodeType) -> tuple[str, list[str]]:
    """Return a hash of what a function does, and the globals that it reads, dotted with what it reads of them.

    Read from bytecode, which is at hand: it has no comments, and a docstring is no instruction.
    """
    steps, names, is_name = [str(code.co_varnames)], [], False
    for step in dis.get_instructions(code):
        value = step.argval
        if step.opname == "LOAD_GLOBAL":
            names.append(value)
        is_name = step.opname == "LOAD_GLOBAL" or (is_name and step.opname in {"LOAD_ATTR", "LOAD_METHOD"})
        if is_name and step.opname != "LOAD_GLOBAL":
            names[-1] += f".{value}"
        if isinstance(value, CodeType):
            value, inner = _instructions(value)
            names += inner
        elif isinstance(value, frozenset):  # in another order in every process
            value = sorted(map(repr, value))
        steps.append(f"{step.opname} {value!r}")
    return hashlib.sha256("\n".join(steps).encode()).hexdigest(), sorted(set(names))


@functools.cache
def _module_code(name: str) -> str:
    return without_docstrings(inspect.getsource(sys.modules[name]))


def without_docstrings(source: str) -> str:
    """Return the syntax tree of a module as text: without docstrings, comments and line numbers."""
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree)
