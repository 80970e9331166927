"""Nodes lie side by side whatever happens while they are made."""

from struct import Struct

from kcap.decode.nodes import UNDECODED, Buffers, Tiler


def test_what_is_left_is_undecoded() -> None:
    """Damage in the middle: the nodes before it stay, the rest is one node that says why."""

    def build(tiler: Tiler) -> None:
        tiler.fixed("a", Struct(">h"), "int16")
        tiler.uvarint("b")
        tiler.fixed("c", Struct(">q"), "int64")

    nodes = Tiler(Buffers(b"\0\1\5xyz"), 0, 0, 6).finish(build)
    assert [(node.name, node.start, node.end) for node in nodes] == [("a", 0, 2), ("b", 2, 3), (UNDECODED, 3, 6)]
    assert nodes[-1].value == b"xyz"
    assert nodes[-1].words


def test_damage_at_the_very_end_still_shows() -> None:
    """An empty node marks where bytes are missing."""
    nodes = Tiler(Buffers(b""), 0, 0, 0).finish(lambda tiler: tiler.fixed("a", Struct(">h")))
    assert [(node.name, node.start, node.end) for node in nodes] == [(UNDECODED, 0, 0)]


def test_bytes_that_no_field_claims() -> None:
    """They are named, not hidden."""
    (node,) = Tiler(Buffers(b"left"), 0, 0, 4).finish(lambda tiler: None, "bytes behind the message")
    assert (node.name, node.words) == (UNDECODED, "bytes behind the message")


def test_a_buffer_is_opened_once() -> None:
    """Asking again for what the same span inflates to gives the same buffer, with its place in the parent."""
    buffers = Buffers(b"packed")
    number = buffers.open(b"plain", 0, 1, 4, "gzip")
    assert buffers.open(b"plain", 0, 1, 4, "gzip") == number
    assert buffers.open(b"other", 0, 0, 4, "gzip") != number
    assert (buffers.entries[number].parent, buffers.entries[number].start) == (0, 1)
    assert buffers[number] == b"plain"


def test_uuids_are_text() -> None:
    """A node's value is Kafka's form of the uuid."""
    tiler = Tiler(Buffers(bytes(16)), 0, 0, 16)
    assert tiler.fixed("id", Struct(">16s"), "uuid") == "A" * 22
    assert tiler.nodes[0].find("nothing") is None
    assert tiler.nodes[0].data == bytes(16)
