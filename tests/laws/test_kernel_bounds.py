"""No kernel reads or writes outside of its arrays, nor counts an index from the end: machine code checks neither.

Here kernels run as Python, on arrays that check each index.
"""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kcap.kernels import Kernel, compiled, int32
from tests.laws.test_both_paths import CAPTURES, agree

MOST_BYTES = 70_000
SMALL = [path for path in CAPTURES if path.stat().st_size <= MOST_BYTES]
FLIPPED = 200
"""Bytes between two that are damaged."""


class Checked(np.ndarray):  # type: ignore[type-arg]
    """An array that raises IndexError for every index outside of it, negative ones included."""

    def _check(self, index: Any) -> None:
        for axis, one in enumerate(index if isinstance(index, tuple) else (index,)):
            last = self.shape[axis] - (not isinstance(one, slice))
            places = (one.start or 0, last if one.stop is None else one.stop) if isinstance(one, slice) else (one,)
            if not all(0 <= place <= last for place in places):
                raise IndexError(f"{one} of {self.shape[axis]} in dimension {axis}")

    def __getitem__(self, index: Any) -> Any:
        self._check(index)
        found = super().__getitem__(index)
        return int(found) if isinstance(found, np.integer) else found  # machine code computes with 64 bits

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check(index)
        super().__setitem__(index, value)


def checked(argument: Any) -> Any:
    """The argument, with checked arrays; of a tuple each element."""
    if isinstance(argument, np.ndarray):
        return argument.view(Checked)
    if isinstance(argument, tuple):
        parts = [checked(part) for part in argument]
        return type(argument)(*parts) if hasattr(argument, "_fields") else tuple(parts)
    return argument


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Kernels run as Python with checked arrays; the names of those that were called."""
    names: set[str] = set()

    def run(self: Kernel, *arguments: Any) -> Any:
        names.add(self.__name__)
        with np.errstate(over="ignore"):  # hashes are products of unsigned numbers
            return self.py_func(*map(checked, arguments))

    monkeypatch.setattr(Kernel, "__call__", run)
    monkeypatch.setattr("kcap.kernels.PLAIN", True)
    return names


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.name)
def test_real_captures(path: Path, called: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: every index is inside, and rows are those of the reference path."""
    agree(path, monkeypatch)
    assert "walk" in called


@pytest.mark.parametrize("path", SMALL[:6], ids=lambda path: path.name)
def test_damaged_captures(path: Path, called: set[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Law: the same of captures of which one byte in 200 is another, behind the file's header."""
    data, chance = bytearray(path.read_bytes()), random.Random(path.name)
    for at in range(64 + chance.randrange(FLIPPED), len(data), FLIPPED):
        data[at] ^= 1 << chance.randrange(8)
    damaged = tmp_path / path.name
    damaged.write_bytes(data)
    agree(damaged, monkeypatch)
    assert called


@compiled
def last_but(data: Any, back: int) -> int:
    return int(data[-back])


@pytest.mark.parametrize(("kernel", "place"), [(last_but, 1), (int32, 5), (int32, -1)])
def test_an_index_outside_is_found(kernel: Kernel, place: int, called: set[str]) -> None:
    """Or the laws above say nothing."""
    with pytest.raises(IndexError):
        kernel(np.zeros(8, np.uint8), place)
