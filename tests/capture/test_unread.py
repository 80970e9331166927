"""What was not read of a set of files is said, once a file and cause."""

from kcap.capture.unread import unread
from kcap.session import Capture
from tests.capture.handmade import START_NS, ethernet, ipv4, pcap, save, tcp

TRIED = "tried pcap, pcapng and snoop, plain or in gzip, bzip2, xz, zstd or lz4"
PACKETS = [(START_NS + n * 1000, ethernet(ipv4(tcp(b"hello")))) for n in range(3)]


def test_cut_files_unread_links_and_no_captures_are_said(tmp_path):
    whole = save(tmp_path, pcap(PACKETS), "whole.pcap")
    cut = save(tmp_path, pcap(PACKETS)[:-7], "cut.pcap")
    usb = save(tmp_path, pcap(PACKETS, link=189), "usb.pcap")
    text = save(tmp_path, b"hello, this is text", "text.pcap")
    reading = Capture([str(path) for path in (whole, cut, usb, text)]).read()
    for _ in reading.batches():
        pass
    assert {path.rpartition("/")[2]: str(error).partition(": ")[2] for path, error in unread(reading.files)} == {
        "text.pcap": f"no capture (it starts with 68656c6c): {TRIED}",
        "cut.pcap": "the file is cut (68 bytes of a record of at least 75); everything before the cut was read",
        "usb.pcap": "link type 189 USB_LINUX is not read (3 of 3 packets)",
    }
    assert list(map(str, reading.failed)) == list(map(str, unread(reading.files)))
