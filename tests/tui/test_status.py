"""The title and the status line."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from kcap.model import CaptureFile
from kcap.tui.capture_model import CaptureModel, read_whole
from kcap.tui.hex_dump import Dump
from kcap.tui.list_model import ListModel
from kcap.tui.reader_main import ReaderStatus
from kcap.tui.status import Pulse, names, position, progress, trouble, unread
from kcap.tui.tree_lines import Item
from kcap.tui.views.health_model import files
from tests.tui.conftest import PCAPS


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_lines_fit(book: CaptureModel, width: int) -> None:
    """Law: no line is wider than the screen."""
    view = ListModel(book)
    view.install(view.arrange())
    view.go(109)
    view.mark()
    assert progress(Pulse(), book, width).cell_len <= max(width, 30)
    for item in (None, Item([], "x", filter="api == Fetch " * 30), Item([], "x", filter='topics == "数据"' * 30)):
        for dump in (None, Dump(bytes(100))):
            assert position(view, item, dump, width).cell_len <= max(width - 2, 20)


def test_what_is_told_of_a_capture(book: CaptureModel) -> None:
    assert "java-transactions.pcap" in progress(Pulse(), book, 100).plain
    assert progress(Pulse(), book, 100).plain.rstrip().endswith("481 packets, 17 connections")
    view = ListModel(book)
    view.install(view.arrange())
    assert position(view, None, None, 80).plain.endswith("1/110")


def test_troubles_are_told_calmly(tmp_path: Path, book: CaptureModel) -> None:
    assert trouble(book) == ""
    book.narrow("api == Fetch && api == Produce")
    book.sift()
    assert trouble(book) == "No exchange passes the display filter. Esc clears it."
    (tmp_path / "x.pcap").write_bytes(b"nothing of the kind")
    with read_whole(str(tmp_path / "x.pcap")) as bad:
        assert "no capture" in trouble(bad)
        assert "not read to the end" in progress(Pulse(), bad, 80).plain
        assert progress(Pulse(), bad, 80).plain.rstrip().endswith("…"), "a message that is cut says so"
    (tmp_path / "y.pcap").write_bytes((PCAPS / "aiokafka.pcap").read_bytes()[:24])
    with read_whole(str(tmp_path / "y.pcap")) as empty:
        assert trouble(empty).startswith("No Kafka found: 0 packets")


def test_names_fit() -> None:
    assert names(["a/b.pcap", "-"], 40) == "b.pcap, standard input"
    assert names(["/x/aaaaaaaa.pcap", "/x/b.pcap", "/x/c.pcap"], 24) == "aaaaaaaa.pcap and 2 more"
    assert names(["/x/" + "a" * 50], 10) == "a" * 9 + "…"
    assert names(["evil\x1b[2J.pcap"], 40).isprintable()


def test_the_rate_is_that_of_the_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("kcap.tui.status.time.monotonic", lambda: now[0])
    pulse = Pulse()
    assert pulse.rate(0) == 0
    for second in range(1, 10):
        now[0] = float(second)
        rate = pulse.rate(second * 100)
    assert rate == 100
    for second in range(10, 13):  # nothing comes any more
        now[0] = float(second)
        rate = pulse.rate(900)
    assert rate == 0


def test_a_truncated_capture_says_so_in_the_list(book: CaptureModel, tmp_path: Path) -> None:
    whole = (PCAPS / "java-transactions.pcap").read_bytes()
    (tmp_path / "cut.pcap").write_bytes(whole[:-7])
    with read_whole(str(tmp_path / "cut.pcap")) as cut:
        assert cut.truncation() == "1 truncated file"
        assert "1 truncated file" in progress(Pulse(), cut, 120).plain
        assert "not read" not in progress(Pulse(), cut, 120).plain, "what stands before the cut was read"
    assert book.truncation() == ""


def test_files_that_were_not_read_and_parts_of_files() -> None:
    links = CaptureFile("c", "c", packets=3, unread_links=Counter({"USB": 1}))
    failed = [("a", "cut"), ("c", "USB"), ("b", "none")]
    status = ReaderStatus(files=[CaptureFile("a", "a", format="pcap", complete=False), links], failed=failed)
    assert unread(status) == "1 file not read, 1 file read in part"
    assert unread(replace(status, failed=[("a", "cut")])) == unread(ReaderStatus()) == ""


def test_a_file_that_is_no_capture_was_not_truncated(tmp_path: Path) -> None:
    (tmp_path / "noise.pcap").write_bytes(b"no capture at all, but some bytes")
    with read_whole(str(PCAPS / "java-transactions.pcap"), str(tmp_path / "noise.pcap")) as some:
        assert some.truncation() == ""
        assert "1 file not read" in progress(Pulse(), some, 120).plain
        captures = some.table("captures")
        assert captures is not None
        shown = {row["capture"]: files(captures).fields[-1].text(row) for row in captures.to_pylist()}
    assert shown == {"java-transactions.pcap": "yes", "noise.pcap": "not read"}


def test_the_title_counts_the_connections_that_conversations_show() -> None:
    for name, words in (("raw-frames.pcap", " Kafka)"), ("java-transactions.pcap", "17 connections")):
        with read_whole(str(PCAPS / name)) as book:
            table = book.table("connections")
            assert table is not None
            text = progress(Pulse(), book, 100).plain
            assert f" {table.num_rows} connections" in text
            assert text.rstrip().endswith(words)
            assert (f"({book.status.connections} Kafka)" in text) == (book.status.connections != table.num_rows)


def test_a_speed_is_shown_while_bytes_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of the file tables are made: a speed that falls to nothing would look like a disk that hangs."""
    now = [0.0]
    monkeypatch.setattr("kcap.tui.status.time.monotonic", lambda: now[0])
    with read_whole(str(PCAPS / "aiokafka.pcap")) as book:
        monkeypatch.setattr(book, "done", False)
        pulse = Pulse()
        for part, shown in ((0.0, "0%"), (0.5, "50% 1 MB/s"), (1.0, "100%")):
            now[0] += 1.0
            book.process.status = replace(book.status, bytes=int(part * 2e6), total=2_000_000)
            assert f"{shown}  Ctrl+S stop" in progress(pulse, book, 120).plain
