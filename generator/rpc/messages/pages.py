"""Long answers by pages: how many rows one has, and the token with which the next is asked for.

A token is bound to the question, so that it fails clearly with another one. It grants nothing that
the call does not grant anyway, hence it is no secret and signed by nobody; a wrong one is refused.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol, TypeVar

from google.protobuf.message import Message

from generator.rpc.status_errors import FailureKind, build_abort

DEFAULT_PAGE_ROWS: Final = 512
"""Where the caller names no size."""
MAX_PAGE_ROWS: Final = 4096
PAGE_BYTES: Final = 2 * 1024 * 1024
"""Of rows, after which a page ends early: half of what a message may have."""
_MAX_TOKEN_CHARS: Final = 65_536
_MAX_POSITION: Final = 1 << 32
_SIZE, _TOKEN = "page_size", "page_token"
RowT = TypeVar("RowT", bound=Message)


class PageRequest(Protocol):
    """A request of pages; each kind of message has these fields."""

    page_size: int
    page_token: str


def parse_page_size(request: PageRequest) -> int:
    """Return the number of rows of a page.

    Raises:
        RefusedError: it is negative, or too large.
    """
    if not 0 <= request.page_size <= MAX_PAGE_ROWS:
        problem = f"expected 0 to {MAX_PAGE_ROWS}, got {request.page_size}"
        raise build_abort(FailureKind.INVALID_REQUEST, problem, _SIZE)
    return request.page_size or DEFAULT_PAGE_ROWS


def fill_page(rows: Iterable[RowT], size: int) -> list[RowT]:
    """Return the first rows: one at least, if there is any, and no more than a page may hold."""
    return next(split_pages(rows, size), [])


def split_pages(rows: Iterable[RowT], size: int = DEFAULT_PAGE_ROWS) -> Iterator[list[RowT]]:
    """Yield all rows in pages."""
    page: list[RowT] = []
    num_bytes = 0
    for row in rows:
        row_bytes = row.ByteSize()
        if page and (len(page) == size or num_bytes + row_bytes > PAGE_BYTES):
            yield page
            page, num_bytes = [], 0
        page.append(row)
        num_bytes += row_bytes
    if page:
        yield page


def render_token(request: Message, place: list[Any]) -> str:
    """Return the token of the page that begins at a place."""
    raw = json.dumps([_hash_query(request), *place], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode()


def parse_token(request: Message, token: str, kinds: tuple[type, ...]) -> list[Any]:
    """Return the place that a token tells.

    Args:
        request: that it came with.
        token: as it was sent.
        kinds: of the parts of the place.

    Raises:
        RefusedError: it is none of ours, or of another question.
    """
    place: list[Any]
    shown = token if len(token) <= _MAX_TOKEN_CHARS else ""
    try:
        digest, *place = json.loads(base64.b64decode(shown, altchars=b"-_", validate=True))
    except (ValueError, TypeError, RecursionError):
        digest, place = "", []
    is_ours = len(place) == len(kinds) and all(map(_is_position_part, place, kinds))
    if not is_ours:
        raise build_abort(FailureKind.INVALID_REQUEST, "no token of this server", _TOKEN)
    if digest != _hash_query(request):
        problem = "of another question: only the page may change"
        raise build_abort(FailureKind.INVALID_REQUEST, problem, _TOKEN)
    return place


def _is_position_part(part: object, kind: type) -> bool:
    """Return whether a part of a token is of a kind; numbers are rows."""
    return type(part) is kind and (not isinstance(part, int) or 0 <= part < _MAX_POSITION)


def _hash_query(request: Message) -> str:
    """Return what tells questions apart, whatever page of the answer they ask for."""
    bare = type(request)()
    bare.CopyFrom(request)
    for field in (_SIZE, _TOKEN):
        bare.ClearField(field)
    raw = bare.SerializeToString(deterministic=True)
    return hashlib.blake2b(raw, digest_size=8).hexdigest()
