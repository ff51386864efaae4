"""The names that Kubernetes accepts for objects.

Loads nothing else: the options of commands check names.
"""

from __future__ import annotations

import re
from typing import Final

MAX_OBJECT_NAME: Final = 253
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")


def is_object_name(text: str) -> bool:
    """Return whether Kubernetes accepts the text as the name of an object (DNS-1123 subdomain).

    Such a name has no slash and no blank and starts with a letter or digit, so it is safe in a
    path.
    """
    return len(text) <= MAX_OBJECT_NAME and _SUBDOMAIN.match(text) is not None
