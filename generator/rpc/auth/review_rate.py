"""How many tokens are reviewed: a rate for each peer, and one for all peers together."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final, NamedTuple

from runtime.clock import Monotonic

PEER_BURST: Final = 100
"""Reviews that one peer can cause after a rest: callers may share an address."""
PEER_PER_S: Final = 10.0
BURST: Final = 400
PER_S: Final = 40.0
_MAX_PEERS: Final = 4096


class _ReviewAllowance(NamedTuple):
    """The reviews that may follow at once."""

    num_reviews: float
    at_s: float


class ReviewRate:
    """Counts reviews; thread-safe."""

    def __init__(self, clock: Monotonic) -> None:
        """Start with all reviews allowed.

        Args:
            clock: monotonic.
        """
        self._clock = clock
        self._lock = Lock()
        self._peers: OrderedDict[str, _ReviewAllowance] = OrderedDict()
        self._all = _ReviewAllowance(BURST, clock())

    def take(self, peer: str) -> bool:
        """Count one review of a peer; return whether it may be made."""
        with self._lock:
            now_s = self._clock()
            total = _refill(self._all, now_s, BURST, PER_S)
            own = _refill(
                self._peers.get(peer, _ReviewAllowance(PEER_BURST, now_s)),
                now_s,
                PEER_BURST,
                PEER_PER_S,
            )
            is_allowed = min(total.num_reviews, own.num_reviews) >= 1
            self._all = total._replace(num_reviews=total.num_reviews - is_allowed)
            self._peers[peer] = own._replace(num_reviews=own.num_reviews - is_allowed)
            self._peers.move_to_end(peer)
            while len(self._peers) > _MAX_PEERS:
                self._peers.popitem(last=False)
            return is_allowed


def _refill(before: _ReviewAllowance, now_s: float, burst: int, per_s: float) -> _ReviewAllowance:
    num_reviews = before.num_reviews + (now_s - before.at_s) * per_s
    return _ReviewAllowance(min(float(burst), num_reviews), now_s)
