"""Laws of `kcap connections`: the table of connections, readable."""

import json

from tests.cli.running import PCAPS, kcap


def test_one_row_a_connection() -> None:
    head, *rest = kcap("connections", PCAPS / "tls13.pcapng").stdout.decode().splitlines()
    assert head.split()[:4] == ["connection", "client", "server", "phase"]
    assert len(rest) == 11
    assert sum(" tls " in line for line in rest) == 8


def test_other_formats_have_all_columns() -> None:
    done = kcap("connections", PCAPS / "java-transactions.pcap", "--format", "jsonl", "--limit", "1")
    row = json.loads(done.stdout)
    assert row["client_captured"] == row["client_framed"] == 115
    assert row["community_id"].startswith("1:")
