"""A fault names the exception's type and the line of kcap, and quotes nothing."""

from types import CodeType
from typing import Any

import pytest

from kcap.decode.message import decode_request
from kcap.faults import Fault, fault_of
from kcap.wire.varints import read_uvarint


def test_a_fault_names_type_and_place_and_no_payload() -> None:
    try:
        read_uvarint(None, 0, 1)  # type: ignore[arg-type]
    except TypeError as error:
        fault = fault_of(error)
    assert fault.startswith("TypeError in wire/varints.py:")
    assert "NoneType" not in fault


def test_damage_is_no_fault() -> None:
    undecoded = decode_request(b"\0\3\0\1").undecoded
    assert undecoded is not None
    assert not isinstance(undecoded, Fault)


@pytest.mark.parametrize("file", ["/any/kcap/.venv/lib/other/module.py", "/any/kcap/tests/test_it.py", "kcap/it.py"])
def test_code_outside_kcap_is_not_named_wherever_kcap_lies(file: str) -> None:
    """A checkout is often called kcap, and has an environment in it."""
    space: dict[str, Any] = {}
    code: CodeType = compile("def other():\n    raise ValueError", file, "exec")
    exec(code, space)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - it has no words
        space["other"]()
    assert fault_of(caught.value) == "ValueError"
