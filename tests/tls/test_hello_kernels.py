"""Hellos that are read in compiled code: they say what a session reads of them, and the others are left to one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kcap.tls import handshake as messages
from kcap.tls.hello_kernels import hellos
from tests.support.tls import converse
from tests.tls.test_batches import flights

WHOLE = {version: flights(converse([], version=version)[0].wire) for version in ("TLSv1_2", "TLSv1_3")}


def agreed(data: bytes, records: list[list[int]]) -> int:
    table, suites = np.zeros((len(records), 7), np.int64), np.empty(1, np.int64)
    table[:, 1:] = np.array(records, np.int64).reshape(-1, 6)
    hellos(np.frombuffer(data, np.uint8), table[:, 1:], np.array([0, len(records)]), suites)
    return int(suites[0])


def read(data: bytes, records: list[list[int]]) -> int:
    """The same by what a session reads with."""
    bodies = [data[at + 9 : end] for _, _, at, end, _, _ in records[:2]]
    client, server = messages.read_client_hello(bodies[0]), messages.read_server_hello(bodies[1])
    if client is None or server is None or server.version != 0x0304 or server.is_retry:
        return -1
    early = messages.EARLY_DATA in client.extensions or messages.COOKIE in client.extensions
    return -1 if early else int(server.suites[0])


def test_hellos_of_tls_13_agree_on_a_suite_and_no_others_do() -> None:
    data, records = WHOLE["TLSv1_3"]
    assert agreed(data, records) == read(data, records) > 0x1300
    assert agreed(*WHOLE["TLSv1_2"]) == -1
    assert agreed(data, records[:1]) == agreed(data, []) == agreed(data, records[1::-1]) == -1
    for number in (0, 1):
        side, kind, *rest = records[number]
        for other in ([1 - side, kind, *rest], [side, 23, *rest]):
            assert agreed(data, [*records[:number], other, *records[number + 1 :]]) == -1
    retry = records[1][2] + 11
    assert agreed(data[:retry] + messages.RETRY_RANDOM + data[retry + 32 :], records) == -1


@given(st.data())
def test_damaged_hellos_are_left_to_a_session_or_read_as_it_reads_them(data: st.DataObject) -> None:
    wire, records = WHOLE["TLSv1_3"]
    side = data.draw(st.sampled_from([0, 1]))
    start, end = records[side][2:4]
    broken = bytearray(wire)
    for at in data.draw(st.lists(st.integers(start + 5, end - 1), min_size=1, max_size=3)):
        broken[at] = data.draw(st.sampled_from([0, 1, 2, 3, 42, 43, 44, 255, broken[at] ^ 1]))
    assert agreed(bytes(broken), records) in (-1, read(bytes(broken), records))


@given(st.sampled_from([42, 44]))
def test_early_data_and_cookies_are_left_to_a_session(number: int) -> None:
    """An extension that changes how a handshake is read."""
    wire, records = WHOLE["TLSv1_3"]
    (side, kind, start, end, *rest), server = records[:2]
    at = start + 9 + 34
    at += 1 + wire[at]
    at += 2 + int.from_bytes(wire[at : at + 2], "big")
    at += 1 + wire[at]
    extension = number.to_bytes(2, "big") + b"\0\0"
    size = int.from_bytes(wire[at : at + 2], "big") + len(extension)
    hello = wire[start + 9 : at] + size.to_bytes(2, "big") + wire[at + 2 : end] + extension
    changed = wire[start : start + 6] + len(hello).to_bytes(3, "big") + hello
    table = [
        [side, kind, 0, len(changed), *rest],
        [*server[:2], len(changed), len(changed) + server[3] - server[2], *server[4:]],
    ]
    assert read(changed + wire[server[2] : server[3]], table) == -1
    assert agreed(changed + wire[server[2] : server[3]], table) == -1
