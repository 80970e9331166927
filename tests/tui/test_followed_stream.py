"""A connection followed."""

import asyncio
from typing import Any

import pytest

from kcap.tui import followed_stream
from kcap.tui.capture_model import CaptureModel
from kcap.tui.followed_stream import numbers_of, stream_lines
from tests.tui.driving import LARGE, lines, notified, opened, press, screen

pytestmark = pytest.mark.usefixtures("fresh_settings")


def test_all_exchanges_of_a_connection_in_order(book: CaptureModel) -> None:
    rows = book.exchanges(["connection", "exchange"]).to_pylist()
    uid = rows[50]["connection"]
    found = [rows[number] for number in numbers_of(book, uid)]
    assert [row["exchange"] for row in found] == sorted(row["exchange"] for row in rows if row["connection"] == uid)


@pytest.mark.parametrize("way", ["text", "hex"])
def test_messages_stand_in_the_order_of_their_packets(book: CaptureModel, way: str) -> None:
    uid = book.snapshot().row(50)["connection"]
    found = [book.frames(number) for number in numbers_of(book, uid)]
    heads = [line.plain for line in stream_lines(found, way, "both directions") if line.plain[:1] in "→←"]
    times = [line[2:14] for line in heads]
    assert times == sorted(times)
    assert len(heads) == 2 * len(found)
    client = [line.plain for line in stream_lines(found, way, "client") if line.plain[:1] in "→←"]
    assert client == [line for line in heads if line.startswith("→")]


def test_it_begins_with_the_selected_exchange_and_says_where_it_ends() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=(100, 14)) as pilot:
            app: Any = pilot.app
            await press(pilot, "G")
            await press(pilot, "w")
            await app.workers.wait_for_complete()
            await pilot.pause()
            number = app.screen.number
            assert number > 5
            assert f"  exchange {number}\n" in screen(app)
            assert "  exchange 1\n" not in screen(app)
            await press(pilot, "g")
            await pilot.pause()
            assert "  exchange 1\n" in screen(app)
            await press(pilot, "G", "right_curly_bracket")
            await pilot.pause()
            assert f"  exchange {number}\n" in screen(app)
            assert [one.message for one in app._notifications] == ["the connection has no more exchanges"]

    asyncio.run(run())


def test_views_follow_the_connection_of_a_row_as_the_list_does() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=(100, 30)) as pilot:
            app: Any = pilot.app
            for keys, whose in ((("C",), lambda row: (row["connection"], 1)), (("S", "3"), lambda row: row["exchange"])):
                await press(pilot, *keys)
                await app.workers.wait_for_complete()
                await pilot.pause()
                row = app.screen.table.current
                await press(pilot, "w")
                await app.workers.wait_for_complete()
                await pilot.pause()
                found, expected = (app.screen.uid, app.screen.number), whose(row)
                assert found == expected or f"{found[0]}.{found[1]}" == expected
                await press(pilot, "escape", "escape")
            await press(pilot, "H", "w")
            assert "this row names no connection to follow" in notified(app)

    asyncio.run(run())


def test_what_stands_before_is_read_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection is followed from the part with the selected exchange on, and backward; its ends are in the title."""
    monkeypatch.setattr(followed_stream, "PART", 4)

    async def run() -> None:
        async with opened("java-transactions.pcap", size=(80, 24)) as pilot:
            app: Any = pilot.app
            await press(pilot, "G", "w")
            await app.workers.wait_for_complete()
            await pilot.pause()
            stream = app.screen
            row = app.book.snapshot().row(stream.numbers[0])
            ends = f"{row['client_ip']}:{row['client_port']} → {row['server_ip']}:{row['server_port']}"
            assert lines(app)[0].startswith(f" {ends}  exchanges ")
            first = stream.first
            assert first > 0
            assert f"exchanges {first + 1} to {stream.read} of {len(stream.numbers)}" in lines(app)[0]
            while stream.first:
                await press(pilot, "left_curly_bracket")
                await app.workers.wait_for_complete()
                await pilot.pause()
            await press(pilot, "g", "left_curly_bracket")
            await pilot.pause()
            assert "  exchange 1\n" in screen(app)
            assert f"exchanges 1 to {len(stream.numbers)} of" in lines(app)[0], "what was read stays"
            assert [one.message for one in app._notifications] == ["the connection has no earlier exchanges"]

    asyncio.run(run())


def test_the_screen() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=LARGE) as pilot:
            app: Any = pilot.app
            await press(pilot, "w")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert "→ 07:42:12.122  ApiVersions v5  52 bytes" in screen(app)
            assert "clientSoftwareName" in screen(app)
            await press(pilot, "b")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert "00 00 00 30 00 12 00 05" in screen(app)
            await press(pilot, "f", "right_curly_bracket", "escape")
            assert app.screen is app.browser

    asyncio.run(run())
