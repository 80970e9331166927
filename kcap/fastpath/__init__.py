"""The fast path: connections in good order, walked by compiled code.

In: `SegmentColumns` in capture order. Out: rows as columns and closed connections. Law: rows, connections, weirds and ledgers
are those of the reference path (`kcap.net`, `kcap.kafka`); a connection that needs thought is handed over to it and comes back.
"""
