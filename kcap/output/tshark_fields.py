"""Rows in tshark's formats: chosen fields with separators, one JSON array, Elasticsearch's bulk format.

In: record batches, and the requested names. Out: text to an `OutputSink`. Law: every field name is also valid in filters;
several values of a field are joined by the aggregator, as in tshark.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from typing import Any, Final

import pyarrow as pa

from kcap.errors import UsageError, did_you_mean
from kcap.filter.fields import ADVICE, LENGTH, PREFIX_BYTES, fields, partition_ids
from kcap.output.escaping import visible
from kcap.output.sink import OutputSink
from kcap.output.time_format import by_second
from kcap.table.schema import columns_of, is_body_field

SPECIAL: Final = {"/t": "\t", "/s": " ", "\\t": "\t"}
QUOTES: Final = {"d": '"', "s": "'", "n": ""}
ONE_OF: Final = {"header": "yn", "occurrence": "fla", "quote": "dsn", "bom": "yn", "escape": "yn"}
ESCAPES: Final = str.maketrans({"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"})
"""Escapes, as of tshark's escape=y, for characters in values that would break a line or a field."""
INDEX: Final = "kcap"
EPOCH_NAME: Final = "frame.time_epoch"
"""Field that is shown as in tshark: seconds since the epoch."""
PARTITION_NAME: Final = "kafka.partition_id"
"""Field with the partitions that the messages of an exchange name, each once."""
RELATIVE_NAME: Final = "frame.time_relative"
"""Field with the seconds since the capture's first packet."""
FRAME_LENGTH: Final = "frame.len"
"""Field with the bytes on the wire of the packets of `frame.number`; available only while a capture is read."""
FILES: Final = {
    "request_first_packet": ("capture",),
    "request_last_packet": ("request_last_capture", "capture"),
    "response_first_packet": ("response_capture",),
    "response_last_packet": ("response_last_capture", "response_capture"),
}
"""Column with the number of a packet -> columns with its file; the first that is not null counts."""


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """How fields are written: the settings of tshark's -E."""

    names: tuple[str, ...] = ()
    header: bool = False
    separator: str = "\t"
    aggregator: str = ","
    quote: str = ""
    occurrence: str = "a"
    """`a` all values, `f` the first, `l` the last."""
    bom: bool = False
    escape: bool = True
    columns: tuple[tuple[str, ...], ...] = field(default=())
    """The columns of each name."""

    @property
    def needed(self) -> list[str]:
        """Every column that some name stands for."""
        found = list(dict.fromkeys(column for columns in self.columns for column in columns))
        more = (column for columns in FILES.values() for column in columns) if self.needs_lengths else ()
        return list(dict.fromkeys([*found, *more]))

    @property
    def needs_lengths(self) -> bool:
        """Whether a field needs lengths, which only packets have."""
        return FRAME_LENGTH in self.names


def tabs(columns: Sequence[str]) -> FieldLayout:
    """All columns with a header line, separated by tabs."""
    return FieldLayout(tuple(columns), header=True, columns=tuple((name,) for name in columns))


def layout_of(table: str, names: Sequence[str], settings: Sequence[str]) -> FieldLayout:
    """The layout of -e and -E. Raises UsageError for a name or a setting that is unknown."""
    if not names:
        raise UsageError("-T fields needs -e FIELD, once for each field")
    found: dict[str, Any] = {}
    for text in (part for setting in settings for part in _parts(setting)):
        key, _, value = text.partition("=")
        if key in ONE_OF and value in ONE_OF[key] and value:
            found[key] = value == "y" if ONE_OF[key] == "yn" else QUOTES[value] if key == "quote" else value
        elif key in ("separator", "aggregator") and value:
            found[key] = SPECIAL.get(value, value)
        else:
            raise UsageError(
                f"-E {text!r} is not understood; "
                "header=y|n separator=/t|/s|CHAR aggregator=CHAR quote=d|s|n occurrence=f|l|a escape=y|n bom=y|n"
            )
    return FieldLayout(tuple(names), columns=tuple(_columns(table, name) for name in names), **found)


def _parts(setting: str) -> list[str]:
    """Splits `header=y,separator=,,quote=d` into three settings: a comma that is a value precedes another comma or the end."""
    parts: list[str] = []
    for piece in setting.split(","):
        if "=" in piece or not parts:
            parts.append(piece)
        elif parts[-1].endswith("="):
            parts[-1] += ","
    return parts


OF_PARTITIONS: Final = {
    PARTITION_NAME: "partition", "kafka.topic_name": "topic", "kafka.topic_id": "topic_id", "kafka.error": "error_code",
    "kafka.api_key": "api_key", "kafka.offset": "offset", "kafka.fetch_offset": "fetch_offset",
}  # fmt: skip
"""Wireshark's fields -> columns of partitions and records."""


def _columns(table: str, name: str) -> tuple[str, ...]:
    if name == RELATIVE_NAME and "time" in columns_of(table):
        return ("time",)
    if table == "exchanges":
        known = fields()
        if name == FRAME_LENGTH:
            return tuple(FILES)
        if name in known:
            return known[name].columns
        if is_body_field(name):
            from kcap.table.body_fields import body_field

            body_field(name)
            return (name,)
        if name == PARTITION_NAME:
            return partition_ids()
        if name in ADVICE:
            raise UsageError(f"{name} {ADVICE[name]}")
        raise UsageError(f"no field is called {name!r}{did_you_mean(name, known)}")
    declared = columns_of(table)
    name = OF_PARTITIONS.get(name, name) if table in ("partitions", "records") else name
    if name not in declared:
        raise UsageError(f"{table} has no column {name!r}{did_you_mean(name, declared)}")
    return (name,)


class Fields:
    """Writes one line per row."""

    def __init__(
        self, sink: OutputSink, schema: pa.Schema, layout: FieldLayout, began: Callable[[], int | None] = lambda: None,
        length: Callable[[str, int], int] = lambda *_: 0,
    ) -> None:  # fmt: skip
        """`began` returns the time of the capture's first packet, in nanoseconds since the epoch; `length` the bytes on the
        wire of a packet of a file."""
        self._sink = sink
        self._layout = layout
        self._began = began
        self._length = length
        self._started = False

    def write(self, batch: pa.RecordBatch) -> None:
        self._start()
        if not batch.num_rows:
            return
        layout = self._layout
        columns = {name: batch.column(name) for name in layout.needed}
        cells = [self._cells(name, names, columns) for name, names in zip(layout.names, layout.columns)]
        self._sink.write(("\n".join(map(layout.separator.join, zip(*cells))) + "\n").encode())
        self._sink.flush()

    def _cells(self, name: str, names: Sequence[str], columns: Mapping[str, Any]) -> list[str]:
        """The cells of a field that stands for the columns `names`."""
        if name == FRAME_LENGTH:
            values = {column: column_values.to_pylist() for column, column_values in columns.items()}
            return [self._cell(map(str, self._lengths(values, row))) for row in range(len(values[names[0]]))]
        chosen: list[Any] = [columns[column] for column in names]
        shown = lengths if name == LENGTH else texts
        if len(chosen) == 1 and pa.types.is_integer(chosen[0].type) and name != LENGTH:
            return [self._quoted("" if value is None else str(value)) for value in chosen[0].to_pylist()]
        if name in (EPOCH_NAME, RELATIVE_NAME):
            times_us = chosen[0].view(pa.int64()).to_pylist()
            origin_ns = 0 if name == EPOCH_NAME else self._began() or 0
            return [self._quoted("" if time is None else seconds(time * 1000 - origin_ns)) for time in times_us]
        distinct, rows = len(names) > 1, list(zip(*(column.to_pylist() for column in chosen)))
        if any(pa.types.is_nested(column.type) for column in chosen):
            return [self._cell((text for value in row for text in shown(value)), distinct=distinct) for row in rows]
        known: dict[tuple[Any, ...], str] = {}  # most rows of a batch share addresses, names and errors
        for row in rows:
            if row not in known:
                known[row] = self._cell((text for value in row for text in shown(value)), distinct=distinct)
        return [known[row] for row in rows]

    def _cell(self, values: Iterable[str], *, distinct: bool = False) -> str:
        """The values of a field in a row; `distinct`: each once."""
        layout, every = self._layout, list(values)
        if layout.occurrence != "a":
            every = every[:1] if layout.occurrence == "f" else every[-1:]
        text = layout.aggregator.join(dict.fromkeys(every) if distinct else every)
        return self._quoted(text.translate(ESCAPES) if layout.escape else text)

    def _quoted(self, text: str) -> str:
        quote = self._layout.quote
        return quote + text.replace(quote, quote * 2) + quote if quote else text

    def _lengths(self, columns: Mapping[str, Sequence[Any]], row: int) -> list[int]:
        """The lengths of a row's packets, each packet once."""
        found: dict[tuple[str, int], None] = {}
        for name, files in FILES.items():
            file = next((columns[one][row] for one in files if columns[one][row] is not None), None)
            if file is not None and columns[name][row] is not None:
                found[file, columns[name][row]] = None
        return [self._length(*packet) for packet in found]

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        layout = self._layout
        head = "\ufeff" if layout.bom else ""
        if layout.header:
            head += layout.separator.join(layout.names) + "\n"  # tshark quotes only values
        self._sink.write(head.encode())

    def close(self) -> None:
        """Writes the header if there were no rows."""
        self._start()


def texts(value: Any) -> list[str]:
    """A value as tshark prints it; nothing for null, one text for each entry of a list."""
    if value is None:
        return []
    if isinstance(value, list):
        return [text for entry in value for text in texts(entry)]
    if isinstance(value, bool):
        return ["1" if value else "0"]
    if isinstance(value, datetime):
        return [f"{value:%Y-%m-%dT%H:%M:%S.%f}Z"]
    return [value.hex() if isinstance(value, bytes) else harmless(str(value))]


def lengths(value: int | None) -> list[str]:
    """The length of a message by Kafka's protocol, from the size of a frame with its prefix."""
    return [] if value is None else [str(value - PREFIX_BYTES)]


def harmless(text: str) -> str:
    """The text with control characters made visible; line breaks are left to `escape=`."""
    return text if text.isprintable() else "".join(one if ord(one) in ESCAPES else visible(one) for one in text)


def seconds(nanoseconds: int) -> str:
    """Seconds with nine decimal places."""
    whole, rest = divmod(nanoseconds, 10**9)
    return f"{whole}.{rest:09}"


class JsonArray:
    """Writes one array of objects, for `jq` and scripts."""

    def __init__(self, sink: OutputSink, schema: pa.Schema) -> None:
        self._sink = sink
        self._first = True

    def write(self, batch: pa.RecordBatch) -> None:
        from kcap.output.writers import JsonLines

        if not batch.num_rows:
            return
        kept = BytesIO()
        JsonLines(kept, batch.schema).write(batch)
        self._sink.write(b"[\n" if self._first else b",\n")
        self._sink.write(kept.getvalue().rstrip(b"\n").replace(b"\n", b",\n"))
        self._first = False

    def close(self) -> None:
        """Ends the array."""
        self._sink.write(b"[]\n" if self._first else b"\n]\n")
        self._sink.flush()


class Bulk:
    """Writes Elasticsearch's bulk format: a line with the action, a line with the document."""

    def __init__(self, sink: OutputSink, schema: pa.Schema) -> None:
        self._sink = sink
        self._timed = "time" in schema.names

    def write(self, batch: pa.RecordBatch) -> None:
        from kcap.output.writers import JsonLines

        if not batch.num_rows:
            return
        kept = BytesIO()
        JsonLines(kept, batch.schema).write(batch)
        days, places = [""], [0] * batch.num_rows
        if self._timed:
            days, places, _ = by_second(batch.column("time"), "-%Y-%m-%d")
        lines = kept.getvalue().decode().rstrip("\n").split("\n")
        heads = [json.dumps({"index": {"_index": INDEX + day}}) for day in days]
        self._sink.write("".join(f"{heads[place]}\n{line}\n" for place, line in zip(places, lines)).encode())
        self._sink.flush()

    def close(self) -> None:
        """Does nothing: every line is written already."""
