"""Flights of handshakes: which records are tried, and which messages count."""

import struct
from typing import Any

import numpy as np
import pytest

from kcap.tls import flight_kernels as at
from kcap.tls import handshake as messages
from kcap.tls.hello_kernels import R_AT
from kcap.tls.records import HEADER
from tests.support.tls import CLIENT, SERVER

HELLOS = [(CLIENT, 22, b"question"), (SERVER, 22, b"answer")]
Sent = list[tuple[int, int, bytes]]


def message(number: int, body: bytes = b"x") -> bytes:
    return struct.pack(">I", number << 24 | len(body)) + body


EXTENSIONS, CHAIN, PROOF = message(messages.ENCRYPTED_EXTENSIONS), message(messages.CERTIFICATE), message(15, b"signature")
FINISHED = message(messages.FINISHED, b"proof")
SERVER_S, CLIENT_S = (SERVER, 23, EXTENSIONS + FINISHED + b"\x16"), (CLIENT, 23, FINISHED + b"\x16")


def table(sent: Sent) -> tuple[Any, Any]:
    """The records of one connection: side, content type and what it holds, which is the wire too."""
    wire, records, offsets = bytearray(), [], [0, 0]
    for time_ns, (side, kind, content) in enumerate(sent):
        size = HEADER + len(content)
        records.append((side, kind, len(wire), len(wire) + size, offsets[side], time_ns))
        wire += bytes(HEADER) + content
        offsets[side] += size
    return np.frombuffer(bytes(wire), np.uint8), np.array(records, np.int64).reshape(-1, 6)


def read(sent: Sent, opened: tuple[int, int] = (1 << 10, 1 << 10)) -> tuple[list[bytes | None], list[int]] | None:
    """The messages that are kept, None for a chain, and what is known of both sides; `opened`: so many records open."""
    wire, records = table(sent)
    contents = [[content for one, kind, content in sent if (one, kind) == (side, 23)][: opened[side]] for side in (0, 1)]
    flat = [*contents[CLIENT], *contents[SERVER]]
    plain, highs = np.frombuffer(b"".join(flat) + b"\0", np.uint8), np.cumsum([*map(len, flat)], dtype=np.int64)
    kept, rows, chains = np.empty(1 << 10, np.uint8), np.empty((99, at.MESSAGE_WIDTH), np.int64), np.empty((99, 2), np.int64)
    firsts, found = np.array([0, len(contents[0]), len(flat)]), np.empty((1, at.READ_WIDTH), np.int64)
    cuts, one = np.array([0, len(records)]), np.zeros(1, np.int64)
    at.read_flights(wire, records, cuts, one, plain, firsts, highs, found, kept, rows, chains)
    *known, top, count, _ = found[0].tolist()
    if known[at.F_READ] < 0:
        assert (top, count) == (0, 0), "nothing is left of it"
        return None
    out: list[bytes | None] = []
    low = 0
    for size in rows[:count, at.M_SIZE].tolist():
        out.append(None if size < 0 else kept[low : low + size].tobytes())
        low += max(size, 0)
    assert low == top
    return out, known


def test_messages_of_both_flights_are_kept_up_to_the_finished() -> None:
    """A chain of certificates stands elsewhere, and of a proof there is no use."""
    flight = EXTENSIONS + CHAIN + PROOF + FINISHED
    wanted = [b"question", b"answer", EXTENSIONS, None, b"", FINISHED, FINISHED]
    for parts in ([flight], [EXTENSIONS, CHAIN, PROOF, FINISHED], [EXTENSIONS + CHAIN, PROOF + FINISHED]):
        server = [(SERVER, 23, part + b"\x16" + bytes(16)) for part in parts]
        sent = [*HELLOS, *server, (SERVER, 20, b"\1"), (CLIENT, 20, b"\1"), CLIENT_S, (CLIENT, 23, b"data"), (SERVER, 23, b"")]
        found = read(sent, (1, len(parts)))
        assert found is not None
        assert found[0] == wanted
        ends = [sum(5 + len(record[2]) for record in sent[: len(parts) + 5] if record[0] == side) for side in (0, 1)]
        spent = [len(CLIENT_S[2]), sum(len(one[2]) for one in server)]
        last = len(parts) + 4
        assert found[1] == [ends[0], ends[1] - 6, 1, len(parts), *spent, last, 2]


@pytest.mark.parametrize(
    "content",
    [
        FINISHED + CHAIN, CHAIN[:-1], CHAIN + b"\0", message(messages.KEY_UPDATE), CHAIN + message(4), b"", b"\x16", b"\0\0",
        FINISHED + b"\x17", FINISHED + FINISHED,
    ],
)  # fmt: skip
def test_a_record_of_anything_else_is_not_read(content: bytes) -> None:
    """Law: of the messages that a session reads nothing is left out; a Finished ends its flight."""
    content += b"" if (content[-1:] in b"\0\x16\x17" and len(content) < 4) or content[-1:] == b"\x17" else b"\x16"
    assert read([*HELLOS, (SERVER, 23, content), SERVER_S, CLIENT_S]) is None
    assert read([*HELLOS, SERVER_S, (CLIENT, 23, content), CLIENT_S]) is None


@pytest.mark.parametrize(
    "sent",
    [
        [SERVER_S], [CLIENT_S], [SERVER_S, (CLIENT, 21, b"\2\x28"), CLIENT_S], [(SERVER, 22, EXTENSIONS), SERVER_S, CLIENT_S],
        [CLIENT_S, (CLIENT, 23, b"data"), SERVER_S], [SERVER_S, (CLIENT, -1, b"GET"), CLIENT_S],
    ],
)  # fmt: skip
def test_what_stands_between_or_is_missing_leaves_it_to_a_session(sent: Sent) -> None:
    assert read([*HELLOS, SERVER_S, CLIENT_S]) is not None
    assert read([*HELLOS, *sent]) is None


@pytest.mark.parametrize("opened", [(0, 9), (9, 0)])
def test_records_that_do_not_open_leave_it_to_a_session(opened: tuple[int, int]) -> None:
    assert read([*HELLOS, SERVER_S, CLIENT_S], opened) is None


def test_the_records_that_are_tried_are_those_before_the_client_s_finished() -> None:
    long, alert = b"x" * 40, b"x" * 10

    def tried(sent: Sent) -> list[tuple[int, int]]:
        """Direction and number of the records."""
        _, records = table(sent)
        bounds = np.empty((len(records), 3), np.int64)
        cuts, lengths = np.array([0, len(records)]), np.array([(40, 56, 10, 26)])
        bounds = bounds[: at.attempts(records, cuts, np.zeros(1, np.int64), lengths, bounds)]
        return [(direction, records[:, R_AT].tolist().index(start)) for direction, start, _ in bounds.tolist()]

    server, other, finished = (SERVER, 23, b"x"), (CLIENT, 23, b"some"), (CLIENT, 23, long)
    assert tried([*HELLOS, server, server, finished, other, server]) == [(0, 4), (1, 2), (1, 3)]
    assert tried([*HELLOS, server, other, finished, other]) == [(0, 3), (0, 4), (1, 2)], "a certificate stands before it"
    padded = (CLIENT, 23, long + bytes(16))
    assert tried([*HELLOS, server, padded, other]) == [(0, 3), (1, 2)]
    for refusal in (alert, alert + bytes(16)):
        assert tried([*HELLOS, server, (CLIENT, 23, refusal), finished]) == []
    assert tried([*HELLOS, server]) == []
