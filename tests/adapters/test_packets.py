"""Packets from anywhere become batches like those of a file."""

from kcap.adapters.packets import gather
from tests.capture.handmade import rows

PACKETS = [(n * 10, bytes([n]) * n, n + n % 2, (1, 101)[n > 7]) for n in range(12)]


def test_batches_count_on():
    batches = list(gather(iter(PACKETS), file=3, batch_packets=5))
    assert [len(batch) for batch in batches] == [5, 5, 2]
    got = [row for batch in batches for row in rows(batch)]
    assert [(time, data, wire, link) for _, time, data, wire, _, link in got] == PACKETS
    assert [number for number, *_ in got] == list(range(1, 13))
    assert got[5][4] == sum(range(5))
    assert {batch.file for batch in batches} == {3}
    assert batches[0].link == 1


def test_a_sniffer_does_not_wait():
    taken = []

    def sniff():
        for packet in PACKETS:
            taken.append(packet)
            yield packet

    assert len(next(gather(sniff(), batch_packets=1))) == 1
    assert len(taken) == 1
