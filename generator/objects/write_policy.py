"""What people say in the Fabric object about writing: the budget, a pause, an approval. Pure.

A bad value costs itself and is named: a typing error in the budget must neither stop the loop nor
lift a pause.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from generator.objects.fabric import ChangeBudget
from topology.model.errors import ConfigError, ParseError, show
from topology.model.validation import describe_validation
from topology.reports.fabric_status import FABRIC_KIND, FABRIC_NAME
from topology.reports.neighbor_report import API_VERSION

APPROVED_PLAN_ANNOTATION: Final = "toponaut.io/approved-plan"
"""Annotation: the hash of the held plan that may be carried out."""
_HASH: Final = re.compile(r"[0-9a-f]{16,64}")
_SOURCE: Final = f"{FABRIC_KIND} {FABRIC_NAME}"


class WritePolicy(NamedTuple):
    """What holds for writing HyperNodes."""

    budget: ChangeBudget = ChangeBudget()
    is_paused: bool = False
    approved_plan: str = ""
    """Hash of a plan, empty where none is approved."""
    problems: tuple[ParseError, ...] = ()
    """Values that were no use, whose default counts instead."""

    def is_approved(self, plan: str) -> bool:
        """Return whether a person has approved the plan of this hash."""
        return plan == self.approved_plan

    def with_approved_plan(self, plan: str) -> WritePolicy:
        """Return the same with a plan approved.

        Raises:
            ConfigError: it is no hash of a plan.
        """
        return self._replace(approved_plan=_check_hash(plan))


def parse_write_policy(document: Mapping[str, Any] | None) -> WritePolicy:
    """Return what a Fabric object says, the defaults where there is none."""
    spec = _get_mapping(document, "spec")
    problems: list[ParseError] = []
    budget = _parse_budget(spec.get("changeBudget"), problems)
    paused = spec.get("paused")
    if paused is not None and not isinstance(paused, bool):
        # Whoever wrote `paused: "yes"` wanted a pause.
        problem = "spec.paused: expected true or false; it counts as true"
        problems.append(ParseError(problem, source=_SOURCE, excerpt=str(paused)))
    approved = _get_mapping(_get_mapping(document, "metadata"), "annotations").get(
        APPROVED_PLAN_ANNOTATION
    )
    if approved is not None and not is_plan_hash(approved):
        problem = f"metadata.annotations['{APPROVED_PLAN_ANNOTATION}']: expected the hash of a plan"
        problems.append(ParseError(problem, source=_SOURCE, excerpt=str(approved)))
        approved = None
    return WritePolicy(budget, paused not in (None, False), approved or "", tuple(problems))


def is_plan_hash(text: object) -> bool:
    """Return whether it looks like the hash of a plan."""
    return isinstance(text, str) and _HASH.fullmatch(text) is not None


def _check_hash(plan: str) -> str:
    if not is_plan_hash(plan):
        raise ConfigError(f"'{show(plan)}' is no hash of a plan: 16 to 64 digits 0-9, a-f")
    return plan


def with_approval(document: Mapping[str, Any] | None, approved: str) -> dict[str, Any]:
    """Return the Fabric object with a plan approved; all else in it stays as it is.

    Raises:
        ConfigError: it is no hash of a plan.
    """
    metadata = {"name": FABRIC_NAME} | _get_mapping(document, "metadata")
    metadata["annotations"] = _get_mapping(metadata, "annotations") | {
        APPROVED_PLAN_ANNOTATION: _check_hash(approved)
    }
    head = {"apiVersion": API_VERSION, "kind": FABRIC_KIND}
    return head | dict(document or {}) | {"metadata": metadata}


def without_approval(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Fabric object with no plan approved: an approval is for one time."""
    metadata = _get_mapping(document, "metadata")
    kept = _get_mapping(metadata, "annotations")
    kept.pop(APPROVED_PLAN_ANNOTATION, None)
    metadata.pop("annotations", None)
    return dict(document) | {"metadata": metadata | ({"annotations": kept} if kept else {})}


def _parse_budget(found: object, problems: list[ParseError]) -> ChangeBudget:
    try:
        return ChangeBudget() if found is None else ChangeBudget.model_validate(found)
    except ValidationError as error:
        why = "; ".join(describe_validation(error))
        problem = f"spec.changeBudget: {why}; the default counts"
        problems.append(ParseError(problem, source=_SOURCE))
        return ChangeBudget()


def _get_mapping(found: Mapping[str, Any] | None, key: str) -> dict[str, Any]:
    """Return an object within another, an empty one where it is not there or is none."""
    part = found.get(key) if found is not None else None
    return dict(part) if isinstance(part, Mapping) else {}
