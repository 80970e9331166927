"""Who looked at blanked bytes is named."""

import numpy as np
import pytest

from kcap.analyzer import Identity
from kcap.distributed.blanked_reads import BlankedReadTracker
from kcap.distributed.flow_shards import keys_of_lists
from kcap.distributed.stripped_segments import StrippedSegments
from kcap.limits import STRIPPED_KNOWN
from kcap.model import REF_FILE_SHIFT
from kcap.net.connections import reverse_flow
from kcap.net.tcp import Connection
from tests.net.test_tcp import Recorder
from tests.support.wire import flow

UP, OTHER = flow(40_000), flow(40_001)


def connection(key: bytes) -> Connection:
    return Connection(key, reverse_flow(key), 1, 0, 1, 24, Recorder())


def stripped(blanked: list[bool], key: bytes = UP) -> StrippedSegments:
    zeros = np.zeros(len(blanked), np.int64)
    return StrippedSegments(np.zeros((7, len(blanked)), np.int64), zeros, [key], np.array(blanked), key)


def named(doubts: BlankedReadTracker) -> list[int]:
    return np.frombuffer(doubts.flows, np.int64).tolist()


def test_a_search_in_blanked_bytes() -> None:
    """Law: a flow is named where a packet was looked at of which something is blank, and only there."""
    doubts = BlankedReadTracker()
    doubts.blanked(1, np.array([5, 6, 9]), stripped([True, False, True]))
    base = 1 << REF_FILE_SHIFT
    for ref in (base + 6, base + 7, 5):
        doubts.searched(ref, connection(UP))
    doubts.searched(base + 5, connection(OTHER))
    assert named(doubts) == []
    doubts.searched(base + 9, connection(reverse_flow(UP)))
    assert named(doubts) == keys_of_lists([UP]).tolist()


def test_what_is_not_remembered_counts_as_blanked() -> None:
    doubts = BlankedReadTracker()
    for at in range(STRIPPED_KNOWN + 1):
        doubts.blanked(0, np.array([10 * at + 1, 10 * at + 2]), stripped([True, False]))
    doubts.searched(12, connection(UP))
    doubts.searched(3, connection(OTHER))
    assert named(doubts) == []
    doubts.searched(1, connection(UP))
    assert named(doubts) == keys_of_lists([UP]).tolist()


@pytest.mark.parametrize("blank", [False, True])
def test_a_log_that_was_read(blank: bool) -> None:
    """A connection on which KRaft's log was read is named where something of it is blank."""
    doubts = BlankedReadTracker()
    doubts.blanked(0, np.array([1]), stripped([blank], reverse_flow(UP)))
    doubts.read_logs(
        [Identity("C1", "10.0.0.1", 40_000, "10.0.0.2", 9092), Identity("C2", "10.0.0.1", 40_001, "10.0.0.2", 9092)]
    )
    assert named(doubts) == (keys_of_lists([UP]).tolist() if blank else [])
