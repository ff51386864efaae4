"""Which findings are new, gone and lasting between two times. Pure.

A finding is the same at two times if it is about the same fault: its message may count or date
something else by then.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from topology.model.facts import Finding


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
