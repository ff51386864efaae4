"""Refusals of the Kubernetes API server as the `KubeError` that each one means. Pure."""

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
"""Upper limit of the wait that a server may ask for."""

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
    request_text: str,
    status: int,
    body: bytes | Mapping[str, Any],
    *,
    retry_after: str | None = None,
) -> KubeError:
    """Return the error for an answer that refuses a request, or for an `ERROR` watch event.

    Args:
        request_text: the request, such as `GET /api/v1/nodes`.
        status: the HTTP status.
        body: a `Status` object, decoded or not; any other text is quoted, shortened.
        retry_after: the `Retry-After` header.
    """
    status_object = _decode(body) if isinstance(body, bytes) else body
    details = status_object.get("details")
    hint = details.get("retryAfterSeconds") if isinstance(details, Mapping) else None
    kind = _KINDS.get(status, KubeUnavailable if status >= 500 else KubeError)  # noqa: PLR2004 - HTTP
    message = show(" ".join(str(status_object.get("message", "")).split()), MESSAGE_CHARS)
    message = message.removeprefix(f"{status} ")  # a server without the kind: 404 page not found
    return kind(
        f"{request_text}: {status} {message}".rstrip(),
        status=status,
        reason=show(str(status_object.get("reason", ""))),
        retry_after_s=_parse_retry_after(retry_after or hint),
    )


def error_of_no_answer(request_text: str, error: Exception) -> KubeUnavailable:
    """Return the error for a request that got no answer."""
    text = " ".join(str(error).split())
    return KubeUnavailable(f"{request_text}: {show(text, MESSAGE_CHARS) or type(error).__name__}")


def _decode(body: bytes) -> Mapping[str, Any]:
    """Return a `Status` object; proxies and a starting server answer in plain text."""
    try:
        status_object = json.loads(body)
    except (ValueError, RecursionError):
        status_object = None
    if isinstance(status_object, dict):
        return status_object
    return {"message": body[:MESSAGE_CHARS].decode("utf-8", "replace")}


def _parse_retry_after(retry_after: object) -> float | None:
    """Return how long to wait, in seconds; None for a date, which the API server never sends."""
    try:
        seconds = float(str(retry_after))
    except ValueError:
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_S) if math.isfinite(seconds) else None
