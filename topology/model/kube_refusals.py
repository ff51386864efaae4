"""What the API server's refusals mean, as the errors that both programs know. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from topology.model.errors import (
    KubeConflict,
    KubeError,
    KubeExpired,
    KubeForbidden,
    KubeNotFound,
    KubeUnavailable,
    show,
)

MESSAGE_CHARS: Final = 400
MAX_RETRY_AFTER_S: Final = 300.0
"""A server that asks for more is asked again after this."""

_KINDS: Final[dict[int, type[KubeError]]] = {
    401: KubeForbidden,
    403: KubeForbidden,
    404: KubeNotFound,
    408: KubeUnavailable,
    409: KubeConflict,
    410: KubeExpired,
    429: KubeUnavailable,
}


def error_of_status(
    what: str, status: int, body: bytes | Mapping[str, Any], *, retry_after: str | None = None
) -> KubeError:
    """Return the error of a refusing answer, or of an `ERROR` event.

    Args:
        what: was asked, such as `GET /api/v1/nodes`.
        status: of HTTP.
        body: a `Status` object, decoded or not; anything else is told in short.
        retry_after: the header of that name.
    """
    found = _decode(body) if isinstance(body, bytes) else body
    details = found.get("details")
    hint = details.get("retryAfterSeconds") if isinstance(details, Mapping) else None
    kind = _KINDS.get(status, KubeUnavailable if status >= 500 else KubeError)  # noqa: PLR2004 - HTTP
    message = show(" ".join(str(found.get("message", "")).split()), MESSAGE_CHARS)
    return kind(
        f"{what}: {status} {message}".rstrip(),
        status=status,
        reason=show(str(found.get("reason", ""))),
        retry_after_s=_parse_retry_after(retry_after or hint),
    )


def error_of_no_answer(what: str, error: Exception) -> KubeUnavailable:
    """Return the error of a request that got no answer."""
    text = " ".join(str(error).split())
    return KubeUnavailable(f"{what}: {show(text, MESSAGE_CHARS) or type(error).__name__}")


def _decode(body: bytes) -> Mapping[str, Any]:
    """Return a `Status`; proxies and a starting server answer in plain text."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found
    return {"message": body[:MESSAGE_CHARS].decode("utf-8", "replace")}


def _parse_retry_after(asked: object) -> float | None:
    """Return how long to wait; a date, which the API server never sends, is not understood."""
    try:
        seconds = float(str(asked))
    except ValueError:
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_S) if math.isfinite(seconds) else None
