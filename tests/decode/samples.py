"""The golden vectors as Python values: those beside the tests, or all of them where `../shared/vectors` is there."""

import functools
import gzip
import json
from pathlib import Path
from typing import Any

import kcap
from kcap.decode.header import read_request_header, read_response_header
from kcap.decode.message import Message
from kcap.decode.programs import program_index

HERE = Path(__file__).resolve().parent.parent / "golden" / "vectors"
ALL = Path(__file__).resolve().parents[2].parent / "shared" / "vectors"


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@functools.cache
def vectors(name: str) -> list[dict[str, Any]]:
    """`messages`, `data`, `records` or `negotiation`."""
    paths = sorted(ALL.glob(f"{name}*.jsonl.gz")) or [HERE / f"{name}.jsonl.gz"]
    return [vector for path in paths for vector in _lines(path)]


@functools.cache
def sample(name: str) -> list[dict[str, Any]]:
    """The same, always of the small set."""
    return _lines(HERE / f"{name}.jsonl.gz")


def decode(vector: dict[str, Any], frame: bytes | None = None) -> Message:
    """The message of a vector, or of another frame in its place."""
    frame = bytes.fromhex(vector["frame"]) if frame is None else frame
    if vector["kind"] == "request":
        return kcap.decode_request(frame)
    return kcap.decode_response(frame, api_key=vector["api_key"], api_version=vector["version"])


def body_start(vector: dict[str, Any]) -> int:
    """Where a vector's program begins: behind the fixed header, before its tag section."""
    frame = bytes.fromhex(vector["frame"])
    if vector["kind"] == "response":
        return 4
    if vector["header_version"] == 0:
        return 8
    return 10 + max(0, int.from_bytes(frame[8:10], "big", signed=True))


def program(vector: dict[str, Any]) -> int:
    """The projection's program of a vector."""
    return program_index(vector["api_key"], vector["version"], int(vector["kind"] == "response"))


def body_of(vector: dict[str, Any]) -> bytes:
    """The bytes that a vector's program runs over."""
    return bytes.fromhex(vector["frame"])[body_start(vector) :]


def header_end(vector: dict[str, Any]) -> int:
    """Where the body's first field stands."""
    frame = bytes.fromhex(vector["frame"])
    if vector["kind"] == "request":
        return read_request_header(frame).end
    return read_response_header(frame, vector["api_key"], vector["version"]).end
