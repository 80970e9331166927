"""How much a function does, in steps of Python, which unlike times are the same in each run."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import kcap

FOLLOWED = str(Path(kcap.__file__).parent)


def steps(work: Callable[[], object]) -> int:
    """Steps of Python inside of kcap while a function runs."""
    count = 0

    def frame(one: FrameType, _event: str, _given: object) -> Any:
        if not one.f_code.co_filename.startswith(FOLLOWED):
            return None
        one.f_trace_lines, one.f_trace_opcodes = False, True
        return step

    def step(_frame: FrameType, _event: str, _given: object) -> Any:
        nonlocal count
        count += 1
        return step

    before = sys.gettrace()
    sys.settrace(frame)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
