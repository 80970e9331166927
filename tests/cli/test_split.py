"""`kcap split`: names, numbers, codes."""

import pytest

from kcap.cli.split import duration
from kcap.errors import UsageError
from tests.cli.running import PCAPS, here
from tests.export.parts import packets, rows

JAVA = PCAPS / "java-transactions.pcap"


def test_by_connection(tmp_path):
    done = here("split", JAVA, "--by-connection", "5", "-o", tmp_path / "part")
    assert done.returncode == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"part_{n:05}.pcap" for n in range(1, 5)]
    assert done.stderr.decode() == f"kcap: {len(packets(JAVA)):,} packets in 4 files\n"
    assert sorted(packet for name in names for packet in packets(tmp_path / name)) == sorted(packets(JAVA))


def test_by_time(tmp_path):
    assert here("split", JAVA, "--by-time", "2s", "-o", tmp_path / "t.pcapng").returncode == 0
    files = sorted(tmp_path.iterdir())
    assert [path.name[:7] for path in files] == [f"t_{n:05}" for n in range(1, len(files) + 1)]
    assert all(path.suffix == ".pcapng" for path in files)
    assert rows(files) == rows(JAVA)


def test_faults_leave_nothing(tmp_path):
    for arguments, code in (
        ([], 2),
        (["--by-connection", "1", "--by-time", "1s"], 2),
        (["--by-connection", "0"], 2),
        (["--by-time", "soon"], 2),
    ):
        assert here("split", JAVA, *arguments, "-o", tmp_path / "x").returncode == code
    assert here("split", JAVA, "--by-time", "1s", "-o", tmp_path / "no" / "x").returncode == 4
    assert here("split", tmp_path / "no.pcap", "--by-time", "1s", "-o", tmp_path / "x").returncode == 3
    assert list(tmp_path.iterdir()) == []


def test_durations():
    words = ("60s", "500ms", "1.5 m", "2h", "1d", "7")
    assert [duration(word) for word in words] == [60 * 10**9, 5 * 10**8, 90 * 10**9, 7200 * 10**9, 86400 * 10**9, 7 * 10**9]
    for word in ("", "0s", "s", "-1s", "1y"):
        with pytest.raises(UsageError, match="60s"):
            duration(word)
