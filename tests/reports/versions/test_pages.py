"""Words and figures of the versions report."""

from typing import Any

from kcap.reports.versions import pages
from kcap.reports.versions.pages import matrix
from kcap.reports.versions.report import report
from tests.reports.talking import of


def test_the_matrix_has_a_column_a_broker() -> None:
    brokers = report(of("java-transactions.pcap"), [], "4.4")["brokers"]
    heads, rows = matrix(brokers)
    assert len(heads) == len(brokers) + 1
    assert all(len(row) == len(heads) for row in rows)


def test_spans_and_names_of_software() -> None:
    assert (pages.span(3, 9), pages.span(3, 3)) == ("3-9", "3")
    row = {"software_name": "librdkafka", "software_version": "2.6.0", "guessed": False}
    assert pages.software(row) == "librdkafka 2.6.0"
    assert pages.software(row | {"guessed": True, "software_version": None}) == "librdkafka (guess)"
    assert pages.software(row | {"software_name": None, "software_version": None}) == "unknown"


def test_releases_of_a_broker() -> None:
    row = {"release_min": "3.9", "release_max": "3.9", "nearest": None}
    assert pages.releases(row) == "3.9"
    assert pages.releases(row | {"release_max": "4.0"}) == "3.9 - 4.0"
    assert pages.releases(row | {"release_min": None, "nearest": "2.8"}) == "none fits, near 2.8"
    assert pages.features({"finalized": ["metadata.version 4.0-IV3", "x\x1b[0m"]}).startswith("metadata.version 4.0-IV3, x")
    assert pages.features({"finalized": []}) == "-"


def test_brokers_that_a_library_works_with() -> None:
    assert pages.brokers_of({"oldest_broker": "2.1", "newest_broker": "4.4"}) == "2.1 to 4.4"
    assert pages.brokers_of({"oldest_broker": None, "newest_broker": "4.4"}) == "not known to 4.4"
    assert pages.brokers_of({"oldest_broker": None, "newest_broker": None}) == "-"


def api(name: str, low: int, high: int, count: int, gone: str | None = None, **found: int) -> dict[str, Any]:
    return {"api": name, "min": low, "max": high, "count": count, "removed_in": gone, "verdicts": found}


def test_what_is_gone_stands_first_among_the_apis() -> None:
    some = [api("Fetch", 12, 12, 90, ok=90), api("Produce", 2, 7, 5, "4.0", stale=5), api("Metadata", 1, 1, 2, "10.0", ok=2)]
    row = {"apis": [*some, api("Heartbeat", 4, 4, 1, ok=1), api("ApiVersions", 3, 3, 9, unoffered=9)]}
    assert pages.apis(row).startswith("Fetch 12, Produce 2-7 (gone in 4.0), Metadata 1 (gone in 10.0)")
    assert pages.worst_apis(row) == "Produce 2-7! Metadata 1! ApiVersions 3 Fetch 12 ..."
    assert pages.worst_apis({"apis": some[:1]}) == "Fetch 12"
    assert pages.removed(row) == "4.0", "by number, not by letters"
    assert pages.removed({"apis": some[:1]}) == ""
    assert pages.verdicts(row) == "stale:5 unoffered:9"
    assert pages.verdicts({"apis": some[:1]}) == "ok"
    assert pages.verdicts({"apis": []}) == "-"


def test_the_summary_is_the_first_sentence_of_the_answer() -> None:
    made = report(of("java-transactions.pcap"), [], "4.4")
    assert pages.summary(made) == made["answer"][0]
