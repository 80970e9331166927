"""Words and codes that the commands which write captures share."""

import pytest

from kcap.cli.capture_output import Passes, only_plain
from kcap.errors import UsageError


class Reading:
    """Something that is read."""

    bytes, total_bytes, rows = 1, 2, 3


def test_words():
    with pytest.raises(UsageError, match="uncompressed"):
        only_plain("a.pcap.ZST")
    only_plain("a.pcap")


def test_progress_says_nothing_but_to_a_terminal(capsys):
    with Passes() as passes:
        for reading in (Reading(), Reading()):
            passes.step(reading)
            passes.step(reading)
    assert capsys.readouterr() == ("", "")
