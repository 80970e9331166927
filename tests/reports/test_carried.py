"""Connections that carry on others."""

from kcap.reports.carried import Row, candidates, paired


def link(name: str, server: str, first: int, last: int, exchanges: int = 3, began: str = "syn") -> Row:
    """A connection of one client."""
    return {"connection": name, "client_id": "app", "server_ip": server, "server_port": 9092, "first_ns": first,
            "last_ns": last, "exchanges": exchanges, "began": began}  # fmt: skip


def requests(name: str, *times: tuple[int, int]) -> list[Row]:
    """Its requests, with the times of request and response."""
    return [{"connection": name, "exchange": at, "api": "Fetch", "api_version": 9, "request_first_ns": sent,
             "response_last_ns": got} for at, (sent, got) in enumerate(times, 1)]  # fmt: skip


def test_a_connection_that_begins_within_another_one_may_carry_it_on() -> None:
    front, back = link("F", "10.0.0.7", 0, 90), link("B", "10.0.0.1", 5, 80)
    assert candidates([front, back]) == [(front, back)]
    assert candidates([front, back | {"first_ns": 91}]) == []
    assert candidates([front, back | {"server_ip": "10.0.0.7"}]) == []
    assert candidates([front, back | {"exchanges": 30}]) == []
    assert len(candidates([front | {"began": "midstream"}, back | {"began": "midstream"}])) == 2, "nothing says which"


def test_it_does_where_each_request_lies_within_one_of_the_other() -> None:
    pair = link("F", "10.0.0.7", 0, 90), link("B", "10.0.0.1", 5, 80)
    sent = {"F": requests("F", (0, 30), (40, 60)), "B": requests("B", (5, 20), (45, 55))}
    ((ends, (one,)),) = paired([pair], sent, {}).items()
    assert ends == (("10.0.0.7", 9092), ("10.0.0.1", 9092))
    assert (len(one.requests), one.positions) == (2, 0)
    late = {**sent, "B": requests("B", (5, 20), (45, 65))}
    assert paired([pair], late, {}) == {}
    other = {("F", 1): {("t", 0, 7, None)}, ("B", 1): {("t", 0, 8, None)}}
    assert paired([pair], sent, other) == {}, "they are for other offsets"
