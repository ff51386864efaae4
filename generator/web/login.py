"""Who may read the page: callers with a token, checked as the tokens of gRPC calls are.

The token is in the header `Authorization: Bearer TOKEN`, or in the cookie that the login form sets.
The cookie is the token: it is HttpOnly and SameSite=Strict, ends with the browser, and each request
checks it again. So all replicas accept it, and nothing is kept here.
"""

from __future__ import annotations

from http.cookies import SimpleCookie
from typing import Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response

from generator.rpc.auth.authentication import MAX_TOKEN_CHARS, TokenCheck, parse_bearer
from generator.rpc.status_errors import CallFailure, FailureKind
from runtime.listener import find_peer

COOKIE: Final = "toponaut-token"
MAX_COOKIE_CHARS: Final = 3800
"""Browsers drop a cookie of more than 4,096 bytes."""
MAX_FORM_BYTES: Final = 32 << 10
CHECK_S: Final = 5.0
_NO_TOKEN: Final = CallFailure(FailureKind.UNAUTHENTICATED, "no token: log in, or send one")


def check_request(request: Request, tokens: TokenCheck | None) -> CallFailure | None:
    """Return why a request is refused; None if it is allowed. May ask the API server.

    Args:
        request: a request with a header or a cookie.
        tokens: checks tokens; None: callers need none.
    """
    if tokens is None:
        return None
    token = find_token(request)
    if not token or len(token) > MAX_TOKEN_CHARS:
        return _NO_TOKEN
    peer = find_request_peer(request)
    verdict = tokens.authenticate(token, peer=peer, timeout_s=CHECK_S)
    return verdict if isinstance(verdict, CallFailure) else None


def find_request_peer(request: Request) -> str:
    """Return where a request comes from, as the share of one peer is counted."""
    return "" if request.client is None else find_peer(*request.client)


def find_token(request: Request) -> str:
    """Return the token of the header, else that of the cookie; empty without either."""
    header = request.headers.get("authorization", "")
    return parse_bearer(header) if header else request.cookies.get(COOKIE, "")


def parse_token_form(body: bytes) -> str:
    """Return the token that the login form sent; empty if it has none that fits a cookie."""
    try:
        fields = parse_qs(body.decode("ascii"), max_num_fields=8)
    except ValueError:
        return ""
    token = "".join(fields.get("token", [""])[0].split())
    is_plain = token.isascii() and token.isprintable() and not set(token) & set('";,\\')
    return token if is_plain and len(token) <= MAX_COOKIE_CHARS else ""


def set_token_cookie(response: Response, token: str, *, is_secure: bool) -> None:
    """Make the browser send the token with each request to this page, and to nobody else.

    The cookie names no path, so its path is that of the page: behind the API server's proxy or an
    Ingress, other services of the same host do not get it.
    """
    cookie: SimpleCookie = SimpleCookie({COOKIE: token})
    morsel = cookie[COOKIE]
    morsel["httponly"] = True
    morsel["samesite"] = "Strict"
    morsel["secure"] = is_secure
    if not token:
        morsel["max-age"] = 0
    response.headers.append("set-cookie", morsel.OutputString())
