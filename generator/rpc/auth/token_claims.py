"""What a token says about itself, before anybody has checked its signature.

It proves nothing: it only saves a review of what the API server would refuse.
"""

from __future__ import annotations

import binascii
import json
from base64 import urlsafe_b64decode
from datetime import datetime
from typing import Any, Final

SKEW_S: Final = 300.0
"""How far the clocks of two machines may differ."""
_NUM_PARTS: Final = 3


def find_claim_problem(token: str, audience: str, now: datetime) -> str:
    """Return why a token cannot be valid for an audience; empty if it may be.

    Source: RFC 7519, sections 4.1.3 (`aud`: a text or a list), 4.1.4 (`exp`: seconds) and 7.2.
    """
    parts = token.split(".")
    claims = _decode_object(parts[1]) if len(parts) == _NUM_PARTS else None
    if claims is None or _decode_object(parts[0]) is None:
        return "it is no JSON web token"
    named = claims.get("aud")
    audiences = named if isinstance(named, list) else [named]
    if audience not in audiences:
        return f"it is not for the audience {audience}"
    expires_at_s = claims.get("exp", now.timestamp())
    is_number = isinstance(expires_at_s, int | float) and not isinstance(expires_at_s, bool)
    if not is_number or expires_at_s < now.timestamp() - SKEW_S:
        return "it has expired"
    return ""


def _decode_object(part: str) -> dict[str, Any] | None:
    """Return a JSON object from base64; None if it is not one."""
    try:
        found = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
