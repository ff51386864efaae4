"""What the Fabric object tells of writing: conditions and the plan that is held. Pure.

What stands is compared with what is to be told, so that nothing is written where nothing changed:
times are those of the change, never of the last look.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from generator.objects.fabric import Condition, ConditionType, HeldPlan
from generator.reconcile.guard import PlanVerdict
from generator.reconcile.plan import Op
from topology.model.errors import show
from topology.reports.fabric_status import FABRIC_KIND, FABRIC_NAME
from topology.reports.neighbor_report import API_VERSION

ModelT = TypeVar("ModelT", bound=BaseModel)

_MAX_MESSAGE: Final = 1000


class ConditionChange(NamedTuple):
    """How a pass ended, for one condition."""

    type: ConditionType
    is_true: bool
    reason: str
    """In CamelCase, as of a closed set."""
    message: str = ""


class WriteStatus(NamedTuple):
    """What the status says of writing."""

    conditions: tuple[Condition, ...] = ()
    held: HeldPlan | None = None


def parse_write_status(document: Mapping[str, Any] | None) -> WriteStatus:
    """Return what stands in a Fabric object; what cannot be read counts as absent."""
    status = document.get("status") if document else None
    if not isinstance(status, Mapping):
        return WriteStatus()
    rows = status.get("conditions")
    found = [_parse_model(Condition, row) for row in (rows if isinstance(rows, list) else ())]
    held = _parse_model(HeldPlan, status.get("held"))
    return WriteStatus(tuple(one for one in found if one is not None), held)


def build_ready(*, reason: str = "", message: str = "") -> ConditionChange:
    """Return whether a tree is known and the HyperNodes say what it says."""
    return ConditionChange(ConditionType.READY, not reason, reason or "HyperNodesWritten", message)


def build_degraded(kinds: Collection[str], *, num_problems: int) -> ConditionChange:
    """Return whether evidence is missing or contradicts itself.

    Args:
        kinds: of the findings that are warnings or worse.
        num_problems: inputs, or parts of them, that could not be used.
    """
    parts = [f"findings: {', '.join(sorted(kinds))}"] if kinds else []
    if num_problems:
        parts.append("some input cannot be used, the log names it")
    reason = "FindingsStand" if kinds else "InputSkipped" if num_problems else "EvidenceWhole"
    return ConditionChange(ConditionType.DEGRADED, bool(parts), reason, "; ".join(parts))


def build_change_blocked(verdict: PlanVerdict | None) -> ConditionChange:
    """Return whether a plan is held; None where there is none, or it may be carried out."""
    if verdict is None or verdict.is_allowed:
        return ConditionChange(ConditionType.CHANGE_BLOCKED, is_true=False, reason="WithinBudget")
    message = f"plan {verdict.hash} is held: {verdict.reason_text}"
    kind = verdict.hold_reasons[0].kind
    return ConditionChange(
        ConditionType.CHANGE_BLOCKED, is_true=True, reason=kind.value, message=message
    )


def build_held_plan(verdict: PlanVerdict, *, before: HeldPlan | None, now: datetime) -> HeldPlan:
    """Return the held plan as it is told, with the time at which it was first held."""
    counts = verdict.counts
    same = before if before is not None and before.hash == verdict.hash else None
    return HeldPlan(
        hash=verdict.hash,
        since=same.since if same else _render_time(now),
        creates=counts.get(Op.CREATE, 0),
        updates=counts.get(Op.UPDATE, 0),
        deletes=counts.get(Op.DELETE, 0),
        moved_nodes=verdict.num_moved,
    )


def is_released(held: HeldPlan, release_after_s: int | None, now: datetime) -> bool:
    """Return whether a plan was held for as long as the budget says; never where it says none."""
    if release_after_s is None:
        return False
    try:
        since = datetime.fromisoformat(held.since)
    except ValueError:
        return False
    return since.tzinfo is not None and now - since >= timedelta(seconds=release_after_s)


def merge_conditions(
    before: tuple[Condition, ...], changes: Collection[ConditionChange], now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with these outcomes, sorted by type; others stay as they are.

    The time of a condition changes with its status alone.
    """
    found = {one.type: one for one in before}
    for change in changes:
        last = found.get(change.type)
        status: Literal["True", "False"] = "True" if change.is_true else "False"
        stays = last is not None and last.status == status
        found[change.type] = Condition(
            type=change.type,
            status=status,
            last_transition_time=last.last_transition_time if last and stays else _render_time(now),
            reason=change.reason,
            message=show(change.message, _MAX_MESSAGE),
        )
    return tuple(found[kind] for kind in sorted(found))


def with_write_status(
    document: Mapping[str, Any] | None, write_status: WriteStatus
) -> dict[str, Any]:
    """Return the Fabric object that tells this; all else in it stays as it is."""
    kept = dict(document or {})
    told = kept.get("status")
    status = dict(told) if isinstance(told, Mapping) else {}
    status["conditions"] = [_render_model(one) for one in write_status.conditions]
    status.pop("held", None)
    if write_status.held is not None:
        status["held"] = _render_model(write_status.held)
    head = {"apiVersion": API_VERSION, "kind": FABRIC_KIND, "metadata": {"name": FABRIC_NAME}}
    return head | kept | {"status": status}


def _parse_model(model: type[ModelT], row: object) -> ModelT | None:
    try:
        return model.model_validate(row)
    except ValidationError:
        return None


def _render_model(found: BaseModel) -> dict[str, Any]:
    return found.model_dump(mode="json", by_alias=True, exclude_none=True)


def _render_time(now: datetime) -> str:
    return now.isoformat(timespec="seconds").replace("+00:00", "Z")
