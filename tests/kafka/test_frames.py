"""Descriptors of frames, requests and answers."""

from kcap.columns import FLAGS
from kcap.kafka.frames import FLAG, NO_FRAME, PendingExchange


def test_each_flag_has_its_bit() -> None:
    assert [FLAG[name] for name in FLAGS] == [1 << i for i in range(len(FLAGS))]


def test_a_token_is_an_exchange_without_a_key() -> None:
    assert PendingExchange(1, None, None, None, None, 0).token
    assert not PendingExchange(1, 18, 3, 7, None, 0).token


def test_the_frame_that_is_not_there_says_nothing() -> None:
    assert set(NO_FRAME[:-1]) == {None}
    assert NO_FRAME.flags == 0
