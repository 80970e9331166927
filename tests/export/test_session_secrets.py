"""Which lines of key logs go with which sessions."""

from pathlib import Path
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

import kcap
from kcap.capture.packet_copy import PCAPNG, notes_of
from kcap.capture.pcapng_annotations import PcapngAnnotations
from kcap.capture.pcapng_blocks import read_secrets, secrets_body
from kcap.export import session_secrets
from kcap.export.session_secrets import KeyLogLines, read_sessions
from kcap.tls.keylog import LABELS, KeyLog

RANDOMS = [bytes([at]) * 32 for at in range(4)]
RSA = b"RSA Session-ID:ab12 Master-Key:" + b"0f" * 48 + b"\n"
LINES = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(RANDOMS), st.binary(min_size=48, max_size=48)), max_size=9)


def block(lines: list[tuple[str, bytes, bytes]], more: bytes = b"") -> bytes:
    text = "".join(f"{label} {random.hex().upper()} {secret.hex()}\n" for label, random, secret in lines)
    return secrets_body(b"# a comment\n" + text.encode() + more)


def lines_of(bodies: list[bytes]) -> KeyLogLines:
    """Those of a file with these blocks."""
    with patch.object(session_secrets, "notes_of", return_value=[PcapngAnnotations(secrets=bodies)]):
        return KeyLogLines([])


def read(bodies: list[bytes]) -> KeyLog:
    log = KeyLog()
    for body in bodies:
        log.add(read_secrets(body, "<") or b"")
    return log


@given(LINES, LINES, st.sets(st.sampled_from(RANDOMS)))
def test_the_sessions_that_are_wanted_keep_what_they_have_and_others_have_nothing(
    one: list[tuple[str, bytes, bytes]], two: list[tuple[str, bytes, bytes]], wanted: set[bytes]
) -> None:
    bodies = [block(one), block(two, RSA)]
    chosen = lines_of(bodies).of(wanted)
    before, after = read(bodies), read([chosen(body) for body in bodies])
    assert after.stored.keys() == before.stored.keys() & wanted
    assert all(after.of(random) == before.of(random) for random in wanted)
    assert bool(after.by_session) == (not wanted <= before.stored.keys()), "the line may be that of a session without its own"
    assert after.unread == 0


def test_keys_of_other_protocols_stay_behind() -> None:
    wireguard = b"\x4b\x53\x4c\x57" + secrets_body(b"key")[4:]
    assert lines_of([wireguard]).of(RANDOMS)(wireguard) == b""


def test_the_sessions_of_a_capture_are_found_by_their_randoms(pcaps: Path) -> None:
    """Law: the lines of a connection open it, and those of another one do not."""
    path = str(pcaps / "tls13.pcapng")
    steps: list[int] = []
    found = read_sessions(kcap.open(path), lambda reading: steps.append(reading.bytes))
    rows = kcap.open(path).connections(["connection", "tls"]).to_arrow().to_pylist()
    assert len(found.starts) == len(rows)
    assert set(found.randoms) <= set(found.starts.values())
    assert len(found.randoms) == sum(row["tls"] for row in rows) > 0
    assert steps == sorted(steps)
    reading = kcap.open(path).read()
    reading.files.close()
    (body,) = [secret for notes in notes_of(reading.capture_files, PCAPNG) for secret in notes.secrets]
    whole, some = read([body]), found.secrets_of([next(iter(found.randoms))])(body)
    assert read([some]).stored.keys() == whole.stored.keys() & set(next(iter(found.randoms.values())))
    assert found.secrets_of([-1])(body) == b""
