"""The settings for writing in the Fabric object: the change budget, a pause, an approval. Pure.

A wrong value is reported, and a default counts instead: a typing error in the budget must neither
stop the loop nor end a pause.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from generator.objects.document import mapping_at
from generator.objects.fabric import ChangeBudget
from topology.model.errors import ConfigError, ParseError, show
from topology.model.validation import describe_validation
from topology.reports.fabric_status import FABRIC_KIND, FABRIC_NAME
from topology.reports.neighbor_report import API_VERSION

APPROVED_PLAN_ANNOTATION: Final = "toponaut.io/approved-plan"
"""Annotation: the hash of the held plan that is approved."""
_HASH: Final = re.compile(r"[0-9a-f]{16,64}")
_SOURCE: Final = f"{FABRIC_KIND} {FABRIC_NAME}"


class WritePolicy(NamedTuple):
    """The settings for writing HyperNodes."""

    budget: ChangeBudget = ChangeBudget()
    is_paused: bool = False
    approved_plan: str = ""
    """Hash of the approved plan, empty if there is none."""
    problems: tuple[ParseError, ...] = ()
    """Wrong values, which a default replaces."""

    def is_approved(self, plan: str) -> bool:
        """Return whether a person has approved the plan of this hash."""
        return plan == self.approved_plan

    def with_approved_plan(self, plan: str) -> WritePolicy:
        """Return a copy with a plan approved.

        Raises:
            ConfigError: `plan` is not a plan hash.
        """
        return self._replace(approved_plan=_check_hash(plan))


def parse_write_policy(document: Mapping[str, Any] | None) -> WritePolicy:
    """Return the settings in a Fabric object; without an object the defaults."""
    spec = mapping_at(document, "spec")
    problems: list[ParseError] = []
    budget = _parse_budget(spec.get("changeBudget"), problems)
    paused = spec.get("paused")
    if paused is not None and not isinstance(paused, bool):
        # `paused: "yes"` means a pause.
        problem = "spec.paused: expected true or false; it counts as true"
        problems.append(ParseError(problem, source=_SOURCE, excerpt=str(paused)))
    approved = mapping_at(mapping_at(document, "metadata"), "annotations").get(
        APPROVED_PLAN_ANNOTATION
    )
    if approved is not None and not is_plan_hash(approved):
        problem = f"metadata.annotations['{APPROVED_PLAN_ANNOTATION}']: expected the hash of a plan"
        problems.append(ParseError(problem, source=_SOURCE, excerpt=str(approved)))
        approved = None
    return WritePolicy(budget, paused not in (None, False), approved or "", tuple(problems))


def is_plan_hash(text: object) -> bool:
    """Return whether a value has the form of a plan hash."""
    return isinstance(text, str) and _HASH.fullmatch(text) is not None


def _check_hash(plan: str) -> str:
    if not is_plan_hash(plan):
        raise ConfigError(
            f"'{show(plan)}' is not the hash of a plan: expected 16 to 64 digits 0-9, a-f"
        )
    return plan


def with_approval(document: Mapping[str, Any] | None, approved: str) -> dict[str, Any]:
    """Return the Fabric object with a plan approved; all other fields stay.

    Raises:
        ConfigError: `approved` is not a plan hash.
    """
    metadata = {"name": FABRIC_NAME} | dict(mapping_at(document, "metadata"))
    metadata["annotations"] = dict(mapping_at(metadata, "annotations")) | {
        APPROVED_PLAN_ANNOTATION: _check_hash(approved)
    }
    head = {"apiVersion": API_VERSION, "kind": FABRIC_KIND}
    return head | dict(document or {}) | {"metadata": metadata}


def without_approval(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Fabric object without its approval: an approval is for one time."""
    metadata = dict(mapping_at(document, "metadata"))
    annotations = dict(mapping_at(metadata, "annotations"))
    annotations.pop(APPROVED_PLAN_ANNOTATION, None)
    metadata.pop("annotations", None)
    return dict(document) | {
        "metadata": metadata | ({"annotations": annotations} if annotations else {})
    }


def _parse_budget(raw_budget: object, problems: list[ParseError]) -> ChangeBudget:
    try:
        return ChangeBudget() if raw_budget is None else ChangeBudget.model_validate(raw_budget)
    except ValidationError as error:
        why = "; ".join(describe_validation(error))
        problem = f"spec.changeBudget: {why}; the default counts"
        problems.append(ParseError(problem, source=_SOURCE))
        return ChangeBudget()
