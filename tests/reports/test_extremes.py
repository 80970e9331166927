"""One exchange for a group."""

from kcap.reports.extremes import first_of, worst_of
from tests.reports.made import engine, exchange, tables


def test_ties_go_to_the_first_by_name() -> None:
    rows = [
        exchange(connection=c, exchange=n, latency_ns=value, client_id=client)
        for c, n, value, client in [
            ("B", 1, 5, None),
            ("A", 2, 5, None),
            ("A", 9, 5, None),
            ("A", 1, None, "x"),
            ("C", 1, 4, None),
        ]
    ]
    made = tables(rows).every
    assert engine().rows(worst_of(made, ["client_id"], made.latency_ns)) == [
        {"client_id": None, "connection": "A", "exchange": 2}
    ]
    found = engine().rows(first_of(made, ["client_id"], made.latency_ns))
    assert {(row["client_id"], row["connection"], row["exchange"]) for row in found} == {(None, "C", 1), ("x", "A", 1)}
