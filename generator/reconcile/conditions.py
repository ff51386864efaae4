"""The conditions and the held plan in the status of the Fabric object. Pure.

A time is when a condition or the held plan changed, not when the last round ran. So an unchanged
status compares equal, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from generator.objects.fabric import Condition, ConditionType, HeldPlan
from generator.reconcile.guard import PlanVerdict
from generator.reconcile.hypernode_plan import Op
from topology.model.errors import list_some, show
from topology.reports.fabric_status import fabric_head
from topology.reports.observed_time import is_ahead, parse_observed_at

ModelT = TypeVar("ModelT", bound=BaseModel)

_MAX_MESSAGE: Final = 1000


class ConditionChange(NamedTuple):
    """The result of a round for one condition, without times."""

    type: ConditionType
    is_true: bool
    reason: str
    """A word in CamelCase, from a closed set."""
    message: str = ""


class WriteStatus(NamedTuple):
    """The part of the status that is about writing."""

    conditions: tuple[Condition, ...] = ()
    held: HeldPlan | None = None


def parse_write_status(document: Mapping[str, Any] | None) -> WriteStatus:
    """Return the conditions and held plan of a Fabric object; unreadable parts count as absent."""
    status = document.get("status") if document else None
    if not isinstance(status, Mapping):
        return WriteStatus()
    rows = status.get("conditions")
    parsed = [_parse_model(Condition, row) for row in (rows if isinstance(rows, list) else ())]
    held = _parse_model(HeldPlan, status.get("held"))
    return WriteStatus(tuple(condition for condition in parsed if condition is not None), held)


def build_ready(*, reason: str = "", message: str = "") -> ConditionChange:
    """Return the Ready condition: a tree is known, and the HyperNodes agree with it.

    Args:
        reason: why it is false; empty if it is true.
        message: details for people.
    """
    return ConditionChange(ConditionType.READY, not reason, reason or "HyperNodesWritten", message)


_MAX_NODES_SHOWN: Final = 5
_MAX_SETTINGS_SHOWN: Final = 3
_MAX_SETTING: Final = 250


def build_degraded(
    kinds: Collection[str],
    *,
    num_problems: int,
    unusable: Collection[str] = (),
    wrong_settings: Sequence[str] = (),
) -> ConditionChange:
    """Return the Degraded condition: data is missing or contradictory.

    Args:
        kinds: the kinds of the findings that are warnings or errors.
        num_problems: number of inputs, or parts of them, that cannot be used.
        unusable: nodes whose reports or sweeps cannot be used.
        wrong_settings: the faults in the spec of the Fabric object, one line each.
    """
    parts = [f"findings: {', '.join(sorted(kinds))}"] if kinds else []
    if unusable:
        nodes = list_some((show(node, 253) for node in sorted(unusable)), _MAX_NODES_SHOWN)
        parts.append(f"reports cannot be used from {nodes}")
    parts += [show(text, _MAX_SETTING) for text in wrong_settings[:_MAX_SETTINGS_SHOWN]]
    if num_problems:
        parts.append("some input cannot be used; the log says which")
    if kinds:
        reason = "FindingsStand"
    elif wrong_settings:
        reason = "SettingWrong"
    else:
        reason = "InputSkipped" if num_problems else "EvidenceWhole"
    return ConditionChange(ConditionType.DEGRADED, bool(parts), reason, "; ".join(parts))


def build_change_blocked(verdict: PlanVerdict | None) -> ConditionChange:
    """Return the ChangeBlocked condition: true if a plan is held.

    Args:
        verdict: why the plan is held; None if there is no plan, or it may be written.
    """
    if verdict is None or verdict.is_allowed:
        return ConditionChange(ConditionType.CHANGE_BLOCKED, is_true=False, reason="WithinBudget")
    message = f"plan {verdict.hash} is held: {verdict.reason_text}"
    kind = verdict.hold_reasons[0].kind
    return ConditionChange(
        ConditionType.CHANGE_BLOCKED, is_true=True, reason=kind.value, message=message
    )


def build_damped(num_changes: int, conflict_text: str) -> tuple[ConditionChange, ...]:
    """Return the conditions while an allowed plan waits for the windows of its HyperNodes.

    Args:
        num_changes: number of actions.
        conflict_text: conflicts with foreign HyperNodes, empty if there are none.
    """
    what = "1 change waits" if num_changes == 1 else f"{num_changes} changes wait"
    text = f"{what}, because HyperNodes of the plan were written a short time ago"
    message = "; ".join(filter(None, (text, conflict_text)))
    return build_ready(reason="RecentlyWritten", message=message), build_change_blocked(None)


def build_held_plan(verdict: PlanVerdict, *, before: HeldPlan | None, now: datetime) -> HeldPlan:
    """Return the held plan for the status, with the time at which it was first held."""
    counts = verdict.counts
    return HeldPlan(
        hash=verdict.hash,
        since=_valid_since(before, verdict.hash, now) or render_time(now),
        creates=counts.get(Op.CREATE, 0),
        updates=counts.get(Op.UPDATE, 0),
        deletes=counts.get(Op.DELETE, 0),
        moved_nodes=verdict.num_moved,
    )


def _valid_since(before: HeldPlan | None, plan: str, now: datetime) -> str | None:
    """Return since when a plan is held, or None if it was not held or the time is unusable."""
    if before is None or before.hash != plan:
        return None
    if parse_observed_at(before.since) is None or is_ahead(before.since, now):
        return None  # with such a time, the plan would never be released
    return before.since


def is_released(held: HeldPlan, release_after_s: int | None, now: datetime) -> bool:
    """Return whether a plan was held for `release_after_s`; with None it is never released."""
    if release_after_s is None:
        return False
    since = parse_observed_at(held.since)
    return since is not None and now - since >= timedelta(seconds=release_after_s)


def merge_conditions(
    before: tuple[Condition, ...], changes: Collection[ConditionChange], now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with these changes, sorted by type; other conditions stay.

    The transition time of a condition changes only when its status changes.
    """
    conditions = {condition.type: condition for condition in before}
    for change in changes:
        last = conditions.get(change.type)
        status: Literal["True", "False"] = "True" if change.is_true else "False"
        is_unchanged = last is not None and last.status == status
        conditions[change.type] = Condition(
            type=change.type,
            status=status,
            last_transition_time=last.last_transition_time
            if last and is_unchanged
            else render_time(now),
            reason=change.reason,
            message=show(change.message, _MAX_MESSAGE),
        )
    return tuple(conditions[kind] for kind in sorted(conditions))


def with_write_status(
    document: Mapping[str, Any] | None, write_status: WriteStatus
) -> dict[str, Any]:
    """Return the Fabric object with these conditions and this held plan; all other fields stay."""
    unchanged = dict(document or {})
    previous = unchanged.get("status")
    status = dict(previous) if isinstance(previous, Mapping) else {}
    status["conditions"] = [_render_model(condition) for condition in write_status.conditions]
    status.pop("held", None)
    if write_status.held is not None:
        status["held"] = _render_model(write_status.held)
    return fabric_head() | unchanged | {"status": status}


def _parse_model(model: type[ModelT], row: object) -> ModelT | None:
    try:
        return model.model_validate(row)
    except ValidationError:
        return None


def _render_model(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def render_time(now: datetime) -> str:
    """Return a time of the status, in whole seconds."""
    return now.isoformat(timespec="seconds").replace("+00:00", "Z")
