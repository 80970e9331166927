"""`kcap groups` as people run it."""

import json

import pytest

from kcap.cli.groups import document
from kcap.cli.report_output import formatted
from kcap.reports.groups.report import groups
from kcap.reports.source import ReportInput
from tests.cli.running import PCAPS, kcap

FENCED = PCAPS / "problems" / "static-member-fenced.pcap"


def test_json_is_the_report() -> None:
    done = kcap("groups", FENCED, "--group", "shop-ledger", "--format", "json")
    assert done.returncode == 0
    made = json.loads(done.stdout)
    assert (made["report"], [row["group_id"] for row in made["rows"]]) == ("groups", ["shop-ledger"])


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_each_form_shows_rebalances_fences_and_members(form: str) -> None:
    out = " ".join(formatted(groups(ReportInput([str(FENCED)])), form, None, document).split())
    for word in ("1 rebalance (1 join)", "fenced static members", "ledger-west", "308ms", "0 records behind when last fetched"):
        assert word in out


def test_a_capture_without_groups_says_so() -> None:
    done = kcap("groups", PCAPS / "problems" / "zombie-fenced.pcap")
    assert done.returncode == 0
    assert "no consumer group was found" in done.stdout.decode()
    done = kcap("groups", PCAPS / "quota-3.9.pcap")
    assert "389ms of members' time lost; no commits." in " ".join(done.stdout.decode().split()), "not: 0 of 0 commits failed"
    done = kcap("groups", FENCED, "--group", "shop-ledgr")
    assert "no consumer group is called 'shop-ledgr'; without --group all are listed" in done.stdout.decode()


def test_share_and_streams_groups_are_shown_as_the_others_are() -> None:
    share, streams = (
        formatted(groups(ReportInput([str(PCAPS / "problems" / f"healthy-{name}-group.pcap")])), "markdown", None, document)
        for name in ("share", "streams")
    )
    assert "1 group: g-healthy with" in share
    assert "share protocol" in share
    assert "0 commits" not in share, "members of share groups acknowledge records"
    assert "streams protocol" in streams
    assert "tasks 0_0,0_1" in streams.replace("\\", "")
