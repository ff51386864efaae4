"""The settings for writing in the Fabric object: the change budget, a pause, an approval. Pure.

A wrong value is reported, and the last good value counts instead. If none is known, as after a
start, writing is paused: the default may allow more than what somebody meant to set.
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


def compute_allowance(num: int, percent: int, *, always_allowed: int) -> int:
    """Return how many of `num` are allowed: `percent` of them, but at least `always_allowed`.

    That minimum stays below half of `num`, and is 0 if `percent` is 0.
    """
    minimum = min(always_allowed, (num - 1) // 2) if percent and num else 0
    return max(num * percent // 100, minimum)


APPROVED_PLAN_ANNOTATION: Final = "toponaut.io/approved-plan"
"""Annotation: the hash of the held plan that is approved."""
_HASH: Final = re.compile(r"[0-9a-f]{16,64}")
_SOURCE: Final = f"{FABRIC_KIND} {FABRIC_NAME}"


class WritePolicy(NamedTuple):
    """The settings for writing HyperNodes."""

    budget: ChangeBudget = ChangeBudget.model_construct()
    is_paused: bool = False
    approved_plan: str = ""
    """Hash of the approved plan, empty if there is none."""
    problems: tuple[ParseError, ...] = ()
    """Wrong values, which the last good values replace."""
    unknown: str = ""
    """Why writing is paused although nobody asked for it: no good budget is known."""

    def is_approved(self, plan: str) -> bool:
        """Return whether a person has approved the plan of this hash."""
        return plan == self.approved_plan

    def with_approved_plan(self, plan: str) -> WritePolicy:
        """Return a copy with a plan approved.

        Raises:
            ConfigError: `plan` is not a plan hash.
        """
        return self._replace(approved_plan=_check_hash(plan))


def parse_write_policy(
    document: Mapping[str, Any] | None, last: WritePolicy | None = None
) -> WritePolicy:
    """Return the settings in a Fabric object; without an object the defaults.

    Args:
        document: the object; None: there is none.
        last: the last settings, whose budget replaces a wrong one; None: none is known.
    """
    spec = mapping_at(document, "spec")
    problems: list[ParseError] = []
    budget, fault = _parse_budget((document or {}).get("spec"))
    unknown = fault if last is None or last.unknown else ""
    if fault:
        budget = ChangeBudget() if last is None else last.budget
        effect = (
            "nothing is written until it is corrected" if unknown else "the last good value counts"
        )
        problems.append(ParseError(f"{fault}; {effect}", source=_SOURCE))
    paused = spec.get("paused")
    if paused is not None and not isinstance(paused, bool):
        # `paused: "yes"` means a pause.
        problem = "spec.paused: expected true or false; it counts as true"
        problems.append(ParseError(problem, source=_SOURCE, excerpt=str(paused)))
    approved = mapping_at(document, "metadata", "annotations").get(APPROVED_PLAN_ANNOTATION)
    if approved is not None and not is_plan_hash(approved):
        problem = f"metadata.annotations['{APPROVED_PLAN_ANNOTATION}']: expected the hash of a plan"
        problems.append(ParseError(problem, source=_SOURCE, excerpt=str(approved)))
        approved = None
    is_paused = paused not in (None, False) or bool(unknown)
    return WritePolicy(budget, is_paused, approved or "", tuple(problems), unknown)


def is_plan_hash(text: object) -> bool:
    """Return whether a value has the form of a plan hash."""
    return isinstance(text, str) and _HASH.fullmatch(text) is not None


def _check_hash(plan: str) -> str:
    if not is_plan_hash(plan):
        raise ConfigError(
            f"'{show(plan)}' is not the hash of a plan: expected 16 to 64 digits 0-9, a-f"
        )
    return plan


def check_approval(document: Mapping[str, Any] | None, plan: str) -> None:
    """Refuse to approve a plan that is not held, if the Fabric object shows which plan is held.

    If it shows none, because no server runs, only an earlier approval of another plan is a reason
    to refuse.

    Raises:
        ConfigError: another plan is held, or is approved already.
    """
    _check_hash(plan)
    held = mapping_at(document, "status", "held").get("hash")
    approved = parse_write_policy(document).approved_plan
    if is_plan_hash(held) and held != plan:
        raise ConfigError(
            f"no held plan has the hash {plan}: plan {held} is held. Another command that holds a "
            "plan takes its hash with --approve"
        )
    if held is None and approved not in ("", plan):
        raise ConfigError(
            f"plan {approved} is approved already, and no server holds plan {plan}. toponaut apply "
            "carries out the approved plan, or removes its approval if it is not held"
        )


def _parse_budget(raw_spec: object) -> tuple[ChangeBudget, str]:
    """Return the budget of a spec, and what is wrong with it."""
    if not (raw_spec is None or isinstance(raw_spec, Mapping)):
        return ChangeBudget(), f"spec: expected an object, got {type(raw_spec).__name__}"
    raw_budget = (raw_spec or {}).get("changeBudget")
    try:
        budget = ChangeBudget() if raw_budget is None else ChangeBudget.model_validate(raw_budget)
    except ValidationError as error:
        return ChangeBudget(), f"spec.changeBudget: {'; '.join(describe_validation(error))}"
    return budget, ""
