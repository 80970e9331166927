"""Parts have every packet once; no connection is in two of them; merged they are the whole."""

import os
from io import BytesIO

import pytest

from kcap.export import split
from kcap.export.merge import merge
from kcap.export.split import SplitFile, name_of, split_by_connection, split_by_time
from kcap.limits import SECOND_NS
from kcap.session import Capture
from tests.export.parts import PCAPS, packets, rows

FILE = str(PCAPS / "java-transactions.pcap")


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("name", ["java-transactions.pcap", "tls13.pcapng", "any-interface.pcap"])
def test_connections_stay_whole(name, size, tmp_path, monkeypatch):
    monkeypatch.setattr(split, "OPEN_MAX", 2)
    file = str(PCAPS / name)
    form = "pcapng" if name.endswith("ng") else "pcap"
    parts, failed, _ = split_by_connection(Capture([file]), form, str(tmp_path), size, secrets=True)
    assert failed == []
    numbers = {
        row["connection"]: row["number"] for row in Capture([file]).connections(["connection", "number"]).to_arrow().to_pylist()
    }
    for part in parts:
        held = [row["connection"] for row in Capture([part.path]).connections(["connection"]).to_arrow().to_pylist()]
        assert {(numbers[uid] - 1) // size + 1 for uid in held} <= {part.number}
        assert part.packets == len(packets(part.path))
    assert sorted(packet for part in parts for packet in packets(part.path)) == sorted(packets(file))
    without = (
        frozenset(c for c in rows(file)[0] if c in ("broker_id", "cluster_id", "topics", "version_verdict"))
        if rows(file)
        else frozenset()
    )

    def kept(found):
        return [{name: value for name, value in row.items() if name not in without} for row in found]

    every = [row for part in parts for row in kept(rows(part.path))]
    key = [(row["connection"], row["exchange"]) for row in every]
    assert len(key) == len(set(key)) == len(rows(file))
    assert all(row in every for row in kept(rows(file)))


def test_time_cuts_at_equal_distances(tmp_path):
    parts, _, _ = split_by_time([FILE], "pcap", str(tmp_path), SECOND_NS)
    begin = packets(FILE)[0][0]
    for part in parts:
        assert {(time - begin) // SECOND_NS + 1 for time, *_ in packets(part.path)} == {part.number}
    assert len(parts) > 2
    assert rows([part.path for part in parts]) == rows(FILE)
    stream = BytesIO()
    merge([part.path for part in parts], "x.pcap", "pcap", stream)
    whole = tmp_path / "whole.pcap"
    whole.write_bytes(stream.getvalue())
    assert packets(whole) == packets(FILE)


def test_names_count_from_one_and_tell_the_time():
    part = SplitFile(7, "", 1_700_000_000 * SECOND_NS)
    assert name_of("a/b", part, "pcap", timed=False) == "a/b_00007.pcap"
    assert name_of("b.pcapng", part, "pcapng", timed=True) == "b_00007_20231114221320.pcapng"
    assert name_of("v1.2", part, "pcap", timed=False) == "v1.2_00007.pcap"
    assert os.path.basename(name_of("b", SplitFile(0, "", 0), "pcap", timed=False)) == "b_rest.pcap"
