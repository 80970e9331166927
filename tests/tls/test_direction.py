"""Values of one side of a TLS connection."""

from kcap import limits
from kcap.tls.direction import LABELS, Direction, LostPlaintext, epochs13, is_last, spans
from kcap.tls.record_ciphers import OpenedRecord
from kcap.tls.records import RecordPiece, TlsRecord
from kcap.tls.suites import suite_of
from tests.support.tls import sealed_record

SECRETS = {
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET": b"h" * 32,
    "CLIENT_TRAFFIC_SECRET_0": b"a" * 32,
    "SERVER_TRAFFIC_SECRET_0": b"s" * 48,
}


def test_epochs_are_those_whose_secrets_have_the_length_of_the_hash() -> None:
    made = epochs13(0, suite_of(0x1301), SECRETS)
    assert [epoch.label for epoch in made] == ["CLIENT_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0"]
    assert [is_last(epoch) for epoch in made] == [False, True]
    assert epochs13(1, suite_of(0x1301), SECRETS) == []
    assert "h" * 9 not in repr(made)


def test_any_suite_that_a_damaged_hello_names_gives_keys_that_open_or_none() -> None:
    traffic = dict.fromkeys(LABELS[0], bytes(32))
    found = [number for number in range(1 << 16) if epochs13(0, suite_of(number), traffic)]
    assert {0x1301, 0x1303} <= set(found)
    for number in found:
        for epoch in epochs13(0, suite_of(number), traffic):
            assert epoch.opener.open(0, 23, 0x0303, bytes(40)) is None


def test_spans_tile_the_plaintext_by_the_packets_of_its_ciphertext() -> None:
    pieces = [RecordPiece(100, 108, 1, 1, 0), RecordPiece(108, 120, 2, 2, 0), RecordPiece(120, 140, 3, 3, 0)]
    record = TlsRecord(100, 23, 0x0303, bytes(35), pieces)
    assert [span[:2] for span in spans(record, OpenedRecord(23, bytes(18), 0))] == [(0, 3), (3, 15), (15, 18)]


def test_keys_that_were_dropped_are_those_that_are_made_again() -> None:
    direction = Direction(epochs=epochs13(0, suite_of(0x1301), SECRETS))
    made = [epoch.opener.keys for epoch in direction.epochs]
    direction.release()
    assert [epoch.made for epoch in direction.epochs] == [None, None]
    assert [epoch.opener.keys for epoch in direction.epochs] == made


def test_of_epochs_no_more_are_held_than_records_may_need() -> None:
    """A direction that goes on to application data forgets the keys before; those that were tried behind it go, too."""
    direction = Direction(epochs=epochs13(0, suite_of(0x1301), SECRETS))
    last = direction.epochs[1]
    direction.enter(1)
    assert (direction.epochs, direction.at, direction.number) == ([last], 0, 0)
    direction.epochs += epochs13(0, suite_of(0x1301), {"CLIENT_TRAFFIC_SECRET_0": b"n" * 32}) * 2
    newest = direction.epochs[2]
    direction.release()
    assert direction.epochs == [last]
    direction.epochs.append(newest)
    direction.move(1, 5)
    assert (direction.epochs, direction.at, direction.number) == ([newest], 0, 5)


def test_a_direction_that_has_opened_nothing_is_not_in_good_order() -> None:
    assert not Direction().in_good_order
    epochs = epochs13(0, suite_of(0x1301), SECRETS)
    assert Direction(ready=True, sealed=True, epochs=epochs).in_good_order
    assert not Direction(ready=True, sealed=True, epochs=epochs, lost=True).in_good_order
    assert not Direction(ready=True, sealed=True).in_good_order, "new keys are not there yet"


def test_a_direction_at_rest_keeps_the_epochs_that_could_not_be_made_again() -> None:
    suite = suite_of(0x1301)
    unopened, opened, other = (Direction(epochs=epochs13(0, suite, SECRETS), ready=ready) for ready in (False, True, False))
    for direction in (unopened, opened, other):
        assert direction.opener.opens_many
    unopened.rest(lambda: epochs13(0, suite, SECRETS))
    opened.rest(lambda: epochs13(0, suite, SECRETS))
    other.rest(lambda: epochs13(0, suite, SECRETS | {"CLIENT_TRAFFIC_SECRET_0": b"b" * 32}))
    assert [len(direction.epochs) for direction in (unopened, opened, other)] == [0, 2, 2]
    assert all(epoch.made is None for direction in (opened, other) for epoch in direction.epochs)


def direction_of(*secrets: bytes) -> Direction:
    """With epochs of application data."""
    return Direction(epochs=[epoch for secret in secrets for epoch in epochs13(0, suite_of(0x1301), {LAST_LABEL: secret})])


LAST_LABEL = "CLIENT_TRAFFIC_SECRET_0"


def test_whole_records_of_data_are_opened_up_to_the_first_other_one() -> None:
    direction = direction_of(b"a" * 32)
    data = [b"one", b"", b"three"]
    wire = b"".join(sealed_record(direction.opener, number, some) for number, some in enumerate(data))
    ticket, budget = sealed_record(direction.opener, 3, b"ticket", 22), direction.budget
    at, taken = direction.whole_records(b"--" + wire + ticket, 2, 2 + len(wire) + len(ticket))
    assert (at, [whole.buffer[: whole.size] for whole in taken], direction.number) == (2 + len(wire), data, 3)
    assert direction.budget > budget, "what opens pays for what is tried"
    assert direction.whole_records(ticket[:-1], 0, len(ticket) - 1) == (0, [])
    assert direction.number == 3


def test_a_handshake_record_is_opened_at_its_number() -> None:
    direction = direction_of(b"a" * 32)
    record = sealed_record(direction.opener, 0, b"message", 22)
    assert direction.handshake_record(record) == b"message"
    assert direction.handshake_record(record) is None, "another number is due"
    assert direction.number == 1


def test_a_loss_is_as_large_as_the_plaintext_of_its_records() -> None:
    direction = direction_of(b"a" * 32)
    assert list(direction.lost_before(0, 0x0304, 5)) == []
    direction.lost_records, direction.lost_bytes = 2, 2 * (5 + 17) + 30
    (lost,) = direction.lost_before(0, 0x0304, 5)
    assert lost == LostPlaintext(0, 30, True, 5)
    direction.lost_records = 0
    assert not next(iter(direction.lost_before(0, 0x0304, 5))).exact, "how many records these bytes were is not known"
    direction.settle()
    assert list(direction.lost_before(0, 0x0304, 5)) == []


def numbers(direction: Direction, *, begun: bool) -> dict[int, set[int]]:
    """By epoch."""
    found: dict[int, set[int]] = {}
    for at, some in direction.candidates(begun=begun):
        found.setdefault(at, set()).update(some)
    return found


def test_numbers_that_a_record_may_have() -> None:
    """Where nothing is lost, the first of other keys; behind lost records, one behind them; behind bytes of none, some more."""
    direction = direction_of(b"a" * 32)
    direction.number = 7
    assert numbers(direction, begun=True) == {1: {0}}, "the last record may have been a KeyUpdate"
    direction.lost, direction.lost_records, direction.unopened, direction.lost_bytes = True, 2, 2, 100
    assert 9 in numbers(direction, begun=True)[0]
    assert 7 not in numbers(direction, begun=True)[0], "the number that is due was tried before"
    exact = len(numbers(direction, begun=True)[0])
    direction.missing = 1000
    assert len(numbers(direction, begun=True)[0]) > exact
    direction.unopened = limits.TLS_UNOPENED_RECORDS + 1
    assert numbers(direction, begun=True) == {0: {7 + direction.unopened}}


def test_refused_early_data_leaves_nothing() -> None:
    direction = direction_of(b"a" * 32)
    direction.sealed, direction.number = True, 4
    direction.wait(TlsRecord(0, 23, 0x0303, b"", []))
    assert len(direction.waiting) == 1
    assert not direction.is_early
    direction.unseal()
    assert (direction.sealed, direction.epochs, direction.number, direction.waiting) == (False, [], 0, ())


def test_what_stands_behind_a_handshake_is_read_next() -> None:
    direction = direction_of(b"a" * 32)
    record = sealed_record(direction.opener, 0, b"data")
    direction.shaken(100, record[:7], [RecordPiece(100, 107, 1, 2, 0)])
    assert direction.ready
    offset, data, pieces = direction.held
    assert (offset, bytes(data), len(pieces)) == (100, record[:7], 1)
    assert len(direction.packed) == len(direction.opener.packed)
