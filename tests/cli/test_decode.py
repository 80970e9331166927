"""Laws of `kcap decode`: with or without length, text or bytes, and the vectors' form in and out."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kcap.cli.decode import api_key_of, decode_line, from_text, unframed
from kcap.cli.main import main
from kcap.errors import UsageError
from tests.decode.test_secrets import SASL
from tests.records.batches import batch, record

WORKED = "00000019 0003 0001 00000001 0004 74657374 00000001 0005 7465737431"
EXPLAINED = """\
     0      4  00 00 00 19               Length: 25
     4     25                            MetadataRequest v1
     4     14                              header
     4      2  00 03                         RequestApiKey: 3 Metadata
     6      2  00 01                         RequestApiVersion: 1
     8      4  00 00 00 01                   CorrelationId: 1
    12      6  00 04 74 65 73 74             ClientId: test
    18     11                              body: MetadataRequest
    18     11                                Topics: 1 entry
    18      4  00 00 00 01                     count: 1
    22      7                                  [0]
    22      7  00 05 74 65 73 74 31              Name: test1
"""
METADATA = {"topics": [{"name": "test1"}]}


@pytest.mark.parametrize("words", [[WORKED], WORKED.split(), ["0x" + WORKED.replace(" ", ":")]], ids=["one", "many", "colons"])
def test_the_worked_example(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", "--hex", *words]) == 0
    assert capsys.readouterr().out == EXPLAINED


@pytest.mark.parametrize("skip", [0, 4])
@pytest.mark.parametrize("form", ["bytes", "text"])
def test_files_hold_bytes_or_text(tmp_path: Path, capsys: pytest.CaptureFixture[str], skip: int, form: str) -> None:
    data = bytes.fromhex(WORKED)[skip:]
    (tmp_path / "frame").write_bytes(data if form == "bytes" else data.hex("\n").encode())
    assert main(["decode", "--json", str(tmp_path / "frame")]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["api"], reported["version"], reported["client_id"], reported["body"]) == ("Metadata", 1, "test", METADATA)


def test_a_capture_is_no_message(pcaps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("quota-3.9.pcap", "tls13.pcapng"):
        assert main(["decode", str(pcaps / name)]) == 2
        assert "is a capture; kcap rows lists its exchanges" in capsys.readouterr().err


def test_a_response_needs_its_api(capsys: pytest.CaptureFixture[str]) -> None:
    frame = "00000007 00000000 ffffffff 00000000"
    assert main(["decode", "--response", "--hex", frame]) == 2
    assert "--api" in capsys.readouterr().err
    assert main(["decode", "--response", "--api", "metadata", "--api-version", "1", "--json", "--hex", frame]) == 0
    assert json.loads(capsys.readouterr().out)["body"] == {"brokers": [], "controllerId": -1, "topics": []}


def test_a_correlation_id_is_no_length() -> None:
    """A response whose id happens to equal the bytes behind it."""
    frame = bytes.fromhex("0000000c 00000000 ffffffff 00000000")
    message, shift = unframed(frame, False, 3, 1)
    assert (message.header.correlation_id, shift) == (12, 0)
    assert message.undecoded is None


def test_records(capsys: pytest.CaptureFixture[str]) -> None:
    text = batch(record(0, b"k", b"v")).hex()
    assert main(["decode", "--records", "--hex", text]) == 0
    assert capsys.readouterr().out.splitlines()[-2].endswith("value: v")
    assert main(["decode", "--records", "--json", "--hex", text]) == 0
    assert json.loads(capsys.readouterr().out)["batches"][0]["records"][0]["value"] == "dg=="


def test_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", "--data", "ConsumerProtocolAssignment", "--json", "--hex", "0000 00000000 ffffffff"]) == 0
    assert json.loads(capsys.readouterr().out)["body"] == {"assignedPartitions": [], "userData": None}


def test_secrets_are_masked_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for more, bare in ([], False), (["--json"], False), (["--show-secrets"], True), (["--json", "--show-secrets"], True):
        assert main(["decode", *more, "--hex", SASL.hex()]) == 0
        reported = capsys.readouterr().out
        assert ("masked" not in reported) is bare


def lines() -> list[dict[str, Any]]:
    frame = bytes.fromhex(WORKED)[4:].hex()
    return [
        {"kind": "request", "frame": frame},
        {"kind": "response", "api_key": 3, "version": 1, "frame": "00000000 00000000 ffffffff 00000000"},
        {"kind": "response", "api": "Metadata", "version": 1, "frame": "00000000 00000000 ffffffff 00000000"},
        {"kind": "records", "hex": batch(record(0, b"k", None)).hex()},
        {
            "kind": "data",
            "name": "ConsumerProtocolAssignment",
            "version": 0,
            "prefix": "version",
            "hex": "000000000000ffffffff",
        },
        {"kind": "negotiation", "request": {"frame": frame, "api_key": 3, "version": 1}, "response": None},
    ]


def test_lines_in_the_vectors_form(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join([*map(json.dumps, lines()), "", "no line", '{"kind": "poem", "hex": ""}'])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["decode", "--jsonl", "-"]) == 2
    reported = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("kind") for line in reported] == [
        "request",
        "response",
        "response",
        "records",
        "data",
        "negotiation",
        None,
        None,
    ]
    assert reported[0]["body"] == reported[5]["request"]["body"] == METADATA
    assert reported[1] == reported[2]
    assert [line["line"] for line in reported[6:]] == [8, 9]


def test_bytes_never_raise() -> None:
    for line in lines()[:2]:
        frame = bytes.fromhex(line["frame"])
        for size in range(len(frame)):
            made = decode_line(line | {"frame": frame[:size].hex()}, False)
            assert made["undecoded"]


def test_names_of_apis() -> None:
    assert api_key_of("fetch") == api_key_of("Fetch") == api_key_of("1") == 1
    assert api_key_of("offset-commit") == 8
    with pytest.raises(UsageError, match="did you mean Fetch"):
        api_key_of("fetc")


def test_what_is_hexadecimal() -> None:
    assert from_text(b" 0x00 ff:01\n") == b"\0\xff\1"
    assert from_text(b"0") is None
    assert from_text(b"") is None
    assert main(["decode", "--hex", "xy"]) == 2
    assert main(["decode"]) == 2
    assert main(["decode", "no-such-file"]) == 3
