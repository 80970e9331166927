"""A connection as it spoke."""

from tests.reports.talking import SERVER, profile


def test_what_it_is_called() -> None:
    made = profile([(3, 1)], uid="C7")
    assert (made.uid, made.server) == ("C7", SERVER)
    assert made.open() is made
