"""Lives of members: who comes to stay, and who comes to go."""

from typing import Any

from kcap.reports.findings.lives import turnover
from kcap.reports.findings.observed import Observed
from tests.reports.findings.tables import SECOND, Row, exchange, observed

ROOM_NS = 15 * SECOND


def of_group(rows: list[Row]) -> tuple[int, int, int]:
    """How many members of the group came, went, and came to go."""
    seen: Observed = observed(rows)
    (found,) = seen.run(turnover(seen.exchanges, ROOM_NS))
    return found["came"], found["went"], found["again"]


def generations(*members: str, each: int = 1) -> list[Row]:
    """JoinGroup requests of a classic group: the members of each generation, `each` generations of every one."""
    rows: list[Row] = []
    for step, names in enumerate(members):
        for more in range(each):
            generation = step * each + more + 1
            rows += [
                exchange(f"C{name}", generation, "JoinGroup", generation, group_id="g", generation=generation, member_id=name)
                for name in names
            ]
    return rows


def beat(member: str, at: float, epoch: int, **more: Any) -> Row:
    return exchange(
        member, int(at * 10), "ConsumerGroupHeartbeat", at, group_id="g", generation=epoch, member_id=member, **more
    )


def test_members_that_are_added_one_by_one_stay_in_two_generations_each_too() -> None:
    assert of_group(generations("a", "ab", "abc", "abcd")) == (4, 0, 0)
    assert of_group(generations("a", "ab", "abc", "abcd", each=2)) == (4, 0, 0)


def test_members_that_are_replaced_one_by_one_go_once_and_none_that_is_new_does() -> None:
    assert of_group(generations("abc", "bc", "bcd", "cd", "cde", "de", "def")) == (6, 3, 0)
    assert of_group(generations("abc", "abcd", "bcd", "bcde", "cde", "cdef", "def")) == (6, 3, 0), "the new ones start before"


def test_members_that_come_to_go_are_counted() -> None:
    assert of_group(generations("a", "ab", "a", "ac", "a", "ad", "a")) == (4, 3, 2)


def test_where_the_broker_assigns_a_life_ends_with_a_negative_epoch_a_new_start_or_silence() -> None:
    stays = [beat("a", 5.0 * at, at + 1) for at in range(13)]
    left = [beat(name, at + more, epoch) for name, at in (("b", 10), ("c", 20)) for more, epoch in ((0, 0), (1, 3), (2, -1))]
    assert of_group([*stays, *left]) == (3, 2, 1)
    anew = [beat("b", at + more, epoch) for at in (50, 53, 56) for more, epoch in ((0, 0), (1, 9))]
    assert of_group([*stays, *anew]) == (4, 2, 1), "the last one may live"
    silent = [beat(name, at, 0) for name, at in (("b", 10), ("c", 20), ("d", 50))]
    assert of_group([*stays, *silent]) == (4, 2, 1), "d may send its next heartbeat behind the end"


def test_requests_for_a_member_id_are_no_lives() -> None:
    asks = [exchange("C1", 1, "JoinGroup", 0.5, group_id="g", generation=-1, member_id="x")]
    assert of_group([*asks, *generations("a", "ab")]) == (2, 0, 0)
