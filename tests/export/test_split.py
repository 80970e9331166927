"""Parts have every packet once; no connection is in two of them; merged they are the whole."""

import os
import re
from io import BytesIO
from pathlib import Path

import pytest

from kcap.capture.writer import PcapngWriter
from kcap.export import split
from kcap.export.merge import merge
from kcap.export.split import SplitFile, name_of, split_by_connection, split_by_time
from kcap.limits import SECOND_NS
from kcap.session import Capture
from tests.export.parts import PCAPS, packets, rows

FILE = str(PCAPS / "java-transactions.pcap")
FOREIGN = "fe" * 32


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("name", ["java-transactions.pcap", "tls13.pcapng", "any-interface.pcap"])
def test_connections_stay_whole(name, size, tmp_path, monkeypatch):
    monkeypatch.setattr(split, "SPLIT_FILES_OPEN_MAX", 2)
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
    parts, _, _ = split_by_time(Capture([FILE]), "pcap", str(tmp_path), SECOND_NS)
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


def with_foreign_secrets(path, out):
    """The packets of a capture and its secrets, with those of a session that it has not."""
    stream = BytesIO()
    writer = PcapngWriter(stream)
    writer.secrets(f"CLIENT_TRAFFIC_SECRET_0 {FOREIGN} {'22' * 48}\n".encode())
    out.write_bytes(stream.getvalue() + Path(path).read_bytes())  # another section
    return str(out)


def randoms_in(path):
    """The client randoms of the key logs in a pcapng file."""
    return {
        bytes.fromhex(found.decode())
        for found in re.findall(rb"\n?[A-Z_0-9]+ ([0-9a-f]{64}) [0-9a-f]{64,}", Path(path).read_bytes())
    }


def connections_in(path):
    """The connections in a capture: the ends of each, and its client randoms."""
    reading = Capture([str(path)]).read(keep_connections=True)
    for _ in reading.batches():
        pass
    values = [connection.values for connection in reading.connections]
    return [
        (frozenset({(v["client_ip"], v["client_port"]), (v["server_ip"], v["server_port"])}), v.get("randoms", ()))
        for v in values
    ]


@pytest.mark.parametrize("way", ["connection", "time", "merge"])
def test_each_file_has_the_secrets_of_its_own_sessions(way, tmp_path):
    """Also where a session goes over into files that have none of its hello; secrets of no session here stay behind."""
    file = with_foreign_secrets(PCAPS / "tls13.pcapng", tmp_path / "in.pcapng")
    every = randoms_in(file)
    if way == "connection":
        parts = [part.path for part in split_by_connection(Capture([file]), "pcapng", str(tmp_path), 1, secrets=True)[0]]
    elif way == "time":
        parts = [part.path for part in split_by_time(Capture([file]), "pcapng", str(tmp_path), SECOND_NS // 2, secrets=True)[0]]
    else:
        parts = [str(tmp_path / "all.pcapng")]
        with open(parts[0], "wb") as stream:
            merge([file], "all.pcapng", None, stream, secrets=True)
    known = dict(connections_in(file))
    held = [randoms_in(part) for part in parts]
    assert held == [{random for ends, _ in connections_in(part) for random in known[ends]} for part in parts]
    assert bytes.fromhex(FOREIGN) in every
    assert set().union(*held) == every - {bytes.fromhex(FOREIGN)}
    assert way == "merge" or max(map(len, held)) < len(every) - 1
    assert sum(len(rows(part)) for part in parts) == len(rows(file)) or way == "time"


def test_sessions_whose_hello_is_elsewhere_keep_their_secrets(tmp_path):
    """Keys were found by trial; what is merged reads as before."""
    file, found = str(PCAPS / "tls13.pcapng"), 0
    for part in split_by_time(Capture([file]), "pcapng", str(tmp_path), SECOND_NS // 20, secrets=True)[0]:
        read = rows(part.path)
        if any("midstream" in row["flags"] and row["tls"] for row in read):
            out = tmp_path / "again.pcapng"
            with out.open("wb") as stream:
                merge([part.path], "again.pcapng", None, stream, secrets=True)
            assert rows(out) == read
            found += 1
    assert found
