"""Rows of a rewritten capture are those of the original in all that was not to change; nothing private is left in it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.export.pseudonyms import Pseudonyms
from kcap.export.rewrite import Half, Rewriter, alike, apart
from kcap.session import Capture
from tests.export.parts import PCAPS, packets, rows

RENAMED = frozenset(
    "connection broker_id client_ip server_ip client_id cluster_id principal topics group_id member_id transactional_id".split()
)
HIDDEN = frozenset({"principal", "record_count"})
"""Who logged in stands in the token; the records of compressed messages of old formats are counted by inflating them."""
FILES = ("java-transactions.pcap", "aiokafka.pcap", "sasl-raw-tokens.pcap", "kafka-0.8-clients.pcap", "any-interface.pcap")


def rewritten(name, out, *, redact=True, key=None):
    names = Pseudonyms(key) if key is not None else None
    with out.open("wb") as stream:
        return Rewriter(str(PCAPS / name), None, redact=redact, names=names).write(stream, "pcapng", "")


@pytest.mark.parametrize("name", FILES)
def test_rows_stay_and_payloads_go(name, tmp_path):
    out = tmp_path / "out.pcapng"
    done = rewritten(name, out)
    assert done.left_out == 0
    places = frozenset(c for c in rows(out)[0] if c in HIDDEN) | {"capture", "response_capture"}
    without = places | frozenset(c for c in ("request_pos", "request_end_pos", "response_pos", "response_end_pos"))
    assert rows(out, without=without) == rows(PCAPS / name, without=without)
    assert [(time, len(data), wire) for time, data, wire, _ in packets(out)] == [
        (time, len(data), wire) for time, data, wire, _ in packets(PCAPS / name)
    ]
    data = out.read_bytes()
    values = [
        record[part]
        for record in Capture([str(PCAPS / name)]).table("records", ["key", "value", "control"]).to_arrow().to_pylist()
        for part in ("key", "value")
        if record["control"] is None
    ]
    telling = [value for value in values if value and len(value) >= 8 and len(set(value)) > 3]
    assert [value for value in telling if value in data] == []


@pytest.mark.parametrize("redact", [True, False], ids=["redacted", "renamed"])
def test_a_proxy_protocol_header_names_no_client_any_more(tmp_path, redact):
    out = tmp_path / "out.pcapng"
    assert b"PROXY TCP4 127.0.0.1 127.60.0.9" in (PCAPS / "proxy-header.pcap").read_bytes()
    rewritten("proxy-header.pcap", out, redact=redact, key=None if redact else "key")
    assert b"PROXY TCP4" not in out.read_bytes()
    links = Capture([str(out)]).table("connections", ["detail", "exchanges"]).to_arrow().to_pylist()
    assert {link["detail"] for link in links} == {"PROXY protocol v1", "PROXY protocol v2"}
    assert sum(link["exchanges"] for link in links) == len(rows(PCAPS / "proxy-header.pcap"))
    details = Capture([str(out)]).table("weirds", ["kind", "detail"]).to_arrow().to_pylist()
    assert {one["detail"] for one in details if one["kind"] == "proxy_header"} == {"PROXY protocol v1", "PROXY protocol v2"}


def test_passwords_are_gone(tmp_path):
    out = tmp_path / "out.pcapng"
    original = (PCAPS / "sasl-raw-tokens.pcap").read_bytes()
    rewritten("sasl-raw-tokens.pcap", out)
    users = {row["principal"] for row in rows(PCAPS / "sasl-raw-tokens.pcap")} - {None}
    tokens = [b"\0" + user.encode() + b"\0" for user in users]
    assert any(token in original for token in tokens)
    assert not any(token in out.read_bytes() for token in tokens)


def test_batches_have_right_checksums(tmp_path):
    out = tmp_path / "out.pcapng"
    rewritten("quota-3.9.pcap", out)
    ok = [
        row["crc_ok"] for row in Capture([str(out)]).partitions(["crc_ok"]).to_arrow().to_pylist() if row["crc_ok"] is not None
    ]
    assert ok
    assert all(ok)


def test_names_are_mapped_and_the_rest_stays(tmp_path):
    out, again, name = tmp_path / "out.pcapng", tmp_path / "again.pcapng", "java-transactions.pcap"
    rewritten(name, out, key="key", redact=False)
    rewritten(name, again, key="key", redact=False)
    assert out.read_bytes() == again.read_bytes()
    without = RENAMED | {"capture", "response_capture", "request_pos", "request_end_pos", "response_pos", "response_end_pos"}
    assert rows(out, without=without) == rows(PCAPS / name, without=without)
    names = Pseudonyms("key")
    topics = {topic for row in rows(PCAPS / name) for topic in row["topics"] or () if topic}
    assert {topic for row in rows(out) for topic in row["topics"] or () if topic} == {
        names.text(topic.encode()).decode() for topic in topics
    }
    data = out.read_bytes()
    assert not any(text in data for text in (b"orders.tx", b"shop-tx"))


@given(st.lists(st.tuples(st.integers(0, 50), st.binary(min_size=1, max_size=20))))
def test_pieces_are_put_apart(pieces):
    out = apart(pieces)
    held = {at + start for start, data in pieces for at in range(len(data))}
    assert {at + start for start, data in out for at in range(len(data))} == held
    assert all(first[0] + len(first[1]) <= second[0] for first, second in pairwise(out))
    assert all(any(at <= start and piece[start - at :].startswith(data) for at, piece in pieces) for start, data in out)


def test_a_packet_shows_only_what_the_stream_has_there():
    """An overlapping packet with other bytes: at these numbers it may hold a secret that has others in the stream."""
    half = Half()
    base = half.unwrap(1000)
    half.shown = [(base, b"header"), (base + 20, b"tail")]
    half.settle()
    assert half.changed(base, b"header" + bytes(14) + b"tail", redact=True) == b"header" + bytes(14) + b"tail"
    assert half.changed(base + 2, b"password", redact=True) == bytes(8)
    assert alike(b"abcd", b"xbcy") == b"\0bc\0"


@given(
    st.integers(0, (1 << 32) - 1), st.binary(max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60))),
    st.lists(st.tuples(st.integers(0, 60), st.binary(max_size=9)), max_size=1), st.integers(0, 60), st.integers(0, 60),
)  # fmt: skip
def test_every_segment_of_a_stream_is_changed_alike(isn, stream, shown, put, first, last):
    """Also where numbers wrap, and in repetitions of any part."""
    half = Half()
    base = half.unwrap(isn)
    half.shown = [(base + low, stream[low:high]) for low, high in shown if stream[low:high]]
    half.put = [(base + at, value) for at, value in put]
    half.settle()
    whole = half.changed(base, stream, redact=True)
    part = stream[first:last]
    half.restart()
    half.unwrap(isn)
    start = half.unwrap((isn + first) % (1 << 32))
    assert half.changed(start, part, redact=True) == whole[first:last]
    for at, byte in enumerate(whole):
        if not any(low <= at < high for low, high in shown) and not any(a <= at < a + len(v) for a, v in put):
            assert byte == 0
