"""Machine code of kernels: made by Numba, and kept on disk.

Numba keeps compiled kernels too, but by the file that defines them: it does not notice an edited *callee in another
file*, and compiles again after an edited comment or in another clone. Here a kernel is kept under a key of all the code
that goes into it (see `kernel_key`): a stale kernel is never loaded, and no other edit makes one compile again.

This module is imported when the first kernel is worth it (see `compiled.py`): Numba takes long to import.
"""

import contextlib
import dis
import enum
import functools
import hashlib
import inspect
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numba.extending
import numpy as np
import platformdirs
from numba.core import caching, codegen, cpu, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.typing.typeof import typeof

from zoomrank.compiled import AT_ONCE, GENERICS, PIECE, PIECES, PREPARATIONS, Kernel, without_docstrings

_settings: Any = numba.config  # a module that Numba fills at import
_introduced: list[Any] = []  # dispatchers of the pieces that Numba knows; it keeps no reference itself


def signature_of(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return Numba's types of arguments."""
    return tuple(map(typeof, arguments))


def make_ready(kernel: Kernel, signature: tuple[Any, ...], compile_it: bool) -> bool:
    """Load the machine code of a kernel for these types, or else compile it if asked to. Return whether it is there."""
    with global_compiler_lock:
        dispatcher = dispatcher_of(kernel)
        there = signature in dispatcher.overloads or dispatcher._cache.has(signature, again=compile_it)
        if there or compile_it:
            dispatcher._compilation_chain_init_hook()
            with contextlib.nullcontext() if there else dispatcher._cache.compiling(signature):
                dispatcher.compile(signature)  # looks into the cache
            kernel.use(dispatcher)
        return bool(there or compile_it)


def dispatcher_of(kernel: Kernel) -> Any:
    """Return Numba's dispatcher of a kernel: it calls machine code where there is some, and else asks the kernel."""
    _introduce()
    if kernel.dispatcher is None:
        kernel.dispatcher = numba.njit(nogil=kernel.bulk)(kernel.py_func)
        kernel.dispatcher._cache = _KernelCache(kernel)  # what `cache=True` assigns, too
        kernel.dispatcher._compile_for_args = lambda *_: kernel.choose  # called by the dispatcher, with the arguments
    return kernel.dispatcher


def _introduce() -> None:
    """Tell Numba of all pieces and kernels that have been defined since the last time."""
    while PREPARATIONS:
        PREPARATIONS.pop(0)()
    while GENERICS:
        piece, choose = GENERICS.popitem()
        # Not strict: that would demand that `choose` and every body agree in parameter names and annotations.
        numba.extending.overload(piece, strict=False, jit_options=PIECE)(choose)
    for piece, options in [*PIECES.items()][len(_introduced) :]:
        dispatcher: Any = numba.njit(**options)(piece)
        _introduced.append(dispatcher)
        piece._numba_type_ = types.Dispatcher(dispatcher)  # where Numba looks for the type of what it does not know


def fill_cache_beside(kernel: Kernel, signature: tuple[Any, ...], quietly: bool) -> None:
    """Compile a kernel in a process of its own, at a low priority, and wait for it.

    It goes on if this process ends: others may want the kernel. A kernel that cannot be pickled is left out.
    """
    if not quietly:
        _say_that_it_compiles()
    with contextlib.suppress(OSError, pickle.PicklingError, AttributeError):
        subprocess.run(  # noqa: S603  (this Python, with code of this module)
            [sys.executable, "-c", f"from {__name__} import fill_cache; fill_cache()"],
            input=pickle.dumps((kernel, signature)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ZOOMRANK_COMPILE": "at-once"},
            check=False,
        )


def fill_cache() -> None:
    """Compile the kernel that comes on stdin, in a process that was started for it."""
    if hasattr(os, "nice"):
        os.nice(10)
    kernel, signature = pickle.load(sys.stdin.buffer)  # noqa: S301  (the parent wrote it)
    make_ready(kernel, signature, True)


def _optimize_kernels_only() -> None:
    """Spare the compiler what is in vain: for processes that do nothing but fill the cache.

    Numba optimizes every piece and makes it machine code before it becomes a part of a kernel, where both happens once
    more. Here pieces are linked only, which takes a third of the time away. That is inside Numba, so only versions are
    changed that this was tested with; the others compile as they do.
    """
    if not numba.__version__.startswith("0.68."):
        return
    library: Any = codegen.CPUCodeLibrary
    generator: Any = codegen.JITCPUCodegen
    target: Any = cpu.CPUContext
    finalize, set_env, get_executable = library.finalize, generator.set_env, target.get_executable
    waiting: dict[str, Any] = {}  # environments of pieces, by name: they get a place when their kernel does

    def is_piece(one: Any) -> bool:
        return not any(
            function.name.startswith(("_ZN7cpython", "cfunc."))
            for function in one._final_module.functions
            if not function.is_declaration
        )

    def finalize_kernel(one: Any) -> None:
        if not is_piece(one):
            finalize(one)
            return
        one._raise_if_finalized()
        for part in dict.fromkeys(one._linking_libraries):
            one._reload_init.update(part._reload_init)
            one._final_module.link_in(part._get_module_for_linking(), preserve=True)
        one._finalize_dynamic_globals()
        one._finalized = True

    def set_env_of_kernel(one: Any, name: str, env: Any) -> None:
        if one._engine.get_global_value_address(name):
            set_env(one, name, env)
        else:
            waiting[name] = env

    def get_executable_of_kernel(context: Any, one: Any, *rest: Any) -> Any:
        for variable in () if is_piece(one) else one._final_module.global_variables:
            env = waiting.get(variable.name)
            if env is not None and one._codegen._engine.get_global_value_address(variable.name):
                set_env(one._codegen, variable.name, env)
        return get_executable(context, one, *rest)

    library.finalize = finalize_kernel
    generator.set_env = set_env_of_kernel
    target.get_executable = get_executable_of_kernel


if AT_ONCE:
    _optimize_kernels_only()


@functools.cache
def _say_that_it_compiles() -> None:
    """Say once, on standard error, why a call takes long."""
    sys.stderr.write("zoomrank: compiling for this machine; this happens once\n")


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
        self._absent: set[Any] = set()

    def has(self, signature: Any, again: bool) -> bool:
        """Return whether there is machine code for these types; look again where another process may have made it."""
        if signature in self._absent and not again:
            return False
        folder, _ = self._file(signature, self._kernel.dispatcher.targetctx.codegen())
        found = (folder / f"{self._kernel.__qualname__}.nbi").exists()
        if not found:
            self._absent.add(signature)
        return found

    @contextlib.contextmanager
    def compiling(self, signature: Any) -> Iterator[None]:
        """Let one process at a time compile for these types: when the others go on, the cache has it."""
        _say_that_it_compiles()
        folder, _ = self._file(signature, self._kernel.dispatcher.targetctx.codegen())
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError, ImportError):  # a cache that cannot be written to; Windows
                import fcntl

                folder.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(folder, os.O_RDONLY)
                stack.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield

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
        What `compiled` or `compiled_bulk` made of a function.
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
    text = repr((versions, target, signature, PIECE, ingredients.written()))
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
        if not isinstance(thing, (Kernel, FunctionType, type)):
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
        if isinstance(thing, Kernel):
            return self._code(thing.py_func, f"nogil: {thing.bulk}")
        if thing in PIECES:
            return self._code(thing, repr(sorted(PIECES[thing].items())))
        name = f"{thing.__module__}.{thing.__qualname__}"
        if isinstance(thing, type):
            return f"{name} {_members(thing)}"
        if _is_generic(thing):
            return name
        if id(thing) in self._bodies:
            return self._code(thing, "")
        # Kernels can call another plain function because an overload in its module tells Numba what it does.
        return f"{name} {_module_code(thing.__module__)}"

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
