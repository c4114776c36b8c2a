"""The page with a server behind it, on this machine and for this machine.

It listens on 127.0.0.1 alone. A request whose Host is another name is refused, so that a web site cannot reach it
by a name that resolves to here (DNS rebinding); one whose Origin is another page is refused too. It serves the page
it was started with and answers POST /audit; no path in a request names a file.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Awaitable, Callable

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from orderproof.app.live import Auditor, Refused
from orderproof.errors import UsageError

ADDRESS = "127.0.0.1"
NAMES = (ADDRESS, "localhost")
LARGEST = 4096  # [bytes] of a request's body
GRACE = 3  # [seconds] for answers under way when it is stopped
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the page's own policy stands in the page
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def application(page: str, auditor: Auditor, *, port: int) -> Starlette:
    """The server's routes, for requests that name it as it is reached."""

    async def show(request: Request) -> Response:
        del request
        return HTMLResponse(page)

    async def audit(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _refusal(415, "expected Content-Type: application/json")
        body = await _body(request)
        if body is None:
            return _refusal(413, f"expected at most {LARGEST} bytes")
        try:
            return JSONResponse(await run_in_threadpool(auditor.answer, body))
        except Refused as error:
            return _refusal(error.status, str(error))

    routes = [Route("/", show, methods=["GET"]), Route("/audit", audit, methods=["POST"])]
    return Starlette(routes=routes, middleware=[Middleware(_SameMachine, port=port)])


def listen(port: int) -> socket.socket:
    """A socket on this machine alone; port 0 takes any that is free. Raises `UsageError`."""
    if not 0 <= port <= 65535:
        raise UsageError(f"expected --port from 0 to 65535; got {port}")
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((ADDRESS, port))
        made.listen()
    except OSError as error:
        made.close()
        why = error.strerror or error
        raise UsageError(f"port {port} cannot be used: {why}; give another --port, or 0 for any that is free") from None
    return made


def server(page: str, on: socket.socket, *, auditor: Auditor | None = None) -> uvicorn.Server:
    """A server of this page for a socket of `listen`; its `run(sockets=[on])` serves."""
    app = application(page, auditor or Auditor(), port=on.getsockname()[1])
    settings = uvicorn.Config(
        app, log_level="warning", lifespan="off", server_header=False, ws="none", timeout_graceful_shutdown=GRACE,
        limit_concurrency=32,
    )  # fmt: skip
    return uvicorn.Server(settings)


def serve(page: str, on: socket.socket) -> None:
    """Serve until interrupted (Ctrl-C, or a signal to end)."""
    with contextlib.suppress(KeyboardInterrupt):
        server(page, on).run(sockets=[on])


class _SameMachine(BaseHTTPMiddleware):
    """Refuse what was not meant for this server, and add to every answer what a browser should know."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        super().__init__(app)
        hosts = {f"{name}:{port}" for name in NAMES}
        self.hosts = hosts | set(NAMES) if port == 80 else hosts
        self.origins = {f"http://{host}" for host in self.hosts}

    async def dispatch(self, request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        if request.headers.get("host", "").lower() not in self.hosts:
            response: Response = _refusal(421, f"this server is {ADDRESS} and answers to no other name")
        elif request.headers.get("origin", next(iter(self.origins))).lower() not in self.origins:
            response = _refusal(403, "only the page of this server may ask it")
        else:
            response = await call_next(request)
        response.headers.update(_HEADERS)
        return response


async def _body(request: Request) -> bytes | None:
    """What was sent, read no further than what is allowed; None where it is more."""
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > LARGEST:
            return None
    return bytes(found)


def _refusal(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status_code=status)
