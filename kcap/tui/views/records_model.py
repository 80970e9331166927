"""Decodes the records of one Produce request or one Fetch response as rows of a sheet.

In: an exchange read again from its file. Out: rows, and a record as lines. Law: the records, offsets and times are those of the
table `records`; a batch is decompressed when its records are first used.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from kcap.capture.frame_bytes import FrameBytes
from kcap.decode.json import Records
from kcap.decode.message import decode_request, decode_response
from kcap.limits import RECORDS_SHOWN_MOST
from kcap.output.grid import clean
from kcap.records.batch import Batch, Record
from kcap.records.record_sets import decode_records
from kcap.reports.common_columns import counted, named
from kcap.reports.definition import Row
from kcap.reports.text import count
from kcap.schema.registry import REQUEST
from kcap.table.records import fetched, produced
from kcap.tui.views.sheet import Line, Sheet
from kcap.wire.varints import java_long

PREVIEW: Final = 200
"""Maximum characters of a value in the table."""
SHOWN: Final = 20_000
"""Maximum bytes of a value in its details."""
READABLE: Final = 0.9
"""Minimum fraction of printable characters for bytes that are shown as text."""
LATEST_MS: Final = 253_402_300_799_000
"""End of the year 9999, in ms."""


class RecordBodies:
    """The bodies of an exchange, in the form that the records table needs."""

    def __init__(self, found: FrameBytes) -> None:
        self.found = found

    def body(self, side: int, records: Records = "base64") -> dict[str, Any]:
        """One side as JSON; empty if there is none."""
        found = self.found
        data = found.request if side == REQUEST else found.response
        if len(data) < 8:
            return {}
        if side == REQUEST:
            return decode_request(data[4:]).to_json(records) or {}
        return decode_response(data[4:], found.row["api_key"], found.row["api_version"]).to_json(records) or {}


def records(found: FrameBytes, names: dict[str, str] | None = None) -> Iterator[Row]:
    """The records, up to `RECORDS_SHOWN_MOST`. `names`: topic ids and their names."""
    bodies = RecordBodies(found)
    parts: list[tuple[Any, int | None]] = []
    if found.row["api"] == "Produce":
        parts = list(produced(bodies))
    elif found.row["api"] in ("Fetch", "ShareFetch"):
        parts = [(part, None) for part in fetched(bodies)]
    count = 0
    for (name, uuid, partition, data), base in parts:
        place = 0
        for number, batch in enumerate(decode_records(data).batches):
            for record in batch.records:
                offset = record.offset if found.row["api"] != "Produce" else None if base is None else java_long(base + place)
                place += 1
                yield _row(name or (names or {}).get(uuid or "") or uuid, partition, number, offset, batch, record)
                count += 1
                if count >= RECORDS_SHOWN_MOST:
                    return


def _row(topic: str | None, partition: int, number: int, offset: int | None, batch: Batch, record: Record) -> Row:
    value, key = record.value, record.key
    return {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "time": stamp(record.timestamp),
        "key": preview(key),
        "value": preview(value),
        "key_bytes": None if key is None else len(key),
        "value_bytes": None if value is None else len(value),
        "headers": ",".join(clean(name) for name, _ in record.headers),
        "batch": number,
        "codec": batch.codec,
        "record": record,
        "held": batch,
    }


def stamp(ms: int) -> str:
    """A timestamp of Kafka."""
    if not 0 <= ms <= LATEST_MS:
        return "" if ms < 0 else str(ms)
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}.{ms % 1000:03d}"


def readable(data: bytes) -> str | None:
    """Bytes as text; None if they are not text."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    good = sum(sign.isprintable() or sign in "\n\r\t" for sign in text)
    return text if not text or good / len(text) >= READABLE else None


def preview(data: bytes | None) -> str:
    """A value on one line."""
    if data is None:
        return "null"
    text = readable(data[: 4 * PREVIEW]) if len(data) <= 4 * PREVIEW else readable_part(data[: 4 * PREVIEW])
    return clean(" ".join(text.split())[:PREVIEW]) if text is not None else data[: PREVIEW // 2].hex(" ")


def readable_part(data: bytes) -> str | None:
    """The same for bytes that may end within a character."""
    return next((text for cut in range(4) if (text := readable(data[: len(data) - cut])) is not None), None)


def value_lines(name: str, data: bytes | None) -> list[Line]:
    """A value in full: JSON indented, text as it is, other bytes as hex beside text."""
    if data is None:
        return [[(name, "bold"), ("  null", "dim")]]
    out: list[Line] = [[(name, "bold"), (f"  {count(len(data), 'byte')}", "dim")]]
    part = data[:SHOWN]
    text = readable(part) if len(part) == len(data) else readable_part(part)
    if text is not None:
        try:
            body = (
                json.dumps(json.loads(text), indent=2, ensure_ascii=False)
                if text[:1] in "{[" and len(part) == len(data)
                else text
            )
        except ValueError:
            body = text
        out += [[(f"  {clean(line)}", "")] for line in body.splitlines()]
    else:
        for at in range(0, len(part), 16):
            row = part[at : at + 16]
            signs = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in row)
            out.append([(f"  {at:06x}  ", "dim"), (f"{row.hex(' '):<47}  ", ""), (signs, "one")])
    if len(data) > SHOWN:
        out.append([(f"  … {count(len(data) - SHOWN, 'more byte')}", "dim")])
    return out


def detail(row: Row, _width: int) -> list[Line]:
    """A record in words."""
    record, batch = row["record"], row["held"]
    out: list[Line] = [[
        (f"{clean(row['topic'] or '?')}-{row['partition']}", "bold"), (f"  offset {row['offset']}  {row['time']}", ""),
        (f"  {batch.timestamp_type or ''}", "dim"),
    ]]  # fmt: skip
    if not batch.crc_ok:
        out.append([("CRC mismatch", "bad")])
    if record.control is not None:
        out.append([("control ", "bold"), (record.control.type, "care")])
    out += value_lines("key", record.key)
    out += value_lines("value", record.value)
    for name, value in record.headers:
        out += value_lines(f"header {clean(name)}", value)
    facts = (
        f"batch {row['batch']}: magic {batch.magic}, {batch.codec}, {count(batch.size, 'byte')}, {count(batch.count, 'record')}"
    )
    out += [[], [(facts, "dim")]]
    if batch.producer_id >= 0:
        producer = f"producer {batch.producer_id}, epoch {batch.producer_epoch}, sequence {batch.base_sequence}"
        out.append([(producer + (", transactional" if batch.is_transactional else ""), "dim")])
    return out


def sheet(rows: list[Row], name: tuple[str, int] | None, why: str) -> Sheet:
    """The records of an exchange."""
    fields = [
        named("topic", rank=2), counted("partition", "part", rank=3), counted("offset"), named("time", rank=4, whole=True),
        named("key", rank=1), named("value"), counted("value_bytes", "bytes", rank=5), named("headers", rank=6),
        named("codec", rank=8), counted("batch", rank=7),
    ]  # fmt: skip
    foot = f"the first {RECORDS_SHOWN_MOST:,} records" if len(rows) >= RECORDS_SHOWN_MOST else ""
    return Sheet("Records", fields, rows, lambda _: name, why, foot=foot, detail=detail)
