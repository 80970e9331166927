"""Headers of requests and responses: a frame without its length prefix in, the fields before the body out.

Law: no bytes raise an exception. Missing parts are None, and `fault` says why the rest could not be read.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kcap.faults import fault_of
from kcap.model import Buffer
from kcap.schema import registry
from kcap.wire.cursor import Cursor
from kcap.wire.varints import DamageError

_REQUEST_FIELDS = [("RequestApiKey", "int16"), ("RequestApiVersion", "int16"), ("CorrelationId", "int32")]
_RESPONSE_FIELDS = [("CorrelationId", "int32")]
_CLIENT_ID = [("ClientId", "string")]
_TAGS = [("tags", "tags")]


@dataclass(slots=True)
class Header:
    """The fields before a body; None for what is missing or does not exist in this header version."""

    api_key: int | None = None
    api_version: int | None = None
    correlation_id: int | None = None
    client_id: str | None = None
    version: int | None = None
    """Header version."""
    unknown_tags: list[tuple[int, bytes]] = field(default_factory=list)
    end: int = 0
    """Offset in the frame at which the body starts."""
    fault: str | None = None
    """Why the header could not be read to its end; None if it could."""
    fields: list[tuple[str, str]] = field(default_factory=list)
    """Names and types of its fields, in order."""

    def filled(self, what: str, frame: Buffer, read: Callable[[Cursor], None]) -> "Header":
        """Fills this header with what `read` can take from the bytes and returns it. `what` is its name in `fault`."""
        cursor = Cursor(frame)
        try:
            read(cursor)
        except DamageError as damage:
            self.fault = f"{what}: {damage.reason}"
        except Exception as error:  # noqa: BLE001 - the header counts as not readable
            self.fault = fault_of(error)
        self.end = cursor.position
        return self


def _tags(cursor: Cursor, header: Header) -> None:
    for _ in range(cursor.read_uvarint()):
        tag = cursor.read_uvarint()
        header.unknown_tags.append((tag, cursor.read_bytes(cursor.read_uvarint(), f"tagged field {tag}")))


def read_request_header(frame: Buffer) -> Header:
    """Reads the header at the start of a request frame (RequestHeader.json; versions from the registry)."""
    header = Header(fields=_REQUEST_FIELDS)

    def read(cursor: Cursor) -> None:
        header.api_key = cursor.read_int16()
        header.api_version = cursor.read_int16()
        header.version = registry.request_header_version(header.api_key, header.api_version)
        header.fields = _REQUEST_FIELDS + _CLIENT_ID * (header.version >= 1) + _TAGS * (header.version >= 2)
        header.correlation_id = cursor.read_int32()
        if header.version >= 1:
            header.client_id = cursor.read_string()
        if header.version >= 2:
            _tags(cursor, header)

    return header.filled("header", frame, read)


def read_response_header(frame: Buffer, api_key: int | None, api_version: int | None) -> Header:
    """Reads the header at the start of a response frame; `api_key` and `api_version` are those of its request."""
    header = Header(api_key, api_version, fields=_RESPONSE_FIELDS)

    def read(cursor: Cursor) -> None:
        if api_key is not None and api_version is not None:
            header.version = registry.response_header_version(api_key, api_version)
            header.fields = _RESPONSE_FIELDS + _TAGS * (header.version >= 1)
        header.correlation_id = cursor.read_int32()
        if header.version:
            _tags(cursor, header)

    return header.filled("header", frame, read)
