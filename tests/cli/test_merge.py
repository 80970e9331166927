"""`kcap merge`: one file of several; codes and messages."""

import json

from tests.cli.running import PCAPS, kcap
from tests.export.parts import packets

SET = [PCAPS / f"rotated.pcap{n}" for n in ("", "1", "2")]


def test_a_set_becomes_one_file(tmp_path):
    out = tmp_path / "all.pcap"
    done = kcap("merge", *reversed(SET), "-o", out)
    assert done.returncode == 0
    assert done.stderr.decode() == f"kcap: {len(packets(out)):,} packets\n"
    assert packets(out) == packets(*SET)
    assert kcap("merge", *SET, "-o", "-").stdout == out.read_bytes()


def test_link_types_that_differ_need_pcapng(tmp_path):
    both = (PCAPS / "any-interface.pcap", PCAPS / "tls13.pcapng")
    done = kcap("merge", *both, "-o", tmp_path / "all.pcap")
    assert (done.returncode, list(tmp_path.iterdir())) == (4, [])
    assert b"write pcapng" in done.stderr
    assert kcap("merge", *both, "-o", tmp_path / "all.pcapng").returncode == 0
    keys = kcap("rows", tmp_path / "all.pcapng", "--table", "captures", "--format", "jsonl").stdout
    assert json.loads(keys)["link_types"] == [1, 276]


def test_faults(tmp_path):
    assert kcap("merge", "-o", tmp_path / "x.pcap").returncode == 2
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"nothing of the kind")
    done = kcap("merge", SET[0], bad, "-o", tmp_path / "x.pcap")
    assert done.returncode == 3
    assert b"no capture" in done.stderr
    assert packets(tmp_path / "x.pcap") == packets(SET[0])
