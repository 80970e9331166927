"""Shows TLS connections as a sheet: what was negotiated, how the handshake ended, whether there are exchanges. Free of widgets.

In: the table `connections`, the connections that have exchanges under the filter. Out: a sheet. Law: one row per connection
with TLS, those with alerts first; the facts are those of the table.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kcap import limits
from kcap.output.grid import endpoint
from kcap.reports import drill_down
from kcap.reports.common_columns import bold, counted, lasting, named
from kcap.reports.definition import Row
from kcap.reports.text import TextColumn, count, words
from kcap.tui.views.conversations_model import ENDS, REASON_LEAST, alerts, detail, whole
from kcap.tui.views.sheet import Sheet

FACTS: Final = (
    "connection", *ENDS, "ended", "tls_version", "tls_cipher", "tls_sni", "tls_alpn", "tls_resumed", "tls_handshake_ns",
    "tls_server_subject", "tls_client_subject", "tls_alerts", "exchanges",
)  # fmt: skip
"""Columns of `connections` in the sheet."""
calc: Any = pc


def tls(connections: pa.Table, spoke: "pa.ChunkedArray[Any] | None") -> Sheet | None:
    """The sheet; None if there is no TLS connection. `spoke`: connections that pass the filter; None without a filter."""
    wanted = connections["tls"]
    if spoke is not None:
        wanted = calc.and_(wanted, calc.is_in(connections["connection"], value_set=calc.unique(spoke)))
    found = connections.filter(wanted)
    if not found.num_rows:
        return None
    alerted = pa.array(np.asarray(calc.fill_null(calc.list_value_length(found["tls_alerts"]), 0)) > 0, pa.int8())
    order = calc.sort_indices(
        found.append_column("alerted", alerted), sort_keys=[("alerted", "descending"), ("first_ns", "ascending")]
    )
    rows = found.take(order.slice(0, limits.VIEW_ROWS)).select(FACTS).to_pylist()
    failed = int(calc.sum(alerted).as_py())
    sealed = int(calc.sum(calc.equal(found["exchanges"], 0)).as_py())
    note = f"{count(found.num_rows, 'TLS connection')}: {failed:,} with an alert, {sealed:,} without an exchange"

    def group(row: Row) -> str:
        return drill_down.equals("connection", row["connection"]) if row["exchanges"] else ""

    def text(name: str, head: str, rank: int, **more: Any) -> TextColumn:
        return TextColumn(head, lambda row: words(row[name]) if row[name] else "", right=False, rank=rank, **more)

    fields = [
        TextColumn("client", lambda row: endpoint(row["client_ip"], row["client_port"]), right=False, tone=bold),
        TextColumn("broker", lambda row: endpoint(row["server_ip"], row["server_port"]), right=False, rank=1),
        TextColumn("alerts", alerts, right=False, rank=2, least=REASON_LEAST, tone=lambda _row: "bad"),
        text("tls_version", "version", 3, whole=True), lasting("tls_handshake_ns", "handshake", 4),
        counted("exchanges", rank=5, counts=lambda row: row["exchanges"] if spoke is None else None),
        named("ended", rank=6, whole=True, tone=lambda row: "care" if row["ended"] == "rst" else ""),
        text("tls_sni", "server name", 7), text("tls_cipher", "cipher suite", 8), text("tls_alpn", "ALPN", 9),
        TextColumn("resumed", lambda row: "yes" if row["tls_resumed"] else "", right=False, rank=10),
        text("client_id", "client id", 11), text("tls_server_subject", "broker's certificate", 12),
        text("tls_client_subject", "client's certificate", 13),
    ]  # fmt: skip
    return Sheet(
        "TLS", fields, rows, group, "no TLS connection", note=note,
        foot=f"{len(rows):,} of {found.num_rows:,}" if len(rows) < found.num_rows else "",
        detail=lambda row, width: detail(whole(connections, row), width),
        connection=lambda row: row["connection"] if row["exchanges"] else None,
    )  # fmt: skip
