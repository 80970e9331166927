"""The client of a TLS connection is found by what stands in the open, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.tls.roles import client_of, open_messages
from tests.support.tls import CLIENT, SERVER, converse
from tests.support.wire import Tap, analyze, metadata, metadata_answer

CHANGE_CIPHER_SPEC = b"\x14\x03\x03\0\1\1"
TALK = [(CLIENT, metadata(1)), (SERVER, metadata_answer(1)), (CLIENT, metadata(2)), (SERVER, metadata_answer(2))]
KINDS = [("TLSv1_3", None), ("TLSv1_2", None), ("TLSv1_2", "ECDHE-RSA-AES128-SHA256"), ("TLSv1_2", "AES256-SHA")]


@pytest.mark.parametrize(("version", "ciphers"), KINDS)
@pytest.mark.parametrize("order", [(CLIENT, SERVER), (SERVER, CLIENT)])
def test_whichever_packets_are_missing_the_client_is_the_client_or_unknown(
    version: str, ciphers: str | None, order: tuple[int, int]
) -> None:
    wire = converse(TALK, version=version, ciphers=ciphers)[0].wire
    found = []
    for first in range(len(wire) + 1):
        streams = [[b"".join(data for side, data in wire[first:] if side == one)] for one in order]
        found.append(client_of(streams))
    assert set(found) <= {order.index(CLIENT), None}
    assert found[0] == found[1] == order.index(CLIENT), "each hello says it"


@given(st.binary(min_size=45, max_size=90), st.sampled_from([22, 23]))
def test_what_is_encrypted_proves_nothing(sealed: bytes, kind: int) -> None:
    record = bytes([kind]) + b"\3\3" + len(sealed).to_bytes(2, "big") + sealed
    assert open_messages(CHANGE_CIPHER_SPEC + record) == []
    if kind == 23 or 4 + int.from_bytes(sealed[1:4], "big") > len(sealed):
        assert client_of(([record], [CHANGE_CIPHER_SPEC])) is None


@pytest.mark.parametrize(("version", "ciphers"), KINDS)
def test_a_connection_whose_beginning_is_missing_has_the_right_client(version: str, ciphers: str | None) -> None:
    """Whichever packet comes first: alerts and subjects are of the side, and of the address, that they came from."""
    made, _ = converse(TALK, version=version, ciphers=ciphers)
    known = 0
    for first in range(len(made.wire)):
        tap = Tap(port=40_000)
        for side, data in made.wire[first:]:
            tap.send(side, data, 1 << 16)
        for seen in analyze(tap.segments).connections:
            if seen.get("tls_version") or seen.get("tls_ja4"):
                assert seen["client_port"] == 40_000, first
                assert seen["tls_client_subject"] is None
                known += 1
    assert known >= 2
