"""Findings in a history: what identifies one, its JSON, and which are new, gone and lasting. Pure.

A finding is the same at two times if it is about the same fault: its message may count or date
something else by then. The JSON is that of `toponaut findings -o json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from topology.model.errors import ConfigError, show
from topology.model.facts import Finding, FindingKind, PortName, Severity, render_finding


class FindingAge(StrEnum):
    """Whether a finding exists now, and existed at an earlier time."""

    NEW = "new"
    LASTING = "lasting"
    GONE = "gone"


class FindingChanges(NamedTuple):
    """The findings of two times, each in the order given."""

    new: tuple[Finding, ...]
    lasting: tuple[Finding, ...]
    """As they are now."""
    gone: tuple[Finding, ...]
    """As they were before."""

    def of(self, age: FindingAge) -> tuple[Finding, ...]:
        """Return the findings of one age."""
        by_age = {FindingAge.NEW: self.new, FindingAge.LASTING: self.lasting}
        return by_age.get(age, self.gone)


def build_fault_key(finding: Finding) -> str:
    """Return what identifies the fault of a finding: its kind and its ports, not its message."""
    own = f"{finding.device}\n{finding.port or ''}"
    ends = sorted({f"{end.device}\n{end.port}" for end in finding.ends})
    return "\n\n".join((finding.kind.value, own, *ends))


def read_device(fault: str) -> str:
    """Return the device of a fault."""
    return fault.split("\n\n", 1)[-1].split("\n", 1)[0]


def compare_findings(before: Iterable[Finding], after: Iterable[Finding]) -> FindingChanges:
    """Return which findings came, stayed and went."""
    before, after = tuple(before), tuple(after)
    old, new = set(map(build_fault_key, before)), set(map(build_fault_key, after))
    return FindingChanges(
        new=tuple(row for row in after if build_fault_key(row) not in old),
        lasting=tuple(row for row in after if build_fault_key(row) in old),
        gone=tuple(row for row in before if build_fault_key(row) not in new),
    )


def encode_finding(finding: Finding) -> str:
    """Return the finding as one line of JSON; equal findings give equal texts."""
    return json.dumps(render_finding(finding), separators=(",", ":"), sort_keys=True)


def decode_finding(text: str) -> Finding:
    """Return the finding of a text that `encode_finding` wrote.

    Raises:
        ConfigError: it is not a finding, or one of a later version.
    """
    try:
        document = json.loads(text)
        subject, evidence = document["subject"], document["evidence"]
        return Finding(
            FindingKind(document["kind"]),
            str(subject["device"]),
            None if subject["port"] is None else str(subject["port"]),
            severity=Severity(document["severity"]),
            message=str(document["message"]),
            ports=tuple(map(_build_port, evidence["ports"])),
            swap=tuple((_build_port(one), _build_port(other)) for one, other in evidence["swap"]),
            since=document["since"],
        )
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"not a finding: {show(str(error))}") from error


def _build_port(row: Mapping[str, Any]) -> PortName:
    return PortName(str(row["device"]), str(row["port"]))
