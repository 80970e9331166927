"""Facts from batch headers."""

from kcap.records import header_facts as facts
from kcap.records.header_facts import header_facts
from kcap.records.record_sets import decode_records
from tests.records.batches import batch, message, record

DELETE_HORIZON, CONTROL = 0x40, 0x20


def of(*pieces: bytes) -> list[int]:
    return header_facts(decode_records(b"".join(pieces)).batches)


def test_no_batch_has_no_facts() -> None:
    found = of()
    assert found[: facts.COUNTS] == [0] * facts.COUNTS
    assert set(found[facts.COUNTS :]) == {facts.NONE}


def test_sums_and_the_first_batch() -> None:
    found = of(batch(record(0) + record(1), 2, base=40), batch(record(0), attributes=CONTROL, base=42))
    assert (found[facts.BATCHES], found[facts.RECORDS], found[facts.CONTROL], found[facts.NEXT_OFFSET]) == (2, 3, 1, 43)
    assert (found[facts.MAGIC], found[facts.OLD], found[facts.TIMESTAMP_TYPE]) == (2, 0, facts.CREATE_TIME)
    assert (found[facts.FIRST_TIMESTAMP], found[facts.MAX_TIMESTAMP]) == (1000, 2000)


def test_times_that_headers_do_not_have() -> None:
    """Behind a delete horizon, in a message of magic 0, in a wrapper (whose time is that of its last message)."""
    assert of(batch(record(0), attributes=DELETE_HORIZON))[facts.FIRST_TIMESTAMP] == facts.NONE
    found = of(message(b"v", 0))
    assert (found[facts.OLD], found[facts.TIMESTAMP_TYPE], found[facts.FIRST_TIMESTAMP]) == (1, facts.NO_TIME, facts.NONE)
    assert of(message(b"v", 1))[facts.FIRST_TIMESTAMP] == 1234


def test_offsets_are_those_of_java() -> None:
    """The offset behind the largest one is the smallest."""
    assert of(batch(record(0), base=(1 << 63) - 1))[facts.NEXT_OFFSET] == -(1 << 63)
