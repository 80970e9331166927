"""The version of kcap, as in pyproject.toml, for modules that `kcap` itself imports."""

from typing import Final

VERSION: Final = "0.1.0"
