"""Machine code does what Python does, for each kind of argument and result, and needs nothing of numba."""

import ctypes
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("numba")

from kcap.kernel_compiler import _entry, dispatcher, object_code
from kcap.kernels import Kernel, called, compiled, routine


class Pair(NamedTuple):
    first: Any
    second: Any


@compiled
def weighted(values: Any, weight: int) -> int:
    total = 0
    for at in range(values.shape[0]):
        total += values[at] * weight
    return total


@compiled
def corner(table: Any) -> Any:
    first, second, third = table.shape
    return first, second, third, table[first - 1, 0, third - 1]


@routine
def doubled(values: Any) -> None:
    for at in range(values.shape[0]):
        values[at] *= 2


@compiled
def everything(data: Any, table: Any, flag: bool, number: int, pair: Any) -> Any:
    """Arrays of several types, a boolean, an integer and a named tuple; other kernels, inlined and called."""
    doubled(pair.first)
    table[1, 0] = data[number]
    return weighted(pair.first, 3), pair.second[0, 1] if flag else -number, table[1, 0]


@compiled
def is_odd(number: int) -> bool:
    return number % 2 == 1


@compiled
def allocates(count: int) -> Any:
    return np.zeros(count, np.int64)[0]


@compiled
def compared(address: int, one: int, other: int, size: int) -> int:
    return called(address, one, other, size)


@compiled
def halves(number: int) -> float:
    return number / 2


@compiled
def inverse(number: int) -> int:
    return 100 // number


def arguments() -> tuple[Any, ...]:
    return np.array([7, 9], np.uint8), np.zeros((2, 3), np.int64), True, 1, Pair(np.arange(4), np.array([[5, 6]], np.int32))


@pytest.mark.parametrize("flag", [True, False])
def test_machine_code_returns_and_writes_what_python_does(*, flag: bool) -> None:
    ours, theirs = arguments(), arguments()
    ours, theirs = (*ours[:2], flag, *ours[3:]), (*theirs[:2], flag, *theirs[3:])
    assert everything(*ours) == everything.py_func(*theirs)
    assert (ours[1] == theirs[1]).all()
    assert (ours[4].first == theirs[4].first * 1).all()


def test_arrays_of_any_layout_are_read_right() -> None:
    """Columns, reversed arrays, arrays of nothing and bytes that cannot be written."""
    grid = np.arange(12).reshape(3, 4)
    read_only = np.frombuffer(bytes(range(10)), np.uint8)
    for values in (grid[:, 1], grid[0][::-1], grid[1], grid[:0, 0], read_only, grid.T[2]):
        assert weighted(values, 2) == 2 * int(values.sum())


def test_integers_and_booleans() -> None:
    assert [is_odd(number) for number in (3, np.int64(4), -1)] == [True, False, True]
    assert type(is_odd(3)) is bool
    assert doubled(np.zeros(2, np.int64)) is None


def test_an_exception_of_python_is_one_of_the_kernel() -> None:
    assert inverse(-7) == -15
    with pytest.raises(RuntimeError, match="inverse"):
        inverse(0)


def test_what_needs_a_runtime_or_returns_other_types_is_refused() -> None:
    for kernel, reason in ((allocates, Exception), (halves, TypeError)):
        with pytest.raises(reason):
            kernel(3)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(9)[::2], np.arange(9)[::-1], np.arange(12).reshape(3, 4)[:, 1], np.zeros(0, np.int64),
        np.frombuffer(np.arange(3).tobytes(), np.int64), np.arange(5, dtype=np.int32)[1:],
    ],
)  # fmt: skip
def test_an_array_is_read_from_its_object(values: Any) -> None:
    """Views, reversed, empty and read-only ones: data, shape and strides are where numpy has them."""
    assert weighted(values, 3) == 3 * int(values.sum())


def test_shape_and_strides_are_those_of_each_axis() -> None:
    table = np.arange(24).reshape(2, 3, 4)
    for each in (table, table.transpose(2, 0, 1), table[:, ::-1, 1:3]):
        assert corner(each) == (*each.shape, int(each[-1, 0, -1]))


def test_what_numba_takes_is_compared() -> None:
    assert object_code(weighted, (np.zeros(3, np.int64), 1), "symbol")[:1] == b"i"
    with pytest.raises(TypeError, match="numba takes ptr, ptr, i64"):
        _entry("symbol", "weighted", ["ptr", "ptr", "i64"], (np.zeros(3, np.int64), 1))


def test_a_function_of_a_library_is_called_by_its_address() -> None:
    """What it returns has a sign: it is an `int` of C."""
    address = ctypes.cast(ctypes.CDLL(None).memcmp, ctypes.c_void_p).value
    one, other = np.frombuffer(b"same, a", np.uint8), np.frombuffer(b"same, b", np.uint8)
    for size, wanted in ((6, 0), (7, -1)):
        given = address, one.ctypes.data, other.ctypes.data, size
        assert np.sign(compared(*given)) == np.sign(compared.py_func(*given)) == wanted


def test_a_function_has_one_dispatcher() -> None:
    assert isinstance(weighted, Kernel)
    assert dispatcher(weighted) is dispatcher(weighted)
