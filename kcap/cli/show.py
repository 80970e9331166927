"""`kcap show`: one exchange with all of its bytes.

In: captures and the name of an exchange, UID.N as in its row, or the number of a packet. Out: a summary, the parts of its time,
both messages. Law: bodies are read again from the file; secrets and payloads are shown only on request.
"""

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from kcap.cli.options import analyzer_options, inputs, paths_of
from kcap.errors import UsageError
from kcap.output.escaping import json_text

if TYPE_CHECKING:
    from kcap.decode.message import Message
    from kcap.exchange import Exchange

NAME: Final = re.compile(r"(C[0-9a-f]{16})\.(\d{1,18})|#?(\d{1,18})", re.ASCII)
SIDE_BY_SIDE: Final = 160
"""Width of a terminal from which request and response are shown side by side."""
PARTS: Final = (("long_poll_ns", "long poll"), ("throttle_ns", "throttle"), ("muted_ns", "mute"))
SHOWN: Final = (
    "error", "throttle_time_ms", "topics", "partition_count", "record_count", "records_bytes", "codecs", "acks", "group_id",
    "member_id", "transactional_id", "version_verdict", "removed_in", "deprecated_in", "flags",
)  # fmt: skip
"""Columns that are shown on a line if they have a value."""


@click.command("show", short_help="Show one exchange with every byte.")
@partial(inputs, jobs=False)
@click.option("--hex", "with_hex", is_flag=True, help="Also show the bytes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
@click.option("--payloads", is_flag=True, help="Also show keys and values of records.")
@click.option("--show-secrets", is_flag=True, help="Show passwords and tokens unmasked.")
def run(
    files: tuple[str, ...],
    with_hex: bool,
    as_json: bool,
    payloads: bool,
    show_secrets: bool,
) -> int:
    """Show one exchange: what it was, where its time went, and both messages field by field.

    The last argument names the exchange. It is UID.N, from the columns connection and exchange of its row, or the number of a
    packet (as Wireshark counts) that carries bytes of its request or response.
    """
    from kcap.cli.output import report_failed
    from kcap.cli.standard_streams import say
    from kcap.runtime import load_arrow
    from kcap.session import Capture

    if not files:
        raise UsageError("no exchange given; name captures and then the exchange: kcap show FILE UID.N")
    *captures, name = files
    match = NAME.fullmatch(name)
    if match is None:
        raise UsageError(
            f"{name!r} is no exchange; the last argument is UID.N, such as C0123456789abcdef.4, or a packet number"
        )
    load_arrow()
    uid, number, packet = match.groups()
    wanted = f"frame.number == {packet}" if packet else f'connection == "{uid}" && exchange == {number}'
    capture = Capture(paths_of(captures), analyzer_options()).filter(wanted)
    reading = capture.read()
    exchange = next(capture.decided(reading), None)
    if exchange is None:
        say(f"no exchange has bytes in packet {packet}" if packet else f"there is no exchange {name}")
        return report_failed(reading) or UsageError.exit_code
    if as_json:
        print(json_text(exchange_json(exchange, show_secrets, payloads), default=_text))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for line in exchange_lines(exchange, width, with_hex=with_hex, payloads=payloads, show_secrets=show_secrets):
            print(line)
    sys.stdout.flush()
    return report_failed(reading)


def exchange_json(exchange: "Exchange", show_secrets: bool, payloads: bool) -> dict[str, Any]:
    """The row and both messages."""
    from kcap.cli.decode import message_json

    made: dict[str, Any] = {"row": exchange.row}
    for kind, message in (("request", exchange.request), ("response", exchange.response)):
        made[kind] = (
            None
            if message is None
            else message_json(kind, message, show_secrets, payloads=payloads, size=exchange.row[f"{kind}_bytes"])
        )
    return made


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)


def exchange_lines(
    exchange: "Exchange", width: int | None, *, with_hex: bool, payloads: bool, show_secrets: bool
) -> Iterator[str]:
    """The exchange as lines; `width` is that of the terminal, None if there is none."""
    import kcap.records.batch_nodes  # noqa: F401 - the trees of messages open their records fields with it
    from kcap.cli.trees import beside, cut

    row = exchange.row
    for line in summary(row):
        yield line if width is None else cut(line, width)
    yield ""
    wide = width is not None and width >= SIDE_BY_SIDE
    pairs = (("request", exchange.request), ("response", exchange.response))
    sides = [
        list(side_lines(row, side, message, with_hex, payloads, show_secrets, bytes_beside=0 if wide else 8))
        for side, message in pairs
    ]
    if wide and width is not None and all(sides):
        yield from beside(sides[0], sides[1], width)
        return
    for at, lines in enumerate(sides):
        if at and lines and sides[0]:
            yield ""
        yield from (line if width is None else cut(line, width) for line in lines)


def summary(row: dict[str, Any]) -> Iterator[str]:
    """The exchange, its peers, and the parts of its time."""
    from kcap.cli.trees import clean
    from kcap.output.grid import call, endpoint, result

    said = result(row["outcome"], row["reason"], row["error"])
    yield f"{row['connection']}.{row['exchange']}  {call(row['api'], row['api_version'])}  {said}".rstrip()
    who = row["client_id"]
    software = " ".join(filter(None, (row["software_name"], row["software_version"])))
    client = endpoint(row["client_ip"], row["client_port"]) + (f" {who}" if who is not None else "")
    client += f" ({software})" if software else ""
    yield clean(f"{row['time']:%Y-%m-%d %H:%M:%S.%f} UTC  {client} -> {endpoint(row['server_ip'], row['server_port'])}")
    yield f"{'latency':<10}{latency(row)}"
    for side in ("request", "response"):
        if row[f"{side}_bytes"] is not None or row[f"{side}_first_packet"] is not None:
            yield clean(f"{side:<10}{frame_words(row, side)}")
    for name in SHOWN:
        value = row.get(name)
        if value is not None and value not in ([], "NONE"):
            text = ", ".join("-" if entry is None else str(entry) for entry in value) if isinstance(value, list) else str(value)
            yield clean(f"{name:<20}{text}")


def latency(row: dict[str, Any]) -> str:
    """`1.25ms = rtt 0.1ms + queue 0ns + service 1.15ms (long poll 1ms)`, as far as the parts are known."""
    from kcap.output.grid import duration

    if row["latency_ns"] is None:
        return f"none, waited {duration(row['age_ns'])}" if row["age_ns"] is not None else "none"
    text = duration(row["latency_ns"])
    parts = [f"{name} {duration(row[f'{name}_ns'])}" for name in ("rtt", "queue", "service") if row[f"{name}_ns"] is not None]
    inner = [f"{name} {duration(row[column])}" for column, name in PARTS if row[column] is not None]
    if parts:
        text += " = " + " + ".join(parts)
    return text + (f" ({', '.join(inner)})" if inner else "")


def frame_words(row: dict[str, Any], side: str) -> str:
    """Size, packets and file of one side."""
    from kcap.output.grid import duration

    size, first, last = (row[f"{side}_{name}"] for name in ("bytes", "first_packet", "last_packet"))
    text = "size not captured" if size is None else f"{size:,} bytes"
    if first is not None:
        text += f", packet {first}" if last in (first, None) else f", packets {first} to {last}"
        file = row["capture"] if side == "request" else row["response_capture"]
        text += f" of {file}" if file else ""
    transfer = row["request_transfer_ns" if side == "request" else "transfer_ns"]
    return text + (f", in {duration(transfer)}" if transfer else "")


def side_lines(
    row: dict[str, Any],
    side: str,
    message: "Message | None",
    with_hex: bool,
    payloads: bool,
    show_secrets: bool,
    bytes_beside: int,
) -> Iterator[str]:
    """One message: its tree, and its bytes on request. Empty if there is no such side."""
    from kcap.capture.frame_bytes import why_not
    from kcap.cli.trees import TreeStyle, hex_lines, length_line, tree_lines
    from kcap.decode.secrets import secret_spans, shown_as

    size = row[f"{side}_bytes"]
    if message is None:
        if size is not None or row[f"{side}_first_ns"] is not None:
            yield f"{side}: {why_not(row)}"
        return
    name = shown_as(message, size)
    look = TreeStyle(name, 4, show_secrets, payloads, bytes_beside)
    title = message.name or f"{side} of an unknown API"
    if message.version is not None:
        title += f" v{message.version}"
    if size is not None:
        yield length_line(size - 4, look)
    yield from tree_lines(message.tree(), look, title)
    missing = (size or 0) - 4 - len(message.frame)
    if missing > 0:
        yield f"{missing:,} of {size:,} bytes were not captured"
    if message.undecoded:
        yield f"undecoded: {message.undecoded}"
    if with_hex:
        hidden: Sequence[tuple[int, int]] = [] if show_secrets else secret_spans(name, message.tree())
        length = ((size or 4) - 4 & 0xFFFFFFFF).to_bytes(4, "big")
        yield from ["", *hex_lines(length + message.frame, [(start + 4, end + 4) for start, end in hidden])]
