"""Summaries that rules share."""

from tests.reports.findings.tables import CONNECTION, SECOND, START, many, observed


def test_classes_of_exchanges_add_up() -> None:
    seen = observed(many(5, 1.0, record_count=2) + many(3, 1.0, "Fetch", connection="C2", client_id="other"))
    assert {(row["client_id"], row["api"], row["n"], row["records"]) for row in seen.calls} == {
        ("app", "Produce", 5, 10), ("other", "Fetch", 3, None),
    }  # fmt: skip
    assert seen.clients_of(api="Fetch") == ["other"]


def test_errors_have_an_example_that_is_the_first() -> None:
    rows = many(4, 1.0, error="UNKNOWN_SERVER_ERROR")
    (row,) = observed(list(reversed(rows))).errors(["UNKNOWN_SERVER_ERROR"])
    assert (row["n"], row["connection"], row["exchange"]) == (4, "C1", 1)


def test_the_span_is_that_of_the_connections() -> None:
    links = [CONNECTION | {"connection": "C1"}, CONNECTION | {"connection": "C2", "last_ns": START + 99 * SECOND}]
    assert observed([], connections=links).span == (START, START + 99 * SECOND)
    assert observed([], connections=[]).span == (0, 0)


def test_a_message_that_cannot_be_had_is_empty() -> None:
    seen = observed(many(1, 1.0), messages={("C1", 1, "request"): {"a": 1}})
    assert seen.message({"connection": "C1", "exchange": 1}, "request") == {"a": 1}
    assert seen.message({"connection": "C1", "exchange": 1}, "response") == {}
    assert seen.message({"connection": None, "exchange": None}, "request") == {}
