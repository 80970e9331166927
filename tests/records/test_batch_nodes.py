"""Record batches as nodes: they tile, open buffers, and say the same as the reader."""

import gzip
import random

from kcap.decode.nodes import Buffers, Node
from kcap.decode.tree import Inside
from kcap.records.batch_nodes import record_set_nodes
from kcap.records.record_sets import decode_records
from tests.decode.samples import decode, sample
from tests.decode.trees import check, undecoded, walk
from tests.records.batches import batch, message, record


def tree(blob: bytes) -> Node:
    place = Inside(Buffers(blob), 0, 0, len(blob))
    return Node("records", None, "", place.buffers, 0, 0, len(blob), lambda: record_set_nodes(place))


def test_nodes_tile_and_hold_the_values() -> None:
    """Law: every byte of every vector is in a node; keys and values are those of the reader."""
    for vector in sample("records"):
        blob = bytes.fromhex(vector["hex"])
        root = tree(blob)
        check(root)
        kept = [node for node in walk(root) if node.name in ("key", "value") and node.find("messages") is None]
        found = [node.value for node in kept]
        want = [part for b in decode_records(blob).batches for r in b.records for part in (r.key, r.value)]
        wrappers = sum(b.magic < 2 and b.codec_id > 0 for b in decode_records(blob).batches)
        assert len(found) == len(want) + wrappers
        assert [v for v in found if v is not None or not wrappers][:4] == [v for v in want if v is not None or not wrappers][:4]
        left = [node for node in undecoded(root) if node.buffer == 0]
        assert sum(node.end - node.start for node in left) == vector["trailing_bytes"]


def test_damage_tiles() -> None:
    """One byte changed anywhere, or the blob cut."""
    chance = random.Random(8)
    for vector in sample("records"):
        blob = bytearray.fromhex(vector["hex"])
        if blob:
            check(tree(bytes(blob[: chance.randrange(len(blob))])))
            blob[chance.randrange(len(blob))] ^= 1 << chance.randrange(8)
            check(tree(bytes(blob)))


def test_buffers_know_where_they_come_from() -> None:
    """What a batch or wrapper inflates to is a buffer with its span in the parent."""
    inner = message(b"one", offset=0) + message(b"two", offset=1)
    for blob, names in (
        (batch(gzip.compress(record(0, b"k", b"v")), codec=1), ("batch 0", "records", "inflated", "record 0", "value")),
        (message(gzip.compress(inner), codec=1), ("message 0", "value", "messages", "inflated", "message 1", "value")),
    ):
        root = tree(blob)
        node = root.find(*names)
        assert node is not None
        opened = node.buffers.entries[node.buffer]
        assert (opened.parent, opened.how) == (0, "gzip")
        assert gzip.decompress(blob[opened.start : opened.end]) == opened.data


def test_a_wrong_checksum_is_said() -> None:
    """The node of the CRC has both numbers."""
    blob = bytearray(batch(record()))
    blob[-1] ^= 1
    crc = tree(bytes(blob)).find("batch 0", "crc")
    assert crc is not None
    assert "but the bytes have" in crc.words


def test_messages_open_their_records() -> None:
    """A Fetch response's tree goes down to the records."""
    vector = next(v for v in sample("messages") if v["api"] == "Fetch" and v["kind"] == "response" and _has_batches(v))
    names = [node.name for node in walk(decode(vector).tree())]
    assert "batch 0" in names or "message 0" in names


def _has_batches(vector: dict[str, object]) -> bool:
    return any(node.name in ("batch 0", "message 0") for node in walk(decode(vector).tree()))
