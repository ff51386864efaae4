"""How many tokens are reviewed: a rate for each peer, and one for all peers together."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final

from runtime.clock import Monotonic
from runtime.retry import Allowance

PEER_BURST: Final = 100
"""Reviews that one peer can cause after a rest: callers may share an address."""
PEER_PER_S: Final = 10.0
BURST: Final = 400
PER_S: Final = 40.0
_MAX_PEERS: Final = 4096


class ReviewRate:
    """Counts reviews; thread-safe."""

    def __init__(self, clock: Monotonic) -> None:
        """Start with all reviews allowed.

        Args:
            clock: monotonic.
        """
        self._clock = clock
        self._lock = Lock()
        self._peers: OrderedDict[str, Allowance] = OrderedDict()
        self._all = Allowance(per_second=PER_S, burst=BURST, now_s=clock())

    def take(self, peer: str) -> bool:
        """Count one review of a peer; return whether it may be made."""
        with self._lock:
            now_s = self._clock()
            own = self._peers.setdefault(
                peer, Allowance(per_second=PEER_PER_S, burst=PEER_BURST, now_s=now_s)
            )
            is_allowed = min(self._all.refill(now_s), own.refill(now_s)) >= 1
            for allowance in (self._all, own):
                allowance.tokens -= is_allowed
            self._peers.move_to_end(peer)
            while len(self._peers) > _MAX_PEERS:
                self._peers.popitem(last=False)
            return is_allowed
