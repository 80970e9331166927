"""Laws of the package: public names exist, and nothing is loaded before it is used."""

import subprocess
import sys
from pathlib import Path

import pytest

import kcap

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", kcap.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(kcap, name) is not None


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        kcap.opne  # type: ignore[attr-defined]


def test_importing_kcap_loads_nothing() -> None:
    program = (
        "import sys, kcap; print(*(name for name in sys.modules if name.startswith('kcap') or name in ('numpy', 'pyarrow')))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["kcap"]
