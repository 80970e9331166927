"""Key logs as programs write them, and as they are found."""

import tracemalloc
from io import BytesIO
from pathlib import Path

import pytest

from kcap import limits
from kcap.tls import keylog
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
    assert log.of(RANDOM) == {"CLIENT_RANDOM": MASTER}
    assert log.of(OTHER) == {"CLIENT_TRAFFIC_SECRET_0": b"c" * 32}
    assert log.by_session == {b"\1\2": MASTER}
    assert log.by_premaster == {bytes(range(1, 9)): MASTER}
    assert log.unread == 0


def test_of_repeated_secrets_the_last_few_count_and_they_do_not_add_up() -> None:
    log, random = KeyLog(), RANDOM.hex().encode()
    for number in range(5_000):
        log.add(b"CLIENT_TRAFFIC_SECRET_0 %b %b\n" % (random, bytes([number % 256] * 32).hex().encode()))
        log.add(b"SERVER_TRAFFIC_SECRET_0 %b %b\n" % (random, bytes([number % 251] * 32).hex().encode()))
    assert log.of(RANDOM) is log.of(RANDOM)
    assert log.of(RANDOM) == {
        "CLIENT_TRAFFIC_SECRET_0": bytes([4_999 % 256] * 32),
        "SERVER_TRAFFIC_SECRET_0": bytes([4_999 % 251] * 32),
    }
    assert len(log.stored[RANDOM]) < 1_000
    kept = [bytes([number % 256] * 32) for number in range(4_999, 4_999 - limits.TLS_SECRETS_TRIED, -1)]
    assert [secrets["CLIENT_TRAFFIC_SECRET_0"] for _, secrets in log.sessions()] == kept
    assert [secrets["CLIENT_TRAFFIC_SECRET_0"] for secrets in log.variants(RANDOM)] == kept[1:]
    log.add(b"CLIENT_TRAFFIC_SECRET_0 %b %b\n" % (random, b"0e" * 32))
    assert log.of(RANDOM)["CLIENT_TRAFFIC_SECRET_0"] == b"\x0e" * 32
    assert log.of(OTHER) == {}
    assert log.variants(OTHER) == ()


def test_secrets_behind_the_bound_are_counted_and_those_of_known_sessions_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TLS_SESSIONS_MAX", 2)
    log = KeyLog()
    for byte in range(4):
        log.add(b"CLIENT_TRAFFIC_SECRET_0 %b %b\n" % (bytes([byte] * 32).hex().encode(), b"11" * 32))
    log.add(b"SERVER_TRAFFIC_SECRET_0 %b %b\nRSA Session-ID:01 Master-Key:%b\n" % (b"01" * 32, b"22" * 32, b"33" * 48))
    assert (len(log), log.dropped, log.unread) == (2, 3, 0)
    assert len(log.of(b"\1" * 32)) == 2


@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
def test_a_file_is_read_in_pieces_of_any_size(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    text = b"".join(b"CLIENT_RANDOM %b %b\r\n" % (bytes([at] * 32).hex().encode(), b"ab" * 48) for at in range(9))
    monkeypatch.setattr(keylog, "PIECE", size)
    log = KeyLog()
    assert log.add_file(BytesIO(text + b"CLIENT_RANDOM 00")) == len(text)
    assert (len(log.stored), log.unread) == (9, 1)


def test_a_line_without_an_end_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: a line costs its reading, however long it is, and the lines around it are taken."""
    monkeypatch.setattr(keylog, "PIECE", 1 << 16)
    line = b"CLIENT_RANDOM %b %b\n" % (RANDOM.hex().encode(), MASTER.hex().encode())
    text, log = line + b"x" * (8 << 20) + b"\n" + line.replace(b"000102", b"ffffff"), KeyLog()
    file = BytesIO(text)
    tracemalloc.start()
    try:
        assert log.add_file(file) == len(text)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert (len(log), log.unread) == (2, 1)
    log.add(b"RSA Session-ID:%b Master-Key:%b\n" % (b"00" * 10_000, MASTER.hex().encode()))
    assert (len(log), log.unread) == (2, 2), "a session id has at most 32 bytes"


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
    assert len(log.stored) == 1
    assert MASTER.hex() not in repr(log)
    assert str(MASTER) not in repr(log)


def test_a_master_secret_that_is_half_written_is_left_for_later() -> None:
    log, line = KeyLog(), b"CLIENT_RANDOM %b %b" % (RANDOM.hex().encode(), MASTER.hex().encode())
    log.add(line[:-2])
    assert not log
    log.add(line)
    assert log.of(RANDOM) == {"CLIENT_RANDOM": MASTER}


@pytest.mark.parametrize("size", [32, 48])
def test_a_secret_that_was_cut_does_not_replace_a_whole_one(size: int) -> None:
    log, line = KeyLog(), b"SERVER_TRAFFIC_SECRET_0 %b %b" % (RANDOM.hex().encode(), bytes(range(size)).hex().encode())
    log.add(line + b"\n")
    for end in range(line.rindex(b" ") + 1, len(line)):
        if end - line.rindex(b" ") - 1 != 64:  # as long as a whole one of SHA-256
            log.add(line[:end])
    assert log.of(RANDOM) == {"SERVER_TRAFFIC_SECRET_0": bytes(range(size))}


def test_a_byte_order_mark_hides_no_line() -> None:
    log = KeyLog()
    log.add(b"\xef\xbb\xbfCLIENT_RANDOM %b %b\r\n" % (RANDOM.hex().encode(), MASTER.hex().encode()))
    assert (log.of(RANDOM), log.unread) == ({"CLIENT_RANDOM": MASTER}, 0)


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
    path.write_bytes(b"anew\nfour")
    assert growing.new_lines() == [b"anew"]


@pytest.mark.parametrize("secret", [b"zz" * 32, b"0" * 63, b""])
def test_an_exporter_secret_is_no_session_and_a_damaged_one_is_not_read(secret: bytes) -> None:
    """Law: what decrypts nothing takes no room, and is held to the form of a line all the same."""
    found = KeyLog()
    found.add(b"EXPORTER_SECRET %b %b\n" % (b"ab" * 32, b"cd" * 48))
    assert (len(found), found.unread) == (0, 0)
    found.add(b"EXPORTER_SECRET %b %b\n" % (b"ab" * 32, secret))
    assert (len(found), found.unread) == (0, int(secret != b"0" * 63))
