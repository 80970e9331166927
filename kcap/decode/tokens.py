"""SASL tokens: the bytes of SaslAuthenticate in, their parts as nodes out.

A token does not name its mechanism, so it is recognised by its shape. Law: parts tile the token. A token of no known shape
remains one piece, which is never shown (`kcap.decode.secrets`); neither are the parts named in `SECRET_PARTS`.
"""

import re
from functools import partial
from typing import Final

from kcap.decode.nodes import Node
from kcap.decode.tree import Inside
from kcap.wire.text import decode_text

SECRET_PARTS: Final = frozenset({"password", "proof", "salt", "verifier", "bearerToken", "ticket", "channelBinding", "further"})
"""Parts that are secrets, or that help to guess one."""

_ID: Final = rb"[^\x00-\x1f\x7f]"
_SCRAM_NONCE: Final = rb"r=[!-+\--~]+"
_BASE64: Final = rb"[A-Za-z0-9+/=]+"
SHAPES: Final = tuple(
    (mechanism, re.compile(shape, re.DOTALL))
    for mechanism, shape in (
        # RFC 7628: a GS2 header, then key=value pairs ended by 0x01
        ("OAUTHBEARER", rb"(?P<header>[nyp][^,]*,(?:a=[^,]*)?,\x01)(?P<bearerToken>(?:[A-Za-z]+=[^\x01]*\x01)+\x01)"),
        # RFC 5802: client-first, server-first, client-final, server-final
        (
            "SCRAM client-first-message",
            rb"(?P<header>[nyp][^,]*,(?:a=[^,]*)?,)(?P<user>n="
            + _ID
            + rb"*?,)(?P<nonce>"
            + _SCRAM_NONCE
            + rb")(?P<extensions>(?:,[^,]*)*)",
        ),
        (
            "SCRAM server-first-message",
            rb"(?P<nonce>" + _SCRAM_NONCE + rb",)(?P<salt>s=" + _BASE64 + rb",)(?P<iterations>i=\d+)(?P<further>(?:,[^,]*)*)",
        ),
        (
            "SCRAM client-final-message",
            rb"(?P<channelBinding>c="
            + _BASE64
            + rb",)(?P<nonce>"
            + _SCRAM_NONCE
            + rb",)(?P<proof>(?:[^,]*,)*p="
            + _BASE64
            + rb")",
        ),
        ("SCRAM server-final-message", rb"(?P<verifier>v=" + _BASE64 + rb")(?P<further>(?:,[^,]*)*)"),
        ("SCRAM server-final-message", rb"(?P<error>e=[a-z-]+)"),
        # RFC 4616: three texts with a zero byte between
        (
            "PLAIN",
            rb"(?P<authorizationIdentity>"
            + _ID
            + rb"*\x00)(?P<authenticationIdentity>"
            + _ID
            + rb"+\x00)(?P<password>[^\x00]+)",
        ),
        # RFC 4121: an application tag and the Kerberos mechanism's object identifier
        ("GSSAPI", rb"(?P<ticket>\x60.{1,5}\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02.*)"),
    )
)
"""(mechanism and message, its shape); the groups of a shape are adjacent."""


def token_nodes(inside: Inside) -> list[Node]:
    """One node with the parts of a token; empty for a token of no known shape."""
    data = inside.data
    for mechanism, shape in SHAPES:
        found = shape.fullmatch(data)
        if found is not None:
            parts = [(name, *found.span(name)) for name in found.re.groupindex if found.span(name)[1] > found.span(name)[0]]
            place = inside.buffers, inside.buffer, inside.start, inside.end
            return [Node("token", None, mechanism, *place, partial(nodes_of, inside, parts))]
    return []


def nodes_of(inside: Inside, parts: list[tuple[str, int, int]]) -> list[Node]:
    return [part(inside, name, low, high) for name, low, high in parts]


def part(inside: Inside, name: str, low: int, high: int) -> Node:
    """A part of a token: its text without the terminator."""
    text = decode_text(inside.data[low:high].rstrip(b"\x00\x01,"))
    return Node(name, text, text, inside.buffers, inside.buffer, inside.start + low, inside.start + high)
