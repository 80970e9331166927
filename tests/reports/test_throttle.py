"""Throttles: plain Python over the rows; what was set up in recorded captures."""

from collections import defaultdict
from pathlib import Path

from hypothesis import given, settings

from kcap.reports.definition import ReportRequest, Row
from kcap.reports.run import run
from kcap.reports.source import ReportInput
from kcap.reports.throttle import REPORT, compliance_text, phase
from tests.reports.made import exchange, exchanges, report


@given(rows=exchanges())
@settings(max_examples=12, deadline=None)
def test_the_report_is_plain_python_over_the_rows(rows: list[Row]) -> None:
    """Law: responses that tell a throttle, how many did, their sum and largest; groups without any are counted apart."""
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for row in rows:
        if row["throttle_time_ms"] is not None:
            groups[row["client_ip"], row["client_id"], row["api"]].append(row["throttle_time_ms"])
    reported = report(REPORT, rows)
    found = {
        (r["client_ip"], r["client_id"], r["api"]): (r["responses"], r["throttled"], r["throttle_ms_sum"], r["throttle_ms_max"])
        for r in reported["rows"]
    }
    assert found == {k: (len(v), sum(t > 0 for t in v), sum(v), max(v)) for k, v in groups.items() if any(v)}
    assert reported["left_out"].get("never_throttled", 0) == sum(len(v) for v in groups.values() if not any(v))


def test_where_the_waiting_was_done() -> None:
    assert [phase(1, 0), phase(0, 2), phase(1, 1), phase(0, 0)] == ["delayed", "muted", "both", None]


def test_whether_a_group_complied_is_a_sentence() -> None:
    row = {"muting": 18, "complied": 15, "violations": 4, "earliest_ms": 3.5, "elsewhere": 1, "delayed": 0}
    assert compliance_text(row) == (
        "complied with 15 of 18 throttles; 4 requests were sent on a muted connection, up to 3.50ms too early; "
        "1 request was sent on other connections meanwhile, which KIP-219 allows."
    )
    assert compliance_text(row | {"elsewhere": 19}).endswith(
        "19 requests were sent on other connections meanwhile, which KIP-219 allows, unless the client closes throttled "
        "connections to do so (see kcap check)."
    )
    assert "delayed 2 responses" in compliance_text(row | {"muting": 0, "delayed": 2})
    assert "delayed 1 response itself" in compliance_text(row | {"muting": 0, "delayed": 1})
    old = compliance_text(row | {"muting": 0})
    assert old == "its API versions predate KIP-219: the broker waits instead of the client.", (
        "brokers mute these connections too"
    )


def test_software_that_is_known_not_to_wait() -> None:
    rows = [exchange(took_ms=1, throttle_time_ms=9, throttle_ns=0, software_name="librdkafka", software_version="2.16.1")]
    (row,) = report(REPORT, rows)["rows"]
    assert row["known"]
    assert row["quota"] == "request time"


def test_a_quota_before_kip_219(pcaps: Path) -> None:
    """5,500 bytes a second each way on 0.10.2.2: the broker held nine answers of the producer and two of the reader."""
    reported = run(REPORT, ReportInput([str(pcaps / "quota-0.10.pcap")]), ReportRequest())
    found = {row["api"]: row for row in reported["rows"]}
    assert set(found) == {"Produce", "Fetch"}
    for api, throttled, longest in (("Produce", 9, 4402), ("Fetch", 2, 3584)):
        row = found[api]
        assert (row["throttled"], row["delayed"], row["throttle_ms_max"]) == (throttled, throttled, longest)
        assert row["throttle_ns_sum"] == row["throttle_ms_sum"] * 1_000_000
        assert (row["phase"], row["violations"], row["muted_ns_sum"]) == ("delayed", 0, 0)
        assert (row["muting"], row["complied"], row["obeys"]) == (0, 0, None)


def test_the_same_quota_after_it(pcaps: Path) -> None:
    """On 3.9.2 the responses come at once. The Java client sends nothing on the throttled connection, and goes on with its
    others to the same broker."""
    reported = run(REPORT, ReportInput([str(pcaps / "quota-3.9.pcap")]), ReportRequest())
    found = {row["api"]: row for row in reported["rows"]}
    assert set(found) == {"Produce", "Fetch"}
    for row in found.values():
        assert (row["phase"], row["delayed"], row["client_id"]) == ("muted", 0, "app-quota")
        assert row["throttled"] == row["muting"]
        assert row["muted_ns_sum"] > 3_900_000_000
        assert (row["violations"], row["complied"], row["obeys"], row["earliest_ms"]) == (0, row["muting"], "yes", None)
        assert row["elsewhere"] > 0
    assert found["Produce"]["throttle_ms_max"] == 4061
