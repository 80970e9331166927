"""The places agree with batches written field by field."""

from kcap.wire import formats
from tests.records.batches import batch, message


def test_least_sizes() -> None:
    """A message of nulls and an empty batch are as small as it gets."""
    sizes = (len(message(None, magic=0)), len(message(None, magic=1)), len(batch(b"", count=0)))
    assert sizes == formats.MINIMA


def test_places() -> None:
    """Size, magic, attributes and count stand where they are said to."""
    for magic, blob in enumerate((message(None, 0, codec=3), message(None, 1, codec=3), batch(b"", count=7, codec=3))):
        size = int.from_bytes(blob[formats.SIZE_AT : formats.SIZE_AT + 4], "big")
        assert size + formats.OVERHEAD == len(blob)
        assert blob[formats.MAGIC_AT] == magic
        at = formats.BATCH_ATTRIBUTES_AT + 1 if magic == 2 else formats.MESSAGE_ATTRIBUTES_AT
        assert blob[at] & formats.CODEC_MASK == 3
    assert int.from_bytes(blob[formats.BATCH_COUNT_AT : formats.BATCH_COUNT_AT + 4], "big") == 7
