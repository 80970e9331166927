"""Conversations: the groups add up to the exchanges, connections without one stand behind."""

import tracemalloc

import pyarrow as pa
import pytest

from kcap import limits
from kcap.output.grid import duration
from kcap.tui.views import conversations_model as model
from tests.tui.views.laws import lines_hold, passing, sheet_holds
from tests.tui.views.stub import StubBook

CAPTURES = ("java-transactions.pcap", "raw-frames.pcap", "quota-3.9.pcap", "tls13.pcapng", "any-interface.pcap")


@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("by", model.BY)
def test_groups_add_up(name: str, by: tuple[str, ...]) -> None:
    book = StubBook(name)
    table = book.exchanges(model.COLUMNS)
    for connections in (book.table("connections"), None):
        sheet = model.conversations(table, by, connections, every=True)
        assert sum(row["count"] for row in sheet.rows) == table.num_rows
        assert sheet_holds(sheet, name) >= sum(bool(row["count"]) for row in sheet.rows)
        for column, text in (("errors", "error_code != 0"), ("unanswered", "outcome == unanswered")):
            assert sum(row[column] for row in sheet.rows) == passing(name, text)
        if sheet.detail is not None:
            for row in sheet.rows:
                lines_hold(sheet.detail(row, 90), 100)


def test_connections_without_an_exchange_are_named_where_there_is_no_filter() -> None:
    name = "raw-frames.pcap"
    book = StubBook(name)
    table, connections = book.exchanges(model.COLUMNS), book.table("connections")
    assert connections is not None
    every = model.conversations(table, ("connection",), connections, every=True)
    some = model.conversations(table, ("connection",), connections, every=False)
    silent = [row for row in every.rows if not row["count"]]
    assert len(every.rows) == connections.num_rows
    assert len(every.rows) - len(some.rows) == len(silent) > 0
    assert "http" in {model.protocol(row) for row in silent}
    assert all(not every.down(row) for row in silent)


def test_of_connections_with_as_many_exchanges_the_earlier_comes_first() -> None:
    book = StubBook("java-transactions.pcap")
    rows, _ = model.groups_of(book.exchanges(model.COLUMNS), ("connection",), book.table("connections"), every=True)
    places = [(-row["count"], row["first_ns"]) for row in rows if row["count"]]
    assert places == sorted(places)
    assert len(set(places)) > len({count for count, _ in places}), "some have as many"


def test_apis_of_a_group_are_drawn() -> None:
    name = "java-transactions.pcap"
    sheet = model.conversations(StubBook(name).exchanges(model.COLUMNS), ("client_ip",), None, every=True)
    assert sheet.charts is not None
    (row,) = sheet.rows
    (bars,) = sheet.charts(row)
    assert list(bars.values) == sorted((value or 0 for value in bars.values), reverse=True)
    for value, down in zip(bars.values, bars.downs):
        assert passing(name, str(down)) == value


def test_nothing_is_an_empty_sheet() -> None:
    table = StubBook("pipelined.pcap").exchanges(model.COLUMNS).slice(0, 0)
    for by in model.BY:
        assert model.conversations(table, by, None, every=True).rows == []


@pytest.mark.parametrize("by", model.BY)
def test_pieces_make_no_difference(by: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: groups and APIs do not depend on how many exchanges are looked at together."""
    table = StubBook("java-transactions.pcap").exchanges(model.COLUMNS)
    whole = model.groups_of(table, by)
    apis = model.apis_of(table, by, whole[0])
    for pieces in (1, 7, 50):
        monkeypatch.setattr(model, "EXCHANGES_AT_ONCE", pieces)
        assert model.groups_of(table, by) == whole
        assert model.apis_of(table, by, whole[0]) == apis


def test_counts_of_apis_do_not_grow_with_exchanges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times the exchanges of the same groups take the same Python objects."""
    table = StubBook("java-transactions.pcap").exchanges(model.COLUMNS)
    rows, _ = model.groups_of(table, ("connection",))
    monkeypatch.setattr(model, "EXCHANGES_AT_ONCE", table.num_rows)
    peaks = []
    for times in (1, 2, 20):
        many = pa.concat_tables([table] * times).combine_chunks()
        tracemalloc.start()
        model.apis_of(many, ("connection",), rows)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.5 * peaks[1]


def test_the_busiest_of_many_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    book = StubBook("java-transactions.pcap")
    table, connections = book.exchanges(model.COLUMNS), book.table("connections")
    whole = model.conversations(table, ("connection",), connections, every=True)
    monkeypatch.setattr(limits, "VIEW_ROWS", 3)
    some = model.conversations(table, ("connection",), connections, every=True)
    assert [row["connection"] for row in some.rows] == [row["connection"] for row in whole.rows[:3]]
    assert some.foot == f"the 3 busiest of {len(whole.rows)}"


@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("by", model.BY)
def test_groups_have_all_connections_with_their_life_bytes_and_end(name: str, by: tuple[str, ...]) -> None:
    """Law: what the table `connections` says of the connections of a group is what the group shows."""
    book = StubBook(name)
    connections, exchanges = book.table("connections"), book.exchanges(model.COLUMNS)
    assert connections is not None
    rows = connections.to_pylist()
    sheet = model.conversations(exchanges, by, connections, every=True)
    some = {(row[by[0]], row["connection"]) for row in exchanges.select([by[0], "connection"]).to_pylist()}
    spoke = {uid for _, uid in some}
    assert sum(row["connections"] for row in sheet.rows) >= len(rows)
    if "client_id" not in by:  # a connection may have several
        assert sum(row["connections"] for row in sheet.rows) == len(rows)
        for row in sheet.rows:
            of = [one for one in rows if all(one[key] == row[key] for key in by)]
            assert row["connections"] == len(of)
            assert model.life(row) == max(one["last_ns"] for one in of) - min(one["first_ns"] for one in of)
    silent = [one for one in rows if one["connection"] not in spoke]
    for sum_of, column in (("request_bytes", "client_captured"), ("response_bytes", "server_captured")):
        framed = sum(value or 0 for value in exchanges[sum_of].to_pylist())
        assert sum(row[sum_of] for row in sheet.rows) == framed + sum(one[column] for one in silent)
    if by == ("connection",):
        assert {row["connection"]: row["ended"] for row in sheet.rows} == {one["connection"]: one["ended"] for one in rows}
        assert [row["connection"] for row in sheet.rows if not row["count"]] == [one["connection"] for one in sorted(
            silent, key=lambda one: one["first_ns"])]  # fmt: skip


def test_details_say_how_long_a_connection_lasted_and_how_it_ended() -> None:
    book = StubBook("raw-frames.pcap")
    sheet = model.conversations(book.exchanges(model.COLUMNS), ("connection",), book.table("connections"), every=True)
    assert sheet.detail is not None
    for row in sheet.rows:
        text = " ".join(text for line in sheet.detail(row, 300) for text, _ in line)
        ended = {"fin": "FIN", "rst": "RST"}.get(row["ended"], row["ended"])
        assert f"ended: {ended}, lasted {duration(model.life(row))};" in text
