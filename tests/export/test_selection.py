"""Intervals hold what lies in them; handshakes are told from what follows; flows are those of the packets."""

from hypothesis import given
from hypothesis import strategies as st

from kcap.export.selection import BOTH, DOWN, UP, Intervals, SelectedConnection, Selection, counted_columns
from kcap.net.connections import flow_of
from kcap.net.tcp import ACK, FIN, SYN
from kcap.session import Capture
from tests.export.parts import PCAPS

PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)).map(lambda pair: (pair[0], pair[0] + pair[1])))


@given(PAIRS, PAIRS, st.integers(-1, 90))
def test_intervals_hold_what_lies_in_one_of_them(first, then, number):
    intervals = Intervals()
    for low, high in first:
        intervals.add(low, high)
    intervals.holds(number)
    for low, high in then:
        intervals.add(low, high)
    assert intervals.holds(number) == any(low <= number <= high for low, high in first + then)


def test_a_connection_keeps_its_handshake_and_its_frames():
    chosen = SelectedConnection("C1", b"", whole=False)
    chosen.first = 1
    chosen.frame(UP, (0, 500, 5), (0, 600, 6))
    chosen.frame(BOTH, (0, 500, 5), (0, 900, 9))
    chosen.start()

    def wants(direction, position, flags, length, ref=99):
        return chosen.wants(direction, 0, position, position // 100, flags, length, ref)

    assert wants(UP, 10, SYN, 0, 1)
    assert wants(DOWN, 20, SYN | ACK, 0)
    assert wants(UP, 30, ACK, 0), "the third of the handshake"
    assert not wants(UP, 40, ACK, 0)
    assert not wants(UP, 50, ACK, 100)
    assert wants(UP, 500, ACK, 100)
    assert wants(DOWN, 550, ACK, 0), "a bare acknowledgement between"
    assert not wants(DOWN, 550, ACK, 10), "the other side's bytes are another frame's"
    assert not wants(UP, 950, FIN | ACK, 0)
    chosen.ended = True
    assert wants(UP, 950, FIN | ACK, 0)


def test_a_frame_across_files_is_found_by_number():
    chosen = SelectedConnection("C1", b"", whole=False)
    chosen.frame(UP, (0, 500, 50), (1, 30, 3))
    assert [chosen.wants(UP, 0, 0, number, ACK, 1, -9) for number in (49, 50, 51)] == [False, True, True]
    assert [chosen.wants(UP, 1, 0, number, ACK, 1, -9) for number in (2, 3, 4)] == [True, True, False]


def test_what_is_picked_is_what_the_filter_selects():
    capture = Capture([str(PCAPS / "go-franz.pcap")]).filter("api == Produce")
    picked = Selection(counted_columns(capture), whole=False)
    picked.read(capture)
    table = capture.exchanges(["connection", "client_ip", "client_port", "server_ip", "server_port"]).to_arrow().to_pylist()
    assert picked.rows == len(table) > 0
    assert picked.chosen.keys() == {row["connection"] for row in table}
    row = table[0]
    flow = flow_of(row["client_ip"], row["client_port"], row["server_ip"], row["server_port"])
    assert picked.chosen[row["connection"]].flow == flow
    assert len(flow) == 12
    assert len(flow_of("::1", 1, "fe80::2", 2)) == 36


def test_columns_of_the_filter_count_too():
    assert "software_name" not in counted_columns(Capture(["x"]))
    assert "software_name" in counted_columns(Capture(["x"]).filter('software_name == "a"'))
    assert "request_first_packet" not in counted_columns(Capture(["x"]).filter("request_first_packet == 1"))
