"""A local server for the page.

It listens on 127.0.0.1 only. A request with another Host is rejected, so that a web site cannot reach the server
through DNS rebinding; a request with another Origin is rejected too. The server delivers one page and handles
POST /audit; no path in a request names a file.
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

from orderproof.errors import UsageError
from orderproof.explain.live_audit import Auditor, RequestError

ADDRESS = "127.0.0.1"
NAMES = (ADDRESS, "localhost")
MAX_BODY_BYTES = 4096  # of a request
SHUTDOWN_SECONDS = 3  # for running requests
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the page contains its own policy
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def create_app(page: str, auditor: Auditor, *, port: int) -> Starlette:
    """The application: the page at / and POST /audit, for requests to 127.0.0.1 or localhost at this port."""

    async def show(request: Request) -> Response:
        del request
        return HTMLResponse(page)

    async def audit(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _error_response(415, "expected Content-Type: application/json")
        body = await _body(request)
        if body is None:
            return _error_response(413, f"expected at most {MAX_BODY_BYTES} bytes")
        try:
            return JSONResponse(await run_in_threadpool(auditor.handle, body))
        except RequestError as error:
            return _error_response(error.status, str(error))

    routes = [Route("/", show, methods=["GET"]), Route("/audit", audit, methods=["POST"])]
    return Starlette(routes=routes, middleware=[Middleware(_LocalOnlyMiddleware, port=port)])


def local_socket(port: int) -> socket.socket:
    """A listening socket on 127.0.0.1; port 0 takes any free port. Raises `UsageError`."""
    if not 0 <= port <= 65535:
        raise UsageError(f"expected --port from 0 to 65535; got {port}")
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((ADDRESS, port))
        listening.listen()
    except OSError as error:
        listening.close()
        why = error.strerror or error
        raise UsageError(f"port {port} cannot be used: {why}; give another --port, or 0 for any free port") from None
    return listening


def server(page: str, listening: socket.socket, *, auditor: Auditor | None = None) -> uvicorn.Server:
    """A server of this page for a socket of `local_socket`; ``run(sockets=[listening])`` starts it."""
    app = create_app(page, auditor or Auditor(), port=listening.getsockname()[1])
    settings = uvicorn.Config(
        app, log_level="warning", lifespan="off", server_header=False, ws="none",
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        limit_concurrency=32,
    )  # fmt: skip
    return uvicorn.Server(settings)


def serve(page: str, listening: socket.socket) -> None:
    """Serve until interrupted by Ctrl-C or a signal."""
    with contextlib.suppress(KeyboardInterrupt):
        server(page, listening).run(sockets=[listening])


class _LocalOnlyMiddleware(BaseHTTPMiddleware):
    """Reject requests for other hosts or from other origins, and add security headers to every response."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        super().__init__(app)
        hosts = {f"{name}:{port}" for name in NAMES}
        self.hosts = hosts | set(NAMES) if port == 80 else hosts
        self.origins = {f"http://{host}" for host in self.hosts}

    async def dispatch(self, request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        if request.headers.get("host", "").lower() not in self.hosts:
            response: Response = _error_response(421, f"expected the host {ADDRESS} or localhost")
        elif request.headers.get("origin", next(iter(self.origins))).lower() not in self.origins:
            response = _error_response(403, "expected a request from the page of this server")
        else:
            response = await call_next(request)
        response.headers.update(_HEADERS)
        return response


async def _body(request: Request) -> bytes | None:
    """The body of a request; None where it exceeds the limit."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            return None
    return bytes(body)


def _error_response(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status_code=status)
