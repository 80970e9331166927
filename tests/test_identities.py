"""The constants of connections, as objects and as columns."""

import pickle
from hashlib import blake2b
from ipaddress import ip_address

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.identities import (
    Identities,
    Identity,
    IdentityBlock,
    address,
    endpoints,
    number_of,
    numbers_of,
    uid_of,
    uid_of_number,
)

NAMES = ("uid", "client_ip", "client_port", "server_ip", "server_port", "number", "tls")
flows = st.sampled_from((12, 36)).flatmap(lambda size: st.binary(min_size=size, max_size=size))


def block_of(first: int, seeds: list[tuple[bytes, int, int]], tls: list[bool]) -> IdentityBlock:
    """Connections whose clients are the lower endpoints; the uid of the first is there already."""
    flows, times, isns = zip(*seeds)
    keys = np.array([list(flow.ljust(36, b"x")) for flow in flows], np.uint8)
    numbers, uids = first + np.arange(len(seeds)), np.zeros(len(seeds), np.object_)
    uids[0] = uid_of(*seeds[0])
    sizes = np.array(list(map(len, flows)))
    return IdentityBlock(first, numbers, uids, keys, keys, sizes, np.array(times), np.array(isns), numbers, np.array(tls))


def listed(entries: list[tuple[bytes, bool]]) -> tuple[Identities, list[Identity]]:
    """Connections in blocks of three, some of them as objects; and what they must be."""
    made, expected = Identities(), []
    for start in range(0, len(entries), 3):
        some = entries[start : start + 3]
        first = len(made)
        seeds = [(flow, 1000 + at, 7 * at) for at, (flow, _) in enumerate(some)]
        here = [Identity(uid_of(*one), *endpoints(one[0]), first + at, some[at][1]) for at, one in enumerate(seeds)]
        objects = {first + at: one for at, one in enumerate(here) if one.tls and at}
        made.extend(block_of(first, seeds, [one.tls for one in here]), objects)
        assert made.append(here[0]) == first + len(some)
        expected += [*here, here[0]]
    return made, expected


@given(st.lists(st.tuples(flows, st.booleans()), max_size=8))
def test_columns_objects_and_slices_say_the_same(entries: list[tuple[bytes, bool]]) -> None:
    made, expected = listed(entries)
    assert len(made) == len(expected)
    assert [made.uid(at) for at in range(len(made))] == [one.uid for one in expected]
    for name in NAMES:
        assert made.column(name) == [getattr(one, name) for one in expected]
    assert made.servers() == [(one.server_ip, one.server_port) for one in expected]
    assert list(made) == made[:] == [made[at] for at in range(len(made))] == expected
    assert list(pickle.loads(pickle.dumps(made))) == expected


def test_an_index_out_of_range_is_an_error() -> None:
    made, _ = listed([(bytes(12), False)])
    for index in (-1, 2):
        with pytest.raises(IndexError):
            made[index]


def test_a_new_number_is_in_columns_that_were_made_before() -> None:
    made, _ = listed([(bytes(12), False), (bytes(36), True)])
    before = made.column("number")
    made.renumber(1, 77)
    assert before == [0, 1, 0]
    assert made.column("number") == [0, 77, 0]
    assert made[1].number == 77


@given(st.one_of(st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16)))
def test_addresses_are_written_as_ipaddress_does(packed: bytes) -> None:
    assert address(packed) == str(ip_address(packed))


def test_a_uid_is_a_hash_of_endpoints_time_and_first_number() -> None:
    flow = bytes(range(12))
    assert uid_of(flow, 5, 7) == "C" + blake2b(flow + b"|5|7", digest_size=8).hexdigest()
    assert uid_of(flow, 5, None) == "C" + blake2b(flow + b"|5|-1", digest_size=8).hexdigest()
    assert len({uid_of(flow, 5, 7), uid_of(flow, 6, 7), uid_of(flow, 5, 8), uid_of(bytes(12), 5, 7)}) == 4


def test_endpoints_of_a_flow() -> None:
    assert endpoints(bytes([10, 0, 0, 1, 10, 0, 0, 2, 0x9C, 0x40, 0x23, 0x84])) == ("10.0.0.1", 40_000, "10.0.0.2", 9092)
    six = bytes(15) + b"\1" + bytes(15) + b"\2" + b"\0\1\0\2"
    assert endpoints(six) == ("::1", 1, "::2", 2)


def test_a_uid_that_is_there_costs_no_look_at_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the uids of all connections of a block would take the square of their number."""
    made, expected = listed([(bytes([at]) * 12, False) for at in range(3)])
    looks: list[IdentityBlock] = []
    named = IdentityBlock.named

    def counted(block: IdentityBlock) -> object:
        looks.append(block)
        return named(block)

    monkeypatch.setattr(IdentityBlock, "named", counted)
    assert [made.uid(at) for at in range(3)] == [made[at].uid for at in range(3)] == [one.uid for one in expected[:3]]
    assert len(looks) == 1


def test_a_uid_is_64_bits() -> None:
    uid = uid_of(bytes(12), 1, None)
    assert uid_of_number(number_of(uid)) == uid
    assert numbers_of([uid, uid_of_number(0), uid_of_number(12)]).tolist() == [number_of(uid), 0, 12]
