"""Metrics that clients push to brokers (KIP-714): the field's bytes in, OTLP's messages as nodes out.

The names come from OpenTelemetry's own definitions (opentelemetry-proto, the extra `telemetry`); without them, fields have
numbers. Law: nodes tile their span; bytes that are not protobuf remain bytes; decompression is bounded.
"""

from collections.abc import Sequence
from functools import cache, partial
from struct import Struct
from typing import Any, Final

from kcap.decode.nodes import Node, Tiler
from kcap.decode.tree import Inside
from kcap.limits import METRICS_BYTES_MAX, METRICS_DEPTH_MAX
from kcap.wire.codecs import codec_name, inflate
from kcap.wire.text import decode_text
from kcap.wire.varints import DamageError

VARINT, FIXED64, SIZED, FIXED32 = 0, 1, 2, 5
"""Wire types (protobuf encoding guide)."""
MISSING: Final = "pip install 'kcap[telemetry]' names the fields"
_DOUBLE, _LONG, _FLOAT, _INT = Struct("<d"), Struct("<q"), Struct("<f"), Struct("<i")
FLOATING: Final = frozenset({1, 2})
"""protobuf field types double and float (FieldDescriptor.TYPE_*)."""
TEXT, MESSAGE, ENUM = 9, 11, 14


@cache
def metrics_data() -> Any:
    """The descriptor of OTLP's MetricsData; None without the extra."""
    try:
        from opentelemetry.proto.metrics.v1 import metrics_pb2
    except ImportError:
        return None
    return metrics_pb2.MetricsData.DESCRIPTOR


def pushed(inside: Inside) -> Sequence[Node]:
    """The metrics of a PushTelemetry request, decompressed with the codec named before them."""
    buffers, span = inside.buffers, (inside.buffer, inside.start, inside.end)
    codec = next((node.value for node in inside.before if node.name == "CompressionType"), 0)
    result = inflate(codec, inside.data, METRICS_BYTES_MAX)
    said = f"{inside.end - inside.start} bytes" + (f", {result.fault}" if result.fault else "")
    if not result.data:
        return [Node("metrics", inside.data, said, buffers, *span)]
    data = bytes(result.data)
    number, descriptor = buffers.open(data, *span, codec_name(codec)), metrics_data()

    def fields() -> list[Node]:
        return Tiler(buffers, number, 0, len(data)).finish(partial(message_nodes, descriptor=descriptor, depth=0))

    words = f"{len(data)} bytes" + ("" if descriptor else f"; {MISSING}")
    root = Node("MetricsData", None, words, buffers, number, 0, len(data), fields)
    return [Node("metrics", None, said, buffers, *span, lambda: [root])]


def message_nodes(tiler: Tiler, *, descriptor: Any, depth: int) -> None:
    """Adds the fields of a protobuf message, one node each. Raises DamageError."""
    cursor = tiler.cursor
    while cursor.left:
        start = cursor.position
        tag = cursor.read_uvarint()
        number, wire = tag >> 3, tag & 7
        field = descriptor.fields_by_number.get(number) if descriptor else None
        name = field.name if field is not None else f"field {number}"
        if wire == VARINT:
            _varint(tiler, name, start, field)
        elif wire in (FIXED64, FIXED32):
            _fixed(tiler, name, start, field, wire)
        elif wire == SIZED:
            _sized(tiler, name, start, field, depth)
        else:
            cursor.position = start
            raise DamageError(f"wire type {wire} of {name}")


def _varint(tiler: Tiler, name: str, start: int, field: Any) -> None:
    value = shift = 0
    while True:
        (byte,) = tiler.cursor.read_bytes(1, name)
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128 or shift > 63:
            break
    value = value - (1 << 64) if value >> 63 else value
    named = field.enum_type.values_by_number.get(value) if field is not None and field.type == ENUM else None
    tiler.add(name, start, value, f"{value} {named.name}" if named else str(value))


def _fixed(tiler: Tiler, name: str, start: int, field: Any, wire: int) -> None:
    floating = field is not None and field.type in FLOATING
    form = (_DOUBLE if floating else _LONG) if wire == FIXED64 else (_FLOAT if floating else _INT)
    (value,) = form.unpack(tiler.cursor.read_bytes(form.size, name))
    tiler.add(name, start, value, str(value))


def _sized(tiler: Tiler, name: str, start: int, field: Any, depth: int) -> None:
    cursor = tiler.cursor
    size = cursor.read_uvarint()
    at = cursor.position
    data = cursor.read_bytes(size, name)
    if field is not None and field.type == MESSAGE and depth < METRICS_DEPTH_MAX:
        node = tiler.add(name, start, None, "")
        node.expand = partial(_inside, tiler, start, at, at + size, field.message_type, depth + 1)
        return
    text = decode_text(data) if field is not None and field.type == TEXT else None
    tiler.add(name, start, text if text is not None else data, text if text is not None else f"{size} bytes")


def _inside(tiler: Tiler, start: int, at: int, end: int, descriptor: Any, depth: int) -> list[Node]:
    """Nodes for the tag and length of a message, then for its fields."""
    head = Node("tag and length", end - at, str(end - at), tiler.buffers, tiler.buffer, start, at)
    inner = Tiler(tiler.buffers, tiler.buffer, at, end)
    return [head, *inner.finish(partial(message_nodes, descriptor=descriptor, depth=depth))]
