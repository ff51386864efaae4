"""Who called, by the name that they have proved: a token's user, else a certificate's subject.

The name of a token's user is known to the check before the method; the method runs in the same
thread, where it finds the name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import grpc

_PROVEN: ContextVar[str] = ContextVar("proven caller", default="")
_MAX_CHARS: Final = 253


@contextmanager
def calling(name: str) -> Iterator[None]:
    """Let what runs within know who called."""
    before = _PROVEN.set(name)
    try:
        yield
    finally:
        _PROVEN.reset(before)


def caller_of(context: grpc.ServicerContext) -> str:
    """Return the caller's name; empty where callers are not asked who they are.

    Of a certificate it is the first of its alternative names, else the common name of its subject.
    """
    proven = _PROVEN.get()
    if proven:
        return proven
    names = context.peer_identities() or ()
    return next((name.decode("utf-8", "replace") for name in names), "")[:_MAX_CHARS]
