"""`KernelRng`: a random generator that can be passed to kernels at little cost.

Numba unpacks a NumPy generator at every call, through Python, which takes longer than choosing a whole ranking. A
kernel needs only five addresses of it. So those are looked up once and passed as an array, and `rng_from_handle`
finds the generator by them in plain Python and rebuilds it inside a compiled kernel: the same one, with the same
numbers to come.
"""

import ctypes
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from zoomrank.compiled import when_compiling

_MADE: "WeakValueDictionary[int, KernelRng]" = WeakValueDictionary()  # by the address of the generator's state


class KernelRng:
    """A random generator and its addresses."""

    __slots__ = ("__weakref__", "_bits", "generator", "handle")

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator
        self._bits = generator.bit_generator  # keeps the addresses valid while the handle is in use
        self.handle = _addresses(self._bits)
        _MADE[int(self.handle[0])] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return KernelRng, (self.generator,)  # a copy has other addresses


def _addresses(bits: np.random.BitGenerator) -> np.ndarray[Any, Any]:
    there: Any = bits.ctypes
    functions = (there.next_uint64, there.next_uint32, there.next_double)
    at = [ctypes.cast(function, ctypes.c_void_p).value for function in functions]
    return np.array([there.state_address, there.state.value, *at], dtype=np.uintp)


def rng_from_handle(handle: Any) -> Any:
    """Return the generator of a handle, inside a kernel."""
    return _MADE[int(handle[0])].generator


@when_compiling
def _teach_numba() -> None:
    from numba.core import cgutils, types
    from numba.extending import intrinsic, overload

    struct: Any = cgutils.create_struct_proxy
    unpack: Any = cgutils.unpack_tuple
    kind = types.NumPyRandomBitGeneratorType("bit_generator")

    def build(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        """Build the generator without reference counting: `KernelRng` keeps it alive."""
        bits = struct(kind)(context, builder)
        bits.state_address, bits.state, *functions = unpack(builder, arguments[0])
        bits.fnptr_next_uint64, bits.fnptr_next_uint32, bits.fnptr_next_double = functions
        generator = struct(types.npy_rng)(context, builder)
        generator.bit_generator = bits._getvalue()
        return generator._getvalue()

    generator_at: Any = intrinsic(lambda _, addresses: (types.npy_rng(addresses), build))

    @overload(rng_from_handle, strict=False)  # strict would demand annotations of the lambda
    def rolled(handle: Any) -> Callable[[Any], Any]:  # noqa: ARG001  (its type is known by its name)
        return lambda handle: generator_at((handle[0], handle[1], handle[2], handle[3], handle[4]))
