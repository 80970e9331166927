"""Kafka's error codes."""

from kcap.schema.errors import CODES, ERRORS, error_name, retriable


def test_names_and_codes() -> None:
    """Spot checks against the protocol guide, the first, the last and gaps."""
    assert error_name(0) == "NONE"
    assert error_name(-1) == "UNKNOWN_SERVER_ERROR"
    assert error_name(6) == "NOT_LEADER_OR_FOLLOWER"
    assert error_name(35) == "UNSUPPORTED_VERSION"
    assert error_name(79) == "MEMBER_ID_REQUIRED"
    assert error_name(100) == "UNKNOWN_TOPIC_ID"
    assert error_name(136) == "CONTROLLER_ID_NOT_REGISTERED"
    assert error_name(137) is None
    assert CODES["REQUEST_TIMED_OUT"] == 7
    assert "NO_SUCH_ERROR" not in CODES


def test_codes_are_dense_and_distinct() -> None:
    """-1 to 136 without a hole, each name once."""
    assert sorted(ERRORS) == list(range(-1, 137))
    assert len(CODES) == len(ERRORS)


def test_what_may_be_tried_again() -> None:
    """As Kafka's RetriableException has it."""
    assert retriable(6)
    assert retriable(7)
    assert not retriable(0)
    assert not retriable(35)
    assert not retriable(9999)
    assert sum(map(retriable, ERRORS)) == 32
