"""Serves the terminal UI to a browser, through textual-serve.

In: the command line of the terminal UI, an address of this machine. Out: a web server until Ctrl-C. Law: the token in the
printed address works once. Every later request needs the cookie that the browser got for it, and must name this server as its
host, so that a page of another site that resolves to this machine gets nothing. The page loads nothing from elsewhere.
"""

import hmac
import secrets
import shlex
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from aiohttp import web
from textual_serve.server import Server

COOKIE: Final = "kcap"
TOKEN_BYTES: Final = 24
FOCUS: Final = """<script>
const terminal = () => document.querySelector(".xterm-helper-textarea");
new MutationObserver((_, observer) => terminal() && (terminal().focus(), observer.disconnect()))
  .observe(document, {childList: true, subtree: true});
addEventListener("focus", () => terminal()?.focus());
</script>"""
"""Gives the terminal the focus as soon as it exists; the page of textual-serve waits for a click."""


class WebServer(Server):  # type: ignore[misc]
    """The server of one capture."""

    def __init__(self, arguments: Sequence[str], host: str, port: int, title: str) -> None:
        """`arguments`: program and arguments of a terminal UI; each opened page runs one. Port 0: any free one.

        Raises OSError if the address cannot be listened on.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind((host, port))
            self.socket.listen()  # a browser that opens the address before the server runs waits, and is not refused
        except OSError:
            self.socket.close()
            raise
        number = self.socket.getsockname()[1]
        self.place = f"[{host}]:{number}" if ":" in host else f"{host}:{number}"
        super().__init__(shlex.join(arguments), host, number, title, f"http://{self.place}")
        self.token: str | None = secrets.token_urlsafe(TOKEN_BYTES)
        self._cookie = secrets.token_urlsafe(TOKEN_BYTES)

    @property
    def address(self) -> str:
        """The address to open in a browser, which works once."""
        return f"{self.public_url}/?token={self.token}"

    async def _make_app(self) -> web.Application:
        app: web.Application = await super()._make_app()
        app.middlewares.append(self.guard())
        app.on_response_prepare.append(self.closed_in)
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Prints nothing, since the command prints the address."""

    def guard(self) -> Any:
        """Refuses requests with neither the token nor the cookie."""

        @web.middleware
        async def guarded(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            if request.host != self.place or request.headers.get("Origin", self.public_url) != self.public_url:
                raise web.HTTPForbidden(text="this is not the address of the server\n")
            given = request.query.get("token")
            if given is not None and self.token is not None and hmac.compare_digest(given.encode(), self.token.encode()):
                self.token = None
                moved = web.HTTPSeeOther("/")
                moved.set_cookie(COOKIE, self._cookie, httponly=True, samesite="Strict")
                raise moved
            if not hmac.compare_digest(request.cookies.get(COOKIE, "").encode(), self._cookie.encode()):
                raise web.HTTPForbidden(text="the address works once; kcap web prints a new one when it is started again\n")
            response = await handler(request)
            if isinstance(response, web.Response) and response.content_type == "text/html" and response.text is not None:
                response.text = response.text.replace("</body>", FOCUS + "</body>")
            return response

        return guarded

    async def closed_in(self, _request: web.Request, response: web.StreamResponse) -> None:
        """Tells the browser to load nothing from elsewhere, to show the page in no frame, and to keep no copy."""
        response.headers["Content-Security-Policy"] = (
            "default-src 'self' 'unsafe-inline' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
            f"connect-src 'self' ws://{self.place}; frame-ancestors 'none'"
        )
        response.headers["Cache-Control"], response.headers["Referrer-Policy"] = "no-store", "no-referrer"

    def run(self) -> None:
        """Serves until Ctrl-C."""
        web.run_app(self._make_app(), sock=self.socket, print=None)
