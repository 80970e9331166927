"""Real captures through both engines, and rewritten ones against the original."""

import subprocess
import sys
from pathlib import Path

import pytest

from kcap.capture.fileset import FileSet
from kcap.net.segments import SegmentParser
from tests.capture.handmade import Weirds, segments

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT.parent / "shared" / "tools"
CAPTURES = sorted(path for path in (ROOT / "pcaps").glob("*.pcap*") if path.stat().st_size < 4 << 20)


def read(path, jit_after=None):
    weirds = Weirds()
    parser, out = SegmentParser(weirds), []
    for batch in FileSet([str(path)], weirds, jit_after).batches():
        out += segments(parser.parse(batch))
    parser.finish()
    return out, sorted(weirds.seen)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_both_engines_read_a_capture_alike(path):
    assert read(path, 0) == read(path)


RECIPES = {
    "to_pcapng": [{}, {"big": "1"}],
    "to_pcap_ns": [{}],
    "byteswap": [{}],
    "gzip": [{}],
    "vlan": [{}],
    "qinq": [{}],
    "sll": [{}],
    "sll2": [{}],
    "raw_ip": [{}],
    "null_loopback": [{}, {"big": "1"}],
    "ip_options": [{}],
    "trailer": [{}, {"fcs": "1"}],
    "bad_checksum": [{}],
    "vxlan": [{}],
    "gre": [{}, {"key": "0"}, {"teb": "1"}],
    "ip_fragment": [{}, {"copies": "1"}],
    "ipv6": [{"ext": name} for name in ("none", "hop", "dest", "route", "mix")],
}


@pytest.mark.skipif(not TOOLS.is_dir(), reason="the capture tools are not beside the repository")
@pytest.mark.parametrize(("name", "options"), [(name, options) for name in RECIPES for options in RECIPES[name]])
def test_a_rewritten_capture_gives_the_same_segments(tmp_path, name, options):
    original = TOOLS.parent / "captures" / "modern" / "kafka-python.pcap"
    target = tmp_path / "disturbed"
    given = [f"--{key}={value}" for key, value in options.items()]
    subprocess.run(
        [sys.executable, "-B", str(TOOLS / "disturb.py"), str(original), str(target), "--recipe", name, *given],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    before, _ = read(original)
    after, weirds = read(target)
    assert read(target, 0) == (after, weirds)

    def facts(rows):
        return [(row[1], row[3][-4:], *row[4:]) for row in rows]  # number and place change, addresses may

    order = sorted if name == "ip_fragment" else list
    assert order(facts(after)) == order(facts(before))
