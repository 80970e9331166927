"""Determines what of a message may be shown to others: a decoded frame in, spans to zero and bytes to replace out.

In: the frame's bytes with their length prefix, its API and version. Out: `RedactionPlan`. Law: lengths remain. A batch with
zeroed records has the checksum of its new bytes. Nothing is shown of bytes that could not be read; of a message that was
captured whole and cannot be decoded to its end, only the header is shown, since it may be a damaged one of another API. A
compressed batch is zeroed whole, since zeros compress to another length: its header still counts the records, which can no
longer be decompressed.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from struct import pack
from typing import Any, Final

import kcap.records.batch_nodes  # noqa: F401 - the trees of messages open their records fields with it
from kcap.decode.message import decode_request, decode_response
from kcap.decode.nodes import UNDECODED, Node
from kcap.decode.plan import json_key
from kcap.decode.secrets import CLIENT_ID, DAMAGED, HEADER, RULES, Path, is_secret, shown_as, step
from kcap.wire.checksums import crc32, crc32c
from kcap.wire.formats import CODEC_MASK

NAMED: Final = frozenset(("Name", "ConfigName"))
PREFIX: Final = 4
"""Bytes of a frame's length prefix."""
CORRELATION: Final = 4
BATCH: Final = re.compile(r"(batch|message) \d+")
HIDDEN: Final = frozenset(("key", "value", "headerValue"))
SHOWN_TEXT: Final = frozenset(
    "ClientSoftwareName ClientSoftwareVersion Mechanism Mechanisms ProtocolType ProtocolName Feature FeatureName EntityType"
    " GroupState GroupType GroupStates StatesFilter TypesFilter AssignorName ServerAssignor State Type".split()
)
"""Strings that name Kafka's own things; every other string gets a pseudonym."""
SHOWN_IN: Final = frozenset(("Protocols", "configs", "Configs", "SupportedFeatures", "FinalizedFeatures", "Features"))
"""Arrays whose names are Kafka's own: of assignors, configs and features."""


@dataclass(slots=True)
class RedactionPlan:
    """The plan of one frame, in bytes from its length prefix on."""

    shown: int = 0
    """Number of bytes from the start that were read; everything after them is zeroed."""
    hidden: list[tuple[int, int]] = field(default_factory=list)
    put: list[tuple[int, bytes]] = field(default_factory=list)
    """Replacement bytes and their positions."""
    compressed: int = 0
    """Number of batches whose records can no longer be decompressed."""


Rename = Callable[[bytes], bytes]


def plan(
    frame: bytes, side: str, api_key: int | None, version: int | None, *, redact: bool, rename: Rename | None
) -> RedactionPlan:
    """The plan for a frame, as far as it was captured. Without a key only its length and correlation id are shown."""
    made = RedactionPlan()
    if api_key is None or version is None:
        made.shown = min(len(frame), PREFIX + CORRELATION) if side == "response" else PREFIX
        return made
    body = frame[PREFIX:]
    message = decode_request(body) if side == "request" else decode_response(body, api_key, version)
    root = message.tree()
    made.shown = len(frame)
    buffer = bytearray(body)
    _Visit(message.name, buffer, made, redact, rename).children(root, (), known=False, top=True)
    if message.undecoded is not None:
        made.shown = min(made.shown, PREFIX + min((n.start for n in _unread(root)), default=len(body)))
    if redact and shown_as(message, int.from_bytes(frame[:PREFIX], "big") + PREFIX) == DAMAGED:
        header = next((node.end for node in root.children if node.name == HEADER), 0)
        made.shown = min(made.shown, PREFIX + header)
    made.hidden.sort()
    return made


def _unread(node: Node) -> Iterator[Node]:
    """Nodes of the frame that could not be read."""
    for child in node.children:
        if child.buffer == 0:
            if child.name == UNDECODED:
                yield child
            elif not BATCH.fullmatch(child.name):
                yield from _unread(child)


@dataclass(slots=True)
class _Visit:
    """Walks through a message."""

    message: str | None
    buffer: bytearray
    made: RedactionPlan
    redact: bool
    rename: Rename | None

    def children(self, node: Node, path: Path, *, known: bool, top: bool = False) -> None:
        """Visits the children of a node; `known`: names in it are Kafka's own."""
        for child in node.children:
            if child.buffer:
                continue  # computed from the frame, whose own bytes are a separate node
            inner = () if top else step(path, child)
            if self.redact and child.name == UNDECODED:
                hide(self.made, self.buffer, child.start, child.end)
            elif self.redact and self.secret(inner, child, node.children):
                hide(self.made, self.buffer, *content(child))
            elif BATCH.fullmatch(child.name):
                if self.redact:
                    _batch(child, self.buffer, self.made)
            elif isinstance(child.value, str) and _is_text(child):
                if not (known and child.name in NAMED) and child.name not in SHOWN_TEXT:
                    self.renamed(child)
            else:
                self.children(child, inner, known=known or child.name in SHOWN_IN)

    def secret(self, path: Path, node: Node, siblings: Sequence[Node]) -> bool:
        """Zeroes a whole field that may be a secret, including those parts of a token that are not secret."""
        if path != CLIENT_ID and path not in RULES.get(self.message or "", ()):
            return False
        return is_secret(self.message, path, {json_key(other.name): other.value for other in siblings}, node.value)

    def renamed(self, node: Node) -> None:
        """Replaces a name by its pseudonym."""
        start, end = content(node)
        if self.rename is not None and end > start:
            other = self.rename(bytes(self.buffer[start:end]))
            self.buffer[start:end] = other
            self.made.put.append((PREFIX + start, other))


def _is_text(node: Node) -> bool:
    """Whether it is a string and not a uuid, which is text in a tree too."""
    size = node.end - node.start
    return size != 16 or len(node.value.encode()) + 2 == size or len(node.value.encode()) + 1 == size


def content(node: Node) -> tuple[int, int]:
    """The span of a string's or bytes field's content, after its length."""
    data = node.data
    size = len(data)
    if isinstance(node.value, bytes):
        return node.end - len(node.value), node.end
    if size >= 2 and int.from_bytes(data[:2], "big") == size - 2:
        return node.start + 2, node.end
    if not isinstance(node.value, str):
        return node.start, node.end
    behind = next((at for at in range(1, 6) if at <= size and _uvarint(data[:at]) == size - at + 1), size)
    return node.start + behind, node.end


def _uvarint(data: bytes) -> int:
    if any(byte < 0x80 for byte in data[:-1]) or data[-1] >= 0x80:
        return -1
    return sum((byte & 0x7F) << 7 * at for at, byte in enumerate(data))


def hide(made: RedactionPlan, buffer: bytearray, start: int, end: int) -> None:
    """Zeroes a span."""
    if end > start:
        buffer[start:end] = bytes(end - start)
        made.hidden.append((PREFIX + start, PREFIX + end))


def _batch(batch: Node, buffer: bytearray, made: RedactionPlan) -> None:
    """Zeroes the records of a batch of any format and sets its checksum; the marker at a transaction's end is Kafka's own and
    remains."""
    fields: dict[str, Node] = {child.name: child for child in batch.children}
    attributes = fields.get("attributes")
    if attributes is not None and "control" in attributes.words:
        return
    before = bytes(buffer[batch.start : batch.end])
    made.compressed += attributes is not None and bool(attributes.value & CODEC_MASK)
    for child in batch.children:
        for part in child.children if child.name.startswith("record ") else (child,):
            if part.name in (UNDECODED, "records"):
                hide(made, buffer, part.start, part.end)
            elif part.name in HIDDEN:
                _value(part, buffer, made)
    crc = fields.get("crc")
    if crc is None or before == bytes(buffer[batch.start : batch.end]):
        return
    covered: Any = bytes(buffer[crc.end : batch.end])
    value = crc32c(covered) if batch.name.startswith("batch") else crc32(covered)
    if crc.value == (crc32c if batch.name.startswith("batch") else crc32)(before[crc.end - batch.start :]):
        buffer[crc.start : crc.end] = pack(">I", value)
        made.put.append((PREFIX + crc.start, pack(">I", value)))


def _value(node: Node, buffer: bytearray, made: RedactionPlan) -> None:
    if isinstance(node.value, bytes):
        hide(made, buffer, node.end - len(node.value), node.end)
    elif node.value is not None:
        hide(made, buffer, node.start, node.end)
