"""A body that was fed in pieces has the values of the same body in one buffer."""

import gzip
import struct
from unittest.mock import patch

import pytest

from kcap.decode import slots
from kcap.decode.programs import program_index
from kcap.kafka.body_values import REQUEST, fed, resumed, values_of
from tests.records.batches import message
from tests.support.wire import produce


@pytest.mark.parametrize("size", [1, 7, 100, 5_000])
def test_records_in_compressed_messages_are_counted_as_they_pass(size: int) -> None:
    """Law: however the bytes come, the count is that of the whole body, and no more than a message is held."""
    inner = b"".join(message(b"v" * 50, offset=at) for at in range(10))
    one = message(gzip.compress(inner, 0), codec=1, offset=9)
    frame = bytearray(produce(1, 1, one * 20 + message(b"plain") + one[:-1]))
    reader, most = resumed(program_index(0, 2, REQUEST), frame, 17, counted=True, light=False), 0
    assert reader is not None
    assert values_of(reader).values[slots.RECORD_COUNT] == 201
    reader = resumed(program_index(0, 2, REQUEST), bytearray(), 0, counted=True, light=False)
    assert reader is not None
    for at in range(17, len(frame), size):
        fed(reader, frame[at : at + size])
        most = max(most, reader.held)
    values = values_of(reader)
    assert values.values[slots.RECORD_COUNT] == 201
    assert values.mask >> slots.RECORD_COUNT & 1
    assert most < 2 * len(one) + size + 100
    reader = resumed(program_index(0, 2, REQUEST), frame, 17, counted=False, light=False)
    assert reader is not None
    assert values_of(reader).mask >> slots.RECORD_COUNT & 1 == 0


def test_a_reader_that_would_hold_much_is_given_up_at_the_beginning() -> None:
    """Law: names without end are not read to their end to find out that they fill memory; records are no burden."""
    names, index = bytearray(struct.pack(">i", 1 << 30) + b"\0\1t" * 100_000), program_index(3, 1, REQUEST)
    whole = resumed(index, names, 0, counted=True, light=False)
    assert whole is not None
    assert whole.held > len(names)
    with patch("kcap.kafka.body_values.fed", wraps=fed) as seen:
        assert resumed(index, names, 0, counted=True, light=True) is None
    assert sum(len(call.args[1]) for call in seen.call_args_list) <= 4096
    frame = bytearray(produce(1, 1, message(bytes(100_000))))
    assert resumed(program_index(0, 2, REQUEST), frame, 17, counted=True, light=True) is not None
