"""How long writes wait: of a changed plan, of one object, and after a refusal. Pure.

The reports of one event arrive over seconds, so a plan is written once it has not changed for a
while, or after a maximum wait. An object that keeps changing, such as the leaf of a flapping
host, is written once per window, and each further write doubles the window. An edited object is
restored at once; each further edit doubles the wait. A refused write is tried again after a minute,
later less often, or as soon as something else is desired. Times are arguments, in seconds of a
monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from generator.reconcile.output_outcomes import RefusedWrite


@dataclass(frozen=True, slots=True)
class DebounceConfig:
    """The delays before writes, in seconds."""

    quiet_s: float = 2.0
    """A plan is written when it has not changed for this long."""
    max_wait_s: float = 15.0
    """Longest wait after the first change, however often the plan changes again. It is longer
    than the reports of one event take."""
    min_window_s: float = 5.0
    """After its first write, an object is not written again for this long."""
    max_window_s: float = 240.0
    """The longest window; each write doubles the window up to this."""
    restore_window_s: float = 0.25
    """The same as `min_window_s`, after an object was restored to what was decided before."""
    window_reset_s: float = 480.0
    """After this long without a write, an object starts with the shortest window again."""


NO_DEBOUNCE = DebounceConfig(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class PendingPlan(NamedTuple):
    """A plan that waits to be written."""

    plan: str
    """The hash of the plan."""
    first_seen_s: float
    """When the first plan since the last write was seen."""
    changed_s: float
    """When this plan was first seen."""

    def compute_wait_s(self, now_s: float, pace: DebounceConfig) -> float:
        """Return the remaining wait in seconds, 0 if the plan may be written."""
        due_s = min(self.changed_s + pace.quiet_s, self.first_seen_s + pace.max_wait_s)
        return max(0.0, due_s - now_s)


def update_pending(plan: str, before: PendingPlan | None, now_s: float) -> PendingPlan:
    """Return the pending plan after a round that saw `plan`, which may be the same as `before`."""
    if before is None:
        return PendingPlan(plan, now_s, now_s)
    return before if before.plan == plan else PendingPlan(plan, before.first_seen_s, now_s)


class LastWrite(NamedTuple):
    """The last write of an object."""

    written_at_s: float
    window_s: float
    """Seconds after the write until the object may be written again."""


def record_writes(
    before: Mapping[str, LastWrite], names: Iterable[str], now_s: float, *, pace: DebounceConfig
) -> dict[str, LastWrite]:
    """Return the last writes, with those of `names` now; entries older than the reset are dropped.

    Args:
        before: last writes by object name.
        names: objects written now.
        now_s: the time of the same clock, in seconds.
        pace: the windows.
    """
    recent = {
        name: last
        for name, last in before.items()
        if now_s - last.written_at_s < pace.window_reset_s
    }
    for name in set(names):
        last = recent.get(name)
        window_s = pace.min_window_s if last is None else min(2 * last.window_s, pace.max_window_s)
        recent[name] = LastWrite(now_s, window_s)
    return recent


def compute_damping_s(before: Mapping[str, LastWrite], names: Iterable[str], now_s: float) -> float:
    """Return the seconds until all of these objects may be written.

    Each action of a plan is valid only after those before it, so the whole plan waits for the
    object with the longest remaining window.
    """
    ends = (before[name].written_at_s + before[name].window_s for name in names if name in before)
    return max(0.0, max(ends, default=now_s) - now_s)


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
    """The desired part of the object; None for a removal."""
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

        A check whether the object is still in use writes nothing, so it is repeated every minute.
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
