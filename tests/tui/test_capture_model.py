"""A book says what was read so far, at any time."""

import os
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kcap
from kcap.errors import UsageError
from kcap.filter.parse import parse
from kcap.reports import clients, errors, latency, slow, stats, throttle, topics
from kcap.reports.definition import Expressions, Report, ReportRequest, Tables
from kcap.reports.run import run
from kcap.reports.source import Interrupted, ReportInput
from kcap.tui.capture_model import CONCLUSIONS, CaptureModel, read_whole
from kcap.tui.reader_main import ReaderStatus, ReadRequest
from kcap.tui.reader_process import Process
from kcap.tui.spill import OTHERS
from kcap.tui.views.errors import Errors
from kcap.tui.views.statistics import Statistics
from kcap.tui.views.throttling import Throttling
from kcap.tui.views.topics import Topics
from tests.tui.conftest import PCAPS
from tests.tui.driving import book_of

JAVA = str(PCAPS / "java-transactions.pcap")


@pytest.mark.parametrize("text", ["", "api == Fetch", "error != NONE || latency > 3ms"])
def test_the_filter_is_that_of_the_command_line(book: CaptureModel, text: str) -> None:
    book.narrow(text)
    wanted = kcap.open(JAVA).filter(text).exchanges().to_arrow() if text else kcap.open(JAVA).exchanges().to_arrow()
    assert book.exchanges().to_pylist() == wanted.to_pylist()
    assert book.passed == wanted.num_rows
    assert book.rows == 110
    assert book.exchanges(["api"], filtered=False).num_rows == 110
    assert book.exchanges(["api", "exchange"]).column_names == ["api", "exchange"]


def test_a_stream_is_that_of_wireshark(book: CaptureModel) -> None:
    book.narrow("tcp.stream == 3")
    assert book.exchanges().to_pylist() == kcap.open(JAVA).filter("tcp.stream == 3").exchanges().to_arrow().to_pylist()
    assert book.passed > 0


def test_a_filter_on_fields_inside_messages(book: CaptureModel) -> None:
    text = "request.max_wait_ms == 500 && latency > 100ms"
    book.narrow(text)
    assert book._looking is not None
    assert book._looking.wait(60)
    wanted = kcap.open(JAVA).filter(text).exchanges().to_arrow().to_pylist()
    assert book.exchanges().to_pylist() == wanted != []
    reader, writer = os.pipe()
    with CaptureModel(ReadRequest(["-"]), reader) as piped, pytest.raises(UsageError, match="a pipe is read once"):
        piped.narrow(text)
    os.close(reader)
    os.close(writer)


def test_a_filter_that_does_not_read_changes_nothing(book: CaptureModel) -> None:
    book.narrow("api == Fetch")
    with pytest.raises(UsageError):
        book.narrow("api == ")
    assert book.filter_text == "api == Fetch"


@pytest.mark.parametrize("report", [stats.REPORT, latency.REPORT, slow.REPORT, errors.REPORT, throttle.REPORT, topics.REPORT])
@pytest.mark.parametrize("text", ["", "api in {Fetch, Produce}"])
def test_reports_are_those_of_the_command_line(book: CaptureModel, report: Report, text: str) -> None:
    book.narrow(text)
    if report.partitions:
        assert book.table("partitions") is None or "partitions" in book._beside
        assert book._beside["partitions"].wait(60)
    made = book.report(report, ReportRequest())
    assert made == run(report, ReportInput([JAVA], only=parse(text)), ReportRequest())


GROUPED = [
    (report, by)
    for report, groupings in (
        (errors.REPORT, Errors.GROUPINGS), (topics.REPORT, Topics.GROUPINGS), (clients.REPORT, Topics.CLIENTS_BY),
        (latency.REPORT, Statistics.GROUPINGS), (stats.REPORT, Statistics.GROUPINGS), (throttle.REPORT, Throttling.GROUPINGS),
    )
    for by in groupings
]  # fmt: skip


@pytest.mark.parametrize(("report", "by"), GROUPED)
def test_every_grouping_of_a_view_is_that_of_the_command_line(report: Report, by: tuple[str, ...]) -> None:
    path, request = str(PCAPS / "not-yet-leader.pcap"), ReportRequest(by)
    book = book_of("not-yet-leader.pcap")
    if report.partitions:
        assert book.table("partitions") is None or "partitions" in book._beside
        assert book._beside["partitions"].wait(60)
    assert book.report(report, request) == run(report, ReportInput([path]), request)


@pytest.mark.parametrize("text", ["", "api in {Fetch, Produce}"])
def test_groups_are_counted_up_to_a_bound(book: CaptureModel, text: str) -> None:
    """Law: as many as the rows have, null among them; other rows are counted anew."""
    for narrowed in (text, ""):
        book.narrow(narrowed)
        names = ["client_ip", "client_id", "group_id"]
        groups = {tuple(row.values()) for row in book.exchanges(names).to_pylist()}
        assert len(groups) > 2
        assert any(row[2] is None for row in groups)
        assert [book.groups(names, most) for most in (1, len(groups), 1000)] == [1, len(groups), len(groups)]


def test_an_exchange_is_read_again(book: CaptureModel) -> None:
    """Its bytes are those of the Python interface."""
    for exchange in kcap.open(JAVA):
        found = book.exchange(exchange.row["connection"], exchange.row["exchange"])
        assert found is not None
        assert {name: value for name, value in found.row.items() if name in exchange.row} == exchange.row
        if exchange.request is not None:
            assert found.request[4:] == exchange.request.frame
        if exchange.response is not None:
            assert found.response[4:] == exchange.response.frame
        packets = sorted(found.request_packets + found.response_packets, key=lambda packet: packet.time_ns)
        assert packets == exchange.packets()
    assert book.exchange("C0000000000000000", 1) is None


def test_what_is_not_there_yet_is_none(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with CaptureModel(ReadRequest(["-"]), reader) as book:
        assert not book.look()
        assert (book.rows, book.state, book.done) == (0, "reading", False)
        assert book.table("connections") is None
        assert book.versions() is None
        assert book.exchanges(["api"]).num_rows == 0
        book.narrow("api == Fetch")
        assert book.passed == 0
        assert book.report(stats.REPORT, ReportRequest())["rows"] == []
    os.close(writer)
    os.close(reader)
    assert not Path(book.folder).exists(), "the spill is gone with the book"


def test_a_file_that_is_no_capture(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(b"no capture at all")
    with read_whole(str(path)) as book:
        assert book.state == "failed"
        assert "no capture" in str(book.status.error)
        assert book.exchanges().num_rows == 0


def test_a_file_cut_in_the_middle(tmp_path: Path) -> None:
    data = (PCAPS / "java-transactions.pcap").read_bytes()
    (tmp_path / "half.pcap").write_bytes(data[: len(data) // 2])
    with read_whole(str(tmp_path / "half.pcap")) as book:
        assert book.state == "done"
        assert 0 < book.rows < 110
        assert book.exchanges().to_pylist() == kcap.open(tmp_path / "half.pcap").exchanges().to_arrow().to_pylist()


def test_one_bad_file_among_good_ones(tmp_path: Path) -> None:
    shutil.copy(JAVA, tmp_path / "good.pcap")
    (tmp_path / "bad.pcap").write_bytes(b"no capture at all")
    with read_whole(str(tmp_path / "good.pcap"), str(tmp_path / "bad.pcap")) as book:
        assert book.rows == 110
        assert len(book.status.failed) == 1


@dataclass(frozen=True, eq=False)
class Asker:
    name: str


def test_a_report_is_given_up_by_who_asked_for_it(java: CaptureModel) -> None:
    """Another's goes on."""
    here, go, ended = threading.Event(), threading.Event(), dict[Asker, object]()

    def build(tables: Tables, _asked: ReportRequest) -> Expressions:
        here.set()
        assert go.wait(30)
        return {"rows": tables.selected.aggregate(count=tables.selected.count())}

    slow_report = Report("slow", (), ("api",), build, lambda results, _asked: {"left_out": {}, **results}, groups=False)

    def ask(who: Asker) -> None:
        with java.asked_by(who):
            try:
                ended[who] = java.report(slow_report, ReportRequest())["rows"][0]["count"]
            except Interrupted:
                ended[who] = "given up"

    left, stays, late = Asker("left"), Asker("stays"), Asker("late")
    threads = [threading.Thread(target=ask, args=(who,)) for who in (left, stays)]
    for thread in threads:
        here.clear()
        thread.start()
        assert here.wait(30)
    java.give_up(left)
    java.give_up(Asker("nobody"))
    go.set()
    for thread in threads:
        thread.join(30)
    assert ended == {left: "given up", stays: java.rows}
    java.give_up(left)
    java.give_up(late)
    ask(late)
    assert ended[late] == "given up", "also where it begins when no caller waits any more"
    assert not java.wanted(late)
    assert java.wanted(stays)


def test_a_closed_book_says_nothing_new(java: CaptureModel) -> None:
    book = read_whole(JAVA)
    book.close()
    book.close()
    assert not book.look()
    assert book.table("weirds") is None
    assert len(np.unique(book.snapshot().keys("exchange"))) > 1, "what was mapped stays readable"


def test_rows_remain_when_the_reading_process_is_killed() -> None:
    reader, writer = os.pipe()
    with CaptureModel(ReadRequest(["-"]), reader) as book:
        data = Path(JAVA).read_bytes()
        os.write(writer, data[: len(data) - 10])
        until = time.monotonic() + 30
        while not book.rows and time.monotonic() < until:
            book.look()
            time.sleep(0.05)
        rows = book.rows
        assert isinstance(book.process, Process)
        book.process._kill()
        assert book.process.wait(30)
        assert book.look()
        assert book.state == "failed"
        assert book.rows == book.exchanges().num_rows >= rows > 0
        assert {name: book.table(name) for name in OTHERS} == dict.fromkeys(OTHERS)
        assert book.versions() is None
    os.close(reader)
    os.close(writer)


def test_a_comparison_says_how_far_it_is_and_ends_when_it_is_no_longer_waited_for(
    java: CaptureModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Any] = []

    class Pass:
        def __init__(self, order: ReadRequest) -> None:
            self.order, self.status, self.closed = order, ReaderStatus(), False
            begun.append(self)

        def start(self) -> None:
            self.status = ReaderStatus(bytes=30, total=120, captures=1)

        def close(self) -> None:
            self.closed = True

    monkeypatch.setattr("kcap.tui.capture_model.Process", Pass)
    assert java.no_conclusions() == "computing …"
    java._beside[CONCLUSIONS] = Pass(java.order)  # type: ignore[assignment]
    java._beside[CONCLUSIONS].status = ReaderStatus(bytes=30, total=120)
    assert java.no_conclusions() == "computing: 25% of the capture was read"
    java._beside[CONCLUSIONS].status = ReaderStatus(over=True, error="x", bytes=30, total=120)
    assert java.no_conclusions() == "they cannot be made: x"
    del java._beside[CONCLUSIONS], begun[:]
    assert java.comparing("other") == ""
    assert not java.compared("other")
    assert java.comparing("other") == "25% of the one before was read"
    begun[0].status = ReaderStatus(bytes=60, total=120, captures=2)
    assert java.comparing("other") == "50% of this capture was read"
    java.stop_comparing("other")
    assert begun[0].closed
    assert not os.path.exists(begun[0].order.folder)
    assert not java.compared("other")
    begun[1].status = ReaderStatus(over=True)
    java.stop_comparing("other")
    assert java.compared("other"), "what was made stays"
    assert [one.closed for one in begun] == [True, False]
