"""CPU time of each stage of `kcap rows --format parquet`, in microseconds per packet.

usage: python benchmarks/stages.py BIG.pcap [--rounds 3]

Runs the stages of `kcap.capture_pass.CapturePass` and `kcap.cli.output` one by one in this process and reads its CPU clock
between them, some 20,000 times per GB. Prints the round with the smallest sum. A first round, which is not counted, loads
kernels. The backfill at the end and start-up are not included: `rows.py` measures everything.
"""

import argparse
import os
import tempfile
import time
from collections import Counter

from kcap.capture_pass import CapturePass
from kcap.runtime import collect_rarely, load_arrow

STAGES = {
    "read": "packets out of the file",
    "parse": "TCP segments out of packets",
    "streams": "connections, frames, pairing",
    "bodies": "what messages say: the projection",
    "table": "rows as Arrow",
    "parquet": "rows in the file",
}


class Clock:
    """CPU seconds by stage."""

    def __init__(self) -> None:
        self.stages: Counter[str] = Counter()
        self._last = time.process_time_ns()

    def took(self, stage: str) -> None:
        """Adds the time since the last call to this stage."""
        now = time.process_time_ns()
        self.stages[stage] += now - self._last
        self._last = now


def measured(path: str, out: str) -> tuple[Clock, int, int]:
    """The stages' times, packets, rows."""
    from kcap.output.writers import Parquet
    from kcap.table.backfill import Backfill
    from kcap.table.builder import TableSet
    from kcap.table.table_builders import TableRequest

    reading, request = CapturePass([path]), TableRequest.of("exchanges", None, backfill=Backfill.REWRITE)
    analyzer, tables = reading.analyzer, TableSet.of({"exchanges": request})
    tables.begin(reading)
    rows = 0
    with open(out, "wb") as file:
        writer, clock = Parquet(file, request.schema), Clock()

        def take() -> int:
            batch = analyzer.take()
            clock.took("bodies")
            count = 0
            for _, made in tables.take(batch):
                clock.took("table")
                writer.write(made.select(request.schema.names))
                clock.took("parquet")
                count += made.num_rows
            clock.took("table")
            return count

        for packets in reading.files.batches():
            clock.took("read")
            segments = reading.parser.columns(packets)
            clock.took("parse")
            analyzer.feed(segments)
            analyzer.take_connections()
            clock.took("streams")
            if analyzer.full:
                rows += take()
        analyzer.finish()
        clock.took("streams")
        rows += take()
        writer.close()
        clock.took("parquet")
    return clock, sum(file.packets for file in reading.capture_files), rows


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    load_arrow()
    collect_rarely()
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "rows.parquet")
        measured(options.capture, out)
        rounds = [measured(options.capture, out) for _ in range(options.rounds)]
        size = os.path.getsize(out)
    clock, packets, rows = min(rounds, key=lambda round_: round_[0].stages.total())
    say = print
    say(f"{packets:,} packets, {rows:,} rows, {size / max(rows, 1):.1f} bytes a row in Parquet")
    for stage, meaning in STAGES.items():
        say(f"{stage:8} {clock.stages[stage] / 1000 / packets:6.3f} us a packet  {meaning}")
    total = clock.stages.total()
    say(f"{'all':8} {total / 1000 / packets:6.3f} us a packet, {packets / total * 1e9:,.0f} packets/s")


if __name__ == "__main__":
    main()
