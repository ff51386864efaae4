"""Slots that callers share: no caller takes more than its share, and the others come in turn."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Lock
from typing import Final

_CHECK_S: Final = 0.5
"""How often a waiting caller checks whether it still needs a slot."""


def _is_never_over() -> bool:
    return False


class _Claim(Event):
    """A request for a slot; the event is the end of its wait, by a slot or without one."""

    has_slot = False
    is_lost = False
    """Whether another caller has taken the slot; the body may still run for a while."""

    def __init__(self, on_lost: Callable[[], object] | None) -> None:
        super().__init__()
        self.on_lost = on_lost


class FairShare:
    """A number of slots, and of places to wait for one; thread-safe.

    A free slot goes to the waiting caller that holds the fewest slots; among these, to the one that
    got a slot the longest time ago. If all places are taken, a caller takes the newest place of the
    caller with the most places. In the same way it takes a slot, if the holder of the slot accepts
    to lose it.

    A lost slot counts for its caller until its body has ended: otherwise a caller whose bodies end
    slowly would soon use more than its share, and take slots of callers that use less.
    """

    def __init__(
        self, num_slots: int, *, per_caller: int, max_waiting: int = 0, waiting_per_caller: int = 0
    ) -> None:
        """Start with all slots free.

        Args:
            num_slots: the slots that all callers share.
            per_caller: slots that one caller can hold.
            max_waiting: places to wait, for all callers.
            waiting_per_caller: places that one caller can take.
        """
        self._num_slots = num_slots
        self._per_caller = per_caller
        self._max_waiting = max_waiting
        self._waiting_per_caller = waiting_per_caller
        self._lock = Lock()
        self._held: dict[str, deque[_Claim]] = {}
        self._num_held = 0
        self._num_grants = 0
        self._last_grants: dict[str, int] = {}
        """By caller that holds or waits: the number of the last slot that it got."""
        self._waiting: dict[str, deque[_Claim]] = {}
        self._num_waiting = 0

    @property
    def num_waiting(self) -> int:
        """Requests that wait for a slot."""
        return self._num_waiting

    @property
    def is_crowded(self) -> bool:
        """Whether more than half of the slots are taken."""
        return 2 * self._num_held > self._num_slots

    @contextmanager
    def hold(
        self,
        caller: str,
        *,
        timeout_s: float = 0.0,
        is_over: Callable[[], bool] = _is_never_over,
        on_lost: Callable[[], object] | None = None,
    ) -> Iterator[bool]:
        """Hold a slot for the body of the context; yield whether the caller got one.

        Args:
            caller: the caller that takes a slot of its share.
            timeout_s: the longest wait for a slot.
            is_over: returns whether the caller no longer needs a slot.
            on_lost: called when another caller takes the slot: makes the body end soon, and returns
                at once without a use of this share. None: no caller takes the slot.
        """
        claim = _Claim(on_lost)
        try:
            yield self._acquire(caller, claim, timeout_s, is_over)
        finally:
            self._release(caller, claim)

    def _acquire(
        self, caller: str, claim: _Claim, timeout_s: float, is_over: Callable[[], bool]
    ) -> bool:
        with self._lock:
            if self._has_slot(caller):
                self._grant(caller, claim)
                return True
            num_own = len(self._waiting.get(caller, ()))
            if (
                timeout_s <= 0
                or num_own >= self._waiting_per_caller
                or not self._has_place(num_own)
            ):
                return False
            self._waiting.setdefault(caller, deque()).append(claim)
            self._num_waiting += 1
        ends_at_s = time.monotonic() + timeout_s
        while not claim.wait(max(0.0, min(ends_at_s - time.monotonic(), _CHECK_S))):
            if time.monotonic() >= ends_at_s or is_over():
                return self._leave(caller, claim)
        return claim.has_slot

    def _has_slot(self, caller: str) -> bool:
        """Return whether a caller gets one more slot at once; take it from another if needed."""
        num_own = self._count_held(caller)
        if num_own >= self._per_caller:
            return False
        if self._num_held < self._num_slots:
            return True
        kept = {
            name: [claim for claim in claims if not claim.is_lost]
            for name, claims in self._held.items()
        }
        most = _find_most(kept, num_own)
        on_lost = None if most is None else kept[most][-1].on_lost
        if most is None or on_lost is None:
            return False
        kept[most][-1].is_lost = True
        self._num_held -= 1
        on_lost()
        return True

    def _has_place(self, num_own: int) -> bool:
        """Return whether a caller may wait; another caller's wait may end for it."""
        if self._num_waiting < self._max_waiting:
            return True
        most = _find_most(self._waiting, num_own)
        if most is None:
            return False
        self._waiting[most].pop().set()
        self._num_waiting -= 1
        return True

    def _leave(self, caller: str, claim: _Claim) -> bool:
        """Stop waiting; return whether a slot came at the last moment."""
        with self._lock:
            if claim.is_set():
                return claim.has_slot
            self._waiting[caller].remove(claim)
            self._drop_if_empty(caller)
            self._num_waiting -= 1
            return False

    def _release(self, caller: str, claim: _Claim) -> None:
        """Free the slot of a claim, if it has one; a lost slot is another caller's already."""
        with self._lock:
            if not claim.has_slot:
                return
            self._held[caller].remove(claim)
            self._num_held -= not claim.is_lost
            self._forget_if_gone(caller)
            # There is at most one caller that this slot, or its own share, kept waiting.
            following = self._find_next() if self._num_held < self._num_slots else None
            if following is not None:
                next_claim = self._waiting[following].popleft()
                self._num_waiting -= 1
                self._grant(following, next_claim)
                self._drop_if_empty(following)
                next_claim.set()

    def _find_next(self) -> str | None:
        eligible = [name for name in self._waiting if self._count_held(name) < self._per_caller]
        return min(eligible, key=self._rank, default=None)

    def _rank(self, caller: str) -> tuple[int, int]:
        return self._count_held(caller), self._last_grants.get(caller, 0)

    def _count_held(self, caller: str) -> int:
        return len(self._held.get(caller, ()))

    def _grant(self, caller: str, claim: _Claim) -> None:
        claim.has_slot = True
        self._held.setdefault(caller, deque()).append(claim)
        self._num_held += 1
        self._num_grants += 1
        self._last_grants[caller] = self._num_grants

    def _drop_if_empty(self, caller: str) -> None:
        if not self._waiting[caller]:
            del self._waiting[caller]
            self._forget_if_gone(caller)

    def _forget_if_gone(self, caller: str) -> None:
        if not self._held.get(caller):
            self._held.pop(caller, None)
            if caller not in self._waiting:
                self._last_grants.pop(caller, None)


def _find_most(claims: Mapping[str, Sequence[_Claim]], num_own: int) -> str | None:
    """Return the caller with the most claims; None if it has too few to give one away."""
    most = max(claims, key=lambda name: len(claims[name]), default=None)
    return most if most is not None and len(claims[most]) > num_own + 1 else None
