"""What messages of logins show: a SCRAM nonce that is not the server's, a token that has expired, how long sessions last.

In: exchanges with SaslAuthenticate messages as Kafka's JSON. Out: words for the sentence and the next step, or None where the
messages do not say. Law: a nonce and the times of a token are no secrets; of the messages nothing else is read.

Sources: RFC 5802 section 5.1 (the client's final message repeats the nonce of the server's first one, whole), CVE-2024-56128
(brokers that verify it), RFC 7628 section 3.1 (OAUTHBEARER), RFC 7519 section 4.1 (exp and nbf of a token).
"""

import json
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kcap.reports.findings.model import seconds
from kcap.reports.findings.observed import RESPONSES_READ, Observed, Row

OTHER_NONCE: Final = (
    "; its final message has another nonce than the server gave, which no password makes right",
    "Upgrade the client: brokers verify the nonce since 3.7.2, 3.8.1 and 3.9.0 (CVE-2024-56128), and refuse clients that "
    "repeat it wrongly, such as librdkafka before 2.6.1, whatever the password. The messages do not show whether it is right.",
)
"""Of SCRAM logins with a wrong nonce: words and advice."""
RENEW: Final = (
    "The client must get a new token before the old one expires: see how it renews them, whether its token endpoint can be "
    "reached, and whether its clock and that of the endpoint are right."
)
"""Advice where a token has expired."""
CLOCKS: Final = "Compare the clocks of the token endpoint, the client and the broker: the token is not valid yet."
"""Advice where a token is not valid yet."""
BEARER: Final = b"auth=Bearer "
SECOND_NS: Final = 1_000_000_000
LIFE_SPREAD: Final = 0.1
"""By how much of it the lives of sessions differ whose clients send something all the time."""


def why_refused(seen: Observed, row: Row) -> tuple[str, str] | None:
    """Words and advice for a login whose refusal is the response to this SaslAuthenticate request (connection, exchange,
    sasl_mechanism, first_ns); None where its messages do not say."""
    mechanism = row["sasl_mechanism"] or ""
    if mechanism.startswith("SCRAM-"):
        given = nonce_of(seen.message(row | {"exchange": row["exchange"] - 1}, "response"))
        sent = nonce_of(seen.message(row, "request"))
        return OTHER_NONCE if given is not None and sent is not None and given != sent else None
    if mechanism == "OAUTHBEARER":  # the response that refuses may be to an empty message behind the token's
        claims = token_in(seen.message(row, "request")) or token_in(
            seen.message(row | {"exchange": row["exchange"] - 1}, "request")
        )
        return times_wrong(claims or {}, row["first_ns"])
    return None


def auth_bytes(message: Row) -> bytes:
    """What a SASL message holds; empty where it cannot be had."""
    try:
        return b64decode(message.get("authBytes") or "", validate=True)
    except ValueError:
        return b""


def nonce_of(message: Row) -> str | None:
    """The nonce of a SCRAM message; None without one."""
    parts = auth_bytes(message).decode("utf-8", "replace").split(",")
    return next((part[2:] for part in parts if part.startswith("r=")), None)


def token_in(message: Row) -> dict[str, Any] | None:
    """The claims of the token of an OAUTHBEARER message; None without a JSON web token."""
    token = auth_bytes(message).partition(BEARER)[2].partition(b"\x01")[0].split(b".")
    if len(token) < 2:  # header and claims; the signature may be empty
        return None
    try:
        claims = json.loads(urlsafe_b64decode(token[1] + b"=" * (-len(token[1]) % 4)))
    except ValueError:
        return None
    return claims if isinstance(claims, dict) else None


def times_wrong(claims: dict[str, Any], at_ns: int) -> tuple[str, str] | None:
    """What is wrong with the times of a token that is used at this time, ns since the epoch."""
    until, since = (claims.get(name) for name in ("exp", "nbf"))
    if isinstance(until, int | float) and 0 < until * SECOND_NS < at_ns:
        return f"; its token had expired {seconds(at_ns - until * SECOND_NS)} before", RENEW
    if isinstance(since, int | float) and since * SECOND_NS > at_ns:
        return f"; its token is valid from {seconds(since * SECOND_NS - at_ns)} later on", CLOCKS
    return None


def common_life(lives: Sequence[int], limit: Mapping[str, float]) -> int:
    """How long after their login most connections are closed, of these times; 0 where they differ. All in ns."""
    times = sorted(lives)
    middle = times[len(times) // 2] if times else 0
    near = [time for time in times if abs(time - middle) <= middle * LIFE_SPREAD]
    enough = len(near) >= max(limit["alike"], limit["share"] * len(times)) and middle >= limit["seconds"] * 1e9
    return near[0] if enough else 0


def lifetimes(seen: Observed) -> dict[tuple[str, int], int]:
    """Server -> the longest session that its SaslAuthenticate responses give, ms; of few of them."""
    calls = [call for call in seen.calls_of(api="SaslAuthenticate", error="NONE") if call["api_version"]]
    # a login may take several, of which the last one has the lifetime
    some = [call | {"exchange": call["exchange"] + beside} for call in calls[:RESPONSES_READ] for beside in (0, 1)]
    found: dict[tuple[str, int], int] = {}
    for call in seen.prepared(some):
        place, given = (call["server_ip"], call["server_port"]), seen.message(call, "response").get("sessionLifetimeMs") or 0
        found[place] = max(given, found.get(place, 0))
    return found
