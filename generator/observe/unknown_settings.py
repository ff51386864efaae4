"""Settings of the tree that are wrong, and of which no good value is known. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from generator.objects.tree_spec import FABRIC_SOURCE, UnknownSetting, show_field
from topology.model.errors import show
from topology.model.facts import Finding, FindingKind, Severity


def derive_setting_findings(settings: Iterable[UnknownSetting]) -> Iterator[Finding]:
    """Yield a finding per setting."""
    for setting in settings:
        yield Finding(
            kind=FindingKind.UNUSABLE_FIELD,
            device=FABRIC_SOURCE,
            port=None,
            severity=Severity.ERROR,
            message=f"{_describe(setting)}. The tree here follows from the default. "
            "Correct the field: until then, nothing is planned.",
        )


def describe_settings(settings: Iterable[UnknownSetting]) -> Iterator[str]:
    """Yield why nothing may be planned while a setting is unknown."""
    return map(_describe, settings)


def _describe(setting: UnknownSetting) -> str:
    return (
        f"{show_field(setting.field)} of {FABRIC_SOURCE} is wrong, and no earlier good value is "
        f"known: {show(setting.problem, 400)}"
    )
