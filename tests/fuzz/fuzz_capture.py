"""Coverage-guided fuzzing of the whole way from file bytes or stream bytes to rows. Law: no input raises, and the ledger holds.

usage: python tests/fuzz/fuzz_capture.py [file|stream|bodies] CORPUS_FOLDER [libFuzzer options, e.g. -max_total_time=3600]

Needs atheris (not among the locked tools: no wheel for every Python). A crasher becomes a test in tests/laws.
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["kcap"]):
    import kcap
    from kcap.capture_pass import CapturePass
    from kcap.columns import TABLES
    from kcap.decode.nodes import Node
    from kcap.errors import CaptureError
    from tests.support.messages import saved
    from tests.support.wire import Segment, Tap, analyze, metadata, metadata_answer, request, response

SCRATCH = Path(tempfile.mkdtemp()) / "input.pcap"


def ledger_holds(connections: list[dict[str, object]]) -> None:
    """Bytes in = framed + skipped + opaque + pending."""
    for c in connections:
        for side in ("client", "server"):
            parts = [c[f"{side}_{part}"] for part in ("framed", "skipped", "opaque", "pending")]
            if c[f"{side}_captured"] != sum(parts):  # type: ignore[arg-type]
                raise AssertionError((side, c))


def whole_file(data: bytes) -> None:
    """The input is a capture file."""
    SCRATCH.write_bytes(data)
    try:
        reading = CapturePass([str(SCRATCH)])
    except CaptureError:
        return
    for _ in reading.batches():
        pass
    ledger_holds([c.values for c in reading.analyzer.take_connections()])


def streams(data: bytes) -> None:
    """The input says which segments follow an opened Kafka connection: side, flags, shift and length, then the bytes."""
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1))
    at = 0
    while at + 6 <= len(data):
        side, flags, shift, length, cut = data[at] & 1, data[at + 1], data[at + 2] - 128, data[at + 3], data[at + 4]
        payload = data[at + 5 : at + 5 + length]
        at += 5 + length
        seq = None if data[at - 1 - length] & 0x40 else (tap.next[side] + shift) & 0xFFFFFFFF
        tap.add(side, flags & 0x3F if shift & 1 else 24, payload, seq)
        last = tap.segments[-1]
        tap.segments[-1] = Segment(
            last.time_ns, last.flow, last.seq, last.ack, last.flags, payload, min(cut & 15, len(payload))
        )
    ledger_holds(analyze(tap.segments).connections)


def bodies(data: bytes) -> None:
    """The input says which requests are made (key, version, sizes of both bodies) and what they hold; all tables are made."""
    tap, at = Tap().open(), 0
    for number in range(16):
        if at + 4 > len(data):
            break
        key, version, asked, reported = data[at : at + 4]
        at += 4
        tap = tap.client(request(key, version & 31, number, data[at : at + asked]))
        at += asked
        tap = tap.server(response(number, data[at : at + reported]))
        at += reported
    capture = kcap.open(saved(SCRATCH, tap))
    for name in TABLES:
        capture.table(name).to_arrow()
    for exchange in capture:
        for message in (exchange.request, exchange.response):
            if message is not None:
                walk(message.tree())


def walk(node: Node) -> None:
    """Opens every node."""
    for child in node.children:
        walk(child)


TARGETS = {"file": whole_file, "stream": streams, "bodies": bodies}

if __name__ == "__main__":
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()
