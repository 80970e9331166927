"""Compares two exchanges: the fields of their messages, their timings, connections and frames. Free of widgets.

In: two exchanges read again from their files. Out: sheets whose rows have one value of each. Law: a field is compared with the
field of the same path; entries of a list are matched by their key (a topic's name, a partition's index) if the keys are
distinct, else by position. Secrets remain masked, and are equal only if their bytes are.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kcap.capture.frame_bytes import SIDES, FrameBytes
from kcap.limits import FIELDS_MAX
from kcap.output.grid import call, clean, duration, endpoint
from kcap.reports.definition import PARTS, Row
from kcap.reports.text import TextColumn, clock, number, words
from kcap.tui.exchange_tree import TreeWalk, message
from kcap.tui.tree_lines import Item
from kcap.tui.views.sheet import Sheet, paragraph

KEYS: Final = frozenset({
    "Name", "Topic", "TopicName", "TopicId", "Partition", "PartitionIndex", "PartitionId", "Index", "NodeId", "BrokerId",
    "ApiKey", "GroupId", "MemberId", "ResourceName", "ConfigName", "ErrorCode", "Key",
})  # fmt: skip
"""First fields of an entry that identify it."""
WHO: Final = (
    "connection", "client_id", "client", "broker", "software_name", "software_version", "api", "api_version", "outcome",
    "reason", "error", "topics", "group_id", "transactional_id", "request_bytes", "response_bytes", "record_count", "flags",
)  # fmt: skip
"""Columns of the section about connections and frames."""
TIMES: Final = ("latency_ns", *PARTS)
MEANINGS: Final = {
    "rtt_ns": "network", "queue_ns": "queue", "service_ns": "broker", "long_poll_ns": "  long poll",
    "throttle_ns": "  throttle", "muted_ns": "  muted",
    "request_transfer_ns": "request transfer", "transfer_ns": "response transfer", "latency_ns": "latency",
}  # fmt: skip
NAMES: Final = ("first", "second")
SPLIT: Final = re.compile(r"(?:^|\.)((?:[^.\[\]]+\[[^\]]*\]\.)?[^.\[\]]+|[^.\[\]]+\[[^\]]*\])$")
"""Matches the innermost entry of a list with its field, at the end of a path."""
Exchange = tuple[str, int]


def fields(found: FrameBytes, side: str, *, show_secrets: bool = False) -> tuple[list[tuple[str, str, Any]], bool]:
    """Path, text and compared value of each field of a message; and whether there are more than `FIELDS_MAX`."""
    decoded = message(found, side)
    if decoded is None:
        return [], False
    root = decoded.tree()
    walk = TreeWalk(decoded, side, found.row, show_secrets)
    out: list[tuple[str, str, Any]] = []
    for child in root.children:
        for field in _leaves(walk.items(root, child, (), top=True), ""):
            if len(out) == FIELDS_MAX:
                return out, True
            out.append(field)
    return out, False


def _leaves(items: Sequence[Item], path: str) -> Iterator[tuple[str, str, Any]]:
    """Fields below items, in the order of the wire."""
    names = _entry_names(items)
    for item, name in zip(items, names):
        if item.name == "count":
            continue  # the list itself shows its number of entries
        here = name if name.startswith("[") or not path else f".{name}"
        text = "".join(text for text, _ in item.line[2:])
        if text:
            yield path + here, text, item.node.data if item.secret and item.node is not None else text
        if item.make is not None:
            yield from _leaves(list(item.make()), path + here)


def _entry_names(items: Sequence[Item]) -> list[str]:
    """Names of fields; entries of a list have their keys if these are distinct."""
    if not items or not any(item.name.startswith("[") for item in items):
        return [item.name for item in items]
    found: list[str | None] = []
    for item in items:
        inner = item.node.children if item.node is not None and item.name.startswith("[") and item.make is not None else ()
        first = inner[0] if inner else None
        found.append(clean(str(first.words)) if first is not None and first.name in KEYS else None)
    keys = [key for item, key in zip(items, found) if item.name.startswith("[")]
    if None in keys or len(set(keys)) < len(keys):
        return [item.name for item in items]
    return [item.name if key is None else f"[{key}]" for item, key in zip(items, found)]


def paired(
    first: Sequence[tuple[str, str, Any]], second: Sequence[tuple[str, str, Any]]
) -> list[tuple[str, tuple[str, Any] | None, tuple[str, Any] | None]]:
    """Fields of both by path, in the order of the messages; None for a missing field."""
    left, right = ({path: (text, value) for path, text, value in one} for one in (first, second))
    behind: dict[str, list[str]] = {}
    before = ""
    for path, _, _ in second:
        if path in left:
            before = path
        else:
            behind.setdefault(before, []).append(path)
    order = [*behind.get("", [])]
    for path in left:
        order += [path, *behind.get(path, [])]
    return [(path, left.get(path), right.get(path)) for path in dict.fromkeys(order)]


def message_rows(first: FrameBytes, second: FrameBytes, *, show_secrets: bool = False) -> tuple[list[Row], bool]:
    """Rows of all fields of requests and responses; and whether a message has more fields than were compared."""
    rows: list[Row] = []
    more = False
    for side in SIDES:
        (left, left_more), (right, right_more) = (fields(one, side, show_secrets=show_secrets) for one in (first, second))
        more |= left_more or right_more
        for path, one, other in paired(left, right):
            texts = [value[0] if value is not None else "" for value in (one, other)]
            known = [value[1] if value is not None else None for value in (one, other)]
            rows.append({"side": side, "field": path, "first": texts[0], "second": texts[1], "differs": known[0] != known[1]})
    return rows, more


def timing_rows(first: Row, second: Row) -> list[Row]:
    """The parts of each latency, and their differences."""
    rows: list[Row] = []
    for name in TIMES:
        one, other = first[name], second[name]
        if one is None and other is None:
            continue
        apart = other - one if one is not None and other is not None else None
        sign = "" if apart is None or not apart else "+" if apart > 0 else "-"
        rows.append({
            "field": MEANINGS[name], "first": _spent(first, name), "second": _spent(second, name), "apart": apart,
            "more": "" if apart is None else "0" if not apart else f"{sign}{duration(abs(apart))}", "differs": one != other,
        })  # fmt: skip
    return rows


def _spent(row: Row, name: str) -> str:
    """A part of the latency; for a request without a response, how long it waited."""
    if name == "latency_ns" and row[name] is None and row["age_ns"] is not None:
        return f">{duration(row['age_ns'])}"
    return duration(row[name]) if row[name] is not None else ""


def facts(row: Row) -> dict[str, str]:
    """The connection and frames of an exchange."""
    more = {
        "client": endpoint(row["client_ip"], row["client_port"]), "broker": endpoint(row["server_ip"], row["server_port"]),
    }  # fmt: skip
    return {"time": f"{clock(time_ns(row))} UTC"} | {
        name.replace("_", " "): more.get(name) or _value(row.get(name)) for name in WHO
    }


def _value(value: Any) -> str:
    return number(value) if isinstance(value, int) and not isinstance(value, bool) else clean(words(value))


def time_ns(row: Row) -> int | None:
    """When an exchange began, in nanoseconds since the epoch."""
    found: int | None = row["request_first_ns"] if row["request_first_ns"] is not None else row["response_first_ns"]
    return found


def fact_rows(first: Row, second: Row) -> list[Row]:
    """Rows of the connections and frames of both."""
    left, right = facts(first), facts(second)
    return [
        {"field": name, "first": left[name], "second": right[name], "differs": left[name] != right[name]}
        for name in left if left[name] or right[name]
    ]  # fmt: skip


def sheets(first: FrameBytes, second: FrameBytes, *, show_secrets: bool = False) -> list[Sheet]:
    """Sections: fields that differ, all fields, timings, connections and frames."""
    pair = [(one.row["connection"], one.row["exchange"]) for one in (first, second)]
    rows, more = message_rows(first, second, show_secrets=show_secrets)
    differ = [row for row in rows if row["differs"]]
    note = f"only the first {FIELDS_MAX:,} fields of a message are compared" if more else ""
    if len({(one.row["api"], one.row["api_version"]) for one in (first, second)}) > 1:
        note = "; ".join(filter(None, ("these are different requests or versions; fields are matched by name", note)))
    counted = f"{len(differ):,} of {len(rows):,} fields differ"
    return [
        sheet("fields that differ", differ, pair, "all fields are equal", note, counted),
        sheet("all fields", rows, pair, "neither message can be decoded", note, counted),
        sheet("timing", timing_rows(first.row, second.row), pair, "neither has a response"),
        sheet("exchange", fact_rows(first.row, second.row), pair, ""),
    ]


def sheet(name: str, rows: list[Row], pair: Sequence[Exchange], empty: str, note: str = "", foot: str = "") -> Sheet:
    """One line per field, with the value of each exchange; a cell leads to its exchange."""

    def tone(row: Row) -> str:
        return "care" if row["differs"] else ""

    def value(at: int) -> TextColumn:
        return TextColumn(NAMES[at], lambda row: row[NAMES[at]], right=False, tone=tone, down=lambda _row: pair[at], least=16)

    both = [
        TextColumn("", lambda row: "≠" if row["differs"] else "", right=False, whole=True, tone=tone),
        TextColumn("field", lambda row: split(row["field"])[1], right=False, tone=lambda _row: "bold", least=28),
        value(0), value(1),
    ]  # fmt: skip
    if any("side" in row for row in rows):
        both.insert(1, TextColumn("in", lambda row: row["side"], right=False, rank=1, tone=lambda _row: "dim"))
        both.append(TextColumn("of", lambda row: split(row["field"])[0], right=False, rank=2, tone=lambda _row: "dim"))
    if any("more" in row for row in rows):
        both.append(TextColumn("second - first", lambda row: row["more"], right=True, key=lambda row: row["apart"], tone=tone))
    return Sheet(name, both, rows, lambda _row: pair[1], empty, note, foot, detail=detail if rows else None)


def split(path: str) -> tuple[str, str]:
    """Splits a path before the innermost entry of a list, or before the field."""
    found = SPLIT.search(path)
    return (path[: found.start(1)].rstrip("."), path[found.start(1) :]) if found is not None else ("", path)


def title(first: Row, second: Row) -> str:
    """Both exchanges; what they have in common is written once."""
    one, other = (f"{call(row['api'], row['api_version'])} {row['connection']}.{row['exchange']}" for row in (first, second))
    if one.rpartition(".")[0] == other.rpartition(".")[0]:
        return f"{one} and .{second['exchange']}"
    return f"{one} and {other}"


def detail(row: Row, width: int) -> list[Any]:
    """A field in full: its path and both values, one above the other."""
    out: list[Any] = paragraph(row["field"].strip(), width, "bold")
    for name in NAMES:
        out += paragraph(f"{name}: {row[name] or 'no such field'}", width, "care" if row["differs"] else "", "  ")
    return out
