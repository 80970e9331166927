"""The rows of a part are those of the whole that were picked; each packet is one of the whole's, once and in order."""

from pathlib import Path

import pytest

from kcap.capture.writer import PcapngWriter
from kcap.export.cut import cut, with_secrets
from kcap.export.selection import RESTS_ON_OTHERS
from kcap.session import Capture
from tests.export.parts import PCAPS, PLACES, packets, rows

FILES = sorted(path for path in PCAPS.iterdir() if ".pcap" in path.name)
FILTERS = ("api == Fetch", "api == Metadata", 'outcome != "answered"', "exchange == 3", "latency > 5ms", "")
OWN = PLACES | RESTS_ON_OTHERS


def made(files: list[Path], only: str, out: Path, *, whole: bool = False):
    """A part that reads as its whole: with the secrets of the input."""
    capture = Capture([str(path) for path in files]).filter(only)
    return cut(capture, str(out), "pcapng", named=None, whole=whole, secrets=True)


@pytest.mark.parametrize(("only", "whole"), [*((only, False) for only in FILTERS), ("api == Fetch", True)])
def test_rows_come_out_the_same(only, whole, tmp_path):
    cut_some = 0
    for file in FILES:
        out = tmp_path / f"part-{file.name}.pcapng"
        done = made([file], only, out, whole=whole)
        want = rows(file, only, OWN)
        assert len(want) == done.picked.rows
        if not want:
            assert not out.exists()
            continue
        found = {repr(row) for row in rows(out, without=OWN)}
        assert [row for row in want if repr(row) not in found] == [], file.name
        assert done.verdict.holds, file.name
        cut_some += 1
    assert cut_some > 3


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_packets_are_the_captures_own_once_and_in_order(file, tmp_path):
    out = tmp_path / "part.pcapng"
    if not made([file], "api == Fetch or api == Produce", out).picked.rows:
        pytest.skip("nothing of the kind in it")
    every = iter(packets(file))
    part = packets(out)
    assert len(part) < len(packets(file)) or file.name == "one-election.pcap", "which is such a part itself"
    assert all(packet in every for packet in part), "a subsequence"


def test_whole_connections_are_whole(tmp_path):
    file, out = PCAPS / "java-transactions.pcap", tmp_path / "part.pcapng"
    made([file], "api == EndTxn", out, whole=True)
    chosen = {row["connection"] for row in rows(file, "api == EndTxn")}
    table = {row["connection"]: row for row in Capture([str(out)]).connections().to_arrow().to_pylist()}
    assert table.keys() == chosen
    for row in Capture([str(file)]).connections().to_arrow().to_pylist():
        if row["connection"] in chosen:
            same = table[row["connection"]]
            skipped = {"capture", "number"}
            assert {k: v for k, v in row.items() if k not in skipped} == {k: v for k, v in same.items() if k not in skipped}
    assert [row for row in rows(file) if row["connection"] in chosen] == rows(out)


def test_a_tls_session_that_was_resumed_keeps_the_handshake_it_resumes(tmp_path):
    file, out = PCAPS / "tls12-resumed.pcapng", tmp_path / "part.pcapng"
    table = Capture([str(file)]).connections().to_arrow().to_pylist()
    (first,) = (row["connection"] for row in table if row["tls_resumed"] is False)
    resumed = [row["connection"] for row in table if row["tls_resumed"]]
    assert len(resumed) == 4
    for uid in resumed:
        done = made([file], f'connection == "{uid}"', out)
        assert done.verdict.holds
        assert done.picked.chosen.keys() == {uid, first}
        assert not done.picked.chosen[first].whole, "its handshake is enough"
        assert [row for row in rows(file, f'connection == "{uid}"', OWN) if row not in rows(out, without=OWN)] == []


def test_exchanges_that_go_over_from_one_file_to_the_next(tmp_path):
    files = [PCAPS / f"rotated.pcap{n}" for n in ("", "1", "2")]
    out = tmp_path / "part.pcapng"
    want = rows(files, "api == Produce", OWN)
    across = Capture([str(f) for f in files]).exchanges(["capture", "response_capture", "outcome"]).to_arrow().to_pylist()
    assert any(row["capture"] != row["response_capture"] for row in across if row["outcome"] == "answered")
    done = made(files, "api == Produce", out)
    assert done.verdict.holds
    found = rows(out, without=OWN)
    assert [row for row in want if row not in found] == []


def test_a_filter_on_what_a_connection_told_still_selects(tmp_path):
    only = 'software_name == "apache-kafka-java" and api == Produce'
    file, out = PCAPS / "java-transactions.pcap", tmp_path / "part.pcapng"
    made([file], only, out)
    own = OWN - {"software_name"}
    assert rows(out, only, own) == rows(file, only, own) != []


def test_no_match_writes_nothing_but_where_it_is_asked_for(tmp_path):
    capture = Capture([str(PCAPS / "go-franz.pcap")]).filter("api == Vote")
    out = tmp_path / "part.pcap"
    assert cut(capture, str(out), "pcap", named=None, whole=False).packets == 0
    assert not out.exists()
    cut(capture, str(out), "pcap", named=None, whole=False, empty=True)
    assert packets(out) == []
    assert out.stat().st_size == 24


def test_a_pass_holds_no_text_of_key_logs_and_the_part_is_read_with_them(tmp_path):
    random = "11" * 32
    path = tmp_path / "keys.pcapng"
    with path.open("wb") as stream:
        writer = PcapngWriter(stream)
        writer.secrets(f"CLIENT_RANDOM {random} {'22' * 48}\n".encode())
        writer.write(10**18, bytes(60), 60, 1)
    reading = Capture([str(path)]).read()
    list(reading.batches())
    assert reading.capture_files[0].secrets == [b""]
    options = with_secrets(None, reading.capture_files)
    assert options is not None
    assert options.secrets is not None
    for secrets in (options.secrets, reading.analyzer.secrets):
        assert list(secrets.keylog.stored) == [bytes.fromhex(random)]
