"""Keys are tried until a record authenticates, within bounds."""

import pytest

from kcap import limits
from kcap.tls.direction import Plaintext
from tests.support.tls import CLIENT, SERVER, Conversation
from tests.tls.test_session import TALK, altered, plain, read, secrets_of, talk


@pytest.mark.parametrize("at", range(limits.TLS_SECRETS_TRIED + 1))
@pytest.mark.parametrize("ciphers", ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-SHA384", None])
def test_of_several_secrets_of_a_session_the_one_counts_that_opens_its_records(ciphers: str | None, at: int) -> None:
    """Wherever it stands among strangers' secrets of the same client random, if these are no more than are tried."""
    made = talk("TLSv1_2" if ciphers else "TLSv1_3", ciphers)
    logs = [altered(made.keylog, b"%x" % number) for number in range(2, 2 + limits.TLS_SECRETS_TRIED)]
    logs.insert(at, made.keylog)
    known = at > 0
    _, events = read(made, secrets_of(Conversation(keylog=b"".join(logs))))
    for side in (CLIENT, SERVER):
        assert plain(events, side) == (b"".join(data for of, data in TALK if of == side) if known else b"")
    assert all(isinstance(event, Plaintext) for event in events) is known or not events
