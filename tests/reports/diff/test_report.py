"""The report of two captures."""

from kcap.reports.diff.report import FIRST, LENGTH, NO_DIFFERENCE, diff, side_of
from kcap.reports.diff.summaries import COLUMNS, summarized
from kcap.reports.source import ReportInput, engine_over, tables_of
from tests.cli.running import PCAPS
from tests.reports.diff.pairs import capture, produce
from tests.reports.diff.pairs import diff as of_rows

HEALTHY = str(PCAPS / "problems" / "healthy-1.pcap")


def test_a_capture_does_not_differ_from_itself() -> None:
    made = diff(ReportInput([HEALTHY]), ReportInput([HEALTHY]))
    assert made["sentence"].startswith(NO_DIFFERENCE)
    assert made["captures"] == ["healthy-1.pcap"] * 2
    assert all(row["before"] == row["after"] for row in made["classes"])


def test_kept_sql_gives_what_the_expressions_give() -> None:
    """For a capture that began at another time and was shorter than the one for which it was compiled."""
    side_of(ReportInput([HEALTHY]))
    given = ReportInput([str(PCAPS / "quota-3.9.pcap")])
    found = side_of(given)
    with engine_over(given, COLUMNS, ()) as (engine, names):
        assert found == summarized(engine.rows, tables_of(engine, names, given).selected, given.captures)
    assert 0 < found.span_ns < min(FIRST, LENGTH)


def test_the_sentence_counts_differences_and_tests() -> None:
    made = of_rows(capture(1), capture(2, codecs=["none"]))
    assert made["sentence"].startswith("1 difference: 1 codec (")
    assert of_rows(capture(1), capture(2, codecs=["none"], acks=1))["sentence"].startswith("2 differences: 1 codec, 1 acks (")


def test_classes_have_both_sides_and_say_which_are_new() -> None:
    made = of_rows(capture(1), [*capture(2), produce(130, 3, api="Metadata")])
    rows = {row["class"]: row for row in made["classes"] if row["scope"] == "client"}
    assert rows["Metadata of client app"]["in"] == "new"
    assert rows["Metadata of client app"]["before"] is None
    assert rows["Produce of client app"]["after"]["count"] == 120
