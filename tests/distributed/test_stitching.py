"""Ranges are proven, or read again: what is put together is what one reading gives."""

from pathlib import Path
from random import Random
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from kcap.capture.fileset import FileSet
from kcap.distributed import stitching
from kcap.distributed.ranges import RangeScan
from kcap.distributed.stitching import RangeNumbers, next_unverified, plan, recognise, stitch
from kcap.model import CaptureFile
from tests.capture.drawn import captures, read
from tests.capture.handmade import START_NS, Weirds, enhanced, ethernet, interface, ipv4, pcap, rows, save, section, tcp
from tests.support.shared import Shared


def ranged(form: str, data: bytes, step: int):
    """Packets of the proven ranges in their order, the folded files and how often a range was read again."""
    file, numbers, summaries, found, again = CaptureFile("a", "a", len(data)), RangeNumbers(), {}, {}, 0

    def reader(at: int):
        def read(size: int) -> bytes:
            nonlocal at
            part = data[at : at + size]
            at += len(part)
            return part

        return read

    def deal(part) -> None:
        scan = RangeScan(part, reader(part.start), file, len(data))
        found[part.unit] = [row for batch, _ in scan.batches() for row in rows(batch)]
        summaries[part.unit] = scan.summary

    with patch.object(stitching, "RANGE_BYTES_LEAST", 1):
        planned = plan(file, 0, recognise(file, reader(0)), step, numbers)
    for part in planned.ranges:
        deal(part)
    while (part := next_unverified(planned, summaries, numbers)) is not None:
        deal(part)
        again += 1
    stitched = stitch([planned], summaries)
    packets = []
    for part in planned.ranges:
        packets += [(row[0] + stitched.positions[part.unit].packets, *row[1:]) for row in found[part.unit]]
    return packets, stitched, again


@given(captures, st.integers(20, 400), st.integers(0, 30))
def test_ranges_give_the_packets_of_the_file(capture, step: int, cut: int) -> None:
    """Law: whatever the cuts, and where the file was cut off, the same packets, numbers, times, positions and facts."""
    form, data = capture
    data = data[: len(data) - min(cut, len(data) - 64)] if len(data) > 64 else data
    wanted, weirds, file = read(form, data)
    got, stitched, _ = ranged(form, data, step)
    assert got == wanted
    mine = stitched.files[0]
    for fact in (
        "links",
        "snaplen",
        "first_ns",
        "last_ns",
        "packets",
        "packet_bytes",
        "cut_packets",
        "kernel_drops",
        "complete",
    ):
        assert getattr(mine, fact) == getattr(file, fact), fact
    counted = {}
    for kind in weirds.kinds:
        counted[kind] = counted.get(kind, 0) + 1
    assert {str(oddity.kind): oddity.count for _, oddity in stitched.oddities} == counted
    first = {}
    for kind, detail, _, packet, position in weirds.seen:
        first.setdefault(str(kind), (detail, packet, position))
    assert {str(one.kind): (one.detail, one.packet, one.position) for _, one in stitched.oddities} == first


def captures_in_captures(seed: int) -> bytes:
    """Packets that carry captures, which look like a range's beginning."""
    random = Random(seed)
    inner = pcap([(START_NS + 7 * at, ethernet(ipv4(tcp(random.randbytes(40))))) for at in range(40)])[24:]
    packets = [(START_NS + 10**6 * at, ethernet(ipv4(tcp(inner, seq=1000 + at * len(inner))))) for at in range(12)]
    return pcap(packets)


def test_a_capture_inside_a_capture_is_found_out(tmp_path: Path) -> None:
    """A guess may be plausible and wrong; the fold sees it, and that range is read again from where the one before ended."""
    data = captures_in_captures(1)
    wanted, _, _ = read("pcap", data)
    for step in (3000, 5000, 7001):
        got, _, again = ranged("pcap", data, step)
        assert again > 0
        assert got == wanted


def test_many_wrong_guesses_cost_no_quadratic_reading(tmp_path: Path) -> None:
    """After some wrong guesses a file is read on in pieces that grow."""
    data = captures_in_captures(2) + captures_in_captures(3)[24:] * 12
    _, stitched, again = ranged("pcap", data, 4000)
    assert stitched.files[0].packets == 12 * 13
    assert 3 < again < 20


def test_a_section_in_the_middle_changes_what_holds(tmp_path: Path) -> None:
    """Interfaces of a section that begins in the middle of the file: ranges behind it were guessed with the first one's."""
    frames = [ethernet(ipv4(tcp(bytes(200), seq=1000 + 200 * at))) for at in range(30)]
    first = section() + interface(resolution=6) + b"".join(enhanced(10**15 + at, one) for at, one in enumerate(frames))
    second = section() + interface(resolution=9) + b"".join(enhanced(10**18 + at, one) for at, one in enumerate(frames))
    data = first + second
    wanted, _, _ = read("pcapng", data)
    got, stitched, again = ranged("pcapng", data, 1500)
    assert got == wanted
    assert again > 0
    assert {context.sections for _, context in stitched.contexts[0]} == {1, 2}


def test_files_without_a_packet_say_so(tmp_path: Path) -> None:
    """Law: an empty capture is a file with no packet, as for one reading."""
    path = save(tmp_path, pcap([]))
    shared, weirds = Shared([path], 4096, 2), Weirds()
    for _ in FileSet([path], weirds).batches():
        pass
    assert [str(oddity.kind) for _, oddity in shared.stitched.oddities] == weirds.kinds
    assert all(not batch.rows for reader in shared.readers() for batch in reader.batches())


def test_time_that_goes_back_between_ranges_is_where_the_packet_is() -> None:
    """Found by drawn captures: a range may begin with blocks that are no packets."""
    first, second = enhanced(2_000_000, b"a" * 60), enhanced(1_999_000, b"b" * 60)
    data = section() + interface() + first + 4 * interface() + second
    _, weirds, _ = read("pcapng", data)
    ((_, detail, _, packet, position),) = weirds.seen
    for step in (20, 40, 100):
        (oddity,) = (one for _, one in ranged("pcapng", data, step)[1].oddities)
        assert (oddity.detail, oddity.packet, oddity.position) == (detail, packet, position)
