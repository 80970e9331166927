"""Descriptors of frames, requests and answers."""

from kcap.columns import FLAGS
from kcap.kafka.frames import FLAG, NO_FRAME, PendingExchange, PendingResponse


def test_each_flag_has_its_bit() -> None:
    assert [FLAG[name] for name in FLAGS] == [1 << i for i in range(len(FLAGS))]


def test_a_token_is_an_exchange_without_a_key() -> None:
    assert PendingExchange(1, None, None, None, None, 0).token
    assert not PendingExchange(1, 18, 3, 7, None, 0).token


def test_the_frame_that_is_not_there_says_nothing() -> None:
    assert set(NO_FRAME[:-1]) == {None}
    assert NO_FRAME.flags == 0


def test_whether_the_broker_had_a_request_when_it_sent_a_response() -> None:
    """By the order of packets; behind a tap that shows them out of order, by what was acknowledged."""
    request, response = PendingExchange(1, 3, 9, 7, "app", 0), PendingResponse(7, 0, 0)
    assert request.received(4, 100), "its first packet is not known to be behind"
    request.first_ref, request.place = 5, 100
    assert request.received(None, 0)
    assert request.received(5, 0)
    assert request.received(4, None)
    assert request.received(4, 101)
    assert not request.received(4, 100)
    response.first_ref, response.acked = 4, 100
    assert request.precedes(response), "nothing was lost before it, so the response has no other request"
    request.behind_loss = True
    assert not request.precedes(response)
    response.acked = 101
    assert request.precedes(response)
