"""Keys are tried until a record authenticates, within bounds."""

import pytest

from kcap import limits
from kcap.tls.direction import Plaintext
from tests.support.tls import CLIENT, SERVER, Conversation
from tests.tls.test_session import MESSAGES, altered, conversation, plain, read, secrets_of, vector


@pytest.mark.parametrize("at", range(limits.TLS_SECRETS_TRIED + 1))
@pytest.mark.parametrize("ciphers", ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-SHA384", None])
def test_of_several_secrets_of_a_session_the_one_counts_that_opens_its_records(ciphers: str | None, at: int) -> None:
    """Wherever it stands among strangers' secrets of the same client random, if these are no more than are tried."""
    made = conversation("TLSv1_2" if ciphers else "TLSv1_3", ciphers)
    logs = [altered(made.keylog, b"%x" % number) for number in range(2, 2 + limits.TLS_SECRETS_TRIED)]
    logs.insert(at, made.keylog)
    known = at > 0
    _, events = read(made, secrets_of(Conversation(keylog=b"".join(logs))))
    for side in (CLIENT, SERVER):
        assert plain(events, side) == (b"".join(data for of, data in MESSAGES if of == side) if known else b"")
    assert all(isinstance(event, Plaintext) for event in events) is known or not events


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("strangers", [0, 40])
def test_a_session_behind_an_encrypted_hello_is_found_in_the_key_log(strangers: int, taken: bool) -> None:
    """The hello in the open has another random than the key log, where the server takes the one inside."""
    made = conversation("TLSv1_3", None)
    side, hello = made.wire[0]
    random = hello[11:43]
    body = hello[9:11] + (bytes(32) if taken else random) + hello[43:]
    at = 35 + body[34]
    at += 2 + int.from_bytes(body[at : at + 2], "big")
    at += 1 + body[at]
    offered = body[at + 2 :] + b"\xfe\x0d" + vector(2, bytes(40))
    covered = b"\1" + vector(3, body[:at] + vector(2, offered))
    made.wire[0] = side, hello[:3] + vector(2, covered)
    others = b"".join(made.keylog.replace(random.hex().encode(), bytes([at] * 32).hex().encode()) for at in range(1, strangers))
    session, events = read(made, secrets_of(Conversation(keylog=altered(others, b"0") + made.keylog)))
    for side in (CLIENT, SERVER):
        assert plain(events, side) == b"".join(data for of, data in MESSAGES if of == side)
    assert random in session.facts.randoms
    session, events = read(made, secrets_of(Conversation(keylog=altered(made.keylog, b"0"))))
    assert not events
