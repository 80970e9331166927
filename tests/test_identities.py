"""The constants of connections, as objects and as records."""

import pickle
from dataclasses import replace
from hashlib import blake2b
from ipaddress import ip_address

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.identities import (
    Identities,
    Identity,
    address,
    endpoints,
    number_of,
    packed,
    uid_of,
    uid_of_number,
)

flows = st.sampled_from((12, 36)).flatmap(lambda size: st.binary(min_size=size, max_size=size))


def listed(entries: list[tuple[bytes, bool]]) -> tuple[Identities, list[Identity]]:
    """Connections as records in blocks of three, some of them as objects; and what they must be."""
    made, expected = Identities(), []
    for start in range(0, len(entries), 3):
        first = len(made)
        here = [
            Identity(uid_of(flow, 1000 + at, 7 * at), *endpoints(flow), first + at, tls)
            for at, (flow, tls) in enumerate(entries[start : start + 3])
        ]
        made.extend(np.frombuffer(Identities(here).records, np.uint8))
        for at, one in enumerate(here):
            if one.tls and at:
                made.put(first + at, one)
        assert made.append(here[0]) == first + len(here)
        expected += [*here, here[0]]
    return made, expected


@given(st.lists(st.tuples(flows, st.booleans()), max_size=8))
def test_records_objects_and_slices_say_the_same(entries: list[tuple[bytes, bool]]) -> None:
    made, expected = listed(entries)
    assert len(made) == len(expected)
    assert [made.uid(at) for at in range(len(made))] == [one.uid for one in expected]
    assert list(made) == made[:] == [made[at] for at in range(len(made))] == expected
    assert list(pickle.loads(pickle.dumps(made))) == expected
    assert made.records == Identities(expected).records


def test_an_index_out_of_range_is_an_error() -> None:
    made, _ = listed([(bytes(12), False)])
    for index in (-1, 2):
        with pytest.raises(IndexError):
            made[index]


def test_a_new_number_is_in_records_and_objects() -> None:
    made, expected = listed([(bytes(12), False), (bytes(36), True)])
    assert list(made) == expected
    made.renumber(1, 77)
    expected[1] = replace(expected[1], number=77)
    assert list(made) == expected
    assert made.records == Identities(expected).records


@given(st.one_of(st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16)))
def test_addresses_are_written_as_ipaddress_does_and_read_back(data: bytes) -> None:
    assert address(data) == str(ip_address(data))
    assert packed(address(data)) == data


def test_a_uid_is_a_hash_of_endpoints_time_and_first_number() -> None:
    flow = bytes(range(12))
    assert uid_of(flow, 5, 7) == "C" + blake2b(flow + b"|5|7", digest_size=8).hexdigest()
    assert uid_of(flow, 5, None) == "C" + blake2b(flow + b"|5|-1", digest_size=8).hexdigest()
    assert len({uid_of(flow, 5, 7), uid_of(flow, 6, 7), uid_of(flow, 5, 8), uid_of(bytes(12), 5, 7)}) == 4


def test_endpoints_of_a_flow() -> None:
    assert endpoints(bytes([10, 0, 0, 1, 10, 0, 0, 2, 0x9C, 0x40, 0x23, 0x84])) == ("10.0.0.1", 40_000, "10.0.0.2", 9092)
    six = bytes(15) + b"\1" + bytes(15) + b"\2" + b"\0\1\0\2"
    assert endpoints(six) == ("::1", 1, "::2", 2)


def test_a_uid_is_64_bits() -> None:
    uid = uid_of(bytes(12), 1, None)
    assert uid_of_number(number_of(uid)) == uid
    assert [number_of(uid_of_number(number)) for number in (0, 12, (1 << 64) - 1)] == [0, 12, (1 << 64) - 1]
