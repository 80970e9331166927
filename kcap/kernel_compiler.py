"""Compiles kernels: from a Python function and its arguments to machine code, by numba. Importing this module imports numba.

In: a `Kernel` and arguments. Out: an object file with one function. It takes the address of an array of 64-bit words: space for
results, then the arguments as `kcap.kernels.flatten` stores them. Laws: the code does not need numba's runtime. A kernel
allocates no memory; it calls only other kernels and library functions whose addresses it gets as arguments. No kernel uses a
negative index, so none is counted from the end.
"""

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from kcap.machine_code import RESULTS, machine

types, typeof = (getattr(numba, name) for name in ("types", "typeof"))  # numba's type hints are incomplete

SYSTEM: Final = frozenset({"memcpy", "memset", "memmove", "memcmp"})
"""Functions of the C library that the code generator may call."""
DATA: Final = object.__basicsize__
DIMENSIONS, STRIDES = DATA + 16, DATA + 24
"""Offsets in numpy's array object of the address of its data, and of the addresses of its shape and strides
(PyArrayObject_fields in numpy/ndarraytypes.h, which is part of numpy's binary interface).
"""


class Function(Protocol):
    """The function that is compiled: a `kcap.kernels.Kernel`."""

    __name__: str
    py_func: Callable[..., Any]
    inline: bool

    def __hash__(self) -> int: ...


def _index_as_it_is(context: Any, builder: Any, kind: Any, index: Any, _size: Any) -> Any:
    """Replaces numba's `fix_integer_index`, which adds the length to a negative index.

    LLVM cannot see that a choice between two addresses gives consecutive addresses: it read integers byte by byte, and copied
    bytes singly at a tenth of the speed. Numba has no option for this. With unsigned indices, sums with signed numbers would be
    floats.
    """
    return context.cast(builder, index, kind, types.intp)


ARRAYS: Any = import_module("numba.np.arrayobj")
ARRAYS.fix_integer_index = _index_as_it_is


@cache
def dispatcher(kernel: Function) -> Any:
    """Returns numba's dispatcher of the function, without the wrappers for Python, which would take as long to compile as the
    function.
    """
    make: Any = numba.njit  # numba's type hints leave two options out
    options = {"forceinline": True} if kernel.inline else {}
    return make(nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(kernel.py_func)


@intrinsic
def library_call(_typing: Any, address: Any, *arguments: Any) -> Any:
    """`kcap.kernels.called` in machine code. All arguments are passed as words: integers and addresses use the same registers
    in the calling conventions of x86-64 and AArch64, and a function reads only as much of each as it declares.
    """
    passed = arguments[0] if isinstance(arguments[0], types.BaseTuple) else types.StarArgTuple.from_types(arguments)

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word, result = ir.IntType(64), ir.IntType(32)
        words = [
            context.cast(builder, builder.extract_value(values[1], at), kind, types.int64)
            for at, kind in enumerate(signature.args[1])
        ]
        function = builder.inttoptr(values[0], ir.FunctionType(result, [word] * len(words)).as_pointer())
        return builder.sext(builder.call(function, words), word)

    return types.int64(address, passed), code


@cache
def library_call_type() -> Any:
    """Numba's type of a library call."""
    return cpu_target.typing_context.resolve_value_type(library_call)


def object_code(kernel: Function, arguments: tuple[Any, ...], symbol: str) -> bytes:
    """Returns the form of the result (n: none, i: integer, b: boolean, a digit: a tuple of that many integers), then the object
    file.

    Raises TypeError if results or arguments have other types, RuntimeError if the code needs numba's runtime.
    """
    function = dispatcher(kernel)
    signature = tuple(map(_type_of, arguments))
    function.compile(signature)
    facts = function.overloads[signature].fndesc
    module = llvm.parse_assembly(function.inspect_llvm(signature))
    body = module.get_function(facts.llvm_func_name)
    parameters = [str(parameter.type) for parameter in body.arguments][2:]
    module.link_in(llvm.parse_assembly(_entry(symbol, facts.llvm_func_name, parameters, arguments)))
    for one in module.functions:
        if not one.is_declaration and one.name != symbol:
            one.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine(), llvm.create_pipeline_tuning_options(speed_level=2)))
    needed = {one.name for one in module.functions if one.is_declaration and not one.name.startswith("llvm.")} - SYSTEM
    if needed:
        raise RuntimeError(f"{kernel.__name__} needs {', '.join(sorted(needed))}")
    return _form(facts.restype).encode() + bytes(machine().emit_object(module))


def _type_of(argument: Any) -> Any:
    """Numba's type of an argument; arrays count as writable."""
    if isinstance(argument, tuple) and hasattr(argument, "_fields"):
        return types.NamedTuple([_type_of(each) for each in argument], type(argument))
    found = typeof(argument)
    return found.copy(readonly=False) if isinstance(found, types.Array) else found


def _form(result: Any) -> str:
    if result == types.none:
        return "n"
    if result == types.boolean:
        return "b"
    if isinstance(result, types.Integer):
        return "i"
    if isinstance(result, types.BaseTuple) and len(result) < RESULTS and all(one == types.int64 for one in result.types):
        return str(len(result))
    raise TypeError(f"a kernel cannot return {result}")


def _entry(symbol: str, name: str, parameters: list[str], arguments: tuple[Any, ...]) -> str:
    """Returns LLVM IR of the function that reads the words and calls the kernel. Raises TypeError if numba passes an argument
    differently.

    Numba passes an array as parent, owner, items, item size, data, shape and strides.
    """
    lines: list[str] = []
    passed: list[str] = []
    for index, argument in enumerate(_leaves(arguments)):
        word = f"%word{index}"
        lines += [f"{word}.at = getelementptr i64, ptr %words, i64 {RESULTS + index}", f"{word} = load i64, ptr {word}.at"]
        if not isinstance(argument, np.ndarray):
            kind = next(iter(parameters[len(passed) :]), "")
            if kind != "i64":
                lines.append(f"{word}.value = trunc i64 {word} to {kind}")
            passed.append(f"i64 {word}" if kind == "i64" else f"{kind} {word}.value")
            continue
        lines.append(f"{word}.object = inttoptr i64 {word} to ptr")
        for field, offset in ("data", DATA), ("shape", DIMENSIONS), ("strides", STRIDES):
            lines += [
                f"{word}.{field}.at = getelementptr i8, ptr {word}.object, i64 {offset}",
                f"{word}.{field} = load ptr, ptr {word}.{field}.at",
            ]
        lines.append(f"{word}.items0 = add i64 1, 0")
        for field in ("shape", "strides"):
            for axis in range(argument.ndim):
                lines += [
                    f"{word}.{field}{axis}.at = getelementptr i64, ptr {word}.{field}, i64 {axis}",
                    f"{word}.{field}{axis} = load i64, ptr {word}.{field}{axis}.at",
                ]
        for axis in range(argument.ndim):
            lines.append(f"{word}.items{axis + 1} = mul i64 {word}.items{axis}, {word}.shape{axis}")
        passed += ["ptr null", "ptr null", f"i64 {word}.items{argument.ndim}", f"i64 {argument.itemsize}", f"ptr {word}.data"]
        passed += [f"i64 {word}.{field}{axis}" for field in ("shape", "strides") for axis in range(argument.ndim)]
    if [each.split()[0] for each in passed] != parameters:
        raise TypeError(f"{name}: numba takes {', '.join(parameters)}")
    text = "\n".join(lines)
    return f"""
declare i32 @"{name}"(ptr, ptr, {", ".join(parameters)})
define i32 @{symbol}(ptr %words) {{
{text}
%raised = getelementptr i64, ptr %words, i64 {RESULTS - 1}
%status = call i32 @"{name}"(ptr %words, ptr %raised, {", ".join(passed)})
ret i32 %status
}}
"""


def _leaves(arguments: tuple[Any, ...]) -> Iterator[Any]:
    """Yields the arguments, with tuples replaced by their elements."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _leaves(argument)
        else:
            yield argument
