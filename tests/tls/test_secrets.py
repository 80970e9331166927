"""What sessions are decrypted with."""

import pickle

from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.serialization import load_der_private_key

from kcap.tls.handshake import TICKET, Hello
from kcap.tls.secrets import Secrets
from tests.support.tls import certificate

MASTER = b"M" * 48


def hello(random: bytes, session: bytes = b"", ticket: bytes = b"") -> Hello:
    return Hello(0x0303, random, session, (0x009C,), {TICKET: ticket} if ticket else {})


def test_a_line_of_the_key_log_goes_before_what_was_remembered() -> None:
    secrets = Secrets()
    secrets.remember(b"id", b"old" * 16, b"r" * 32)
    secrets.keylog.add(b"CLIENT_RANDOM " + b"61" * 32 + b" " + MASTER.hex().encode())
    assert secrets.master(hello(b"a" * 32, b"id"), hello(b"s" * 32, b"id")) == MASTER


def test_a_session_is_resumed_by_id_only_where_the_server_agrees() -> None:
    secrets = Secrets()
    secrets.remember(b"id", MASTER, b"r" * 32)
    client = hello(b"c" * 32, b"id")
    assert secrets.master(client, hello(b"s" * 32, b"id")) == MASTER
    assert secrets.master(client, hello(b"s" * 32, b"another")) is None


def test_a_session_is_resumed_by_its_ticket() -> None:
    secrets = Secrets()
    secrets.remember(b"ticket", MASTER, b"r" * 32)
    assert secrets.master(hello(b"c" * 32, b"x", b"ticket"), hello(b"s" * 32, b"x")) == MASTER


def test_the_origin_of_a_resumed_session_is_the_first_that_had_its_secret() -> None:
    secrets = Secrets()
    secrets.remember(b"id", MASTER, b"1" * 32)
    secrets.remember(b"id", MASTER, b"2" * 32)
    client, server = hello(b"c" * 32, b"id"), hello(b"s" * 32, b"id")
    assert secrets.origin(client, server) == b"1" * 32
    secrets.keylog.add(b"CLIENT_RANDOM " + (b"c" * 32).hex().encode() + b" " + MASTER.hex().encode())
    assert secrets.origin(client, server) is None, "the key log has the secret of this session itself"
    assert secrets.origin(hello(b"d" * 32), None) is None


def test_a_premaster_secret_is_that_of_the_right_key() -> None:
    der = certificate("rsa")[1]
    key = load_der_private_key(der, None)
    premaster = b"\3\3" + b"p" * 46
    sealed = key.public_key().encrypt(premaster, padding.PKCS1v15())  # type: ignore[union-attr,call-arg,arg-type]
    assert Secrets(private_keys=[der]).premaster(sealed, 0x0303) == premaster
    assert Secrets(private_keys=[der]).premaster(sealed, 0x0302) is None, "another version: another key, or none"
    assert Secrets().premaster(sealed, 0x0303) is None


def test_secrets_are_a_value_and_a_copy_forgets_what_handshakes_left() -> None:
    secrets = Secrets(private_keys=[certificate("rsa")[1]])
    secrets.remember(b"id", MASTER, b"r" * 32)
    again = pickle.loads(pickle.dumps(secrets))
    client, server = hello(b"c" * 32, b"id"), hello(b"s" * 32, b"id")
    assert again.master(client, server) == MASTER
    assert secrets.copy().master(client, server) is None
    assert bool(secrets.copy())
    assert "MMMM" not in repr(secrets)


def test_which_secrets_other_connections_may_need() -> None:
    """Master and premaster secrets are those of TLS before 1.3, whose sessions are resumed with them."""
    random, secret = b"ab" * 32, b"cd" * 48
    for line, resumable in (
        (b"CLIENT_RANDOM %b %b" % (random, secret), True),
        (b"PMS_CLIENT_RANDOM %b %b" % (random, secret), True),
        (b"RSA Session-ID:%b Master-Key:%b" % (random, secret), True),
        (b"RSA 0123456789abcdef %b" % secret, True),
        (b"CLIENT_TRAFFIC_SECRET_0 %b %b" % (random, random), False),
        (b"", False),
    ):
        secrets = Secrets()
        secrets.keylog.add(line + b"\n")
        assert secrets.resumable is resumable, line
    assert Secrets(private_keys=[b"der"]).resumable
