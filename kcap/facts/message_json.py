"""Reads the bodies of the few messages that are decoded whole while rows are built.

In: a body as batches retain it, with the header's tag section first; its API, version and side. Out: its JSON, as far as it can
be decoded. Law: nothing raises.
"""

from hashlib import blake2b
from typing import Any

from kcap.decode.json import read_json
from kcap.decode.plan import plan_for
from kcap.schema.registry import REQUEST, request_header_version, response_header_version
from kcap.wire.cursor import Cursor
from kcap.wire.varints import DamageError


def behind_tags(data: bytes, key: int, version: int, side: int) -> int:
    """Where the body starts after the header's tag section."""
    tagged = request_header_version(key, version) > 1 if side == REQUEST else response_header_version(key, version) > 0
    if not tagged:
        return 0
    cursor = Cursor(data)
    try:
        for _ in range(cursor.read_uvarint()):
            cursor.read_uvarint()
            cursor.skip(cursor.read_uvarint(), "tagged field")
    except DamageError:
        return len(data)
    return cursor.position


def digest(version: int, *bodies: bytes) -> bytes:
    """A short key for bodies of a version, by which equal ones are read once: a body itself may have a megabyte."""
    made = blake2b(digest_size=16)
    for body in bodies:
        made.update(len(body).to_bytes(4, "big"))
        made.update(body)
    made.update(version.to_bytes(2, "big", signed=True))
    return made.digest()


def read(data: bytes, key: int, version: int, side: int) -> dict[str, Any]:
    """A body as JSON, as far as it can be decoded."""
    return read_as_far(data, key, version, side)[0]


def read_as_far(data: bytes, key: int, version: int, side: int) -> tuple[dict[str, Any], bool]:
    """A body as JSON, and whether it was decoded completely."""
    plan = plan_for(key, version, side) if data else None
    if plan is None:
        return {}, False
    reading = read_json(plan, data, behind_tags(data, key, version, side))
    return reading.value, reading.undecoded is None
