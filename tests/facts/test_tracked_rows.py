"""Laws of the rows that report facts: all of them are found, and equal numbers are equal bodies."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.batch.columns import BatchColumns
from kcap.capture_pass import CapturePass
from kcap.facts.tracked_rows import ELSEWHERE, IS_TRACKED, distinct, numbered, tracked_rows
from kcap.kafka.frames import NO_BODY
from kcap.schema.registry import REQUEST, RESPONSE


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans(), st.integers(0, 2)), max_size=30))
def test_equal_combinations_have_equal_numbers(items: list[tuple[int, bool, int]]) -> None:
    columns = [np.array([item[at] for item in items]) for at in range(3)]
    first, alike = distinct(*columns)
    assert [items[first[number]] for number in alike.tolist()] == items
    assert len(first) == len(set(items))
    assert all(items.index(items[place]) == place for place in first.tolist())


@given(st.lists(st.integers(0, 3), max_size=30))
def test_equal_values_are_numbered_as_they_come(values: list[int]) -> None:
    assert numbered(np.array(values, np.int64)).tolist() == [values[:at].count(value) for at, value in enumerate(values)]


@pytest.mark.parametrize("name", ["java-transactions.pcap", "sasl-raw-tokens.pcap"])
def test_numbers_are_equal_where_bodies_are(pcaps: Path, name: str) -> None:
    found = 0
    for batch in CapturePass([str(pcaps / name)]).batches():
        columns = BatchColumns(batch)
        rows = tracked_rows(columns)
        keys = columns.number("api_key").filled(0)
        tokens = ~columns.number("api_key").mask() & (columns.number("request_slot").values != NO_BODY)
        assert rows.at.tolist() == np.flatnonzero(IS_TRACKED[keys] & columns.number("api_key").mask() | tokens).tolist()
        listed = list(rows.lists(np.arange(len(rows.at))))
        for side in (REQUEST, RESPONSE):
            numbers = rows.contents(columns, side).tolist()
            bodies = [columns.body(*entry[6 + 2 * side : 8 + 2 * side]) for entry in listed]
            known = {number: body for number, body in zip(numbers, bodies) if number > NO_BODY}
            for number, body in zip(numbers, bodies):
                assert number in (ELSEWHERE, NO_BODY) or known[number] == body
            assert len(set(known.values())) == len(known)
        found += len(listed)
    assert found
