"""The walk over a blob, and the records as JSON."""

from kcap.records.batch import Contents, Control, Record, spans
from kcap.records.record_sets import RecordSet, decode_records, each_batch
from tests.records.batches import batch, message, record


def test_spans_stop_at_what_is_no_batch() -> None:
    """Complete batches of any magic; then a cut one, an unknown magic, or a size that cannot be."""
    good = batch(record()) + message(b"v", magic=0) + message(b"v")
    ends = [(start, end) for start, end, _ in spans(good, 0, len(good))]
    assert [magic for _, _, magic in spans(good, 0, len(good))] == [2, 0, 1]
    assert ends[-1][1] == len(good)
    bad = (batch(record())[:-1], batch(record())[:16] + b"\7" + bytes(80), bytes(8) + b"\xff\xff\xff\xf0" + bytes(80), b"x")
    for tail in bad:
        assert [(start, end) for start, end, _ in spans(good + tail, 0, len(good + tail))] == ends


def test_json_of_a_record() -> None:
    """Null and empty are told apart; a control record says what it does."""
    found = Record(5, -1, None, b"", (("h", None), ("h", b"\1")), Control("COMMIT", 1, {"coordinatorEpoch": 3})).to_json()
    assert found == {
        "offset": 5, "timestamp": -1, "key": None, "value": "", "headers": [["h", None], ["h", "AQ=="]],
        "control": {"type": "COMMIT", "type_id": 1, "body": {"coordinatorEpoch": 3}},
    }  # fmt: skip


def test_a_batch_says_what_could_not_be_read() -> None:
    """`undecoded` stands in the JSON only then."""
    whole, cut = decode_records(batch(record() + record(1), 2)), decode_records(batch(record(), 2))
    assert "undecoded" not in whole.to_json()["batches"][0]
    assert len(cut.batches[0].records) == 1
    assert "cut" in cut.to_json()["batches"][0]["undecoded"]


def test_records_one_by_one_are_not_kept() -> None:
    """Law: they are those of the batch, with its fault."""
    for blob in (batch(record() + record(1), 2), batch(record() + record(1), 3), message(b"v"), batch(b"\x99" * 9, 1)):
        (one,), (other,) = decode_records(blob).batches, each_batch(blob, RecordSet())
        contents = Contents()
        assert list(one.each(contents)) == other.records
        assert contents == Contents(fault=other.fault)
        assert one._contents is None
        assert list(other.each(contents)) == other.records
