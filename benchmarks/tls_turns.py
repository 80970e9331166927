"""Precision and recall of `tls_turns` against the exchanges of the same captures, decrypted.

usage: .venv/bin/python benchmarks/tls_turns.py FOLDER...
A folder has captures, each with a key log of the same stem (`.keys`) beside it, or with secrets inside. Prints one line per
capture and one for all: turns, exchanges with a response, exchanges that are exactly one turn, precision and recall; the same
for latencies.
"""

import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import kcap
from kcap.errors import KcapError

TIMES = ("request_first_ns", "request_last_ns", "response_first_ns", "response_last_ns")


class Score(NamedTuple):
    """Counts of the comparison."""

    turns: int
    exchanges: int
    exact: int
    """Number of turns whose four times are those of an exchange, to the nanosecond."""
    latencies: int
    """Number of turns whose end of the request and beginning of the response are those of an exchange."""
    merged: int
    """Number of turns over two or more exchanges."""

    def __add__(self, other: Any) -> "Score":
        return Score(*(a + b for a, b in zip(self, other)))

    def line(self, name: str) -> str:
        """A line of the report."""
        shares = [part / max(whole, 1) for part in (self.exact, self.latencies) for whole in (self.turns, self.exchanges)]
        told = " ".join(f"{share:9.3f}" for share in shares)
        return f"{name:42} {self.turns:6} {self.exchanges:9} {self.exact:6} {told} {self.merged:6}"


def rows(capture: kcap.Capture, table: str, names: Iterable[str]) -> list[dict[str, Any]]:
    """Rows of a table."""
    found: list[dict[str, Any]] = capture.table(table, list(names)).to_arrow().to_pylist()
    return found


def score(path: str, keys: list[str]) -> Score:
    """Compares the turns of a capture, inferred without keys, with its exchanges."""
    decrypted = [
        row for row in rows(kcap.open(path, keylog=keys), "exchanges", ("connection", "tls", "outcome", *TIMES)) if row["tls"]
    ]
    paired = [row for row in decrypted if row["outcome"] == "answered"]
    known = {row["connection"] for row in decrypted}
    turns = [row for row in rows(kcap.open(path), "tls_turns", ("connection", *TIMES)) if row["connection"] in known]
    answered = [row for row in turns if row["response_first_ns"] is not None]
    whole = Counter((row["connection"], *(row[name] for name in TIMES)) for row in paired)
    middle = Counter((row["connection"], row["request_last_ns"], row["response_first_ns"]) for row in paired)
    exact = sum((whole & Counter((row["connection"], *(row[name] for name in TIMES)) for row in answered)).values())
    latencies = sum(
        (middle & Counter((row["connection"], row["request_last_ns"], row["response_first_ns"]) for row in answered)).values()
    )
    begun: dict[str, list[int]] = {}
    for row in decrypted:
        if row["request_first_ns"] is not None:
            begun.setdefault(row["connection"], []).append(row["request_first_ns"])
    merged = 0
    for row in answered:
        starts = sorted(begun.get(row["connection"], ()))
        merged += bisect_right(starts, row["request_last_ns"]) - bisect_left(starts, row["request_first_ns"]) > 1
    return Score(len(answered), len(paired), exact, latencies, merged)


def main() -> int:
    """Prints the report."""
    total = Score(0, 0, 0, 0, 0)
    print(f"{'capture':42}  turns exchanges  exact precision    recall latency.p latency.r merged")
    for folder in map(Path, sys.argv[1:]):
        for path in sorted([*folder.glob("*.pcap"), *folder.glob("*.pcapng")]):
            keys = [str(found) for found in folder.glob(f"{path.stem.partition('.')[0]}.keys")]
            try:
                one = score(str(path), keys)
            except KcapError as error:
                print(f"{path.name}: {error}", file=sys.stderr)
                continue
            if one.exchanges:
                print(one.line(path.name))
                total += one
    print(total.line("all"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
