"""The arrays that kernels take by name are the fast path's own."""

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kcap.fastpath
from kcap.fastpath.arrays import LargeArrays, PacketArrays, Proof, StateArrays
from kcap.fastpath.state import FastPathState

KERNELS = sorted(Path(kcap.fastpath.__file__).parent.glob("*_kernels.py"))


def test_kernels_change_the_state_itself() -> None:
    """None of the arrays is a copy: what a kernel writes is read by the next one, and what was grown in between is seen."""
    state = FastPathState()
    fresh = np.empty(state.slots, np.int64)
    arrays = state.arrays(fresh)
    own = [value for value in vars(state).values() if isinstance(value, np.ndarray)]
    for name in ("connections", "streams", "queues", "ids", "rows", "bodies", "arena", "meta", "names", "blobs", "sizes"):
        assert any(getattr(arrays, name) is array for array in own), name
    assert arrays.fresh is fresh
    assert arrays.big is state.large.arrays
    state.more_entries(2 * len(state.queues))
    assert state.arrays(fresh).queues is state.queues is not arrays.queues


@pytest.mark.parametrize("kind", [Proof, LargeArrays, StateArrays, PacketArrays])
def test_every_array_is_used_by_a_kernel(kind: Any) -> None:
    """An array that no kernel reads or writes costs its place in each call."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in KERNELS]
    used = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert set(kind._fields) - used == set()
