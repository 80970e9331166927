"""Batches that no spreadsheet evaluates."""

import pyarrow as pa

from kcap.output.csv_safe import csv_safe_batch


def test_a_batch_is_safe_in_every_text() -> None:
    batch = pa.record_batch(
        {
            "a": ["=1", None, "x"],
            "n": [-1, 2, None],
            "l": [["=2", None], None, []],
            "d": pa.array(["=3", "y", None]).dictionary_encode(),
        }
    )
    assert csv_safe_batch(batch).to_pydict() == {
        "a": ["'=1", None, "x"], "n": [-1, 2, None], "l": [["'=2", None], None, []], "d": ["'=3", "y", None],
    }  # fmt: skip
