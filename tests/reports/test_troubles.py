"""Laws of the rows of diagnoses."""

from kcap.reports.troubles import ERROR, SHOWN, Case, Trouble, call, place, whole_line
from kcap.reports.versions import report
from tests.reports.talking import talk, whole


def trouble() -> Trouble:
    """One."""
    return Trouble("kind", ERROR, "it has {curly} names, on {n}", "advice", {"client_id": "{n}x"})


def test_a_connection_counts_once_and_the_first_is_the_example() -> None:
    case = Case(whole(), {}, [])
    for number in range(SHOWN + 10):
        for _ in range(2):
            case.add(("key",), f"C{number}", f"C{number}.1", trouble())
    (row,) = [found.row() for found in case.troubles.values()]
    assert row["count"] == SHOWN + 10
    assert len(row["connections"]) == SHOWN
    assert row["example"] == "C0.1"
    assert row["sentence"] == "it has {curly} names, on 110 connections"


def test_notes_are_counted_by_library() -> None:
    """Thousands of clients that do the same are one row."""
    talks = [talk([(3, 1)], ask=0, offer={3: (0, 13), 18: (0, 4)}, uid=f"C{n}", client=f"kafkajs-{n}") for n in range(5)]
    for one in talks:
        one.software = "acme", "1.0"
    rows = [row for row in report(whole(*talks), [], "4.4")["diagnoses"] if row["kind"] == "nameless"]
    assert [(row["clients"], row["count"]) for row in rows] == [(5, 5)]
    assert "(and 4 more clients of this library)" in rows[0]["sentence"]


def test_names() -> None:
    assert call(1, 12) == "Fetch v12"
    assert call(999, 0) == "API key 999 v0"
    assert place(("::1", 9092)) == "[::1]:9092"


def test_only_whole_connections_accuse() -> None:
    made = talk([(3, 1)])
    assert whole_line(made)
    for name, value in (("began", "midstream"), ("server_packets", 0), ("client_packets", 0), ("server_missing", 5)):
        other = talk([(3, 1)])
        other.line[name] = value
        assert not whole_line(other), name
