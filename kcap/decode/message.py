"""Whole messages: a frame without its length prefix in, header, JSON, tree and unknown tags out.

Law: no bytes raise an exception. Missing parts of the header are None, `undecoded` says why a body could not be read, and the
body of an unknown API or version is left undecoded.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kcap import limits
from kcap.decode.header import Header, read_request_header, read_response_header
from kcap.decode.interpreter import MALFORMED, SHORT, State, run
from kcap.decode.json import JsonReading, Records, read_json
from kcap.decode.plan import Plan, plan_for, plan_of
from kcap.errors import UsageError
from kcap.model import Buffer
from kcap.schema import facts, registry
from kcap.schema.quirks import UNPREFIXED, response_version
from kcap.wire.cursor import Cursor

if TYPE_CHECKING:
    from kcap.decode.nodes import Node
    from kcap.decode.tree import Inside

WIDEST_LENGTH: Final = 5
"""Bytes of a length or count, some of which may be cut."""


class Message:
    """A decoded request, response, or blob; everything except the header is decoded on demand."""

    __slots__ = ("_plan", "_reading", "_unknown", "frame", "header", "name")

    def __init__(self, frame: bytes, header: Header, name: str | None, plan: Plan | None, unknown: str | None) -> None:
        self.frame = frame
        self.header = header
        self.name = name
        """Schema name (`FetchRequest`); None for an unknown API key."""
        self._plan = plan
        self._unknown = unknown
        self._reading: JsonReading | None = None

    def _read(self) -> JsonReading:
        if self._reading is None:
            assert self._plan is not None
            self._reading = read_json(self._plan, self.frame, self.header.end)
        return self._reading

    @property
    def version(self) -> int | None:
        """Version by which the body is read; None if it is not known."""
        return self._plan.version if self._plan else None

    def to_json(self, records: Records = "base64") -> dict[str, Any] | None:
        """The body as Kafka's JSON, in Python values; for a damaged body, what could be read. None if the API, the version or
        the end of the header is unknown. Records fields are base64, or sizes as in the broker's request log.
        """
        if self._plan is None or self.header.fault:
            return None
        if records == "base64":
            return self._read().value
        return read_json(self._plan, self.frame, self.header.end, records=records).value

    @property
    def unknown_tags(self) -> list[tuple[int, bytes]]:
        """Tagged fields of the outermost struct that no schema knows."""
        return self._read().unknown_tags if self._plan and not self.header.fault else []

    @property
    def undecoded(self) -> str | None:
        """The reason why not all bytes could be decoded; None if all were."""
        if self.header.fault or self._plan is None:
            return self.header.fault or self._unknown
        reading = self._read()
        left = len(self.frame) - reading.position
        if reading.undecoded is None and left:
            return f"{left} bytes behind the message"
        return reading.undecoded

    def may_have(self, size: int) -> bool:
        """Whether the frame may be the beginning of a message of `size` bytes: the message neither ends within the frame nor
        needs more than `size` bytes.

        Missing bytes are read as zeros, which is the shortest continuation.
        """
        captured = len(self.frame)
        if self._plan is None or self.header.fault or size <= captured:
            return True
        state = State()
        state.begin(0, 0, self.header.end)
        end = min(size, captured + limits.CUT_MESSAGE_BYTES)
        run(state, self._plan.rows, self.frame + bytes(end - captured), end)
        if state.status == SHORT:
            return state.position <= size and end < size
        return state.position + (WIDEST_LENGTH if state.status == MALFORMED else 0) >= captured

    def tree(self) -> "Node":
        """The frame as nodes with byte spans; children are made on demand and tile their parent."""
        from kcap.decode.nodes import Buffers
        from kcap.decode.tree import Inside

        return self.tree_in(Inside(Buffers(self.frame), 0, 0, len(self.frame)))

    def tree_in(self, place: "Inside") -> "Node":
        """The same, where the frame is part of a larger buffer."""
        unknown = self._unknown if self._plan is None else None
        return _message_tree()(place, self.name, self.header, self._plan, unknown)


def _unknown(api_key: int | None, version: int | None) -> str:
    if api_key is None or version is None:
        return "the API of the message is not known"
    name = registry.api_name(api_key)
    return f"{name} has no version {version}" if name else f"no API has the key {api_key}"


def _message(frame: Buffer, header: Header, version: int | None, side: int) -> Message:
    key = header.api_key
    plan = None if key is None or version is None else plan_for(key, version, side)
    body = None if key is None else registry.body(key, side)
    return Message(bytes(frame), header, body.name if body else None, plan, _unknown(key, version))


def _unprefixed(frame: Buffer, decode: Callable[[Buffer], Message]) -> Message:
    """Decodes a frame. If it can only be read after its first four bytes, and these are its length, they are removed."""
    message = decode(frame)
    if len(frame) < 8 or int.from_bytes(frame[:4], "big") != len(frame) - 4 or message.undecoded is None:
        return message
    behind = decode(frame[4:])
    return behind if behind.undecoded is None else message


def decode_request(frame: Buffer) -> Message:
    """Decodes a request from its frame, with or without the 4-byte length. The header names the API and version.

    `undecoded` of the message has the reason if something could not be read.
    """
    return _unprefixed(frame, _request)


def _request(frame: Buffer) -> Message:
    header = read_request_header(frame)
    return _message(frame, header, header.api_version, registry.REQUEST)


def decode_response(frame: Buffer, api_key: int | None = None, api_version: int | None = None) -> Message:
    """Decodes a response from its frame, with or without the 4-byte length.

    `api_key` and `api_version` are those of its request. A refusal that is written in another version (ApiVersions, KIP-511) is
    read in that version.
    """
    return _unprefixed(frame, lambda data: _response(data, api_key, api_version))


def _response(frame: Buffer, api_key: int | None, api_version: int | None) -> Message:
    header = read_response_header(frame, api_key, api_version)
    version = api_version
    if api_key is not None and api_version is not None:
        version = response_version(api_key, api_version, frame[header.end : header.end + 2])
    return _message(frame, header, version, registry.RESPONSE)


_PREFIXES = {
    "coordinator-key": [("record type", "int16")],
    "metadata": [("frame version", "uvarint"), ("record type", "uvarint"), ("version", "uvarint")],
}
"""Kind of message -> prefix of its blob; other kinds have their version (CoordinatorRecordSerde, MetadataRecordSerde)."""


def _prefix(message: facts.MessageSpec, cursor: Cursor, header: Header) -> int:
    """Steps over the prefix of a blob and returns its schema version."""
    if message.name in UNPREFIXED:
        version = cursor.read_int16()
        cursor.position -= 2
        return version if message.variant(version) else 0
    header.fields = _PREFIXES.get(message.kind, [("version", "int16")])
    values = [cursor.read_uvarint() if kind == "uvarint" else cursor.read_int16() for _, kind in header.fields]
    return 0 if message.kind == "coordinator-key" else values[-1]


def decode_data(name: str, blob: Buffer, version: int | None = None) -> Message:
    """Decodes a structure inside a bytes field or a record, by its schema name (`OffsetCommitKey`,
    `ConsumerProtocolSubscription`).

    Without a version, the blob's own prefix is read: int16 version, int16 record type (keys of coordinator records), or frame
    of KRaft metadata records. With a version, the blob is only the body. Raises UsageError for a name that Kafka does not have.
    """
    message = facts.message(name)
    if message is None:
        raise UsageError(f"no message is called {name}")
    header = Header()

    def read(cursor: Cursor) -> None:
        nonlocal version
        version = _prefix(message, cursor, header)

    if version is None:
        header.filled("prefix", blob, read)
    plan = None if version is None else plan_of(name, version)
    return Message(bytes(blob), header, name, plan, f"{name} has no version {version}")


@cache
def _message_tree() -> "Callable[..., Node]":
    """Returns the function that makes trees. It is loaded, and openers are registered, for the first tree: most runs need
    none."""
    from kcap.decode.telemetry import pushed
    from kcap.decode.tokens import token_nodes
    from kcap.decode.tree import OPENERS, message_tree

    OPENERS["EnvelopeRequest.RequestData"] = _enveloped
    OPENERS["PushTelemetryRequest.Metrics"] = pushed
    OPENERS["SaslAuthenticateRequest.AuthBytes"] = OPENERS["SaslAuthenticateResponse.AuthBytes"] = token_nodes
    return message_tree


def _enveloped(inside: "Inside") -> list["Node"]:
    """The request that a broker forwards to the controller (KIP-590). It is a frame, and so has a buffer of its own."""
    from kcap.decode.nodes import Node
    from kcap.decode.tree import Inside

    data, span = inside.data, (inside.buffer, inside.start, inside.end)
    number = inside.buffers.open(data, *span, "envelope")

    def request() -> list[Node]:
        return [decode_request(data).tree_in(Inside(inside.buffers, number, 0, len(data)))]

    return [Node("request", None, f"{len(data)} bytes", inside.buffers, *span, request)]
