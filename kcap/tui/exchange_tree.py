"""Builds the tree of one exchange: summary, timing, both messages, TCP, all columns.

In: a row and its bytes (`kcap.capture.frame_bytes`). Out: items of an outline. Law: names are shown beside the values on the
wire; secrets are masked unless --show-secrets is set; a message is decoded when its line is expanded.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import kcap.records.batch_nodes  # noqa: F401 - the trees of messages open their records fields with it
from kcap.capture.frame_bytes import SIDES, FrameBytes, why_not
from kcap.columns import EXCHANGES
from kcap.decode.message import Message, decode_request, decode_response
from kcap.decode.nodes import UNDECODED, Node
from kcap.decode.plan import json_key
from kcap.decode.secrets import Path, is_secret_node, shown_as, step
from kcap.filter.fields import deep_fields, snake
from kcap.limits import WORDS_MAX
from kcap.output.grid import call, clean, duration, endpoint, result
from kcap.reports.definition import Row
from kcap.reports.drill_down import quoted
from kcap.reports.slow import RETRANSMITTED, why
from kcap.reports.text import count, wrapped
from kcap.tui.color_rules import NEW_MEMBER_ERROR
from kcap.tui.list_columns import end_filter, equals
from kcap.tui.tree_lines import Item
from kcap.tui.views.findings_model import TONES
from kcap.tui.views.sheet import Line
from kcap.wire.text import MASKED

WORTH_A_REASON_NS: Final = 5_000_000
"""Minimum latency for which the tree says where the time went."""
NARROW: Final = 80
"""Width of a tree before its pane is laid out: a terminal of 80 columns."""
SIGN, LABEL = 2, 8
"""Cells of the sign of a line, and of the label of a sentence or a time."""
SENTENCES, BARS = range(24, 101), range(12, 41)
"""Minimum and maximum cells of a line of a sentence and of a bar."""
PARTS: Final = (
    ("rtt_ns", "network", "·", "two"),
    ("queue_ns", "queue", "▒", "care"),
    ("service_ns", "broker", "█", "one"),
)
INSIDE: Final = (("long_poll_ns", "long poll"), ("throttle_ns", "throttle"), ("muted_ns", "mute"))
"""Parts of the service time in which the broker did not work."""
NAMED: Final = frozenset("█▓")
"""Signs of a bar between which the name of the part is written if there is room."""


def message(found: FrameBytes, side: str) -> Message | None:
    """A message of an exchange; None if there is none to decode."""
    data, row = found.request if side == "request" else found.response, found.row
    if len(data) < 8 or row["api"] == "SaslToken":
        return None
    if side == "request":
        return decode_request(data[4:]) if row["api_key"] is not None else None
    return decode_response(data[4:], row["api_key"], row["api_version"])


def anatomy(
    found: FrameBytes,
    connection: dict[str, Any] | None = None,
    findings: Sequence[Row] = (),
    *,
    show_secrets: bool = False,
    room: int = NARROW,
) -> list[Item]:
    """The tree. `connection`: the row of its connection, once there is one. `findings`: problems that concern it.

    `room`: cells of a line; sentences are wrapped and bars drawn to fit.
    """
    row = found.row
    width = within(room - SIGN - LABEL, SENTENCES)
    problems = (item for finding in findings for item in _problem(finding, width))
    items = [_summary(row), _timing(row, room), *_why(row, width), *problems]
    for side in SIDES:
        items += _side(found, side, show_secrets, width)
    items.append(_tcp(found, connection))
    items.append(_columns(row))
    return items


def _fact(name: str, text: str, by: str | None = None, tone: str = "") -> Item:
    return Item([(f"{name:<17}", "dim"), (clean(text), tone)], name, filter=by, value=text)


def _summary(row: dict[str, Any]) -> Item:
    outcome = result(row["outcome"], row["reason"], row["error"])
    bad = row["error"] not in FINE or row["outcome"] in ("unanswered", "orphan")
    line: Line = [(clean(call(row["api"], row["api_version"])) or "response without a request", "bold"), ("  ", "")]
    line += [(clean(outcome), "bad" if bad else "good")] if outcome else []
    client = row["client_id"] or endpoint(row["client_ip"], row["client_port"])
    line.append((f"  {clean(client)} → {endpoint(row['server_ip'], row['server_port'])}", ""))
    line.append((f"  {row['connection']}.{row['exchange']}", "dim"))

    def facts() -> list[Item]:
        software = " ".join(filter(None, (row["software_name"], row["software_version"])))
        ns = row["request_first_ns"] or row["response_first_ns"]
        when = datetime.fromtimestamp(ns // 10**9, UTC) if ns else row["time"]
        out = [_fact("time", f"{when:%Y-%m-%d %H:%M:%S}.{(ns or 0) % 10**9:09d} UTC", equals("time", row["time"]))]
        out.append(_fact("client", endpoint(row["client_ip"], row["client_port"]), f"client_ip == {row['client_ip']}"))
        broker = endpoint(row["server_ip"], row["server_port"])
        broker += f", broker {row['broker_id']}" if row["broker_id"] is not None else ""
        out.append(_fact("broker", broker, end_filter(row, "server")))
        if row["client_id"] is not None:
            out.append(_fact("client id", row["client_id"], equals("client_id", row["client_id"])))
        if software:
            by = equals("software_name", row["software_name"]) if row["software_name"] else ""
            if row["software_version"]:
                by += f"{' && ' if by else ''}{equals('software_version', row['software_version'])}"
            out.append(_fact("software", software, by))
        for name in SUMMARY:
            value = row[name]
            if value is None or (value in ([], "NONE", 0) and name in QUIET):
                continue
            text = ", ".join("-" if entry is None else str(entry) for entry in value) if isinstance(value, list) else str(value)
            bad = name in ("error", "removed_in") and value not in FINE
            tone = "bad" if bad else "care" if name in ("deprecated_in", "throttle_time_ms") else ""
            out.append(_fact(name.replace("_", " "), text, equals(name, value), tone))
        return out

    name = f"{row['connection']}.{row['exchange']}"
    by = f'connection == "{row["connection"]}" && exchange == {row["exchange"]}'
    return Item(line, "summary", facts, filter=by, value=name)


FINE: Final = (None, "NONE", NEW_MEMBER_ERROR)
"""Error codes of a response without a failure."""
SUMMARY: Final = (
    "error", "error_count", "throttle_time_ms", "topics", "partition_count", "record_count", "records_bytes", "codecs", "acks",
    "group_id", "member_id", "transactional_id", "principal", "version_verdict", "removed_in", "deprecated_in", "flags",
)  # fmt: skip
"""Columns shown when they are not empty."""
QUIET: Final = frozenset({"error", "error_count", "throttle_time_ms", "topics", "codecs", "flags", "partition_count"})


def within(cells: int, bounds: range) -> int:
    """A width, limited to a range."""
    return max(bounds[0], min(cells, bounds[-1]))


def _timing(row: dict[str, Any], room: int) -> Item:
    """Where the time went: a bar and its parts."""
    latency = row["latency_ns"]
    if latency is None:
        waited = f"no response, waited {duration(row['age_ns'])}" if row["age_ns"] is not None else "no response expected"
        waited = "the request was not captured" if row["outcome"] == "orphan" else waited
        return Item([("time  ", ""), (waited, "three" if row["age_ns"] is not None else "dim")], "timing")
    parts = [(row[column], name, sign, tone) for column, name, sign, tone in PARTS if row[column] is not None]
    said, waits = f"{duration(latency)}  ", [(row[column], name, "▓", "three") for column, name in INSIDE if row[column]]
    idle = sum(value for value, *_ in waits)
    shown = [(value - idle if name == "broker" else value, name, *look) for value, name, *look in parts]
    shown[-1:-1] = waits
    line: Line = [(f"{'latency':<{LABEL}}", ""), (said, "bold"), *bar(shown, within(room - SIGN - LABEL - len(said), BARS))]

    def facts() -> list[Item]:
        out: list[Item] = []
        spent: list[tuple[str, int | None, str, str]] = [("request", row["request_transfer_ns"], "sent", "")]
        for value, name, sign, _ in parts:
            spent.append((name, value, f"{sign} {share(value, latency)}", PART_COLUMN[name]))
            if name == "broker":
                spent += [(f"  {inner}", row[column], "of that", column) for column, inner in INSIDE if row[column]]
        spent.append(("response", row["transfer_ns"], "received", ""))
        for name, value, note, column in spent:
            if value is not None and (value or column):
                line: Line = [(f"{name:<17}", "dim"), (f"{duration(value):>8}", ""), (f"  {note}", "dim")]
                out.append(Item(line, name, filter=f"{column} >= {value}" if column else None, value=str(value)))
        return out

    return Item(line, "timing", facts, filter=f"latency_ns >= {latency}", value=str(latency))


def _why(row: Row, width: int) -> list[Item]:
    """Where most of the time went, as a sentence; empty for a quick response."""
    if row["latency_ns"] is None or row["latency_ns"] < WORTH_A_REASON_NS:
        return []
    _, text = why(row, None, None, long_polls=True)
    return _sentence("why", text, width, "care" if RETRANSMITTED in (row["flags"] or ()) else "", name="why")


def _problem(finding: Row, width: int) -> list[Item]:
    """A problem that concerns the exchange."""
    rule, by, text = finding["id"], finding["filter"], finding["sentence"]
    items = _sentence("problem", text, width, TONES[finding["severity"]], name=f"problem {rule}", by=by)
    if len(items[-1].line[-1][0]) + 2 + len(rule) > width:
        items.append(Item([(" " * (LABEL - 2), "")], f"problem {rule} rule", filter=by, value=text))
    items[-1].line.append((f"  {rule}", "dim"))
    return items


def _sentence(label: str, text: str, width: int, tone: str, *, name: str, by: str | None = None) -> list[Item]:
    """A sentence on as many lines as it needs; copying one of these lines copies the whole sentence."""
    return [
        Item(
            [(f"{label if not at else '':<{LABEL}}", tone), (part, tone)], f"{name} {at}" if at else name, filter=by, value=text
        )
        for at, part in enumerate(wrapped(text, width))
    ]


PART_COLUMN: Final = {name: column for column, name, _, _ in PARTS}


def share(part: int, whole: int) -> str:
    """A share in per cent."""
    return f"{100 * part / whole:.0f}%" if whole > 0 else ""


def bar(parts: Sequence[tuple[int, str, str, str]], width: int) -> Line:
    """Parts of a time side by side; every part above zero is visible."""
    parts = [part for part in parts if part[0] > 0]
    whole = sum(value for value, _, _, _ in parts)
    out: Line = []
    left = width
    for at, (value, name, sign, tone) in enumerate(parts):
        signs = min(left, max(1, round(width * value / whole)))
        if at == len(parts) - 1:
            signs = max(left, 1)
        left -= signs
        word = f" {name} "
        text = sign * ((signs - len(word)) // 2) + word if sign in NAMED and signs >= len(word) + 2 else ""
        out.append((text + sign * (signs - len(text)), tone))
    return out


def _side(found: FrameBytes, side: str, show_secrets: bool, width: int) -> list[Item]:
    """A message, or why it is missing; nothing if there is none."""
    row = found.row
    size = row[f"{side}_bytes"]
    decoded = message(found, side)
    if decoded is None:
        if size is None and row[f"{side}_first_ns"] is None:
            return []
        return _sentence(f"{side.capitalize()} ", why_not(row, changed=found.changed), width, "dim", name=side)
    title = decoded.name or f"{side} of an unknown API"
    line: Line = [
        (side.capitalize(), "bold"),
        (f"  {title}" + (f" v{decoded.version}" if decoded.version is not None else ""), ""),
    ]
    line.append((f"  {count(size or len(decoded.frame) + 4, 'byte')}", "dim"))
    missing = (size or 0) - 4 - len(decoded.frame)
    if missing > 0:
        line.append((f"  {count(missing, 'byte')} not captured", "care"))
    walk = TreeWalk(decoded, side, row, show_secrets)
    root = decoded.tree()

    def inside() -> list[Item]:
        items = [item for child in root.children for item in walk.items(root, child, (), top=True)]
        if decoded.undecoded:
            items.append(Item([("undecoded    ", "bad"), (clean(decoded.undecoded), "")], UNDECODED, value=decoded.undecoded))
        return items

    return [Item(line, side, inside, open=side == "request", side=side, node=root, value=title)]


class TreeWalk:
    """Nodes of a message as items."""

    def __init__(self, decoded: Message, side: str, row: dict[str, Any], show_secrets: bool) -> None:
        self.name = shown_as(decoded, row[f"{side}_bytes"])
        self.side = side
        self.api = row["api"]
        self.show_secrets = show_secrets

    def items(self, parent: Node, node: Node, path: Path, *, top: bool = False) -> list[Item]:
        """The items of a node; the body's fields are directly below the message."""
        inner = () if top else step(path, node)
        secret = not self.show_secrets and is_secret_node(self.name, inner, node, parent.children)
        if top and node.name == "body":
            return [item for child in node.children for item in self.items(node, child, inner)]
        words = f"{MASKED}, {count(node.end - node.start, 'byte')}" if secret else node.words
        if not words and node.value == "":
            words = '""'
        if len(words) > WORDS_MAX:
            words = words[:WORDS_MAX] + "…"
        wrong = node.name == UNDECODED
        line: Line = [(clean(node.name), "bad" if wrong else "two")]
        line += [(": ", "dim"), (clean(words), "dim" if secret else "bad" if bad(node) else "")] if words else []
        expands = not secret and (node.expand is not None or bool(node._children))
        make = (lambda: [i for child in node.children for i in self.items(node, child, inner)]) if expands else None
        value = "" if secret else str(node.value if isinstance(node.value, str | int | float) else node.words)
        by = None if secret else self.filter(node, inner, head=top or parent.name == "header")
        return [Item(line, node.name, make, filter=by, value=value, side=self.side, node=node, secret=secret)]

    def filter(self, node: Node, path: Path, *, head: bool) -> str | None:
        """The display filter of a field's value."""
        if head or not path or isinstance(node.value, bytes) or node.value is None or self.api is None:
            return None
        dotted = ".".join([self.side, *map(snake, path)])
        field = deep_fields().get(dotted)
        if field is None or field.kind == "struct":
            return None
        value = node.value
        if isinstance(value, bool):
            return f"api == {self.api} && {'' if value else '!'}{dotted}"
        if isinstance(value, str):
            return f"api == {self.api} && {dotted} == {quoted(value)}"
        return f"api == {self.api} && {dotted} == {value}" if isinstance(value, int | float) else None


def bad(node: Node) -> bool:
    """Whether a field reports an error."""
    return json_key(node.name) == "errorCode" and isinstance(node.value, int) and node.value != 0


def _tcp(found: FrameBytes, connection: dict[str, Any] | None) -> Item:
    row = found.row
    line: Line = [("TCP", "bold"), (f"  {row['connection']}", "dim")]
    if row["flags"]:
        line.append((f"  {', '.join(row['flags'])}", "care"))

    def facts() -> list[Item]:
        out = [_fact("connection", row["connection"], f'connection == "{row["connection"]}"')]
        if row.get("stream") is not None:
            out.append(_fact("tcp.stream", str(row["stream"]), f"tcp.stream == {row['stream']}"))
        for side in SIDES:
            first, last = row[f"{side}_first_packet"], row[f"{side}_last_packet"]
            if first is None:
                continue
            file = row["capture" if side == "request" else "response_capture"]
            text = f"packet {first}" if last in (first, None) else f"packets {first} to {last}"
            out.append(_fact(side, f"{text} of {file}", f"frame.number == {first}"))
            spans = found.spans.get(side, [])
            if len(spans) > 1:
                out += [_fact("", f"bytes {span.start:,} to {span.end - 1:,} in packet {span.packet}") for span in spans]
        if connection is not None:
            times = [("rtt_min_ns", "min RTT"), ("rtt_avg_ns", "mean RTT")]
            out += [_fact(name, duration(connection[column])) for column, name in times if connection[column] is not None]
            if connection["zero_window_ns"]:
                out.append(_fact("zero window", f"{duration(connection['zero_window_ns'])} on the connection", tone="care"))
            for name in ("retransmitted", "spurious", "duplicated", "out_of_order", "zero_window_stalls"):
                if connection[name]:
                    out.append(_fact(name.replace("_", " "), f"{connection[name]:,} on the connection", tone="care"))
            out.append(_fact("began, ended", f"{connection['began']}, {connection['ended']}"))
        return out

    return Item(line, "tcp", facts)


def _columns(row: dict[str, Any]) -> Item:
    """Every column of the row with a value."""

    def facts() -> list[Item]:
        out = []
        for column in EXCHANGES:
            value = row[column.name]
            if value is not None and value != []:
                text = clean(str(value))
                line: Line = [(f"{column.name:<22}", "dim"), (text, "")]
                out.append(Item(line, column.name, filter=equals(column.name, value), value=text))
        return out

    return Item([("All columns", "bold")], "columns", facts)
