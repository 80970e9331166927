"""Laws of `kcap show`: one exchange by its name, its bytes explained, secrets and payloads only where they are asked for."""

import gzip
import json
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

import kcap
from kcap.capture.spool import Spool
from kcap.cli.main import main
from kcap.cli.show import exchange_lines
from kcap.exchange import Exchange
from tests.cli.running import kcap as running
from tests.cli.running import start


def first(path: Path, api: str) -> Exchange:
    """The first answered exchange of an API, in packet order."""
    found = [
        exchange for exchange in kcap.open(str(path)) if exchange.row["api"] == api and exchange.row["outcome"] == "answered"
    ]
    return min(found, key=lambda exchange: exchange.row["request_first_ns"])


def name_of(row: dict[str, Any]) -> str:
    return f"{row['connection']}.{row['exchange']}"


def test_an_exchange_by_its_name(pcaps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = first(pcaps / "go-franz.pcap", "Metadata").row
    assert main(["show", str(pcaps / "go-franz.pcap"), name_of(row)]) == 0
    reported = capsys.readouterr().out
    assert reported.startswith(f"{name_of(row)}  Metadata v{row['api_version']}  ok\n2026-11-21 ")
    assert "\nlatency   " in reported
    assert " = rtt " in reported
    assert f"MetadataRequest v{row['api_version']}\n" in reported
    assert f"MetadataResponse v{row['api_version']}\n" in reported
    assert "undecoded" not in reported
    assert main(["show", str(pcaps / "go-franz.pcap"), name_of(row), "--hex"]) == 0
    dump = [
        line for line in capsys.readouterr().out.splitlines() if line[:6].strip("0123456789abcdef") == "" and line[6:8] == "  "
    ]
    assert sum(len(line[8:56].split()) for line in dump) == row["request_bytes"] + row["response_bytes"]


def test_json_has_the_row_and_both_messages(pcaps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = first(pcaps / "go-franz.pcap", "Produce").row
    command = ["show", str(pcaps / "go-franz.pcap"), name_of(row), "--json"]
    assert main(command) == 0
    reported = json.loads(capsys.readouterr().out)
    assert reported["row"]["exchange"] == row["exchange"]
    assert reported["row"]["time"].endswith("Z")
    assert reported["request"]["correlation_id"] == reported["response"]["correlation_id"]
    partition = reported["request"]["body"]["topicData"][0]["partitionData"][0]
    assert partition["recordsSizeInBytes"] > 0
    assert main([*command, "--payloads"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert reported["request"]["body"]["topicData"][0]["partitionData"][0]["records"]


def test_secrets_stay_secret(pcaps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exchange = first(pcaps / "sasl-raw-tokens.pcap", "SaslAuthenticate")
    assert exchange.request
    body = exchange.request.to_json()
    assert body
    command = ["show", str(pcaps / "sasl-raw-tokens.pcap"), name_of(exchange.row)]
    assert main([*command, "--hex"]) == 0
    reported = capsys.readouterr().out
    assert "authenticationIdentity: alice" in reported
    assert "password: (masked)" in reported
    assert "** ** **" in reported
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["request"]["body"] == {"authBytes": "(masked)"}
    assert main([*command, "--json", "--show-secrets"]) == 0
    assert json.loads(capsys.readouterr().out)["request"]["body"] == body


def test_both_sides_where_there_is_room(pcaps: Path) -> None:
    exchange = first(pcaps / "go-franz.pcap", "Metadata")
    forms: dict[str, bool] = {"with_hex": False, "payloads": False, "show_secrets": False}
    wide, narrow, free = (list(exchange_lines(exchange, width, **forms)) for width in (180, 60, None))
    assert any("MetadataRequest" in line and "MetadataResponse" in line for line in wide)
    assert max(map(len, wide)) <= 180
    assert max(map(len, narrow)) <= 60 < max(map(len, free))
    assert len(narrow) == len(free) > len(wide)


def test_a_raw_token_is_named(pcaps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = first(pcaps / "sasl-raw-tokens.pcap", "SaslToken").row
    assert main(["show", str(pcaps / "sasl-raw-tokens.pcap"), name_of(row), "--hex"]) == 0
    assert "request: a raw SASL token" in capsys.readouterr().out


@pytest.mark.parametrize("packet", ["#4", "4", "6"])
def test_an_exchange_by_one_of_its_packets(pcaps: Path, packet: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wireshark shows packets: 4 is the first request of the capture, 6 its response."""
    path = str(pcaps / "go-franz.pcap")
    row = next(iter(kcap.open(path).filter(f"frame.number == {packet.strip('#')}"))).row
    assert packet.strip("#") in (str(row["request_first_packet"]), str(row["response_first_packet"]))
    assert main(["show", path, packet]) == 0
    assert capsys.readouterr().out.startswith(name_of(row))
    assert main(["show", path, "1"]) == 2
    assert capsys.readouterr().err == "kcap: no exchange has bytes in packet 1\n"


@pytest.mark.parametrize("form", ["gzip", "pipe", "redirect", "redirect behind other bytes"])
def test_what_can_be_read_once_is_shown_as_a_file_is(pcaps: Path, tmp_path: Path, form: str) -> None:
    file = pcaps / "go-franz.pcap"
    shown = running("show", file, "6").stdout
    assert b"ApiVersionsRequest" in shown
    content = {"gzip": gzip.compress(file.read_bytes()), "redirect behind other bytes": b"a line\n" + file.read_bytes()}
    (tmp_path / "go-franz.pcap").write_bytes(content.get(form, file.read_bytes()))
    if form in ("gzip", "pipe"):
        words, stdin = (tmp_path / "go-franz.pcap", None) if form == "gzip" else ("-", file.read_bytes())
        done = running("show", words, "6", stdin=stdin).stdout
    else:
        with (tmp_path / "go-franz.pcap").open("rb", buffering=0) as stream:
            if "behind" in form:
                stream.readline()
            done = start("show", "-", "6", stdin=stream.fileno(), stdout=PIPE).communicate(timeout=60)[0]
    assert done.replace(b" of -", b" of go-franz.pcap") == shown


def test_what_was_not_kept_is_said(
    pcaps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond what is kept of a file that can be read once."""
    monkeypatch.setattr(Spool.__init__, "__defaults__", (100,))
    (tmp_path / "again.pcap.gz").write_bytes(gzip.compress((pcaps / "go-franz.pcap").read_bytes()))
    assert main(["show", str(tmp_path / "again.pcap.gz"), "6"]) == 0
    assert "request: not retained" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["", "x.1", "C0123456789abcdef", "C0123456789abcdef.1"])
def test_what_there_is_not(pcaps: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(pcaps / "node-platformatic.pcap"), name]) == 2
    assert capsys.readouterr().err.startswith("kcap: ")


def test_without_words_it_names_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show"]) == 2
    assert "kcap show FILE UID.N" in capsys.readouterr().err
