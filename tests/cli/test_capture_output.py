"""Words and codes that the commands which write captures share."""

import pytest

from kcap.cli.capture_output import Passes, only_plain, unreadable
from kcap.errors import UsageError


class Reading:
    """Something that is read."""

    bytes, total_bytes, rows = 1, 2, 3


def test_words():
    with pytest.raises(UsageError, match="uncompressed"):
        only_plain("a.pcap.ZST")
    only_plain("a.pcap")


def test_files_that_could_not_be_read_are_said(capsys):
    assert unreadable([]) == 0
    assert unreadable(["a: gone", "b: gone"]) == 3
    assert capsys.readouterr().err == "kcap: a: gone\nkcap: b: gone\n"


def test_progress_says_nothing_but_to_a_terminal(capsys):
    with Passes() as passes:
        for reading in (Reading(), Reading()):
            passes.step(reading)
            passes.step(reading)
    assert capsys.readouterr() == ("", "")
