"""Values of one side of a TLS connection."""

from kcap.tls.direction import LABELS, Direction, epochs13, is_last, spans
from kcap.tls.record_ciphers import OpenedRecord
from kcap.tls.records import RecordPiece, TlsRecord
from kcap.tls.suites import suite_of

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
