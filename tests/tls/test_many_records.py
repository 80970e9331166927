"""Records of many directions that are opened together: each counts as it does when it is opened alone."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.tls import many_records
from kcap.tls.key_schedule import WriteKeys, fixed_iv_bytes
from kcap.tls.many_records import OpenedRecords, key_table, open_records
from kcap.tls.record_ciphers import RecordOpener, opener_of
from kcap.tls.suites import suite_of
from tests.support.tls import sealed_record

SUITES = (
    (0x0304, 0x1301), (0x0304, 0x1302), (0x0304, 0x1303), (0x0304, 0x1305), (0x0303, 0xC02F), (0x0303, 0xCCA8),
    (0x0303, 0xC0AC), (0x0303, 0xC0AE),
)  # fmt: skip
"""Of each AEAD, with both forms of nonces and additional data."""
TICKET = b"\x04\0\0\x05lives"
CONTENTS = (
    (23, b"data"), (23, b""), (23, b"zeros\0\0"), (23, b"\0"), (21, b"\x01\0"), (21, b"\x01\x5a"), (21, b"\x02\x28"),
    (22, TICKET), (22, TICKET * 2), (22, TICKET[:-1]), (22, b"\x18\0\0\x01\0"),
)  # fmt: skip
"""Data, alerts that close and another one, session tickets, a part of one and a KeyUpdate."""
SILENT = {(21, b"\x01\0"), (22, TICKET), (22, TICKET * 2), (21, b"\x01\x5a")}
OF_13 = SILENT - {(21, b"\x01\0")}
"""What says nothing in TLS 1.3 alone."""


def opener(version: int, number: int, seed: int = 0) -> RecordOpener:
    cipher = suite_of(number).cipher
    assert cipher is not None
    iv = 12 if version == 0x0304 else fixed_iv_bytes(version, cipher)
    made = opener_of(version, cipher, WriteKeys(bytes([seed + 1] * cipher.key_bytes), bytes(range(seed, seed + iv))))
    assert made is not None
    return made


def alone(made: RecordOpener, number: int, record: bytes) -> bytes | None:
    """The application data of a record, nothing of those that say nothing, None of any other."""
    found = made.open(number, record[0], 0x0303, record[5:])
    if found is None:
        return None
    what = found.content_type, found.plaintext
    if what in SILENT and (made.version == 0x0304 or what not in OF_13):
        return b""
    return found.plaintext if found.content_type == 23 else None


def opened_by(library: bool, wire: bytes, bounds: Any, openers: list[RecordOpener], numbers: list[int]) -> OpenedRecords:
    """By libcrypto where it has the ciphers of all, or by `cryptography`."""
    with pytest.MonkeyPatch.context() as patch:
        if not library:
            patch.setattr(many_records, "functions", lambda: None)
            patch.setattr(many_records, "_ciphers", many_records._ciphers.__wrapped__)  # else it would stay without ciphers
        return open_records(wire, bounds, key_table([one.packed for one in openers]), numbers, openers.__getitem__)


RECORDS = st.lists(st.tuples(st.sampled_from(CONTENTS), st.integers(0, 20), st.sampled_from([False] * 7 + [True])), max_size=6)


@pytest.mark.parametrize("library", [True, False])
@given(st.lists(st.tuples(st.sampled_from(SUITES), st.sampled_from([0, 1, 255, 1 << 33]), RECORDS), min_size=1, max_size=4))
def test_records_opened_together_are_those_that_open_one_by_one(
    library: bool, directions: list[tuple[tuple[int, int], int, list[tuple[tuple[int, bytes], int, bool]]]]
) -> None:
    """Law: of each direction those up to the first one that does not authenticate or holds anything else."""
    wire, bounds, openers, wanted = bytearray(b"before"), [], [], []
    for place, (suite, first, records) in enumerate(directions):
        openers.append(opener(*suite, place))
        expected: list[bytes | None] = []
        for number, ((kind, data), padding, damaged) in enumerate(records, first):
            record = bytearray(sealed_record(openers[-1], number, data, kind, padding))
            record[-1] ^= damaged
            bounds.append((place, len(wire), len(wire) + len(record)))
            wire += record
            expected.append(alone(openers[-1], number, bytes(record)))
        wanted.append(expected[: expected.index(None)] if None in expected else expected)
    rows = np.array(bounds, np.int64).reshape(-1, 3)
    opened = opened_by(library, bytes(wire), rows, openers, [first for _, first, _ in directions])
    assert opened.counts.tolist() == list(map(len, wanted))
    flat = [data for some in wanted for data in some]
    assert opened.sizes.tolist() == [len(data or b"") for data in flat]
    assert opened.plain.tobytes().startswith(b"".join(data or b"" for data in flat))


@pytest.mark.parametrize("library", [True, False])
def test_what_is_no_record_ends_its_direction_alone(library: bool) -> None:
    one, other = opener(0x0304, 0x1301), opener(0x0303, 0xC02F, 3)
    first, behind = sealed_record(one, 4, b"first"), sealed_record(other, 0, b"other")
    wire = first + b"\x14\x03\x03\0\0" + behind
    low, high = len(first), len(first) + 5
    bounds = np.array([(0, 0, low), (0, low, -1), (1, high, len(wire))], np.int64)
    opened = opened_by(library, wire, bounds, [one, other], [4, 0])
    assert (opened.counts.tolist(), opened.plain.tobytes()[:10]) == ([1, 1], b"firstother")
    assert opened.starts.tolist()[::2] == [5, high + 13], "behind the header, and the nonce before TLS 1.3"


@pytest.mark.parametrize("released", [False, True])
@pytest.mark.parametrize("library", [True, False])
def test_nothing_to_open_gives_nothing(library: bool, released: bool) -> None:
    made = opener(0x0304, 0x1301)
    if released:
        made.release()
    opened = opened_by(library, b"", np.empty((0, 3), np.int64), [made], [0])
    assert (opened.counts.tolist(), len(opened.sizes)) == ([0], 0)
    record = sealed_record(opener(0x0304, 0x1301), 0, b"x")
    assert opened_by(library, record, np.array([(0, 0, len(record))]), [made], [0]).sizes.tolist() == [1]
