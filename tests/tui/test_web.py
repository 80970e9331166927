"""The terminal UI in a browser: who gets in, and what the page may load."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable

import pytest

pytest.importorskip("textual_serve")

from aiohttp.test_utils import TestClient, TestServer

from kcap.tui.web import COOKIE, FOCUS, WebServer

PROGRAM = [sys.executable, "-c", "print('nothing')"]


def served(check: Callable[[WebServer, TestClient], Awaitable[None]]) -> None:  # type: ignore[type-arg]
    """Runs a check against a server that listens."""

    async def run() -> None:
        server = WebServer(PROGRAM, "127.0.0.1", 0, "kcap")
        host, _, port = server.place.partition(":")
        server.socket.close()
        async with TestClient(TestServer(await server._make_app(), host=host, port=int(port))) as client:
            await check(server, client)

    asyncio.run(run())


def test_the_token_works_once_and_is_exchanged_for_a_cookie() -> None:
    async def check(server: WebServer, client: TestClient) -> None:  # type: ignore[type-arg]
        token = server.address.partition("=")[2]
        assert (await client.get("/")).status == 403
        assert (await client.get("/?token=wrong")).status == 403
        moved = await client.get(f"/?token={token}", allow_redirects=False)
        assert (moved.status, moved.headers["Location"]) == (303, "/")
        assert moved.cookies[COOKIE]["httponly"]
        assert moved.cookies[COOKIE]["samesite"] == "Strict"
        page = await client.get("/")
        assert page.status == 200
        client.session.cookie_jar.clear()
        assert (await client.get(f"/?token={token}")).status == 403
        for path in ("/", "/ws", "/static/js/textual.js", "/download/x"):
            assert (await client.get(path)).status == 403

    served(check)


def test_a_page_of_another_site_gets_nothing() -> None:
    async def check(server: WebServer, client: TestClient) -> None:  # type: ignore[type-arg]
        await client.get(server.address.removeprefix(server.public_url))
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            for path in ("/", "/ws"):
                assert (await client.get(path, headers=headers)).status == 403

    served(check)


def test_the_page_loads_nothing_from_elsewhere() -> None:
    async def check(server: WebServer, client: TestClient) -> None:  # type: ignore[type-arg]
        page = await client.get(server.address.removeprefix(server.public_url))
        policy = page.headers["Content-Security-Policy"]
        assert set(re.findall(r"(?:https?|wss?):[^\s;]*", policy)) == {f"ws://{server.place}"}
        assert "*" not in policy
        assert page.headers["Cache-Control"] == "no-store"

    served(check)


def test_keys_go_to_the_terminal_without_a_click() -> None:
    async def check(server: WebServer, client: TestClient) -> None:  # type: ignore[type-arg]
        page = await client.get(server.address.removeprefix(server.public_url))
        text = await page.text()
        assert int(page.headers["Content-Length"]) == len(text.encode())
        assert text.count(FOCUS) == 1
        assert text.index('id="terminal"') < text.index(FOCUS) < text.index("</body>")

    served(check)


def test_a_port_in_use_is_refused() -> None:
    first = WebServer(PROGRAM, "127.0.0.1", 0, "kcap")
    try:
        first.socket.listen()
        with pytest.raises(OSError, match="in use"):
            WebServer(PROGRAM, "127.0.0.1", first.port, "kcap")
    finally:
        first.socket.close()
