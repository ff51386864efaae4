"""Findings about reports and sweeps that cannot be used; each names its node. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Final

from topology.model.errors import ParseError, ReportError, list_some, show
from topology.model.facts import Finding, FindingKind, Severity
from topology.reports.sweep_parts import IncompleteSweep

_FILE_SUFFIX: Final = re.compile(r"\.(?:ya?ml|json)(?:\.gz)?\Z")
_MAX_SUBNETS_SHOWN: Final = 3


class RefusedSweeps:
    """Sweeps that cannot be used, and why."""

    def __init__(self) -> None:
        """Start without any."""
        self._errors: dict[tuple[str, str], ReportError] = {}

    def add(self, node: str, subnet: str, error: ReportError) -> None:
        """Record that a sweep cannot be used."""
        self._errors.setdefault((node, subnet), error)

    def findings(self, counted: Container[tuple[str, str]]) -> list[Finding]:
        """Return a finding per node with sweeps that cannot be used.

        Args:
            counted: node and subnet of each sweep that counts. A node whose last sweep counts may
                be writing the parts of the next one.
        """
        by_node: dict[str, dict[str, str]] = {}
        for key, error in self._errors.items():
            if not (isinstance(error, IncompleteSweep) and key in counted):
                node, subnet = key
                by_node.setdefault(node, {})[subnet] = str(error)
        return [_build_finding(node, _explain(node, by_node[node])) for node in sorted(by_node)]


def derive_refused_report_findings(refused: Mapping[str, ParseError]) -> list[Finding]:
    """Return a finding per node with objects that cannot be used.

    Args:
        refused: by the name of the object, or of its file, which is named after the node.
    """
    by_node: dict[str, tuple[str, str]] = {}
    for name, problem in refused.items():
        node = _FILE_SUFFIX.sub("", name).partition(".sweep.")[0]
        by_node.setdefault(node, (name, problem.problem))
    return [
        _build_finding(
            node,
            f"The object {show(name, 253)} cannot be used: {show(problem, 400)}. Check the version "
            f"and the log of the agent on {show(node, 253)}. If the agent did not write this "
            "object, the node may be compromised.",
        )
        for node, (name, problem) in sorted(by_node.items())
    ]


def derive_excess_findings(excesses: Mapping[str, str]) -> list[Finding]:
    """Return a finding per report that holds more than a host has.

    Args:
        excesses: by name of the report: what is too much.
    """
    return [
        _build_finding(
            node,
            f"Not all of the report of {show(node, 253)} can be used: {excess}. Check which "
            "devices its ports hear. If its agent did not write this report, the node may be "
            "compromised.",
        )
        for node, excess in sorted(excesses.items())
    ]


def _explain(node: str, subnets: Mapping[str, str]) -> str:
    ordered = sorted(subnets.items())
    shown = list_some((show(subnet) for subnet, _ in ordered), _MAX_SUBNETS_SHOWN)
    noun = "subnet" if len(ordered) == 1 else "subnets"
    name = show(node, 253)
    return (
        f"The sweep of {noun} {shown} that {name} reports cannot be used: {ordered[0][1]}. Check "
        f"the log of the agent on {name}. If the agent did not write this sweep, the node may be "
        "compromised."
    )


def _build_finding(node: str, message: str) -> Finding:
    return Finding(
        kind=FindingKind.UNUSABLE_REPORT,
        device=node,
        port=None,
        severity=Severity.WARNING,
        message=message,
    )
