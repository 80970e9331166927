"""A part that says something else is found out."""

from kcap.export.cut import write
from kcap.export.mark_packets import mark
from kcap.export.selection import Selection, counted_columns
from kcap.export.verify import check
from kcap.session import Capture
from tests.export.parts import PCAPS

FILE = str(PCAPS / "long-polls.pcap")


def picked_of(only):
    capture = Capture([FILE]).filter(only)
    picked = Selection(counted_columns(capture), whole=True)
    picked.read(capture)
    return picked


def test_the_whole_says_what_was_picked():
    picked = picked_of("api == Fetch")
    verdict = check(FILE, picked, None)
    assert verdict.holds
    assert verdict.beside == Capture([FILE]).exchanges(["exchange"]).to_arrow().num_rows - picked.rows > 0


def test_a_packet_too_few_breaks_its_connection_alone(tmp_path):
    picked = picked_of("api == Fetch")
    marks = mark([FILE], picked)
    out = str(tmp_path / "part.pcap")
    row = Capture([FILE]).filter("api == Fetch").exchanges(["connection", "request_first_packet"]).to_arrow().to_pylist()[0]
    marks[0].remove(row["request_first_packet"])
    write([FILE], marks, out, "pcap", "")
    verdict = check(out, picked, None)
    assert verdict.broken == {row["connection"]}
    assert verdict.rows >= 1
    assert not verdict.holds


def test_a_name_that_is_not_told_is_another_fault(tmp_path):
    file = str(PCAPS / "java-transactions.pcap")
    capture = Capture([file]).filter("api == Produce")
    picked = Selection(counted_columns(capture), whole=False)
    picked.read(capture)
    out = str(tmp_path / "part.pcap")
    write([file], mark([file], picked), out, "pcap", "")
    assert check(out, picked, None).nameless
