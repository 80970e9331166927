"""Record batches as nodes with byte spans: a span of a buffer in, nodes that tile it out.

Importing this module lets the trees of messages open their records fields. Laws: those of `kcap.decode.nodes`. The decompressed
bytes of a batch are a separate buffer, and nothing is decompressed before a node inside is requested. Keys and values are
opened only where Kafka itself wrote them (`kcap.records.internal`).
"""

from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any, Final

from kcap.decode.nodes import Node, Tiler
from kcap.decode.tree import OPENERS, Inside
from kcap.records.batch import Batch, spans
from kcap.records.internal import open_internal
from kcap.records.legacy import read_message
from kcap.records.magic2 import inflated_limit, read_batch
from kcap.wire.codecs import inflate
from kcap.wire.text import decode_text
from kcap.wire.varints import DamageError, short_of

_FORMS: Final = {
    "int8": Struct(">b"),
    "int16": Struct(">h"),
    "int32": Struct(">i"),
    "uint32": Struct(">I"),
    "int64": Struct(">q"),
}
_INT32 = _FORMS["int32"]

_BATCH: Final = (
    ("baseOffset", "int64"),
    ("batchLength", "int32"),
    ("partitionLeaderEpoch", "int32"),
    ("magic", "int8"),
    ("crc", "uint32"),
    ("attributes", "int16"),
    ("lastOffsetDelta", "int32"),
    ("baseTimestamp", "int64"),
    ("maxTimestamp", "int64"),
    ("producerId", "int64"),
    ("producerEpoch", "int16"),
    ("baseSequence", "int32"),
    ("recordsCount", "int32"),
)
"""Header of a magic 2 batch (DefaultRecordBatch.java)."""

_MESSAGE: Final = (("offset", "int64"), ("messageSize", "int32"), ("crc", "uint32"), ("magic", "int8"), ("attributes", "int8"))
"""Start of a magic 0 or 1 message (LegacyRecord.java); in magic 1 the timestamp follows."""

_TIMESTAMPS: Final = frozenset({"baseTimestamp", "maxTimestamp", "timestamp"})


def record_set_nodes(place: Inside) -> list[Node]:
    """Nodes of the batches of a records field, and of the bytes after the last complete one."""
    buffers, buffer, start, end = place.buffers, place.buffer, place.start, place.end

    def build(tiler: Tiler) -> None:
        for at, (first, last, magic) in enumerate(spans(buffers[buffer], start, end)):
            _batch(tiler, at, first, last, magic)

    return Tiler(buffers, buffer, start, end, place.topic).finish(build, "an incomplete batch")


def _batch(tiler: Tiler, number: int, start: int, end: int, magic: int) -> None:
    buffers, buffer = tiler.buffers, tiler.buffer
    kind, build = ("batch", _magic2) if magic == 2 else ("message", _legacy)
    tiler.cursor.position = end
    said = f"magic {magic}, {end - start} bytes"
    topic = tiler.topic
    tiler.add(f"{kind} {number}", start, None, said, lambda: Tiler(buffers, buffer, start, end, topic).finish(build))


def _fields(tiler: Tiler, batch: Batch, fields: tuple[tuple[str, str], ...]) -> None:
    for name, kind in fields:
        value = tiler.fixed(name, _FORMS[kind], kind, "Timestamp ms" if name in _TIMESTAMPS else name)
        if name == "crc" and not batch.crc_ok:
            tiler.nodes[-1].words = f"{value}, but the bytes have {batch.checksum(batch)}"
        elif name == "attributes":
            tiler.nodes[-1].words = _attributes(batch)


def _attributes(batch: Batch) -> str:
    marks = (
        (batch.is_transactional, "transactional"),
        (batch.is_control, "control"),
        (batch.delete_horizon_ms is not None, "delete horizon"),
    )
    return ", ".join([batch.codec, batch.timestamp_type, *(name for is_set, name in marks if is_set)])


def _inflated(tiler: Tiler, codec: int, name: str, start: int, end: int, build: Callable[[Tiler], None]) -> list[Node]:
    """One node over the decompressed bytes of `start` to `end`, or over the bytes themselves if nothing could be
    decompressed.
    """
    packed = memoryview(tiler.buffers[tiler.buffer])[start:end]
    result = inflate(codec, packed, inflated_limit(len(packed)))
    if not result.data:
        return []
    number = tiler.buffers.open(bytes(result.data), tiler.buffer, start, end, name)
    size = len(result.data)
    said = f"{size} bytes" + (f", {result.fault}" if result.fault else "")
    inner = Tiler(tiler.buffers, number, 0, size, tiler.topic)
    return [Node("inflated", None, said, tiler.buffers, number, 0, size, lambda: inner.finish(build))]


def _magic2(tiler: Tiler) -> None:
    cursor = tiler.cursor
    batch = read_batch(bytes(cursor.buffer), cursor.position, cursor.end)
    _fields(tiler, batch, _BATCH)
    start, end = cursor.position, cursor.end

    def records(inner: Tiler) -> None:
        for number in range(batch.count):
            _record(inner, number, control=batch.is_control)

    if not batch.codec_id:
        records(tiler)
    elif start < end:
        cursor.position = end
        said = f"{batch.codec}, {end - start} bytes"
        tiler.add("records", start, None, said, lambda: _inflated(tiler, batch.codec_id, batch.codec, start, end, records))


def _record(tiler: Tiler, number: int, *, control: bool) -> None:
    cursor = tiler.cursor
    start = cursor.position
    size = tiler.varint("length")
    tiler.nodes.pop()
    end = cursor.position + size
    if size < 0 or end > cursor.end:
        cursor.position = start
        raise short_of("record", start)
    cursor.position = end
    inside = Tiler(tiler.buffers, tiler.buffer, start, end, tiler.topic)
    tiler.add(f"record {number}", start, None, "", lambda: inside.finish(partial(_inside_record, control=control)))


def _inside_record(tiler: Tiler, *, control: bool) -> None:
    tiler.varint("length")
    tiler.fixed("attributes", _FORMS["int8"], "int8")
    tiler.varint("timestampDelta", long=True)
    tiler.varint("offsetDelta")
    _varint_bytes(tiler, "key")
    _varint_bytes(tiler, "value")
    open_internal(tiler.nodes[-2], tiler.nodes[-1], tiler.topic, control=control)
    for _ in range(tiler.varint("headersCount")):
        _varint_bytes(tiler, "headerKey", text=True)
        _varint_bytes(tiler, "headerValue")


def _sized(tiler: Tiler, name: str, start: int, size: int, *, text: bool = False) -> None:
    """Adds a node from `start`, where the length is, over `size` more bytes; a negative size is null."""
    cursor = tiler.cursor
    value: Any = None
    if size >= 0:
        try:
            value = cursor.read_bytes(size, name)
        except DamageError:
            cursor.position = start
            raise
    shown = decode_text(value) if value is not None else "null"
    tiler.add(name, start, shown if text and value is not None else value, shown)


def _varint_bytes(tiler: Tiler, name: str, *, text: bool = False) -> None:
    start = tiler.cursor.position
    size = tiler.varint(name)
    tiler.nodes.pop()
    _sized(tiler, name, start, size, text=text)


def _legacy(tiler: Tiler) -> None:
    cursor = tiler.cursor
    blob = bytes(cursor.buffer[cursor.position : cursor.end])
    batch = read_message(blob, 0, len(blob))
    _fields(tiler, batch, _MESSAGE if batch.magic == 0 else (*_MESSAGE, ("timestamp", "int64")))
    for name in ("key", "value"):
        start = cursor.position
        (size,) = cursor.read(_INT32)
        _sized(tiler, name, start, size)
    open_internal(tiler.nodes[-2], tiler.nodes[-1], tiler.topic, control=False)
    if batch.codec_id:
        node = tiler.nodes[-1]
        first, last = node.start + _INT32.size, node.end
        node.words = f"{batch.codec}, {last - first} bytes"
        node.expand = lambda: _wrapped(tiler, batch, node.start, first, last)


def _wrapped(tiler: Tiler, batch: Batch, start: int, first: int, last: int) -> list[Node]:
    """Nodes of the length of a wrapper's value, then of its bytes, which decompress to the messages."""

    def build(inner: Tiler) -> None:
        for at, (begin, end, magic) in enumerate(spans(inner.buffers[inner.buffer], 0, inner.cursor.end)):
            _batch(inner, at, begin, end, magic)

    length = Node("length", last - first, str(last - first), tiler.buffers, tiler.buffer, start, first)
    packed = Node(
        "messages",
        None,
        batch.codec,
        tiler.buffers,
        tiler.buffer,
        first,
        last,
        lambda: _inflated(tiler, batch.codec_id, batch.codec, first, last, build),
    )
    return [length, packed]


OPENERS["records"] = record_set_nodes
