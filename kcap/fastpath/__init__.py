"""The fast path: compiled code that reads well-behaved connections.

In: `SegmentColumns` in capture order. Out: rows as columns, and closed connections. Law: rows, connections, weirds and ledgers
equal those of the reference path (`kcap.net`, `kcap.kafka`). A connection with anything unusual is handed over to that path,
and comes back later.
"""
