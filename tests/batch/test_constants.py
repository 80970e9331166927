"""The constants of connections as columns."""

import pickle
from operator import attrgetter

from hypothesis import given
from hypothesis import strategies as st

from kcap.batch.constants import RECORD, Constants
from kcap.identities import RECORD as AS_STRUCT
from kcap.identities import Identities, Identity, address, number_of, uid_of_number

ADDRESSES = st.sampled_from((4, 16)).flatmap(lambda size: st.binary(min_size=size, max_size=size))
ADDRESSES |= st.sampled_from([bytes(4), bytes(16), b"\n\0\0\1", bytes(10) + b"\xff\xff\n\0\0\1", b"\n\0\0\1" + bytes(12)])
PORTS, UIDS = st.sampled_from([0, 9092, 65535]), st.integers(0, (1 << 64) - 1).map(uid_of_number)
IDENTITIES = st.builds(
    Identity,
    UIDS,
    ADDRESSES.map(address),
    PORTS,
    ADDRESSES.map(address),
    PORTS,
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.booleans(),
)


@given(st.lists(IDENTITIES, max_size=8))
def test_columns_are_the_attributes(every: list[Identity]) -> None:
    """Law: an entry a connection, in their order, of none as of many; and the same once they were pickled."""
    for identities in Identities(every), pickle.loads(pickle.dumps(Identities(every))):
        made = Constants(identities)
        for name in ("client_port", "server_port", "number", "tls"):
            assert made.number(name).tolist() == list(map(attrgetter(name), every))
        for name in ("uid", "client_ip", "server_ip"):
            assert made.text(name).plain().to_pylist() == list(map(attrgetter(name), every))
            made.text(name).known.validate(full=True)
        assert made.uids == [one.uid for one in every]
        assert made.uid_numbers().tolist() == [number_of(one.uid) for one in every]
        servers = [(one.server_ip, one.server_port) for one in every]
        numbers, known = made.servers
        assert known == list(dict.fromkeys(servers))
        assert [known[number] for number in numbers.tolist()] == servers


def test_an_address_that_many_clients_call_is_written_once() -> None:
    """Clients of one broker have its address in common."""
    every = [Identity(uid_of_number(port), "10.0.0.1", port, "10.0.0.2", 9092) for port in range(100)]
    assert Constants(Identities(every)).text("server_ip").known.to_pylist() == ["10.0.0.2"]


def test_records_are_read_as_they_are_packed() -> None:
    assert RECORD.itemsize == AS_STRUCT.size
