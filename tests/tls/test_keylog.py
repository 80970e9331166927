"""Key logs as programs write them, and as they are found."""

from kcap.tls.keylog import KeyLog

RANDOM, OTHER = bytes(range(32)), bytes(range(1, 33))
MASTER = b"m" * 48


def test_lines_of_every_kind_are_read() -> None:
    log = KeyLog()
    log.add(
        b"# a comment\r\n\r\nCLIENT_RANDOM %b %b\r\n" % (RANDOM.hex().encode(), MASTER.hex().upper().encode())
        + b"CLIENT_TRAFFIC_SECRET_0 %b %b\n" % (OTHER.hex().encode(), (b"c" * 32).hex().encode())
        + b"EXPORTER_SECRET %b %b\n" % (OTHER.hex().encode(), (b"e" * 32).hex().encode())
        + b"RSA Session-ID:0102 Master-Key:%b\n" % MASTER.hex().encode()
        + b"RSA 0102030405060708 %b\n" % MASTER.hex().encode()
    )
    assert log.by_random == {RANDOM: {"CLIENT_RANDOM": MASTER}, OTHER: {"CLIENT_TRAFFIC_SECRET_0": b"c" * 32}}
    assert log.by_session == {b"\1\2": MASTER}
    assert log.by_premaster == {bytes(range(1, 9)): MASTER}
    assert log.unread == 0


def test_what_is_no_line_is_counted_and_passed_over() -> None:
    log = KeyLog()
    log.add(b"CLIENT_RANDOM 00 11\n\xff\xfe\x00garbage\nCLIENT_RANDOM " + RANDOM.hex().encode() + b" abc\n")
    assert log.unread == 2, "an odd number of digits is a line, whose secret decrypts nothing"
    assert not log


def test_a_copy_has_a_life_of_its_own_and_no_secret_shows() -> None:
    log = KeyLog()
    log.add(b"CLIENT_RANDOM " + RANDOM.hex().encode() + b" " + MASTER.hex().encode())
    other = log.copy()
    other.add(b"CLIENT_RANDOM " + OTHER.hex().encode() + b" " + MASTER.hex().encode())
    assert len(log.by_random) == 1
    assert MASTER.hex() not in repr(log)
    assert str(MASTER) not in repr(log)
