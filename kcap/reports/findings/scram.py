"""Nonces of SCRAM logins: whether the client's last message has the one that the server gave.

In: exchanges with SaslAuthenticate messages as Kafka's JSON. Out: yes, no, or None where the messages do not say. Law: a nonce
is public; of the messages nothing else is read.

Sources: RFC 5802 section 5.1 (the client's final message repeats the nonce of the server's first one, whole), CVE-2024-56128
(brokers that verify it).
"""

from base64 import b64decode
from binascii import Error
from typing import Final

from kcap.reports.findings.observed import Observed, Row

SCRAM: Final = "SCRAM-"
"""How the mechanisms of RFC 5802 begin."""
OTHER_NONCE: Final = "; its final message has another nonce than the server gave, which no password makes right"
"""What a sentence says of such a login."""
UPGRADE: Final = (
    "Upgrade the client: brokers verify the nonce since 3.7.2, 3.8.1 and 3.9.0 (CVE-2024-56128), and refuse clients that "
    "repeat it wrongly, such as librdkafka before 2.6.1, whatever the password. Whether that is right nothing here says."
)
"""Advice for such a client."""


def nonce_of(message: Row) -> str | None:
    """The nonce of a SCRAM message; None without one."""
    try:
        text = b64decode(message.get("authBytes") or "", validate=True).decode()
    except (Error, UnicodeDecodeError):
        return None
    return next((part[2:] for part in text.split(",") if part.startswith("r=")), None)


def other_nonce(seen: Observed, row: Row) -> bool | None:
    """Whether a SaslAuthenticate request (connection, exchange) has another nonce than the response before it; None where one
    has none."""
    given = nonce_of(seen.message(row | {"exchange": row["exchange"] - 1}, "response"))
    sent = nonce_of(seen.message(row, "request"))
    return None if given is None or sent is None else given != sent
