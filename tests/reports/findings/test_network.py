"""Rules on the network."""

from tests.reports.findings.tables import CONNECTION, MS, exchange, found, many, observed


def test_a_network_is_slow_when_every_connection_of_the_client_is() -> None:
    far = CONNECTION | {"connection": "C1", "rtt_min_ns": 80 * MS}
    rows = many(3, 1.0, latency=0.085)
    assert len(found("slow-network", observed(rows, connections=[far, far | {"connection": "C2"}]))) == 1
    assert found("slow-network", observed(rows, connections=[far])) == [], "its quicker round trips may be missing"
    assert found("slow-network", observed(rows, connections=[far, CONNECTION | {"connection": "C2"}])) == []
    quick = [*rows, exchange("C1", 9, "Produce", 5, 0.002)]
    doubtful = observed(quick, connections=[far, far | {"connection": "C2"}])
    assert found("slow-network", doubtful) == [], "a response took less than a round trip"
    farther = far | {"connection": "C2", "rtt_min_ns": 900 * MS}
    slow = many(3, 1.0, latency=3.0)
    assert found("slow-network", observed(slow, connections=[far, farther])) == [], "one way has one length"
    farthest = [row | {"rtt_min_ns": 1200 * MS} for row in (far, farther)]
    assert found("slow-network", observed(slow, connections=farthest)) == [], "times of packets are not in order"


def test_loss_is_told_by_holes_and_not_by_probes() -> None:
    lossy = CONNECTION | {"connection": "C1", "packets": 1000, "retransmitted": 20, "out_of_order": 5}
    (row,) = found("retransmission-bound", observed([], connections=[lossy]))
    assert row["who"]["client_ids"] == ["app"]
    assert found("retransmission-bound", observed([], connections=[lossy | {"out_of_order": 0}])) == []
    gaps = many(2, 1.0, flags=["gap"])
    assert found("retransmission-bound", observed(gaps, connections=[lossy])) == [], "the capture lost packets itself"
    unfilled = lossy | {"client_missing": 300}
    assert found("retransmission-bound", observed([], connections=[unfilled])) == [], "holes that nothing filled prove nothing"
    reordered = lossy | {"retransmitted": 1, "out_of_order": 150}
    assert found("retransmission-bound", observed([], connections=[reordered])) == [], "nothing was sent again"


def test_loss_behind_the_capture_is_told_by_what_receivers_report() -> None:
    sender = CONNECTION | {"connection": "C1", "packets": 1000, "retransmitted": 20, "sacked": 6, "spurious": 4}
    (row,) = found("retransmission-bound", observed([], connections=[sender]))
    assert (row["severity"], row["evidence"]["sacked"], row["evidence"]["spurious"]) == ("medium", 6, 4)
    assert found("retransmission-bound", observed([], connections=[sender | {"sacked": 0}])) == [], "probes alone"
    assert found("retransmission-bound", observed([], connections=[sender | {"spurious": 15}])) == [], "hardly one was needed"
    assert found("retransmission-bound", observed([], connections=[sender | {"packets": 9_000}])) == [], "one of a thousand"


def test_loss_shows_in_tls_without_keys_where_the_client_may_be_kafka_s() -> None:
    hidden = CONNECTION | {
        "connection": "C1", "phase": "tls", "client_id": None, "exchanges": 0, "packets": 1000, "retransmitted": 20,
        "out_of_order": 5, "tls_ja4": "t13d301100_1d37bd780c83_882d495ac381",
    }  # fmt: skip
    (row,) = found("retransmission-bound", observed([], connections=[hidden]))
    assert "TLS without keys" in row["sentence"]
    assert row["filter"] == ""
    assert row["confidence"] < 0.8
    browser = hidden | {"tls_ja4": "t13d1516h2_8daaf6152771_02713d6af862"}
    assert found("retransmission-bound", observed([], connections=[browser])) == [], "Kafka's clients offer no ALPN"
    assert found("retransmission-bound", observed([], connections=[hidden | {"tls_ja4": None}])) == []
