"""Records of an exchange are those of the table."""

import json

import pytest

import kcap
from kcap.tui.capture_model import read_whole
from kcap.tui.views.records_model import detail, preview, readable, records, sheet, stamp, value_lines
from tests.tui.views.stub import PCAPS


@pytest.mark.parametrize("name", ["java-transactions.pcap", "librdkafka-zstd.pcap", "kafka-0.8-clients.pcap"])
def test_records_are_those_of_the_table(name: str) -> None:
    wanted: dict[tuple[str, int], list[tuple[object, ...]]] = {}
    for row in kcap.open(str(PCAPS / name)).table("records").to_arrow().to_pylist():
        reported = (row["partition"], row["offset"], row["key_bytes"], row["value_bytes"], row["codec"])
        wanted.setdefault((row["connection"], row["exchange"]), []).append(reported)
    assert wanted
    with read_whole(str(PCAPS / name)) as book:
        for number in range(book.rows):
            found = book.frames(number)
            made = list(records(found))
            key = (found.row["connection"], found.row["exchange"])
            reported = [(row["partition"], row["offset"], row["key_bytes"], row["value_bytes"], row["codec"]) for row in made]
            assert reported == wanted.get(key, [])
            for row in made[:20]:
                for line in detail(row, 80):
                    assert all(part.isprintable() for part, _ in line)


def test_values_in_words() -> None:
    assert preview(b'{"a":\n 1}') == '{"a": 1}'
    assert preview(None) == "null"
    assert preview(b"\x00\xff") == "00 ff"
    assert preview("ü".encode() * 1000) == "ü" * 200
    assert readable(b"\x00\x01\x02") is None
    assert readable(b"") == ""


def test_a_value_in_full() -> None:
    reported = "\n".join("".join(part for part, _ in line) for line in value_lines("value", json.dumps({"a": [1]}).encode()))
    assert reported == 'value  10 bytes\n  {\n    "a": [\n      1\n    ]\n  }'
    assert "000000  00 ff" in "".join(part for line in value_lines("key", b"\x00\xff") for part, _ in line)
    assert value_lines("key", None) == [[("key", "bold"), ("  null", "dim")]]
    assert any("more bytes" in part for line in value_lines("value", b"x" * 30_000) for part, _ in line)


def test_times() -> None:
    assert stamp(1_795_246_898_009) == "2026-11-21 07:41:38.009"
    assert stamp(-1) == ""
    assert stamp(1 << 62) == str(1 << 62)


def test_a_sheet_without_records() -> None:
    assert sheet([], None, "why").empty == "why"
