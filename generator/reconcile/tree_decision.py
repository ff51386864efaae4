"""What is decided before HyperNodes are written: the tree to write, and what it charges. Pure.

The change budget judges how the desired HyperNodes differ from those that were decided last, not
from those that exist. So completing a plan that was interrupted, or undoing an edit by hand, is
free. The changes of the last hour (`windowSeconds` of the budget) count with those of a new plan,
so that many small plans cannot do what one plan may not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeVar

from generator.objects.fabric import ChangeBudget
from generator.objects.tree_record import RecentChanges, TreeRecord
from generator.outputs.hypernode import HyperNode

MAX_RECENT: Final = 100_000
"""Most nodes, and most domains, that are remembered; the oldest changes are dropped. A budget that
lets more nodes move than this is no protection anyway."""
CLOCK_TOLERANCE: Final = timedelta(minutes=5)
"""Changes further ahead of our clock were recorded by a clock that was wrong."""
KeyT = TypeVar("KeyT")


class TreeDecision(NamedTuple):
    """The step from the HyperNodes that were decided last to the desired ones."""

    last: tuple[HyperNode, ...] | None
    """None if no decision is recorded; then the HyperNodes that exist count."""
    desired: tuple[HyperNode, ...]
    recent: RecentChanges = RecentChanges()
    """Within the window of the budget."""

    @property
    def is_restoration(self) -> bool:
        """Whether nothing new is decided: the plan writes what was decided before."""
        return self.last == self.desired


def build_decision(
    record: TreeRecord | None,
    desired: Sequence[HyperNode],
    *,
    budget: ChangeBudget,
    now: datetime,
) -> TreeDecision:
    """Return the step from the record to the desired HyperNodes.

    Args:
        record: the last decision; None without one.
        desired: as rendered, without regard to conflicts with foreign HyperNodes.
        budget: its window says how long a change counts.
        now: with a time zone.
    """
    if record is None:
        return TreeDecision(None, tuple(desired))
    if not budget.window_seconds:
        return TreeDecision(record.hypernodes, tuple(desired))
    start_s = now.timestamp() - budget.window_seconds
    recent = RecentChanges(
        _select_since(record.recent.moved, start_s), _select_since(record.recent.deleted, start_s)
    )
    return TreeDecision(record.hypernodes, tuple(desired), recent)


def build_record(
    decision: TreeDecision,
    *,
    moved: Iterable[str] = (),
    deleted: Iterable[tuple[int, str]] = (),
    now: datetime,
) -> TreeRecord:
    """Return the record of a decision.

    Args:
        decision: that is carried out.
        moved: nodes that it takes out of a domain; empty if a person approved it.
        deleted: domains that it deletes, as (tier, name); empty if a person approved it.
        now: with a time zone.
    """
    now_s = int(now.timestamp())
    recent = RecentChanges(
        _keep_newest({**decision.recent.moved, **dict.fromkeys(moved, now_s)}),
        _keep_newest({**decision.recent.deleted, **dict.fromkeys(deleted, now_s)}),
    )
    return TreeRecord(decision.desired, recent)


def with_past_times(record: TreeRecord, now: datetime) -> TreeRecord | None:
    """Return the record with the changes ahead of our clock dated now; None if there are none."""
    now_s = int(now.timestamp())
    moved, deleted = record.recent
    latest = max((*moved.values(), *deleted.values()), default=now_s)
    if latest <= now_s + CLOCK_TOLERANCE.total_seconds():
        return None
    recent = RecentChanges(
        {key: min(at_s, now_s) for key, at_s in moved.items()},
        {key: min(at_s, now_s) for key, at_s in deleted.items()},
    )
    return record._replace(recent=recent)


def _select_since(changes: Mapping[KeyT, int], start_s: float) -> dict[KeyT, int]:
    """Return the changes since a time; each was made up to a second after its recorded time."""
    return {key: at_s for key, at_s in changes.items() if at_s + 1 > start_s}


def _keep_newest(changes: Mapping[KeyT, int]) -> dict[KeyT, int]:
    if len(changes) <= MAX_RECENT:
        return dict(changes)
    return dict(sorted(changes.items(), key=lambda row: row[1])[-MAX_RECENT:])
