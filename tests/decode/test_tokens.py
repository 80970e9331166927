"""SASL tokens in trees: named, in parts, and their secrets out of sight."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kcap
from kcap.decode.nodes import Node
from kcap.decode.secrets import is_secret_node, secret_spans, step
from kcap.decode.tokens import SECRET_PARTS
from tests.decode.trees import check, walk

KERBEROS = b"\x60\x82\x01\x02\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02ticket"
TOKENS = {
    b"\0alice\0hunter2": ("PLAIN", [b"hunter2"]),
    b"admin\0alice\0hunter2": ("PLAIN", [b"hunter2"]),
    b"n,,n=alice,r=fyko+d2lbbFgONRv9qkxdawL": ("SCRAM client-first-message", []),
    b"r=fyko3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096": ("SCRAM server-first-message", [b"QSXCR+Q6sek8bf92"]),
    b"c=biws,r=fyko3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=": (
        "SCRAM client-final-message",
        [b"v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="],
    ),
    b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=": ("SCRAM server-final-message", [b"rmF9pqV8S7suAoZWja4dJRkFsKQ="]),
    b"n,a=alice,\x01auth=Bearer abc.def.ghi\x01\x01": ("OAUTHBEARER", [b"abc.def.ghi"]),
    KERBEROS: ("GSSAPI", [b"ticket"]),
}


def tree(token: bytes) -> Node:
    """A SaslAuthenticate v0 request."""
    return kcap.decode_request(pack(">hhihi", 36, 0, 1, -1, len(token)) + token).tree()


def shown(root: Node) -> bytes:
    """The bytes of the frame that may be shown."""
    frame = bytearray(root.buffers[0])
    for low, high in secret_spans("SaslAuthenticateRequest", root):
        frame[low:high] = b"*" * (high - low)
    return bytes(frame)


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: TOKENS[token][0])
def test_tokens_are_named_and_their_secrets_hidden(token: bytes) -> None:
    mechanism, secrets = TOKENS[token]
    root = tree(token)
    check(root)
    found = root.find("body", "AuthBytes", "token")
    assert found is not None
    assert found.words == mechanism
    assert b"".join(node.data for node in found.children) == token
    for secret in secrets:
        assert secret in root.buffers[0]
        assert secret not in shown(root)
    if b"alice" in token:
        assert b"alice" in shown(root), "a name is no secret"


@given(
    st.one_of(
        st.binary(max_size=60),
        st.lists(st.sampled_from([b"n,,", b"n=a", b",", b"r=x", b"\0", b"a", b"\x01", b"p=", b"s=YQ=="])).map(b"".join),
    )
)
def test_what_has_no_known_shape_is_hidden_whole(token: bytes) -> None:
    """Law: every byte of a token is in a part of a known name, or hidden."""
    root = tree(token)
    check(root)
    field = root.find("body", "AuthBytes")
    assert field is not None
    if field.children or not token:
        open_parts = [
            node for node in walk(field) if not node.children and node.name not in {*SECRET_PARTS, "length", "AuthBytes"}
        ]
        assert {node.name for node in open_parts} <= {
            "authorizationIdentity", "authenticationIdentity", "user", "nonce", "header", "extensions", "iterations", "error",
        }  # fmt: skip
    else:
        path = step((), field)
        assert is_secret_node("SaslAuthenticateRequest", path, field, [field])
        assert shown(root)[-len(token) :] == b"*" * len(token)
