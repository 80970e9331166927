"""Rules on requests in flight, large messages and polls."""

from tests.reports.findings.scenes.pipelines import closed_behind
from tests.reports.findings.tables import MS, SECOND, Row, exchange, found, many, observed


def test_pipelines_that_are_full() -> None:
    full = many(120, 0.01, latency=0.2, in_flight=6)
    (row,) = found("in-flight-saturated", observed(full), loud=False)
    assert row["severity"] == "info"
    assert row["evidence"]["full"] == 120
    assert found("in-flight-saturated", observed(many(120, 0.01, latency=0.2, in_flight=4)), loud=False) == []


def test_large_messages_that_take_long() -> None:
    slow = many(4, 2.0, "Fetch", response_bytes=2_000_000, transfer_ns=900 * MS)
    (row,) = found("large-message-stall", observed(slow))
    assert row["evidence"] == {"messages": 4, "longest_ns": 900 * MS, "bytes": 2_000_000}
    assert found("large-message-stall", observed(many(4, 2.0, "Fetch", response_bytes=2_000_000, transfer_ns=9 * MS))) == []
    assert found("large-message-stall", observed(many(4, 2.0, "Fetch", response_bytes=900, transfer_ns=900 * MS))) == []


def test_polls_that_ask_all_the_time_and_polls_that_hold_records_back() -> None:
    hasty = many(300, 0.005, "Fetch", max_wait_ms=1, min_bytes=1, record_count=0)
    assert len(found("long-poll-misconfigured", observed(hasty))) == 1
    usual = many(300, 0.005, "Fetch", max_wait_ms=500, min_bytes=1, record_count=0)
    assert found("long-poll-misconfigured", observed(usual)) == []
    held = many(4, 6.0, "Fetch", latency=4.9, max_wait_ms=5000, min_bytes=100_000, record_count=3)
    (row,) = found("long-poll-misconfigured", observed(held), loud=False)
    assert (row["severity"], row["evidence"]["held_back"]) == ("info", 4), "the client is configured so"
    assert row["advice"].startswith("This client is configured to wait")


def test_a_partition_whose_stable_offset_stands() -> None:
    def seen(stable: list[int], jump: float = 0) -> list[Row]:
        rows = [exchange("C1", at + 1, "Fetch", at * (0.5 if jump else 2.0) + jump * (at > 2)) for at in range(5)]
        parts = [
            {"connection": "C1", "exchange": at + 1, "api_key": 1, "topic": "t", "partition": 3, "error": "NONE",
             "high_watermark": 100 + at, "last_stable_offset": stable[at]} for at in range(5)
        ]  # fmt: skip
        return found("stuck-partition", observed(rows, parts))

    (row,) = seen([50] * 5)
    assert row["who"] == {"topic": "t", "partition": 3}
    assert row["lost_ns"] == 8 * SECOND
    assert seen([100, 101, 102, 103, 104]) == []
    assert seen([50, 60, 70, 80, 90]) == [], "it moves"
    assert seen([50] * 5, jump=9) == [], "the clock was set forward, or nobody asked"


def test_a_stable_offset_that_stood_at_the_first_record_of_a_transaction_is_low_also_when_it_has_gone_on() -> None:
    rows = [exchange("C1", at + 1, "Fetch", at * 2.0) for at in range(7)]
    parts = [
        {"connection": "C1", "exchange": at + 1, "api_key": 1, "topic": "t", "partition": 3, "error": "NONE",
         "high_watermark": 100 + at, "last_stable_offset": 50 if at < 6 else 104} for at in range(7)
    ]  # fmt: skip
    put = exchange("P1", 1, "Produce", 0, transactional_id="tx-1")
    begun = {"connection": "P1", "exchange": 1, "api_key": 0, "topic": "t", "partition": 3, "error": "NONE", "base_offset": 50}
    (row,) = found("stuck-partition", observed([put, *rows], [begun, *parts]), loud=False)
    assert (row["severity"], "where a transaction of tx-1 began" in row["sentence"]) == ("low", True)
    (row,) = found("stuck-partition", observed([put, *rows], [begun | {"base_offset": 49}, *parts]))
    assert row["severity"] == "medium", "another transaction"


def test_a_time_out_that_leaves_the_network_time_is_no_fault_of_the_client() -> None:
    """It may be a broker or a path that is late then; and a response that the client has is none that it gave up."""
    some = [closed_behind(9, at=9.5 * at) for at in range(9)]
    assert not found("long-poll-misconfigured", observed([row for row, _ in some], connections=[link for _, link in some]))
    some = [closed_behind(0.55, at=float(at)) for at in range(9)]
    rows, links = [row for row, _ in some], [link for _, link in some]
    assert len(found("long-poll-misconfigured", observed(rows, connections=links))) == 1
    late = [row | {"outcome": "answered", "response_first_ns": link["closed_ns"] + 1} for row, link in some]
    assert len(found("long-poll-misconfigured", observed(late, connections=links))) == 1
    done = [row | {"outcome": "answered", "response_first_ns": link["closed_ns"] - 1} for row, link in some]
    assert not found("long-poll-misconfigured", observed(done, connections=links))
    served = [link | {"closed_by": "server"} for link in links]
    assert not found("long-poll-misconfigured", observed(rows, connections=served))


def test_a_consumer_that_leaves_its_group_gives_no_fetch_up() -> None:
    """Its program closes it, each time as long behind its last Fetch, and makes another."""
    some = [closed_behind(0.55, at=float(at)) for at in range(9)]
    rows, links = [row for row, _ in some], [link for _, link in some]
    who = {"group_id": "g", "generation": -1}
    for api in ("LeaveGroup", "ConsumerGroupHeartbeat"):
        leaves = [exchange("G", at, api, at + 0.5, **who) for at in range(9)]
        assert not found("long-poll-misconfigured", observed([*rows, *leaves], connections=links))
        others = [leave | {"client_ip": "10.0.0.77"} for leave in leaves]
        assert len(found("long-poll-misconfigured", observed([*rows, *others], connections=links))) == 1
        late = [exchange("G", at, api, at + 30.5, **who) for at in range(9)]
        assert len(found("long-poll-misconfigured", observed([*rows, *late], connections=links))) == 1


def test_a_program_that_ends_when_it_has_its_records_gives_nothing_up() -> None:
    """It ends a moment behind its next Fetch, and is started again."""
    some = [closed_behind(0.04, at=float(at)) for at in range(9)]
    assert not found("long-poll-misconfigured", observed([row for row, _ in some], connections=[link for _, link in some]))


def test_programs_that_run_for_a_while_and_are_started_again_have_no_time_out() -> None:
    """They close other connections as well, or have waited longer for other responses."""
    some = [closed_behind(0.45, at=float(at)) for at in range(9)]
    rows, links = [row for row, _ in some], [link for _, link in some]
    assert len(found("long-poll-misconfigured", observed(rows, connections=links))) == 1
    others = [link | {"connection": f"O{at}", "closed_ns": link["closed_ns"] + 20 * MS} for at, link in enumerate(links)]
    assert not found("long-poll-misconfigured", observed(rows, connections=[*links, *others]))
    lookups = [link | {"first_ns": link["closed_ns"]} for link in others]
    assert len(found("long-poll-misconfigured", observed(rows, connections=[*links, *lookups]))) == 1, "begun behind it"
    waited = [exchange(row["connection"], 1, "Fetch", at - 0.09, 0.5, max_wait_ms=500) for at, row in enumerate(rows)]
    for one in waited:
        one["response_first_ns"] = one["request_last_ns"] + 500 * MS
    assert not found("long-poll-misconfigured", observed([*rows, *waited], connections=links))
    late = [one | {"response_first_ns": one["request_last_ns"] + SECOND} for one in waited]
    assert len(found("long-poll-misconfigured", observed([*rows, *late], connections=links))) == 1, "closed before these came"
