"""The first sentence of a page of rows, about all of its rows.

In: record batches of one schema. Out: the sentence. Law: it reports on each column that the page has, and on no other column.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import pyarrow as pa

from kcap.output.grid import counts, duration
from kcap.weird import Weird, WeirdKind

ERRORS_NAMED: Final = 3
"""Number of errors that the sentence names, the most frequent first."""
COUNTED: Final = {"exchanges": ("outcome", "error"), "connections": ("phase", "ended")}
REASONS_NAMED: Final = 3
"""Number of reasons for missing decryption that the sentence names, the most frequent first."""
IN_TLS: Final = "tls: "
"""Prefix of such a reason in the detail of `not_kafka`."""
MISSING: Final = ("client_missing", "server_missing")
"""Columns of connections with the bytes that were not captured."""


def no_kafka_sentence(packets: int, phases: Counter[str], weirds: Iterable[tuple[Weird, int]] = ()) -> str:
    """What a capture has instead of Kafka, and what may make it readable. `phases`: connections by their protocol; `weirds`
    show why given keys do not help."""
    if not phases:
        return f"no Kafka found: {packets:,} packet{'' if packets == 1 else 's'} and no TCP connection with data among them"
    details = [weird.detail for weird, _ in weirds if weird.kind is WeirdKind.NOT_KAFKA]
    useless = Counter(detail.removeprefix(IN_TLS) for detail in details if detail.startswith(IN_TLS))
    hints = [f"{count:,} with TLS: {why}" for why, count in useless.most_common(REASONS_NAMED)]
    if phases["tls"] and not hints:
        hints = ["--tls-keylog FILE decrypts those with TLS whose secrets it has"]
    hints += ["-d tcp.port==N,kafka reads those of a port as Kafka anyway"] if phases.keys() - {"tls"} else []
    plural = "" if phases.total() == 1 else "s"
    return f"no Kafka found in {phases.total():,} connection{plural} ({counts(phases)}); {'; '.join(hints)}"


class Verdict:
    """Counts rows as they pass."""

    def __init__(self, schema: pa.Schema) -> None:
        self._table = (schema.metadata or {}).get(b"kcap.table", b"rows").decode()
        self._names = frozenset(schema.names)
        self._rows = 0
        self._of: dict[str, Counter[str | None]] = {
            name: Counter() for name in COUNTED.get(self._table, ()) if name in self._names
        }
        self._longest = 0
        self._whose = ""
        self._cut = 0

    def take(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows
        for name, counted in self._of.items():
            counted.update(batch.column(name).to_pylist())
        if self._table == "exchanges" and "latency_ns" in self._names and batch.num_rows:
            self._look_for_the_longest(batch)
        missing = [batch.column(name).to_pylist() for name in MISSING if name in self._names]
        self._cut += sum(1 for some in zip(*missing) if any(some))

    def _look_for_the_longest(self, batch: pa.RecordBatch) -> None:
        latencies = [latency or 0 for latency in batch.column("latency_ns").to_pylist()]
        at = latencies.index(max(latencies))
        if latencies[at] > self._longest:
            self._longest = latencies[at]
            words = [batch.column(name)[at].as_py() for name in ("api", "client_id") if name in self._names]
            self._whose = " of ".join(str(word) for word in words if word is not None)

    def sentence(self) -> str:
        """`114 exchanges: 3 with errors (NOT_COORDINATOR 3), 0 unanswered; the longest latency ... is 30ms (Fetch of a).`"""
        make: dict[str, Callable[[], list[str]]] = {"exchanges": self._exchanges, "connections": self._connections}
        known = self._table in make
        noun = self._table if known else "rows"
        parts = [part for part in make[self._table]() if part] if known and self._rows else []
        said = "; ".join(parts)
        return f"{self._rows:,} {noun[:-1] if self._rows == 1 else noun}{': ' + said if said else ''}."

    def _exchanges(self) -> list[str]:
        counts = []
        if "error" in self._of:
            errors = Counter({str(name): n for name, n in self._of["error"].items() if name not in (None, "NONE")})
            most = [f"{name} {n:,}" for name, n in errors.most_common(ERRORS_NAMED)]
            more = [f"{len(errors) - len(most):,} more"] if len(errors) > len(most) else []
            counts.append(f"{errors.total():,} with errors" + (f" ({', '.join(most + more)})" if most else ""))
        if "outcome" in self._of:
            counts.append(f"{self._of['outcome']['unanswered']:,} unanswered")
        whose = f" ({self._whose})" if self._whose else ""
        longest = f"the longest latency, long polls included, is {duration(self._longest)}{whose}"
        return [", ".join(counts), longest if self._longest else ""]

    def _connections(self) -> list[str]:
        of: Any = self._of
        phases = counts(of["phase"]) if "phase" in of else ""
        ends = f"{of['ended']['rst']:,} reset, {of['ended']['open']:,} open at the end of the capture" if "ended" in of else ""
        cut = f"{self._cut:,} with bytes that were not captured" if self._names.issuperset(MISSING) else ""
        return [phases, ends, cut]
