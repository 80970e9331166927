"""The bodies of a batch in one buffer: the same values from either engine."""

import numpy as np

from kcap.kafka.body_batch import positions


def test_positions_of_some_values() -> None:
    """The same of a list as of an array."""
    column = [0, 2, 1, 2, -1]
    for values in (column, np.array(column)):
        assert positions(values, {2, -1}) == [1, 3, 4]
        assert positions(values, {}) == []
