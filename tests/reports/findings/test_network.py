"""Rules on the network."""

from kcap.limits import MEANWHILE_MOST
from tests.reports.findings.tables import CONNECTION, MS, SECOND, START, Row, exchange, found, many, observed, shown


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


def test_clients_of_one_far_host_are_one_finding() -> None:
    far = [CONNECTION | {"connection": f"C{at}", "rtt_min_ns": (80 + at) * MS, "client_id": f"c{at // 2}"} for at in range(4)]
    rows = [exchange(f"C{at}", n, "Produce", n, 0.09, client_id=f"c{at // 2}") for at in range(4) for n in (1, 2)]
    (row,) = found("slow-network", observed(rows, connections=far))
    assert row["sentence"] == "each round trip of 2 clients of 10.0.0.9 (c0, c1) takes 80 ms to 82 ms on the network"
    assert row["who"] == {"client_ids": ["c0", "c1"], "client_ips": ["10.0.0.9"]}
    elsewhere = [link | ({"client_ip": "10.0.0.8"} if link["client_id"] == "c1" else {}) for link in far]
    assert len(found("slow-network", observed(rows, connections=elsewhere))) == 2


def test_loss_is_told_by_holes_and_not_by_probes() -> None:
    lossy = CONNECTION | {"connection": "C1", "packets": 1000, "retransmitted": 20, "out_of_order": 5}
    (row,) = found("retransmission-bound", observed([], connections=[lossy]))
    assert row["who"]["client_ids"] == ["app"]
    assert found("retransmission-bound", observed([], connections=[lossy | {"out_of_order": 0}])) == []
    gaps = many(2, 1.0, flags=["gap"])
    assert found("retransmission-bound", observed(gaps, connections=[lossy])) == [], "the capture lost packets itself"
    unfilled = lossy | {"client_missing": 300}
    assert found("retransmission-bound", observed([], connections=[unfilled])) == [], "holes that nothing filled prove nothing"
    gappy = unfilled | {"retransmitted": 0, "out_of_order": 40}
    silent = found("retransmission-bound", observed([], connections=[gappy]), loud=False)
    assert silent == [], "segments behind packets that the capture lost are not out of order"
    reordered = lossy | {"retransmitted": 1, "out_of_order": 150}
    assert found("retransmission-bound", observed([], connections=[reordered])) == [], "nothing was sent again"
    (row,) = found("retransmission-bound", observed([], connections=[reordered]), loud=False)
    ends = "150 of 1,000 packets between 10.0.0.9 (app) and its brokers"
    assert row["sentence"] == f"{ends} came out of order, and 1 segment may have been lost"
    assert (row["severity"], row["count"]) == ("info", 150)
    assert row["advice"].startswith("Reordering alone costs little")
    needless = reordered | {"retransmitted": 9, "spurious": 9}
    (row,) = found("retransmission-bound", observed([], connections=[needless]), loud=False)
    assert row["sentence"] == f"{ends} came out of order, and no segment is known to be lost"


def test_loss_behind_the_capture_is_told_by_what_receivers_report() -> None:
    sender = CONNECTION | {"connection": "C1", "packets": 1000, "retransmitted": 20, "sacked": 6, "spurious": 4}
    (row,) = found("retransmission-bound", observed([], connections=[sender]))
    assert (row["severity"], row["evidence"]["sacked"], row["evidence"]["spurious"]) == ("medium", 6, 4)
    (row,) = found("retransmission-bound", observed([], connections=[sender | {"sacked": 0}]))
    assert row["sentence"].endswith("receivers reported 0 holes and 4 duplicates"), "16 that it does not report were lost"
    probes = [sender | {"sacked": 0, "spurious": spurious} for spurious in (0, 15, 20)]
    assert all(not found("retransmission-bound", observed([], connections=[one])) for one in probes), "probes alone"
    gaps = many(2, 1.0, flags=["gap"])
    assert found("retransmission-bound", observed(gaps, connections=[sender | {"sacked": 0}])) == [], "reports may be lost"
    twice = sender | {"sacked": 2, "duplicated": 181}
    assert found("retransmission-bound", observed([], connections=[twice])) == [], "the capture has packets twice"
    assert found("retransmission-bound", observed([], connections=[twice | {"sacked": 10}])), "receivers report loss as well"
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


HIDDEN = CONNECTION | {
    "phase": "tls", "tls": True, "client_id": None, "exchanges": 0, "tls_ja4": "t13d301100_1d37bd780c83_882d495ac381",
    "server_port": 9094, "client_missing": 0, "server_missing": 0, "retransmitted": 5,
}  # fmt: skip
"""A TLS connection without keys of a client that may be Kafka's."""
FETCHER = {"client_id": "broker-2-fetcher-0", "client_ip": "10.0.0.2"}
"""A broker that copies logs from another."""


def test_the_path_shows_in_tls_without_keys_as_in_plaintext() -> None:
    back = {"client_resent_ns": 8 * SECOND, "client_resent_at_ns": START + 9 * SECOND}
    (row,) = found("path-interrupted", observed([], connections=[HIDDEN | back | {"connection": "C1"}]))
    assert row["sentence"].startswith("data between 10.0.0.9 and 10.0.0.1:9094 (TLS without keys) stayed without an")
    assert (row["filter"], row["confidence"]) == ("", 0.6)
    assert "served_here" not in row["evidence"], "no exchange could be read"
    gone = {"client_unacked_ns": 6 * SECOND, "ended": "open", "closed_by": None}
    (row,) = found("data-not-acknowledged", observed([], connections=[HIDDEN | gone | {"connection": "C1"}]))
    assert row["sentence"].endswith("on 1 connection of 10.0.0.9 (TLS without keys)")
    assert (row["filter"], row["confidence"]) == ("", 0.6)
    assert "MTU" in row["advice"]
    lost = {"server_unacked_ns": 6 * SECOND, "ended": "open", "closed_by": None, "client_unacked_ns": 0}
    (row,) = found("data-not-acknowledged", observed([], connections=[HIDDEN | lost | {"connection": "C1"}]))
    assert row["sentence"].startswith("10.0.0.9 acknowledges nothing more"), "a handshake whose certificate does not arrive"


def test_tls_that_had_begun_is_taken_for_kafka_at_its_usual_ports_alone() -> None:
    back = {"client_resent_ns": 8 * SECOND, "client_resent_at_ns": START + 9 * SECOND, "tls_ja4": None, "connection": "C1"}
    begun = HIDDEN | back | {"began": "midstream"}
    assert len(found("path-interrupted", observed([], connections=[begun]))) == 1
    assert found("path-interrupted", observed([], connections=[begun | {"server_port": 443}])) == []
    browser = HIDDEN | back | {"tls_ja4": "t13d1516h2_8daaf6152771_02713d6af862"}
    assert found("path-interrupted", observed([], connections=[browser])) == []


def test_the_path_between_brokers_shows_and_no_client_is_named() -> None:
    rows = [exchange("C1", at + 1, "Fetch", at, **FETCHER) for at in range(3)]
    own = CONNECTION | FETCHER | {"connection": "C1", "client_missing": 0, "server_missing": 0, "retransmitted": 5}
    back = own | {"server_resent_ns": 8 * SECOND, "server_resent_at_ns": START + 9 * SECOND}
    client = CONNECTION | {"connection": "C9", "client_missing": 0, "server_missing": 0}
    rows.append(exchange("C9", 1, "Produce", 1))
    (row,) = found("path-interrupted", observed(rows, connections=[back, client]))
    assert row["who"] == {"client_ips": ["10.0.0.2"], "client_ids": ["broker-2-fetcher-0"], "server": "10.0.0.1:9092"}
    gone = own | {"server_unacked_ns": 6 * SECOND, "ended": "open", "closed_by": None}
    (row,) = found("data-not-acknowledged", observed(rows, connections=[gone, client]))
    assert row["sentence"] == "10.0.0.2 acknowledges nothing more on 1 connection of broker-2-fetcher-0"
    lossy = own | {"packets": 1000, "retransmitted": 40, "sacked": 12}
    (row,) = found("retransmission-bound", observed(rows, connections=[lossy, client]))
    assert "10.0.0.2 (broker-2-fetcher-0) and the other brokers were retransmissions" in row["sentence"]


def stalled(name: str, at: float = 20.0, size: int = 90, **more: object) -> tuple[list[Row], Row]:
    """A connection with a response at 1 s and a request at `at` seconds that is sent 5 times and never acknowledged."""
    lost = exchange(name, 2, "Produce", at, None, reason="capture_end", request_bytes=size)
    link = CONNECTION | {
        "connection": name, "ended": "open", "closed_by": None, "retransmitted": 5, "client_missing": 0, "server_missing": 0,
        "client_unacked_ns": 6 * SECOND, "last_ns": START + int(at * SECOND) + 6 * SECOND,
    }  # fmt: skip
    return [exchange(name, 1, "Metadata", 1, request_bytes=40, response_bytes=700), lost], link | more


def test_data_that_the_other_side_never_acknowledges() -> None:
    rows, link = stalled("C1", 2.0)
    (row,) = found("data-not-acknowledged", observed(rows, connections=[link]))
    assert row["sentence"] == "10.0.0.1:9092 acknowledges nothing more on 1 connection of app"
    assert row["severity"] == "medium"
    assert shown(row, [*rows, exchange("C2", 1, "Produce", 2, None)]) == rows[1:]
    for other, why in (
        ({"client_unacked_ns": None}, "a broker that is slow acknowledges"),
        ({"client_unacked_ns": SECOND // 5}, "the capture ended too soon"),
        ({"retransmitted": 2}, "hardly sent again"),
        ({"server_missing": 9}, "the capture lacks packets"),
        ({"closed_by": "server", "closed_ns": START + 2 * SECOND + 1}, "the broker ended the connection; these are copies"),
    ):
        assert found("data-not-acknowledged", observed(rows, connections=[link | other])) == [], why
    given_up = link | {"closed_by": "client", "closed_ns": START + 2 * SECOND + 1}
    assert len(found("data-not-acknowledged", observed(rows, connections=[given_up]))) == 1, "its FIN is lost as well"
    late = link | {"closed_by": "server", "closed_ns": START + 5 * SECOND}
    assert len(found("data-not-acknowledged", observed(rows, connections=[late]))) == 1, "it was repeated for 3 s before"


def test_data_behind_a_rest_hints_at_lost_state_where_other_connections_work() -> None:
    rows, link = stalled("C1", 20.0)
    works = [exchange("C2", 1, "Metadata", 25)], CONNECTION | {"connection": "C2"}
    (row,) = found("data-not-acknowledged", observed([*rows, *works[0]], connections=[link, works[1]]))
    assert "after 19.0 s and more without a request, while other connections worked" in row["sentence"]
    assert "firewall" in row["advice"]
    assert row["confidence"] < 0.8
    (row,) = found("data-not-acknowledged", observed(rows, connections=[link]))
    assert "without a request" not in row["sentence"], "the host may be down"
    busy = [*rows, *works[0], exchange("C1", 3, "Produce", 19.9, None, outcome="one_way", request_last_ns=START + 19 * SECOND)]
    (row,) = found("data-not-acknowledged", observed(busy, connections=[link, works[1]]))
    assert "without a request" not in row["sentence"], "it wrote with acks=0 until then"


def test_large_data_that_is_lost_where_small_comes_through_hints_at_the_mtu() -> None:
    both = [stalled(name, 2.0, 4000) for name in ("C1", "C2")]
    rows, links = [row for some, _ in both for row in some], [link for _, link in both]
    (row,) = found("data-not-acknowledged", observed(rows, connections=links))
    assert "requests of 4.0 kB and more; the largest that came through has 40 B" in row["sentence"]
    assert (row["severity"], row["confidence"]) == ("high", 0.7)
    larger = [*rows, exchange("C1", 0, "Produce", 1.5, request_bytes=5000)]
    (row,) = found("data-not-acknowledged", observed(larger, connections=links))
    assert "came through" not in row["sentence"]
    (row,) = found("data-not-acknowledged", observed(rows[:2], connections=links[:1]))
    assert "came through" not in row["sentence"], "one connection may have met anything"
    pending = {"client_unacked_ns": None, "server_unacked_ns": 6 * SECOND, "server_pending": 17_000}
    (row,) = found("data-not-acknowledged", observed(rows, connections=[link | pending for link in links]))
    assert row["sentence"].startswith("10.0.0.9 acknowledges nothing more")
    assert "responses of 17.0 kB and more" in row["sentence"]


def test_holes_that_the_receiver_reports_and_nothing_fills_are_data_that_the_path_drops() -> None:
    def holed(name: str, **more: object) -> tuple[list[Row], Row]:
        rows, link = stalled(name, 2.0, 40)
        lost = {
            "client_unacked_ns": None,
            "server_unacked_ns": 6 * SECOND,
            "server_missing": 1448,
            "sacked": 2,
            "retransmitted": 0,
        }
        return rows, link | lost | more

    both = [holed("C1"), holed("C2", server_missing=2896)]
    rows, links = [row for some, _ in both for row in some], [link for _, link in both]
    (row,) = found("data-not-acknowledged", observed(rows, connections=links))
    assert row["sentence"] == (
        "10.0.0.9 acknowledges nothing more on 2 connections of app: it reports holes of 1.4 kB and more (SACK) that nothing "
        "fills"
    )
    assert (row["severity"], row["confidence"], row["evidence"]["hole_bytes"]) == ("high", 0.7, 1448)
    assert "MTU" in row["advice"]
    (row,) = found("data-not-acknowledged", observed(rows[:2], connections=links[:1]))
    assert (row["severity"], "MTU" in row["advice"]) == ("medium", False), "one connection may have met anything"
    for other, why in (
        ({"sacked": 0}, "the receiver may have what the capture lacks"),
        ({"recovered": 1}, "another hole was filled: it may be the reported one"),
        ({"server_unacked_ns": SECOND // 2}, "what is missing may still come"),
        ({"server_unacked_ns": None, "client_unacked_ns": 6 * SECOND}, "data of the other side"),
        ({"exchanges": 0}, "it is not known to be Kafka"),
    ):
        assert found("data-not-acknowledged", observed(rows, connections=[link | other for link in links])) == [], why
    (row,) = found("data-not-acknowledged", observed(rows, connections=[links[0], links[1] | {"server_ip": "10.0.0.2"}]))
    assert (row["count"], row["evidence"]["servers"], "server" in row["who"]) == (2, 2, False), "one host reports them"
    client = {"server_unacked_ns": None, "client_unacked_ns": 6 * SECOND, "server_missing": 0, "client_missing": 1448}
    (row,) = found("data-not-acknowledged", observed(rows, connections=[link | client for link in links]))
    assert row["sentence"].startswith("10.0.0.1:9092 acknowledges nothing more"), "at the broker's end"


def test_connections_that_were_accepted_and_got_no_byte_through() -> None:
    def mute(name: str) -> tuple[list[Row], Row]:
        link = stalled(name, 2.0)[1] | {"server_captured": 0}
        return [exchange(name, 1, "ApiVersions", 2.0, None, reason="capture_end")], link

    both = [mute("C1"), mute("C2")]
    rows, links = [row for some, _ in both for row in some], [link for _, link in both]
    (row,) = found("data-not-acknowledged", observed(rows, connections=links))
    assert row["sentence"].endswith("on 2 connections of app: it accepted them, and never acknowledged a byte")
    assert "SYN proxy" in row["advice"]
    (row,) = found("data-not-acknowledged", observed(rows, connections=[links[0], links[1] | {"server_captured": 9}]))
    assert "accepted" not in row["sentence"]
    assert "request.timeout.ms" in row["advice"]
    (row,) = found("data-not-acknowledged", observed(rows[:1], connections=links[:1]))
    assert "accepted" not in row["sentence"], "one connection may have met anything"


def test_retransmissions_of_data_that_nothing_acknowledges_are_no_loss_of_the_path() -> None:
    rows, link = stalled("C1", 2.0, packets=100, sacked=6)
    lossy = link | {"retransmitted": 12, "client_unacked_ns": None}
    assert len(found("retransmission-bound", observed(rows, connections=[lossy]))) == 1
    assert found("retransmission-bound", observed(rows, connections=[lossy | {"client_unacked_ns": 6 * SECOND}])) == []


def test_loss_ahead_of_the_capture_is_seen_by_holes_that_are_filled_a_round_trip_later() -> None:
    receiver = CONNECTION | {"connection": "C1", "packets": 1000, "retransmitted": 3, "spurious": 3, "out_of_order": 40}
    assert found("retransmission-bound", observed([], connections=[receiver])) == [], "segments may have been displaced"
    (row,) = found("retransmission-bound", observed([], connections=[receiver | {"recovered": 30}]))
    assert row["sentence"] == (
        "33 of 1,000 packets between 10.0.0.9 (app) and its brokers were retransmissions, 30 of them for packets that were "
        "lost before the capture point, 40 segments came out of order"
    )
    assert (row["severity"], row["count"], row["evidence"]["recovered"]) == ("medium", 33, 30)
    assert found("retransmission-bound", observed([], connections=[receiver | {"recovered": 2}])) == [], "two of a thousand"


def broken(name: str, side: str = "client", at: float = 2.0, lasted: float = 3.0, **more: object) -> Row:
    """A connection whose data was sent again `lasted` seconds after it was first sent, `at` seconds into the capture."""
    until = START + int((at + lasted) * SECOND)
    times = {f"{side}_resent_ns": int(lasted * SECOND), f"{side}_resent_at_ns": until}
    return CONNECTION | {"connection": name, "retransmitted": 4, "client_missing": 0, "server_missing": 0, **times, **more}


def test_data_that_stays_without_an_acknowledgement_for_seconds_shows_an_interrupted_path() -> None:
    rows = [exchange("C1", 1, "Produce", 2.0, 3.2), exchange("C2", 1, "Fetch", 8.0)]
    links = [broken("C1"), broken("C2", "server", 2.5, 4.0, client_id="reader")]
    (row,) = found("path-interrupted", observed(rows, connections=links))
    assert row["sentence"] == (
        "data between 10.0.0.9 (app, reader) and 10.0.0.1:9092 stayed without an acknowledgement for 4.0 s on 2 connections, "
        "though it was sent again"
    )
    assert (row["severity"], row["confidence"], row["count"]) == ("medium", 0.75, 2)
    assert (row["first_ns"], row["last_ns"]) == (START + 2 * SECOND, START + 6 * SECOND + SECOND // 2)
    assert row["evidence"]["interruptions"] == 1
    assert shown(row, rows) == rows[:1], "what was under way meanwhile"
    twice = [*links, broken("C3", at=8.0, lasted=1.5)]
    (row,) = found("path-interrupted", observed(rows, connections=twice))
    assert (row["evidence"]["interruptions"], row["count"]) == (2, 3)
    assert "for 4.0 s on 2 connections, in the longest of 2 times," in row["sentence"]
    for other, why in (
        ({"client_resent_ns": SECOND - 1}, "a tail loss probe or the first timeouts"),
        ({"retransmitted": 1}, "one segment alone"),
        ({"client_missing": 10}, "the capture lost packets"),
        ({"exchanges": 0}, "it is not known to be Kafka"),
        ({"client_unacked_ns": 6 * SECOND, "last_ns": START + 20 * SECOND}, "it never went on"),
    ):
        assert found("path-interrupted", observed(rows, connections=[links[0] | other])) == [], why


def test_what_others_got_meanwhile_says_where_a_path_is_interrupted() -> None:
    links = [broken("C1")]
    late = [exchange("C9", 1, "Fetch", 3.6), exchange("C8", 1, "Fetch", 4.0, client_ip="10.0.0.8")]
    (row,) = found("path-interrupted", observed(late, connections=links))
    assert "meanwhile" not in row["sentence"], "the path may have worked again in the second half"
    early = [
        exchange("C9", 1, "Fetch", 2.2), exchange("C8", 1, "Fetch", 2.4, client_ip="10.0.0.8"),
        exchange("C7", 1, "Fetch", 2.4, server_ip="10.0.0.2"), exchange("C1", 9, "Fetch", 2.1),
    ]  # fmt: skip
    (row,) = found("path-interrupted", observed(early, connections=links))
    assert row["sentence"].endswith(
        "; 1 response passed between them on other connections meanwhile; other hosts got 1 response from that broker meanwhile"
    )
    assert row["confidence"] == 0.4, "it is not the whole path"


def test_several_hosts_that_are_cut_off_from_one_server_at_once_are_one_interruption() -> None:
    links = [broken(f"C{at}", client_ip=f"10.0.1.{at}", client_id=f"app{at}") for at in range(3)]
    (row,) = found("path-interrupted", observed([], connections=links))
    assert row["sentence"].startswith("data between 3 hosts (app0, app1, app2) and 10.0.0.1:9092 stayed")
    assert (row["who"]["client_ips"], row["count"]) == ([f"10.0.1.{at}" for at in range(3)], 3)
    later = 60 * SECOND
    apart = [links[0], *({**link, "first_ns": link["first_ns"] + later, "last_ns": link["last_ns"] + later} |
                         {name: link[name] + later for name in link if name.endswith("resent_at_ns") and link[name]}
                         for link in links[1:])]  # fmt: skip
    assert len(found("path-interrupted", observed([], connections=apart))) == 3, "at two times"
    elsewhere = [link | {"server_ip": f"10.0.0.{at}"} for at, link in enumerate(links)]
    assert len(found("path-interrupted", observed([], connections=elsewhere))) == 3, "from three servers"


def test_paths_of_many_hosts_are_not_looked_at_one_by_one() -> None:
    hosts = [f"10.0.1.{at}" for at in range(MEANWHILE_MOST + 1)]
    links = [broken(f"C{at}", client_ip=host, server_ip=f"10.0.2.{at}") for at, host in enumerate(hosts)]
    early = [exchange("C99", 1, "Fetch", 2.2, client_ip=hosts[0], server_ip="10.0.2.0")]
    few = found("path-interrupted", observed(early, connections=links[:-1]))
    assert [row["evidence"].get("served_here") for row in few] == [1, *[0] * (MEANWHILE_MOST - 1)]
    many_ = found("path-interrupted", observed(early, connections=links))
    assert [row["evidence"].get("served_here") for row in many_] == [None] * len(hosts)


def test_a_segment_that_is_lost_again_and_again_on_a_lossy_path_is_no_interruption() -> None:
    rows = [exchange("C9", 1, "Fetch", 2.2)]
    other = CONNECTION | {"connection": "C9", "client_missing": 0, "server_missing": 0, "retransmitted": 6, "packets": 200}
    (row,) = found("path-interrupted", observed(rows, connections=[broken("C1"), other]), loud=False)
    assert (row["severity"], row["confidence"], row["evidence"]["lost_beside"]) == ("info", 0.2, 6)
    assert row["sentence"].endswith("on other connections meanwhile, and other connections of that host lost 6 segments")
    assert row["advice"].startswith("Look for loss")
    for less in ({"spurious": 2}, {"retransmitted": 4}, {"packets": 2000}, {"client_ip": "10.0.0.2"}):
        assert len(found("path-interrupted", observed(rows, connections=[broken("C1"), other | less]))) == 1, less
    assert len(found("path-interrupted", observed([], connections=[broken("C1"), other]))) == 1, "nothing passed meanwhile"


def test_data_that_came_twice_was_late_and_not_lost() -> None:
    late = [broken(f"C{at}", at=float(2 * at), lasted=1.2, spurious=4, client_id=f"c{at}") for at in range(1, 4)]
    assert found("path-interrupted", observed([], connections=late)) == [], "what the receiver had already"
    most = [link | {"retransmitted": 8, "spurious": 5} for link in late]
    assert found("path-interrupted", observed([], connections=most)) == [], "the rest may be reported behind the capture's end"
    (row,) = found("slow-network", observed([], connections=late))
    assert row["sentence"] == (
        "data between 10.0.0.9 (c1, c2, c3) and its brokers was acknowledged up to 1.2 s late on 3 connections, though it had "
        "not been lost; the shortest round trip takes 60 us"
    )
    assert (row["severity"], row["confidence"], row["count"]) == ("medium", 0.7, 3)
    assert "queues" in row["advice"]
    for links, why in (
        (late[:2], "two connections"),
        ([link | {"spurious": 2} for link in late], "half of it was lost"),
        ([link | {"client_resent_at_ns": START + 9 * SECOND} for link in late], "a host that stood still once"),
        ([link | {"client_resent_ns": 300 * MS} for link in late], "as a retransmission timeout waits"),
        ([link | {"rtt_min_ns": 200 * MS} for link in late], "not much for so long a way"),
        ([link | {"server_missing": 10} for link in late], "the capture lost packets"),
    ):
        seen = found("slow-network", observed([], connections=links))
        assert not any("not been lost" in row["sentence"] for row in seen), why
