"""The version of kcap, as pyproject.toml has it; what modules name that `kcap` itself imports."""

from typing import Final

VERSION: Final = "0.1.0"
