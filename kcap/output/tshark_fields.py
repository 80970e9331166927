"""Rows as tshark writes them: chosen fields with separators, one JSON array, Elasticsearch's bulk form.

In: record batches, and the names that were asked for. Out: text to a `OutputSink`. Law: a field is a name that filters know
too; several values of one stand side by side with the aggregator between them, as tshark's do.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from kcap.errors import UsageError
from kcap.filter.fields import ADVICE, LENGTH, PREFIX_BYTES, fields, nearest, partition_ids
from kcap.output.escaping import visible
from kcap.output.sink import OutputSink
from kcap.table.schema import columns_of, is_body_field

SPECIAL: Final = {"/t": "\t", "/s": " ", "\\t": "\t"}
QUOTES: Final = {"d": '"', "s": "'", "n": ""}
ONE_OF: Final = {"header": "yn", "occurrence": "fla", "quote": "dsn", "bom": "yn", "escape": "yn"}
ESCAPES: Final = str.maketrans({"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"})
"""What a value may hold that would break a line or a field, as tshark's escape=y writes it."""
INDEX: Final = "kcap"
EPOCH_NAME: Final = "frame.time_epoch"
"""Shown as tshark shows it: seconds since the epoch."""
PARTITION_NAME: Final = "kafka.partition_id"
"""Of an exchange, the partitions that its messages name, each once."""
RELATIVE_NAME: Final = "frame.time_relative"
"""Seconds since the capture's first packet."""
FRAME_LENGTH: Final = "frame.len"
"""Bytes on the wire of the packets that `frame.number` names; it is known while a capture is read."""
FILES: Final = {
    "request_first_packet": ("capture",),
    "request_last_packet": ("request_last_capture", "capture"),
    "response_first_packet": ("response_capture",),
    "response_last_packet": ("response_last_capture", "response_capture"),
}
"""Column with the number of a packet -> columns with the file that it is in; the first that is not null counts."""


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """How fields are written, as tshark's -E says."""

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
        """Whether it has what only packets say."""
        return FRAME_LENGTH in self.names


def tabs(columns: Sequence[str]) -> FieldLayout:
    """All columns with a header line and tabs between."""
    return FieldLayout(tuple(columns), header=True, columns=tuple((name,) for name in columns))


def layout_of(table: str, names: Sequence[str], settings: Sequence[str]) -> FieldLayout:
    """What -e and -E ask for. Raises UsageError for a name or a setting that is unknown."""
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
    """`header=y,separator=,,quote=d` as three settings: a comma that is a value stands before another comma or the end."""
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
        raise UsageError(f"no field is called {name!r}{nearest(name, list(known))}")
    declared = columns_of(table)
    name = OF_PARTITIONS.get(name, name) if table in ("partitions", "records") else name
    if name not in declared:
        raise UsageError(f"{table} has no column {name!r}{nearest(name, list(declared))}")
    return (name,)


class Fields:
    """One line a row."""

    def __init__(
        self, sink: OutputSink, schema: pa.Schema, layout: FieldLayout, began: Callable[[], int | None] = lambda: None,
        length: Callable[[str, int], int] = lambda *_: 0,
    ) -> None:  # fmt: skip
        """`began` gives the time of the capture's first packet, in nanoseconds since the epoch; `length` the bytes on the wire
        of a packet of a file.
        """
        self._sink = sink
        self._layout = layout
        self._began = began
        self._length = length
        self._started = False

    def write(self, batch: pa.RecordBatch) -> None:
        """Takes rows."""
        self._start()
        layout = self._layout
        columns = {name: batch.column(name).to_pylist() for name in layout.needed}
        lines = []
        for row in range(batch.num_rows):
            cells = []
            for asked, columns_of_name in zip(layout.names, layout.columns):
                if asked == FRAME_LENGTH:
                    there: list[Any] = self._lengths(columns, row)
                else:
                    there = [columns[name][row] for name in columns_of_name if columns[name][row] is not None]
                values = self._texts(asked, there)
                if layout.occurrence != "a":
                    values = values[:1] if layout.occurrence == "f" else values[-1:]
                distinct = len(columns_of_name) > 1 and asked != FRAME_LENGTH
                text = layout.aggregator.join(dict.fromkeys(values) if distinct else values)
                if layout.escape:
                    text = text.translate(ESCAPES)
                if layout.quote:
                    text = layout.quote + text.replace(layout.quote, layout.quote * 2) + layout.quote
                cells.append(text)
            lines.append(layout.separator.join(cells) + "\n")
        self._sink.write("".join(lines).encode())
        self._sink.flush()

    def _lengths(self, columns: Mapping[str, Sequence[Any]], row: int) -> list[int]:
        """The lengths of a row's packets, each packet once."""
        found: dict[tuple[str, int], None] = {}
        for name, files in FILES.items():
            file = next((columns[one][row] for one in files if columns[one][row] is not None), None)
            if file is not None and columns[name][row] is not None:
                found[file, columns[name][row]] = None
        return [self._length(*packet) for packet in found]

    def _texts(self, asked: str, values: Sequence[Any]) -> list[str]:
        """The values of a field as tshark prints them."""
        if asked == EPOCH_NAME:
            return [epoch(value) for value in values]
        if asked == RELATIVE_NAME:
            return [relative(value, self._began()) for value in values]
        if asked == LENGTH:
            return [str(value - PREFIX_BYTES) for value in values]
        return [text for value in values for text in texts(value)]

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        layout = self._layout
        head = "\ufeff" if layout.bom else ""
        if layout.header:
            head += layout.separator.join(layout.names) + "\n"  # tshark quotes values alone
        self._sink.write(head.encode())

    def close(self) -> None:
        """The header stands above nothing too."""
        self._start()


def texts(value: Any) -> list[str]:
    """A value as tshark prints it; none for null, one for each entry of a list."""
    if value is None:
        return []
    if isinstance(value, list):
        return [text for entry in value for text in texts(entry)]
    if isinstance(value, bool):
        return ["1" if value else "0"]
    if isinstance(value, datetime):
        return [f"{value:%Y-%m-%dT%H:%M:%S.%f}Z"]
    return [value.hex() if isinstance(value, bytes) else harmless(str(value))]


def harmless(text: str) -> str:
    """The text with what a terminal would obey made visible; breaks are for `escape=`."""
    return text if text.isprintable() else "".join(one if ord(one) in ESCAPES else visible(one) for one in text)


def epoch(time: datetime) -> str:
    """Seconds since the epoch with nine digits behind the point."""
    since = time - datetime(1970, 1, 1, tzinfo=UTC)
    return f"{since.days * 86_400 + since.seconds}.{since.microseconds:06}000"


def relative(time: datetime, began_ns: int | None) -> str:
    """Seconds since the capture's first packet with nine digits behind the point."""
    since = time - datetime(1970, 1, 1, tzinfo=UTC)
    seconds, rest = divmod((since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000 - (began_ns or 0), 10**9)
    return f"{seconds}.{rest:09}"


class JsonArray:
    """One array of objects: what `jq` and scripts take at once."""

    def __init__(self, sink: OutputSink, schema: pa.Schema) -> None:
        self._sink = sink
        self._first = True

    def write(self, batch: pa.RecordBatch) -> None:
        """Takes rows."""
        from kcap.output.writers import JsonLines

        if not batch.num_rows:
            return
        kept = BufferSink()
        JsonLines(kept, batch.schema).write(batch)
        lines = kept.data.decode().rstrip("\n").split("\n")
        self._sink.write((("[\n" if self._first else ",\n") + ",\n".join(lines)).encode())
        self._first = False

    def close(self) -> None:
        """Ends the array."""
        self._sink.write(b"[]\n" if self._first else b"\n]\n")
        self._sink.flush()


class Bulk:
    """Elasticsearch's bulk form: a line that says where to, a line with the document."""

    def __init__(self, sink: OutputSink, schema: pa.Schema) -> None:
        self._sink = sink
        self._timed = "time" in schema.names

    def write(self, batch: pa.RecordBatch) -> None:
        """Takes rows."""
        from kcap.output.writers import JsonLines

        if not batch.num_rows:
            return
        kept = BufferSink()
        JsonLines(kept, batch.schema).write(batch)
        days = [f"{time:%Y-%m-%d}" for time in batch.column("time").to_pylist()] if self._timed else [None] * batch.num_rows
        lines = kept.data.decode().rstrip("\n").split("\n")
        heads = (json.dumps({"index": {"_index": INDEX if day is None else f"{INDEX}-{day}"}}) for day in days)
        self._sink.write("".join(f"{head}\n{line}\n" for head, line in zip(heads, lines)).encode())
        self._sink.flush()

    def close(self) -> None:
        """Every line is out already."""


class BufferSink:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: Any) -> int:
        """Keeps."""
        self.data += bytes(data)
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""
