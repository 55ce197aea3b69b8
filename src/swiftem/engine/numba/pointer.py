"""Compiled functions as arguments of kernels, at the cost of an integer.

Numba's own ``types.FunctionType`` looks its function up in Python at every call of the kernel, which takes
40 µs per function: as long as a few iterations. :class:`Pointer` is the same type, from an address.
"""

from __future__ import annotations

from typing import Any

import numba.core
import numba.experimental.function_type
import numba.extending

__all__ = ["Pointer", "address", "compiled"]

# Numba is only partly typed, and differently in each version.
core: Any = numba.core
extending: Any = numba.extending
function_type: Any = numba.experimental.function_type
types: Any = numba.types


class Pointer(types.FunctionType):  # type: ignore[misc]
    """The type of a compiled function that is passed as its :func:`address`.

    Only the signature is part of it, so a kernel in the disk cache serves every function with this signature.
    """


def _from_address(kind: Any, address: Any, c: Any) -> Any:
    value = core.cgutils.create_struct_proxy(kind)(c.context, c.builder)
    value.jit_addr = c.pyapi.long_as_voidptr(address)
    return extending.NativeValue(value._getvalue())


extending.register_model(Pointer)(function_type.FunctionModel)
extending.unbox(Pointer)(_from_address)


def compiled(function: Any, *arguments: Any) -> Any:
    """Compile ``function`` for arguments of these types and return its signature.

    >>> half = numba.njit(lambda x: x / 2)
    >>> compiled(half, types.float64)
    (float64,) -> float64
    """
    if arguments not in function.overloads:
        function.compile(arguments)
    found = function.overloads[arguments]
    if found.objectmode:
        raise TypeError(f"{function} needs the interpreter.")
    return types.unliteral(found.signature.return_type)(*arguments)


def address(function: Any, signature: Any) -> int:
    """Return the address of the function's code; it is valid as long as ``function`` exists."""
    found = function.get_compile_result(signature)
    begin: int = found.library.get_pointer_to_function(found.fndesc.llvm_func_name)
    return begin
