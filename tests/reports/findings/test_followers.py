"""Followers that writes wait for, by what they fetch."""

from tests.reports.findings.scenes.replication import polls, writes
from tests.reports.findings.tables import exchange
from tests.reports.findings.test_replication import said


def test_followers_that_have_a_listener_of_their_own_are_those_of_the_broker_at_this_address() -> None:
    own = [row | {"server_port": 9094} for row in polls(1, 3, [0.099] * 20)]
    (row,) = said(writes(1, 20, 0.1), own)
    assert (row["who"]["broker_id"], row["who"]["server"]) == (3, "10.0.0.1:9092")
    other = [exchange("X", 1, "Metadata", 0, server_ip="10.0.0.1", server_port=9093)]
    assert said(writes(1, 20, 0.1), own, other) == [], "another broker may be at this address"
    more = [row | {"server_port": 9095, "connection": "Y"} for row in polls(1, 4, [0.099] * 20)]
    assert said(writes(1, 20, 0.1), own, more) == []


def test_what_counts_is_the_time_that_writes_waited_for_a_follower() -> None:
    """Other writes may be a little late by themselves."""
    some = [row | {"connection": "Z"} for row in writes(1, 20, 0.06)]
    (row,) = said(writes(1, 20, 1.0), polls(1, 3, [0.999] * 20), some)
    assert row["who"]["broker_id"] == 3
