"""Files of formats that kcap does not read, recognised by their first bytes, so that an error can name the format.

Out: magic -> name. Sources: the readers of Wireshark's wiretap, the formats' own specifications.
"""

from typing import Final

FOREIGN: Final[dict[bytes, str]] = {
    b"RTSS": "Microsoft Network Monitor 1",
    b"GMBU": "Microsoft Network Monitor 2",
    b"TRSNIFF data": "a Sniffer capture",
    b"XCP\0": "a NetXRay or Sniffer capture",
    b"iptrace 1.0": "AIX iptrace",
    b"iptrace 2.0": "AIX iptrace",
    b"btsnoop\0": "btsnoop (Bluetooth)",
    b"TR\0d\0": "HP-UX nettl",
    b"\x7fver": "a Savvius (Peek) capture",
    b"\x1c\0\x01\xac": "an IxVeriWave lcap capture",
    b"\x1c\0\x01\xab": "an IxVeriWave hardware capture",
    b"PK\x03\x04": "a zip archive",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"Rar!": "a RAR archive",
    b"\x1f\x9d": "a file of compress (.Z)",
    b"LZIP": "an lzip file",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"\x7fELF": "a program",
    b"%PDF": "a PDF document",
    b"<?xml": "an XML document (PDML?)",
}  # fmt: skip
"""First bytes -> name of a format that is not read. No magic is longer than the bytes that are compared."""
ERF_TYPES: Final = range(1, 49)
"""Types of ERF records, without the bit for extension headers (Endace, ERF Types Reference Guide)."""
ERF_META: Final = 27
"""The type of provenance records. Those that a program writes before the first packet may have no time."""
ERF_RECORD: Final = 16
"""Bytes of a record header."""
ERF_SINCE: Final = 915_148_800
"""The format dates from 1999: no record is older, in seconds since the epoch."""


def foreign(head: bytes) -> str | None:
    """Returns the name of a format that is not read, from the first bytes of a file. ERF has no magic, but a header with known
    values.
    """
    found = next((name for magic, name in FOREIGN.items() if head.startswith(magic)), None)
    if found is None and len(head) >= ERF_RECORD and 0 in head:  # no text has a zero; a record's loss counter is zero
        seconds, size = int.from_bytes(head[4:8], "little"), int.from_bytes(head[10:12], "big")
        kind, timeless = head[8] & 0x7F, not any(head[:8])
        if (seconds >= ERF_SINCE or (timeless and kind == ERF_META)) and kind in ERF_TYPES and size >= ERF_RECORD:
            return "what may be an Endace capture (ERF)"
    return found


ADVICE: Final = "kcap reads pcap, pcapng and snoop; editcap (of Wireshark) converts other captures"
