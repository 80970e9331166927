"""A merged file has every packet once, in time order; merging what was split gives the whole again."""

from io import BytesIO

import pytest

from kcap.errors import CaptureError, OutputError
from kcap.export.merge import looks, merge
from tests.export.parts import PCAPS, packets, rows

SET = [str(PCAPS / f"rotated.pcap{n}") for n in ("", "1", "2")]


def merged(paths, name, tmp_path):
    stream = BytesIO()
    count, failed, _ = merge(paths, name, None, stream)
    out = tmp_path / name
    out.write_bytes(stream.getvalue())
    return out, count, failed


def test_a_set_becomes_one_file_with_the_same_rows(tmp_path):
    out, count, failed = merged(SET[::-1], "all.pcap", tmp_path)
    assert packets(out) == packets(*SET)
    assert (count, failed) == (len(packets(out)), [])
    assert rows(out) == rows(SET)


def test_several_link_types_need_pcapng(tmp_path):
    both = [str(PCAPS / "any-interface.pcap"), str(PCAPS / "tls13.pcapng")]
    out, count, _ = merged(both, "all.pcapng", tmp_path)
    assert sorted(packets(out)) == sorted(packets(*both))
    assert [time for time, *_ in packets(out)] == sorted(time for time, *_ in packets(out))
    assert count == len(packets(out))
    assert merged(both, "all", tmp_path)[0].read_bytes()[:4] == b"\n\r\r\n"
    with pytest.raises(OutputError, match="pcapng"):
        merge(both, "all.pcap", None, BytesIO())


def test_one_bad_file_among_good_ones_is_told(tmp_path):
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"no capture at all")
    out, _, failed = merged([SET[0], str(bad)], "all.pcap", tmp_path)
    assert packets(out) == packets(SET[0])
    assert len(failed) == 1
    with pytest.raises(CaptureError):
        merge([str(bad)], "x.pcap", None, BytesIO())


def test_first_looks_tell_formats():
    assert [file.format for file in looks([SET[0], str(PCAPS / "tls13.pcapng")])] == ["pcap", "pcapng"]
