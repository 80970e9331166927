"""What the versions report needs, saved beside tables and read back."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kcap.cli.main import main
from kcap.errors import CaptureError, UsageError
from kcap.facts.merge import FactsRecorder
from kcap.reports.versions.profiles import ConnectionProfiles, gather
from kcap.reports.versions.report import report
from kcap.reports.versions.saved import FORMAT, MARKS, SavedSet, packed, place_of, read, set_of, unpacked, whole
from kcap.session import Capture


def gathered(path: Path) -> tuple[ConnectionProfiles, SavedSet]:
    """The profiles of a capture, and what is saved of them."""
    reading = Capture([str(path)]).read(keep_connections=True)
    profiles = gather(reading)
    tracker = profiles.tracker
    facts = FactsRecorder(tracker).close()
    facts.offers = {
        server: [(run.since, run.offer) for run in tracker.offers.runs(server)] for server in tracker.offers.servers()
    }
    facts.listings = {key: ((at, "", 0), one) for at, (key, one) in enumerate(tracker.brokers.listings.items())}
    return profiles, set_of(profiles, facts, [file.name for file in reading.capture_files])


def saved_folder(folder: Path, *sets: SavedSet) -> str:
    """A folder as the job `ingest` leaves it, without its tables."""
    for number, one in enumerate(sets):
        for place, data in (
            (folder / MARKS / f"{number}.json", b"{}"),
            (Path(place_of(str(folder), str(number))), packed(one)),
        ):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
    return str(folder)


@pytest.mark.parametrize("name", ["kafka-0.8-clients", "fallback-0.9", "aiokafka", "cluster-startup", "broker-paused"])
def test_the_report_of_what_was_saved_is_that_of_the_capture(name: str, pcaps: Path) -> None:
    profiles, one = gathered(pcaps / f"{name}.pcap")
    found, names = whole([unpacked(packed(one), name)])
    for target in ("4.4", "0.10.2"):
        assert json.dumps(report(found, names, target)) == json.dumps(report(profiles, one.captures, target))


def test_sets_of_a_folder_are_one_capture(pcaps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And a saved connection has its story, a saved client its explanation."""
    paths = [pcaps / "aiokafka.pcap", pcaps / "fallback-0.9.pcap"]
    folder = saved_folder(tmp_path / "lake", *(gathered(path)[1] for path in paths))

    def reported(*words: str) -> Any:
        assert main(["versions", *words, "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    apart, both = reported(folder), reported(*map(str, paths))
    assert apart == both
    uid = both["clients"][0]["connection_uids"][0]
    assert reported(folder, "--connection", uid) == reported(*map(str, paths), "--connection", uid)
    client = both["clients"][0]["client_id"]
    assert reported(folder, "--explain", client) == reported(*map(str, paths), "--explain", client)


def test_what_cannot_be_answered_of_saved_tables_is_refused(
    pcaps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = pcaps / "fallback-0.9.pcap"
    folder = saved_folder(tmp_path / "lake", gathered(path)[1])
    assert main(["versions", folder, str(path)]) == 2
    assert main(["versions", folder, "-Y", "api == Fetch"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert [line.startswith("kcap: ") for line in said] == [True, True]
    Path(place_of(folder, "0")).unlink()
    with pytest.raises(UsageError, match="ingest its captures again"):
        read([folder])


OTHERS = (b"no json", b"[]", {"format": FORMAT}, {"format": FORMAT, "shared": {}, "set": [1, 2]}, {"format": 99})
"""What a compressed file may hold that is no such file: other bytes, this format with parts missing, another format."""


@pytest.mark.parametrize("data", [
    b"", b"no gzip",
    *(gzip.compress(one if isinstance(one, bytes) else json.dumps(one).encode(), mtime=0) for one in OTHERS),
])  # fmt: skip
def test_another_file_is_an_error_that_names_it(data: bytes) -> None:
    with pytest.raises(CaptureError, match="lake/x"):
        unpacked(data, "lake/x")
