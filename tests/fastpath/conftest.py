"""In these tests the fast path is there from the first packet on."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from kcap import limits


@pytest.fixture(autouse=True, scope="module")
def _at_once() -> Iterator[None]:
    with patch.object(limits, "FAST_PATH_AFTER_PACKETS", 0):
        yield
