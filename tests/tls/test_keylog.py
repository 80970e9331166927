"""Key logs as programs write them, and as they are found."""

from pathlib import Path

from kcap.tls.keylog import GrowingKeyLog, KeyLog

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


def test_a_master_secret_that_is_half_written_is_left_for_later() -> None:
    log, line = KeyLog(), b"CLIENT_RANDOM %b %b" % (RANDOM.hex().encode(), MASTER.hex().encode())
    log.add(line[:-2])
    assert not log
    log.add(line)
    assert log.by_random == {RANDOM: {"CLIENT_RANDOM": MASTER}}


def test_a_growing_file_gives_each_whole_line_once(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    growing = GrowingKeyLog(str(path))
    assert growing.new_lines() == [], "it is not there yet"
    path.write_bytes(b"one\ntw")
    assert growing.new_lines() == [b"one"]
    assert growing.new_lines() == []
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    assert growing.copy().new_lines() == growing.new_lines() == [b"two", b"three"]
    path.write_bytes(b"")
    assert growing.new_lines() == []
