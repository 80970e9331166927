"""Laws of judging by kinds: the same as judging row by row, and it is known when more is known."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kcap
from kcap.facts import batch_verdicts
from kcap.facts.batch_verdicts import distinct
from kcap.facts.version_verdicts import NONE, VERDICTS, final_verdict
from kcap.table.exchanges import ExchangeTable
from kcap.table.schema import choose


@pytest.mark.parametrize("name", ["go-franz.pcap", "librdkafka-zstd.pcap", "java-transactions.pcap"])
@pytest.mark.parametrize("marked", [0, 1 << 18])
def test_kinds_are_judged_as_rows_are(pcaps: Path, name: str, marked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of connections that asked for the broker's ranges."""
    monkeypatch.setattr(batch_verdicts, "MARKED_MAX", marked)
    reading = kcap.open(pcaps / name).read()
    names = ["connection", "api_key", "api_version", "version_verdict", "error", "software_name", "software_version"]
    table, checked = ExchangeTable(choose("exchanges", names), reading.capture_files), 0
    rows = [row for batch in reading.batches() if len(batch) for row in table.turn(batch).to_pylist()]
    learner = table.learner
    for row in rows:
        offer = learner.known(row["connection"]).offer
        if offer is None or row["api_key"] == 18:
            continue
        checked += 1
        verdict = final_verdict(NONE, offer, row["api_key"], row["api_version"], learner.used, None)
        assert row["version_verdict"] in (VERDICTS[verdict], "not_highest" if VERDICTS[verdict] == "ok" else "")
    assert checked > 50


@given(st.lists(st.integers(0, 40), max_size=60), st.booleans())
def test_numbers_told_apart(codes: list[int], many: bool) -> None:
    known, number = distinct(np.array(codes, np.int64), 1 << 30 if many else 41)
    assert known.tolist() == sorted(set(codes))
    assert [known[at] for at in number] == codes
