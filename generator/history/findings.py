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
from topology.model.facts import (
    NO_IMPACT,
    Finding,
    FindingKind,
    Impact,
    PortName,
    Severity,
    render_finding,
)


class FindingAge(StrEnum):
    """Whether a finding exists now, and existed at an earlier time."""

    NEW = "new"
    LASTING = "lasting"
    GONE = "gone"


class FindingChanges(NamedTuple):
    """The findings of two times, each in the order given."""

    new: tuple[Finding, ...]
    lasting: tuple[Finding, ...]
    """The lasting findings, as they are now."""
    gone: tuple[Finding, ...]
    """The findings that went, as they were before."""

    def of(self, age: FindingAge) -> tuple[Finding, ...]:
        """Return the findings of one age."""
        by_age = {FindingAge.NEW: self.new, FindingAge.LASTING: self.lasting}
        return by_age.get(age, self.gone)


def build_fault_key(finding: Finding) -> str:
    """Return the key of a finding's fault: the kind and the ports, not the message."""
    own = f"{finding.device}\n{finding.port or ''}"
    ends = sorted({f"{end.device}\n{end.port}" for end in finding.ends})
    return "\n\n".join((finding.kind.value, own, *ends))


def read_device(fault: str) -> str:
    """Return the device of a fault."""
    return fault.split("\n\n", 1)[-1].split("\n", 1)[0]


def compare_findings(before: Iterable[Finding], after: Iterable[Finding]) -> FindingChanges:
    """Return the findings that came, stayed and went between two observations."""
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
            impact=_build_impact(document.get("impact")),
        )
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"not a finding: {show(str(error))}") from error


def _build_impact(row: Mapping[str, Any] | None) -> Impact:
    """Return the impact of a finding; unknown in a record by a version that did not measure it."""
    if row is None:
        return NO_IMPACT
    return Impact(
        cables=row["cables"],
        share=row["share"],
        gone_share=row["goneShare"],
        places=tuple(map(str, row["places"])),
        num_nodes=int(row["nodes"]),
        num_gpus=row["gpus"],
        gangs=None if row["gangs"] is None else tuple(map(str, row["gangs"])),
        splits=bool(row["splits"]),
        hides=bool(row["hides"]),
    )


def _build_port(row: Mapping[str, Any]) -> PortName:
    return PortName(str(row["device"]), str(row["port"]))
