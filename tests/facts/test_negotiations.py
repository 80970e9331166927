"""Laws of negotiations: a row a connection and API, whose counts are those of the exchanges, and whose verdict is the worst."""

from collections import Counter
from pathlib import Path

import pytest

import kcap
from kcap.facts.version_verdicts import VERDICTS
from tests.support import messages as m
from tests.support.wire import metadata, metadata_answer, request


@pytest.mark.parametrize("name", ["go-franz.pcap", "raw-frames.pcap", "old-java-new-broker.pcap", "librdkafka-zstd.pcap"])
def test_they_are_what_the_exchanges_say(pcaps: Path, name: str) -> None:
    capture = kcap.open(pcaps / name)
    columns = ["connection", "api_key", "api_version", "version_verdict", "software_name"]
    exchanges = [row for row in capture.exchanges(columns).to_arrow().to_pylist() if row["api_key"] is not None]
    found = capture.negotiations().to_arrow().to_pylist()
    by_api = {(row["connection"], row["api_key"]): row for row in found}
    assert len(by_api) == len(found)
    assert {key: row["count"] for key, row in by_api.items()} == Counter((r["connection"], r["api_key"]) for r in exchanges)
    for (connection, key), row in by_api.items():
        mine = [r for r in exchanges if (r["connection"], r["api_key"]) == (connection, key)]
        assert row["versions"] == sorted({r["api_version"] for r in mine})
        known = [VERDICTS.index(r["version_verdict"]) for r in mine if r["version_verdict"]]
        assert row["verdict"] == (VERDICTS[max(known)] if known else None)
        assert row["software_name"] == mine[-1]["software_name"]


@pytest.mark.parametrize("name", ["go-franz.pcap", "java-transactions.pcap", "old-java-new-broker.pcap"])
def test_steps_are_those_of_the_exchanges(pcaps: Path, name: str) -> None:
    """First request, first error and the version that was chosen, as plain Python finds them in the rows."""
    capture = kcap.open(pcaps / name)
    columns = ["connection", "exchange", "api_key", "api_version", "client_id", "outcome", "error_code", "error"]
    exchanges = [row for row in capture.exchanges(columns).to_arrow().to_pylist() if row["api_key"] is not None]
    table = capture.negotiations().to_arrow().to_pylist()
    for row in table:
        mine = sorted((r for r in exchanges if (r["connection"], r["api_key"]) == (row["connection"], row["api_key"])),
                      key=lambda r: r["exchange"])  # fmt: skip
        first = mine[0]
        assert (row["step"], row["requested"], row["client_id"]) == (
            first["exchange"],
            first["api_version"],
            first["client_id"],
        )
        served = [r["api_version"] for r in mine if r["outcome"] == "answered" and r["error_code"] != 35]
        assert row["chosen"] == (served[-1] if served else None)
        failed = next((r for r in mine if r["error_code"]), None)
        assert (row["error_code"], row["error"]) == ((failed["error_code"], failed["error"]) if failed else (None, None))
    if name == "java-transactions.pcap":
        assert any("metadata.version=" in feature for row in table for feature in row["features"])
        assert all(not row["features"] for row in table if row["api"] != "ApiVersions")


def test_ranges_are_those_that_the_broker_offers(tmp_path: Path) -> None:
    story = m.began().ask(m.api_versions(1), m.api_versions_answer(1, {3: (0, 9), 18: (0, 4)}))
    story.ask(metadata(2), metadata_answer(2)).client(request(3, 10, 3)).client(request(12, 1, 4)).close()
    other = m.began(40_001, 10**8).ask(metadata(1), metadata_answer(1)).close()
    table = kcap.open(m.saved(tmp_path / "a.pcap", story, other)).negotiations()
    rows = [
        (r["api"], r["broker_min"], r["broker_max"], r["versions"], r["count"], r["verdict"])
        for r in table.to_arrow().to_pylist()
    ]
    assert rows == [
        ("Metadata", 0, 9, [1], 1, "unnegotiated"),
        ("ApiVersions", 0, 4, [3], 1, "ok"),
        ("Metadata", 0, 9, [1, 10], 2, "above_broker_max"),
        ("Heartbeat", None, None, [1], 1, "above_broker_max"),
    ]
