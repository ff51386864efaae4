"""Which writes wait: those that were refused, and those of objects that somebody edits. Pure.

A refused write is tried again after a minute, later less often, or as soon as something else is
desired. An edited object is restored at once; each further edit within the hour doubles the wait.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from generator.publish.outcome import RefusedWrite
from generator.reconcile.debounce import DebounceConfig, LastWrite, compute_damping_s, record_writes

RETRY_S: Final = 60.0
MAX_RETRY_S: Final = 1800.0
_PACE: Final = DebounceConfig(min_window_s=5.0, max_window_s=1800.0, window_reset_s=3600.0)


class WriteKey(NamedTuple):
    """What one write concerns."""

    kind: str
    """The plural of the kind, and its group."""
    manager: str
    name: str


class _Blocked(NamedTuple):
    part: str | None
    """What was desired; None for a removal."""
    retry_at_s: float
    wait_s: float
    refusal: RefusedWrite
    is_in_use: bool = False


class BlockedWrites:
    """Remembers refused and repeated writes. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        """Start without writes."""
        self._blocked: dict[WriteKey, _Blocked] = {}
        self._written: dict[WriteKey, str] = {}
        """The part that was applied last."""
        self._restored: dict[str, LastWrite] = {}

    def has_written(self, key: WriteKey) -> bool:
        """Return whether this process has applied the object."""
        return key in self._written

    def find_refusal(self, key: WriteKey, part: str | None, now_s: float) -> RefusedWrite | None:
        """Return why a write is not tried again yet; None if it may be tried."""
        blocked = self._blocked.get(key)
        if blocked is None or blocked.part != part or now_s >= blocked.retry_at_s:
            return None
        return blocked.refusal

    def is_in_use(self, key: WriteKey, part: str | None) -> bool:
        """Return whether the same write was refused because other objects use the object."""
        blocked = self._blocked.get(key)
        return blocked is not None and blocked.part == part and blocked.is_in_use

    def compute_wait_s(self, key: WriteKey, part: str | None, now_s: float) -> float:
        """Return the seconds until an edited object may be restored; 0 for any other write."""
        if part is None or self._written.get(key) != part:
            return 0.0
        return compute_damping_s(self._restored, [_name(key)], now_s)

    def record_write(self, key: WriteKey, part: str | None, now_s: float) -> None:
        """Record a write that the server took."""
        self._blocked.pop(key, None)
        if part is None:
            self._written.pop(key, None)
            return
        if self._written.get(key) == part:
            self._restored = record_writes(self._restored, [_name(key)], now_s, pace=_PACE)
        self._written[key] = part

    def record_refusal(
        self,
        key: WriteKey,
        part: str | None,
        refusal: RefusedWrite,
        now_s: float,
        *,
        is_in_use: bool = False,
    ) -> None:
        """Record a write that was refused: by the server, or because the object is in use.

        Whether it is still in use is a question and no write, so it is asked every minute.
        """
        last = self._blocked.get(key)
        is_again = last is not None and last.part == part and not is_in_use
        wait_s = min(2 * last.wait_s, MAX_RETRY_S) if last is not None and is_again else RETRY_S
        self._blocked[key] = _Blocked(part, now_s + wait_s, wait_s, refusal, is_in_use)

    def keep(self, keys: set[WriteKey]) -> None:
        """Forget the refusals of all other writes: they are no longer planned."""
        self._blocked = {key: row for key, row in self._blocked.items() if key in keys}


def _name(key: WriteKey) -> str:
    return "\n".join(key)
