"""Facts from the headers of batches."""

from kcap.table.batch_headers import COLUMNS, batch_facts
from tests.records.batches import batch as magic2
from tests.records.batches import message, record


def test_sums_and_first_batch() -> None:
    one, two = magic2(record(0, b"a") + record(1, b"b"), 2, base=40), magic2(record(0, b"c"), base=42)
    blob = b"xx" + one + two
    facts = batch_facts(bytearray(blob), [2, -1], [len(blob), -1])
    assert (facts.batches[0], facts.records[0], facts.bytes[0]) == (2, 3, len(one + two))
    assert (facts.codec[0], facts.magic[0], facts.mixed_codec[0], facts.crc_ok[0]) == ("none", 2, False, True)
    assert facts.next_offset[0] == 43
    assert all(getattr(facts, name)[1] is None for name in COLUMNS), "a message without records"


def test_damage_and_cuts() -> None:
    """A flipped byte shows in the checksum; a batch without its end does not count."""
    blob = bytearray(magic2(record(0, b"a"), base=1))
    whole = batch_facts(bytes(blob) + bytes(blob)[:-1], [0], [2 * len(blob) - 1])
    assert (whole.batches[0], whole.crc_ok[0]) == (1, True)
    blob[-1] ^= 1
    assert batch_facts(blob, [0], [len(blob)]).crc_ok == [False]
    assert batch_facts(blob, [0], [len(blob)], checked=False).crc_ok == [None]
    assert batch_facts(b"", [0], [0]).batches == [0]


def test_old_messages_have_no_times() -> None:
    """Magic 0 has neither timestamps nor producers."""
    blob = message(b"v", 0)
    facts = batch_facts(blob, [0], [len(blob)])
    assert (facts.records[0], facts.magic[0]) == (1, 0)
    assert facts.timestamp_type == facts.first_timestamp_ms == facts.max_timestamp_ms == facts.producer_id == [None]
