"""Pages of long answers: the number of rows, and the token that requests the next page.

A token is bound to its query, so that it fails clearly with another query. It grants no access
beyond that of the call, so it is neither secret nor signed; an invalid token is refused.
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
"""If the caller sets no size."""
MAX_PAGE_ROWS: Final = 4096
PAGE_BYTES: Final = 2 * 1024 * 1024
"""Rows beyond this size start a new page: half of the limit of a message."""
STREAM_PART_BYTES: Final = 256 * 1024
"""The same for the messages of a stream, of which a client that reads nothing holds one."""
_MAX_TOKEN_CHARS: Final = 65_536
_MAX_POSITION: Final = 1 << 32
_SIZE, _TOKEN = "page_size", "page_token"
RowT = TypeVar("RowT", bound=Message)


class PageRequest(Protocol):
    """A request for pages; each paged message has these fields."""

    page_size: int
    page_token: str


def parse_page_size(request: PageRequest) -> int:
    """Return the number of rows of a page.

    Raises:
        CallAbortedError: it is negative, or too large.
    """
    if not 0 <= request.page_size <= MAX_PAGE_ROWS:
        problem = f"expected 0 to {MAX_PAGE_ROWS}, got {request.page_size}"
        raise build_abort(FailureKind.INVALID_REQUEST, problem, _SIZE)
    return request.page_size or DEFAULT_PAGE_ROWS


def fill_page(rows: Iterable[RowT], size: int) -> list[RowT]:
    """Return the first page of rows: at least one row, if there is any."""
    return next(split_pages(rows, size), [])


def split_pages(
    rows: Iterable[RowT], size: int = DEFAULT_PAGE_ROWS, *, max_bytes: int = PAGE_BYTES
) -> Iterator[list[RowT]]:
    """Yield all rows in pages."""
    page: list[RowT] = []
    num_bytes = 0
    for row in rows:
        row_bytes = row.ByteSize()
        if page and (len(page) == size or num_bytes + row_bytes > max_bytes):
            yield page
            page, num_bytes = [], 0
        page.append(row)
        num_bytes += row_bytes
    if page:
        yield page


def render_token(request: Message, position: list[Any]) -> str:
    """Return the token of the page that begins at a position."""
    raw = json.dumps([_hash_query(request), *position], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode()


def parse_token(request: Message, token: str, kinds: tuple[type, ...]) -> list[Any]:
    """Return the position in a token.

    Args:
        request: the request that carries the token.
        token: the page token as the caller sent it.
        kinds: types of the parts of the position.

    Raises:
        CallAbortedError: the token is not from a server of this version, or from another query.
    """
    position: list[Any]
    checked_token = token if len(token) <= _MAX_TOKEN_CHARS else ""
    try:
        digest, *position = json.loads(
            base64.b64decode(checked_token, altchars=b"-_", validate=True)
        )
    except (ValueError, TypeError, RecursionError):
        digest, position = "", []
    is_valid = len(position) == len(kinds) and all(map(_is_position_part, position, kinds))
    if not is_valid:
        raise build_abort(FailureKind.INVALID_REQUEST, "not a page token of this server", _TOKEN)
    if digest != _hash_query(request):
        problem = "the token is from another query: change only page_size and page_token"
        raise build_abort(FailureKind.INVALID_REQUEST, problem, _TOKEN)
    return position


def _is_position_part(part: object, kind: type) -> bool:
    """Return whether a part of a token has the expected type; numbers are rows."""
    return type(part) is kind and (not isinstance(part, int) or 0 <= part < _MAX_POSITION)


def _hash_query(request: Message) -> str:
    """Return a digest of the query without its page fields."""
    bare = type(request)()
    bare.CopyFrom(request)
    for field in (_SIZE, _TOKEN):
        bare.ClearField(field)
    raw = bare.SerializeToString(deterministic=True)
    return hashlib.blake2b(raw, digest_size=8).hexdigest()
