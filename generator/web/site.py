"""The addresses of the page, and what they answer. Read-only; nothing is kept in caches.

Only scripts and styles, which are the same for everybody, are open without a token.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from generator.rpc.auth.authentication import TokenCheck
from generator.rpc.status_errors import FailureKind
from generator.web.live_document import LiveDocument
from generator.web.login import (
    CHECK_S,
    MAX_FORM_BYTES,
    check_request,
    find_request_peer,
    parse_token_form,
    set_token_cookie,
)
from generator.web.page import (
    LIBRARY_FILE,
    SCRIPT_FILE,
    STYLE_FILE,
    read_libraries,
    read_script,
    read_style,
    render_live_page,
    render_login,
)

log = logging.getLogger(__name__)

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
PIECE_BYTES: Final = 64 << 10
"""Size of a piece of an answer: the next piece is made once the client has read most of this
one."""
_GZIP: Final = 16 + zlib.MAX_WBITS
BODY_S: Final = 10.0
"""The longest time to send the login form."""
_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_NO_TOKEN: Final = "this is not a token: paste what the command prints"  # noqa: S105 - no secret
_STATUS: Final = {
    FailureKind.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    FailureKind.FORBIDDEN: HTTPStatus.FORBIDDEN,
}
Endpoint = Callable[[Request], Awaitable[Response]]


class PageSite:
    """The page of one server."""

    def __init__(
        self, document: LiveDocument, tokens: TokenCheck | None, *, is_local: bool
    ) -> None:
        """Answer nothing yet.

        Args:
            document: the document that the page shows.
            tokens: checks tokens; None: callers need none.
            is_local: whether the page is without TLS, on this machine alone. Then only the names
                of this machine are accepted: any other would be that of a foreign page, whose
                name leads here.
        """
        self._document = document
        self._tokens = tokens
        self._is_local = is_local

    def build_app(self) -> ASGIApp:
        """Return the application."""
        routes = [
            Route("/", self._guard(self._show_page)),
            Route("/document.json", self._guard(self._show_document)),
            Route(f"/{SCRIPT_FILE}", _serve_text(read_script(), "text/javascript")),
            Route(f"/{LIBRARY_FILE}", _serve_text(read_libraries(), "text/javascript")),
            Route(f"/{STYLE_FILE}", _serve_text(read_style(), "text/css")),
            Route("/login", self._show_login, methods=["GET"]),
            Route("/login", self._log_in, methods=["POST"]),
            Route("/logout", self._log_out, methods=["POST"]),
        ]
        app = Starlette(routes=routes)
        # Otherwise it redirects `/login/` to the host that the client names.
        app.router.redirect_slashes = False
        return _Headers(app, is_local=self._is_local)

    def _guard(self, endpoint: Endpoint) -> Endpoint:
        """Return the endpoint with the check of the caller before it."""

        async def checked(request: Request) -> Response:
            refusal = await run_in_threadpool(check_request, request, self._tokens)
            if refusal is None:
                return await endpoint(request)
            status = _STATUS.get(refusal.kind, HTTPStatus.SERVICE_UNAVAILABLE)
            if request.url.path == "/" and status is HTTPStatus.UNAUTHORIZED:
                return RedirectResponse("login", HTTPStatus.SEE_OTHER)
            return _answer(status, refusal.problem)

        return checked

    async def _show_page(self, _request: Request) -> Response:
        return Response(render_live_page(has_login=self._tokens is not None), media_type=_HTML)

    async def _show_document(self, request: Request) -> Response:
        packed = await run_in_threadpool(self._document.render)
        if packed is None:
            return _answer(HTTPStatus.SERVICE_UNAVAILABLE, "no tree is known yet; try again")
        if packed.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"etag": packed.tag})
        headers = {"etag": packed.tag, "vary": "accept-encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["content-encoding"] = "gzip"
            return StreamingResponse(_cut(packed.content), media_type=_JSON, headers=headers)
        return StreamingResponse(_unpack(packed.content), media_type=_JSON, headers=headers)

    async def _show_login(self, _request: Request) -> Response:
        if self._tokens is None:
            return RedirectResponse("./", HTTPStatus.SEE_OTHER)
        return Response(render_login(""), media_type=_HTML)

    async def _log_in(self, request: Request) -> Response:
        if not _is_own_form(request):
            return _answer(HTTPStatus.FORBIDDEN, "the form is from another page")
        if self._tokens is None:
            return RedirectResponse("./", HTTPStatus.SEE_OTHER)
        body = await _read_form(request)
        if isinstance(body, Response):
            return body
        token = parse_token_form(body)
        problem = _NO_TOKEN
        if token:
            problem = await run_in_threadpool(
                _check_token, self._tokens, token, peer=find_request_peer(request)
            )
        if problem:
            return Response(render_login(problem), HTTPStatus.UNAUTHORIZED, media_type=_HTML)
        response = RedirectResponse("./", HTTPStatus.SEE_OTHER)
        set_token_cookie(response, token, is_secure=not self._is_local)
        return response

    async def _log_out(self, request: Request) -> Response:
        if not _is_own_form(request):
            return _answer(HTTPStatus.FORBIDDEN, "the form is from another page")
        response = RedirectResponse("login", HTTPStatus.SEE_OTHER)
        set_token_cookie(response, "", is_secure=not self._is_local)
        return response


class _Headers:
    """Adds the headers of security to every answer, also to errors, and refuses foreign names."""

    def __init__(self, app: ASGIApp, *, is_local: bool) -> None:
        self._app = app
        self._is_local = is_local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *own]
            await send(message)

        if self._is_local and scope["type"] == "http" and not _has_local_name(scope):
            refusal = _answer(HTTPStatus.MISDIRECTED_REQUEST, "use http://localhost or 127.0.0.1")
            await refusal(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)


_HTML: Final = "text/html"
_JSON: Final = "application/json"


def _check_token(tokens: TokenCheck, token: str, *, peer: str) -> str:
    """Return why a token is refused; empty if it is accepted."""
    verdict = tokens.authenticate(token, peer=peer, timeout_s=CHECK_S)
    return "" if isinstance(verdict, str) else verdict.problem


def _has_local_name(scope: Scope) -> bool:
    names = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    hosts = {name if name.endswith("]") else name.rpartition(":")[0] or name for name in names}
    return len(names) == 1 and hosts <= _LOCAL_HOSTS


def _is_own_form(request: Request) -> bool:
    """Return whether a form was sent by this page: browsers say so, other programs say nothing.

    A proxy may change the host, so the origin counts only for browsers that send nothing else.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    origin = request.headers.get("origin")
    return origin is None or _split_host(origin) == request.headers.get("host", "").lower()


def _split_host(origin: str) -> str | None:
    """Return host and port of an origin, None without them: `null`, and what is no address."""
    scheme, separator, host = origin.lower().partition("://")
    return host if separator and scheme in {"http", "https"} else None


async def _cut(content: bytes) -> AsyncIterator[bytes]:
    """Yield content in pieces, as fast as the client reads."""
    for start in range(0, len(content), PIECE_BYTES):
        yield content[start : start + PIECE_BYTES]
        await _let_others_run()


async def _unpack(content: bytes) -> AsyncIterator[bytes]:
    """Yield unpacked content in pieces, as fast as the client reads."""
    unpacker = zlib.decompressobj(_GZIP)
    while piece := unpacker.decompress(content, PIECE_BYTES):
        content = unpacker.unconsumed_tail
        yield piece
        await _let_others_run()


async def _let_others_run() -> None:
    """Let other requests run; notice if the client is gone, since each further write is logged."""
    await asyncio.sleep(0)


async def _read_form(request: Request) -> bytes | Response:
    """Return the body, or why it cannot be read."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_FORM_BYTES:
                    return _answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the form is too large")
    except TimeoutError:
        return _answer(HTTPStatus.REQUEST_TIMEOUT, "the form did not arrive in time")
    except ClientDisconnect:
        return _answer(HTTPStatus.BAD_REQUEST, "the form is incomplete")
    return bytes(body)


def _serve_text(text: str, media_type: str) -> Endpoint:
    async def endpoint(_request: Request) -> Response:
        return Response(text, media_type=media_type)

    return endpoint


def _answer(status: HTTPStatus, message: str) -> Response:
    return Response(f"{message}\n", status, media_type="text/plain")
