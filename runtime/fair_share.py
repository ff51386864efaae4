"""Slots that callers share: no caller takes more than its share, and the others come in turn."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock
from typing import Final

_CHECK_S: Final = 0.5
"""How often a waiting caller checks whether it still needs a slot."""


def _is_never_over() -> bool:
    return False


class _Waiter(Event):
    """A request that waits; the event is its end, by a slot or without one."""

    has_slot = True


class FairShare:
    """A number of slots, and of places to wait for one; thread-safe.

    A free slot goes to the waiting caller that holds the fewest slots; among these, to the one that
    got a slot the longest time ago. If all places are taken, a caller takes the newest one of the
    caller that has the most.
    """

    def __init__(
        self, num_slots: int, *, per_caller: int, max_waiting: int = 0, waiting_per_caller: int = 0
    ) -> None:
        """Start with all slots free.

        Args:
            num_slots: of all callers.
            per_caller: slots that one caller can hold.
            max_waiting: places to wait, for all callers.
            waiting_per_caller: places that one caller can take.
        """
        self._num_slots = num_slots
        self._per_caller = per_caller
        self._max_waiting = max_waiting
        self._waiting_per_caller = waiting_per_caller
        self._lock = Lock()
        self._held = Counter[str]()
        self._num_held = 0
        self._num_grants = 0
        self._last_grants: dict[str, int] = {}
        """By caller that holds or waits: the number of the last slot that it got."""
        self._waiting: dict[str, deque[_Waiter]] = {}
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
        self, caller: str, *, timeout_s: float = 0.0, is_over: Callable[[], bool] = _is_never_over
    ) -> Iterator[bool]:
        """Hold a slot for the body of the context; yield whether the caller got one.

        Args:
            caller: whose share it is.
            timeout_s: the longest wait for a slot.
            is_over: returns whether the caller no longer needs a slot.
        """
        has_slot = self._acquire(caller, timeout_s, is_over)
        try:
            yield has_slot
        finally:
            if has_slot:
                self._release(caller)

    def _acquire(self, caller: str, timeout_s: float, is_over: Callable[[], bool]) -> bool:
        with self._lock:
            if self._num_held < self._num_slots and self._held[caller] < self._per_caller:
                self._grant(caller)
                return True
            num_own = len(self._waiting.get(caller, ()))
            if (
                timeout_s <= 0
                or num_own >= self._waiting_per_caller
                or not self._has_place(num_own)
            ):
                return False
            waiter = _Waiter()
            self._waiting.setdefault(caller, deque()).append(waiter)
            self._num_waiting += 1
        ends_at_s = time.monotonic() + timeout_s
        while not waiter.wait(max(0.0, min(ends_at_s - time.monotonic(), _CHECK_S))):
            if time.monotonic() >= ends_at_s or is_over():
                return self._leave(caller, waiter)
        return waiter.has_slot

    def _has_place(self, num_own: int) -> bool:
        """Return whether a caller that waits in some places gets one more; free it if need be."""
        if self._num_waiting < self._max_waiting:
            return True
        most = max(self._waiting, key=lambda name: len(self._waiting[name]), default=None)
        if most is None or len(self._waiting[most]) <= num_own + 1:
            return False
        waiter = self._waiting[most].pop()
        self._num_waiting -= 1
        waiter.has_slot = False
        waiter.set()
        return True

    def _leave(self, caller: str, waiter: _Waiter) -> bool:
        """Stop waiting; return whether a slot came at the last moment."""
        with self._lock:
            if waiter.is_set():
                return waiter.has_slot
            self._waiting[caller].remove(waiter)
            self._drop_if_empty(caller)
            self._num_waiting -= 1
            return False

    def _release(self, caller: str) -> None:
        with self._lock:
            self._num_held -= 1
            self._held[caller] -= 1
            self._forget_if_gone(caller)
            # There is at most one caller that this slot, or its own share, kept waiting.
            following = self._find_next()
            if following is not None:
                self._waiting[following].popleft().set()
                self._drop_if_empty(following)
                self._num_waiting -= 1
                self._grant(following)

    def _find_next(self) -> str | None:
        eligible = [name for name in self._waiting if self._held[name] < self._per_caller]
        return min(eligible, key=self._rank, default=None)

    def _rank(self, caller: str) -> tuple[int, int]:
        return self._held[caller], self._last_grants.get(caller, 0)

    def _grant(self, caller: str) -> None:
        self._num_held += 1
        self._held[caller] += 1
        self._num_grants += 1
        self._last_grants[caller] = self._num_grants

    def _drop_if_empty(self, caller: str) -> None:
        if not self._waiting[caller]:
            del self._waiting[caller]
            self._forget_if_gone(caller)

    def _forget_if_gone(self, caller: str) -> None:
        if not self._held[caller]:
            del self._held[caller]
            if caller not in self._waiting:
                self._last_grants.pop(caller, None)
