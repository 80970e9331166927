"""Records that Kafka writes for itself: key and value nodes in, the messages inside them as their children.

They are control records and records of the coordinators' topics and of KRaft's log. Law: a key or value is opened only if the
schema that its own prefix names reads it to the last byte; all others remain bytes.
"""

from struct import Struct
from typing import Final

from kcap.decode.message import Message, decode_data
from kcap.decode.nodes import Node, Tiler
from kcap.decode.tree import Inside
from kcap.decode.value_words import words
from kcap.records.control import TYPES, type_of
from kcap.schema.facts import MessageSpec as Schema
from kcap.schema.registry import record_message
from kcap.wire.cursor import Cursor
from kcap.wire.varints import DamageError

COORDINATORS: Final = {
    "__consumer_offsets": "group-coordinator",
    "__transaction_state": "transaction-coordinator",
    "__share_group_state": "share-coordinator",
}
"""Topic -> family of its records. A key begins with the record's type, a value with its version (CoordinatorRecordSerde)."""
LOGS: Final = {
    "__cluster_metadata": "metadata",
    "AAAAAAAAAAAAAAAAAAAAAQ": "metadata",
    "__remote_log_metadata": "storage",
}
"""Topic, or its id -> family of its records. The value names its own type (AbstractApiMessageSerde)."""
_INT16: Final = Struct(">h")


def open_internal(key: Node, value: Node, topic: str, *, control: bool) -> None:
    """Adds children to the nodes of a record's key and value if Kafka wrote them."""
    if control:
        _open_control(key, value)
    elif topic in COORDINATORS:
        family, kind = COORDINATORS[topic], _int16(key.value)
        if kind is not None:
            for node, part in ((key, "coordinator-key"), (value, "coordinator-value")):
                _open(node, record_message(family, part, kind))
    elif topic in LOGS:
        kind = _log_type(value.value)
        if kind is not None:
            _open(value, record_message(LOGS[topic], "metadata", kind))


def _int16(data: object) -> int | None:
    return int.from_bytes(data[:2], "big", signed=True) if isinstance(data, bytes) and len(data) >= 2 else None


def _log_type(data: object) -> int | None:
    """The type of a record in a log: the second varint."""
    if not isinstance(data, bytes):
        return None
    cursor = Cursor(data)
    try:
        cursor.read_uvarint()
        return cursor.read_uvarint()
    except DamageError:
        return None


def _open(node: Node, schema: Schema | None) -> None:
    if schema is None or not isinstance(node.value, bytes):
        return
    message = decode_data(schema.name, node.value)
    if message.undecoded is None:
        node.words = f"{message.name} v{message.version}, {len(node.value)} bytes"
        _expand(node, message)


def _expand(node: Node, message: Message) -> None:
    """Adds the length of a sized field, then its contents, under the node."""
    start = node.end - len(node.value)

    def children() -> list[Node]:
        length = Node("length", len(node.value), str(len(node.value)), node.buffers, node.buffer, node.start, start)
        return [length, message.tree_in(Inside(node.buffers, node.buffer, start, node.end))]

    node.expand = children


def _open_control(key: Node, value: Node) -> None:
    """Opens a control record (ControlRecordType.java), whose key is an int16 version and an int16 type."""
    number = type_of(key.value) if isinstance(key.value, bytes) else None
    if number is None:
        return
    name, schema, _ = TYPES.get(number, ("UNKNOWN", "", 0))
    start = key.end - len(key.value)

    def children() -> list[Node]:
        length = Node("length", len(key.value), str(len(key.value)), key.buffers, key.buffer, key.start, start)

        def build(tiler: Tiler) -> None:
            tiler.fixed("version", _INT16)
            tiler.fixed("type", _INT16)
            tiler.nodes[-1].words = f"{number} {name}"

        return [length, *Tiler(key.buffers, key.buffer, start, key.end).finish(build)]

    key.words = name
    key.expand = children
    if schema and isinstance(value.value, bytes):
        message = decode_data(schema, value.value)
        if message.undecoded is None:
            value.words = f"{message.name} v{message.version}, {words('', 'bytes', value.value)}"
            _expand(value, message)
