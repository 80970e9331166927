"""There is one version."""

import kcap
from kcap.version import VERSION


def test_the_package_has_this_version() -> None:
    assert kcap.__version__ == VERSION
