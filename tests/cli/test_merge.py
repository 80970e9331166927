"""`kcap merge`: one file of several; codes and messages."""

import json
from pathlib import Path

from tests.capture.handmade import START_NS, ethernet, ipv4, pcap, save, tcp
from tests.cli.running import PCAPS, here
from tests.export.parts import packets

SET = [PCAPS / f"rotated.pcap{n}" for n in ("", "1", "2")]


def test_a_set_becomes_one_file(tmp_path):
    out = tmp_path / "all.pcap"
    done = here("merge", *reversed(SET), "-o", out)
    assert done.returncode == 0
    assert done.stderr.decode() == f"kcap: {len(packets(out)):,} packets\n"
    assert packets(out) == packets(*SET)
    assert here("merge", *SET, "-o", "-").stdout == out.read_bytes()


def test_link_types_that_differ_need_pcapng(tmp_path):
    both = (PCAPS / "any-interface.pcap", PCAPS / "tls13.pcapng")
    done = here("merge", *both, "-o", tmp_path / "all.pcap")
    assert (done.returncode, list(tmp_path.iterdir())) == (4, [])
    assert b"write pcapng" in done.stderr
    assert here("merge", *both, "-o", tmp_path / "all.pcapng").returncode == 0
    keys = here("rows", tmp_path / "all.pcapng", "--table", "captures", "--format", "jsonl").stdout
    assert json.loads(keys)["link_types"] == [1, 276]


def test_faults(tmp_path):
    assert here("merge", "-o", tmp_path / "x.pcap").returncode == 2
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"nothing of the kind")
    done = here("merge", SET[0], bad, "-o", tmp_path / "x.pcap")
    assert done.returncode == 3
    assert b"no capture" in done.stderr
    assert packets(tmp_path / "x.pcap") == packets(SET[0])


def test_cut_files_and_link_types_that_are_not_read_are_named(tmp_path):
    """Law: merge and split say what all other commands say of their input, and copy the packets all the same."""
    packets_of = [(START_NS + n * 1000, ethernet(ipv4(tcp(b"hello")))) for n in range(3)]
    usb = save(tmp_path, pcap(packets_of, link=189), "usb.pcap")
    cut = save(tmp_path, pcap(packets_of)[:-7], "cut.pcap")
    for path, said, kept in ((usb, "link type 189 USB_LINUX is not read (3 of 3 packets)", 3), (cut, "the file is cut", 2)):
        for number, call in enumerate((["merge"], ["split", "--by-time", "1s"], ["split", "--by-connection", "1"])):
            out = tmp_path / f"{Path(path).stem}-{number}.pcap"
            done = here(*call, path, "-o", out)
            assert (done.returncode, done.stderr.decode().count(said)) == (3, 1), (call, done.stderr)
            assert sum(len(packets(made)) for made in tmp_path.glob(f"{out.stem}*")) == kept
