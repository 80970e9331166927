"""Turns that are inferred from records, against the truth behind the encryption."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kcap
from kcap import limits
from kcap.tls.secrets import Secrets
from kcap.tls.session import TlsSession
from kcap.tls.suites import suite_of
from kcap.tls.turns import CLIENT, FIELDS, SERVER, Hidden, Seen, Turns, tickets
from tests.support.tls import Conversation, converse, without_secrets

AES128_GCM, AES256_GCM, AES128_CCM8 = 0x1301, 0x1302, 0x1305
TIMES = ("request_first_ns", "request_last_ns", "response_first_ns", "response_last_ns")
Row = dict[str, Any]


def turns_of(*records: tuple[int, int], suite: int | None = None, tls13: bool = True) -> list[Row]:
    """The turns of records (side, length), whose times are their numbers from 1."""
    turns = Turns()
    if suite is not None:
        turns.server_hello(suite_of(suite), tls13=tls13)
    for at, (side, length) in enumerate(records, 1):
        turns.record(Seen(side, at, at, length, True))
    turns.finish()
    return rows(turns)


def rows(turns: Turns) -> list[Row]:
    size = len(FIELDS)
    return [dict(zip(FIELDS, turns.done[at : at + size])) for at in range(0, len(turns.done), size)]


def spans(found: list[Row]) -> list[tuple[int, ...]]:
    return [tuple(row[name] for name in TIMES) for row in found]


def test_a_turn_is_a_run_of_the_client_and_the_run_of_the_server_behind_it() -> None:
    found = turns_of((CLIENT, 100), (SERVER, 200), (SERVER, 30), (CLIENT, 7), (CLIENT, 8), (SERVER, 9))
    assert spans(found) == [(1, 1, 2, 3), (4, 5, 6, 6)]
    assert [(row["request_bytes"], row["response_bytes"]) for row in found] == [(100, 230), (15, 9)]
    assert [(row["request_records"], row["response_records"]) for row in found] == [(1, 2), (2, 1)]


def test_requests_that_overlap_are_one_turn() -> None:
    assert spans(turns_of((CLIENT, 100), (CLIENT, 100), (SERVER, 50), (SERVER, 50))) == [(1, 2, 3, 4)]


def test_what_the_server_sends_before_any_request_is_no_turn() -> None:
    assert spans(turns_of((SERVER, 100), (CLIENT, 100), (SERVER, 50))) == [(2, 2, 3, 3)]


def test_a_request_without_a_response_has_no_times_of_one() -> None:
    (row,) = turns_of((CLIENT, 100))
    assert (row["response_first_ns"], row["response_records"]) == (0, 0)


@pytest.mark.parametrize(("suite", "finished"), [(AES128_GCM, 53), (AES256_GCM, 69), (AES128_CCM8, 45)])
@pytest.mark.parametrize("padding", [0, 16])
def test_handshake_of_tls_1_3_is_left_out(suite: int, finished: int, padding: int) -> None:
    """The server's flight, the client's certificate and Finished, and session tickets."""
    flight = [(SERVER, 900), (CLIENT, 700), (CLIENT, 300), (CLIENT, finished + padding)]
    found = turns_of(*flight, (SERVER, 250), (SERVER, 250), (CLIENT, 100), (SERVER, 80), suite=suite)
    assert spans(found) == [(7, 7, 8, 8)]


def test_session_tickets_behind_the_first_request_are_no_response() -> None:
    for sent, first in (([250, 250, 80], 5), ([1713, 80], 4), ([16400, 6388, 80, 81], 5), ([80], 3), ([80, 80], 3)):
        found = turns_of((CLIENT, 53), (CLIENT, 100), *((SERVER, size) for size in sent), suite=AES128_GCM)
        assert spans(found) == [(2, 2, first, len(sent) + 2)], sent


def test_a_client_flight_without_a_finished_of_the_known_length_is_its_first_record() -> None:
    found = turns_of((SERVER, 900), (CLIENT, 528), (CLIENT, 144), (SERVER, 99), suite=AES128_GCM)
    assert spans(found) == [(3, 3, 4, 4)]


def test_alerts_and_key_updates_of_tls_1_3_are_no_messages() -> None:
    start = [(CLIENT, 53), (CLIENT, 100), (SERVER, 99)]
    assert spans(turns_of(*start, (CLIENT, 19), (SERVER, 19), suite=AES128_GCM)) == [(2, 2, 3, 3)]
    assert spans(turns_of(*start, (CLIENT, 22), (SERVER, 22), suite=AES128_GCM)) == [(2, 2, 3, 3)]
    assert spans(turns_of(*start, (CLIENT, 35), (SERVER, 35), suite=AES128_GCM)) == [(2, 2, 3, 3)], "Java pads them"
    messages = [(CLIENT, 35), (SERVER, 35), (CLIENT, 99)]
    assert len(turns_of(*start, *messages, suite=AES128_GCM)) == 3, "in mid-connection that length is a message"


def test_a_turn_over_missing_bytes_says_so() -> None:
    turns = Turns()
    for at, (side, whole) in enumerate([(CLIENT, True), (SERVER, True), (CLIENT, False), (SERVER, True)]):
        turns.record(Seen(side, at, at, 50, whole))
    turns.record(Seen(CLIENT, 9, 9, 50, True))
    turns.gap(CLIENT)
    turns.record(Seen(CLIENT, 10, 10, 50, True))
    turns.finish()
    assert [row["gap"] for row in rows(turns)] == [0, 1, 1]


def test_bytes_of_a_server_that_are_missed_late_mark_the_turn_that_they_may_belong_to() -> None:
    """A hole is decided by what comes behind it, which may be the response to a request that was seen before that."""
    turns = Turns()
    for at, side in enumerate([CLIENT, SERVER, CLIENT, SERVER, CLIENT], 1):
        turns.record(Seen(side, at, at, 50, True))
    turns.gap(SERVER)
    turns.record(Seen(SERVER, 6, 6, 50, True))
    turns.finish()
    assert [row["gap"] for row in rows(turns)] == [0, 1, 1]


@pytest.mark.parametrize("end", [[19, 19], [35, 35], [22]])
def test_records_too_short_for_data_are_none_where_the_version_is_not_known(end: list[int]) -> None:
    seen = [(CLIENT, 100), (SERVER, 200), *((at % 2, size) for at, size in enumerate(end))]
    assert spans(turns_of(*seen)) == [(1, 1, 2, 2)]


def test_nothing_is_inferred_while_a_record_boundary_is_lost() -> None:
    turns = Turns()
    turns.record(Seen(CLIENT, 1, 1, 50, True))
    turns.lose(SERVER)
    for at in (2, 3):
        turns.record(Seen(CLIENT, at, at, 50, True))
    turns.record(Seen(SERVER, 4, 4, 50, True))
    turns.record(Seen(CLIENT, 5, 5, 50, True))
    turns.finish()
    assert [(row["request_first_ns"], row["gap"]) for row in rows(turns)] == [(1, 1), (5, 1)]


def test_turns_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TLS_TURNS_MAX", 3)
    turns = Turns()
    for at in range(10):
        turns.record(Seen(at % 2, at, at, 50, True))
    turns.finish()
    assert (len(turns), turns.dropped) == (3, 2)


@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([19, 22, 35, 50, 53, 69, 250, 16400])), max_size=40), st.booleans()
)
def test_turns_cover_records_once_in_order(records: list[tuple[int, int]], hidden: bool) -> None:
    """Law: without TLS 1.3 every record from the client's first on is in one turn; with it never more than that."""
    found = turns_of(*records, suite=AES128_GCM, tls13=hidden)
    counted = sum(row["request_records"] + row["response_records"] for row in found)
    first = next((at for at, (side, _) in enumerate(records) if side == CLIENT), len(records))
    assert counted <= len(records) - first if hidden else counted == len(records) - first
    times = [time for row in found for time in spans([row])[0] if time]
    assert times == sorted(times)


def test_tickets_are_never_all_there_is() -> None:
    for sizes in ([], [100], [100, 100], [16400], [16400, 16400]):
        assert tickets([Seen(SERVER, 1, 1, size, True) for size in sizes]) == 0
    assert Hidden.of(suite_of(AES128_GCM)).never_data == {19, 22}


MESSAGES = [(CLIENT, b"q" * 90), (SERVER, b"r" * 400), (CLIENT, b"s" * 40_000), (SERVER, b"t" * 30)] * 3


def looked_at(made: Conversation, secrets: Secrets) -> TlsSession:
    session, offsets = TlsSession(secrets, Turns()), [0, 0]
    for ref, (side, data) in enumerate(made.wire):
        list(session.data(side, offsets[side], data, len(data), ref, ref, offsets[side]))
        session = pickle.loads(pickle.dumps(session))
        offsets[side] += len(data)
    list(session.finish())
    return session


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_a_conversation_of_openssl_has_its_turns_with_and_without_keys(version: str) -> None:
    made, _ = converse(MESSAGES, version=version)
    keys = Secrets()
    keys.keylog.add(made.keylog)
    with_keys, without = looked_at(made, keys).turns, looked_at(made, Secrets()).turns
    assert with_keys is not None
    assert without is not None
    assert with_keys.done == without.done
    assert len(without) == 6
    assert [row["request_records"] for row in rows(without)] == [1, 3] * 3


def table(path: Path, name: str, columns: tuple[str, ...]) -> list[Row]:
    found: list[Row] = kcap.open(str(path)).table(name, columns).to_arrow().to_pylist()
    return found


def test_turns_of_a_capture_without_its_keys_are_its_exchanges(pcaps: Path, tmp_path: Path) -> None:
    """Precision and recall against the decrypted truth; keys change nothing about the turns."""
    capture, blind = pcaps / "tls13.pcapng", tmp_path / "blind.pcapng"
    blind.write_bytes(without_secrets(capture.read_bytes()))
    columns = ("connection", *TIMES)
    assert not [row for row in table(blind, "exchanges", ("tls",)) if row["tls"]], "nothing is decrypted"
    turns = table(blind, "tls_turns", columns)
    assert turns == table(capture, "tls_turns", columns)
    rows = table(capture, "exchanges", ("tls", "outcome", *columns))
    truth = {tuple(row[name] for name in columns) for row in rows if row["tls"] and row["outcome"] == "answered"}
    found = {tuple(row[name] for name in columns) for row in turns if row["response_first_ns"] is not None}
    assert len(truth) == 76
    assert len(found & truth) / len(found) >= 0.98, "precision"
    assert len(found & truth) / len(truth) >= 0.97, "recall"


@pytest.mark.parametrize("name", ["tls12-resumed.pcapng", "tls13.pcapng"])
def test_a_capture_that_starts_late_has_no_turn_and_no_client_that_the_whole_one_has_not(
    name: str, pcaps: Path, tmp_path: Path
) -> None:
    whole, late = pcaps / name, tmp_path / "late.pcapng"
    columns, ends = ("client_port", "server_port", *TIMES), ("client_port", "server_port", "tls_ja4", "tls_handshake_ns")
    truth = {tuple(row.values()) for row in table(whole, "tls_turns", columns)}
    known = {tuple(row.values()) for row in table(whole, "connections", ends)}
    for first in range(1, 46):
        late.write_bytes(without_secrets(whole.read_bytes(), first))
        for row in table(late, "tls_turns", (*columns, "gap")):
            assert row["gap"] or row["response_first_ns"] is None or tuple(row.values())[: len(columns)] in truth, first
        for row in table(late, "connections", (*ends, "phase")):
            if row["phase"] == "tls" and (row["tls_ja4"] or row["tls_handshake_ns"]):
                assert tuple(row.values())[: len(ends)] in known, first
