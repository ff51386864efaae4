"""Findings and doubts about sweeps and reports that are ignored, contradicted or unusable. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from generator.ingest.host_evidence import HostCheck, SweepReach
from generator.ingest.inputs import DoubtKind, SweepDoubt
from generator.ingest.sweep_views import SweepDifference
from topology.model.errors import ParseError, ReportError, list_some, show
from topology.model.facts import Finding, FindingKind, Severity, finding_about
from topology.model.ids import natural_key
from topology.reports.sweep_parts import IncompleteSweep

_MAX_SHOWN: Final = 5


class IgnoreReason(StrEnum):
    """Why a sweep does not count."""

    UNNAMED = "unnamed"
    """The Fabric object does not name its node."""
    LONE = "lone"
    """No other host reports a port in its subnet."""
    AHEAD = "ahead"
    """The report is dated ahead of our clock."""


class IgnoredSweep(NamedTuple):
    """A sweep, or the offer of one, that does not count."""

    node: str
    subnet: str
    reason: IgnoreReason
    is_former: bool = False
    """Whether the Fabric named the node earlier. The node may still have to withdraw its sweep."""


_IGNORED_TEXT: Final = {
    IgnoreReason.UNNAMED: (
        "published a sweep of {}, but the Fabric object does not name it as a sweeper there: the "
        "sweep is ignored. If it may sweep, list it in spec.sweepers; if not, check who uses the "
        "token of its agent, and delete the reports {}.sweep.*."
    ),
    IgnoreReason.LONE: (
        "is the only node that reports a port in {}, so nothing is swept or expected there. If "
        "this is right, list the node in spec.sweepers; if not, check who uses the token of its "
        "agent."
    ),
    IgnoreReason.AHEAD: (
        "published a sweep of {} that is dated in the future: the sweep is ignored. Check the "
        "clock there (NTP)."
    ),
}


def derive_ignored_findings(ignored: Iterable[IgnoredSweep]) -> list[Finding]:
    """Return one finding per node and reason."""
    subnets: dict[tuple[str, IgnoreReason, bool], set[str]] = defaultdict(set)
    for row in ignored:
        subnets[row.node, row.reason, row.is_former].add(row.subnet)
    return [
        _build_ignored_finding(node, reason, names, is_former=is_former)
        for (node, reason, is_former), names in sorted(subnets.items())
    ]


def _build_ignored_finding(
    node: str, reason: IgnoreReason, subnets: Collection[str], *, is_former: bool
) -> Finding:
    name = show(node, 253)
    shown = list_some((show(subnet, 32) for subnet in sorted(subnets)), _MAX_SHOWN)
    where = f"{'subnet' if len(subnets) == 1 else 'subnets'} {shown}"
    is_leftover = is_former and reason is IgnoreReason.UNNAMED
    text = f"Node {name} {_IGNORED_TEXT[reason].format(where, name)}"
    if is_leftover:
        text = (
            f"Node {name} still has a sweep of {where}, which another node sweeps now. Its agent "
            f"withdraws it. If the agent is gone for good, delete the reports {name}.sweep.*."
        )
    return finding_about(
        FindingKind.SWEEP_IGNORED,
        [name],
        severity=Severity.INFO if is_leftover else Severity.WARNING,
        message=text,
    )


def build_contradicted_finding(node: str, subnet: str, check: HostCheck) -> Finding:
    """Return the finding about a sweep that hosts contradict."""
    return finding_about(
        FindingKind.SWEEP_CONTRADICTED,
        [show(node, 253)],
        severity=Severity.ERROR,
        message=(
            f"The sweep of subnet {subnet} by {show(node, 253)} contradicts the hosts: it "
            f"{check.text}. It moves no node. Check that the sweep reaches the whole subnet, that "
            "no other fabric has this prefix, and who uses the token of the agent there."
        ),
    )


def build_contradicted_doubt(node: str, subnet: str, check: HostCheck) -> SweepDoubt:
    """Return the doubt about a sweep that is used although hosts contradict it."""
    message = f"the sweep of subnet {subnet} by {show(node, 253)} {check.text}"
    return SweepDoubt(DoubtKind.SWEEP_CONTRADICTED, message)


def describe_disagreement(nodes: tuple[str, str], subnet: str, difference: SweepDifference) -> str:
    """Return how the sweeps of two nodes differ, as a sentence without its end."""
    first, second = (show(node, 253) for node in sorted(nodes, key=natural_key))
    rows = [
        (difference.num_cables, "cables are in only one of them"),
        (difference.num_moved, "ports of hosts are cabled to different ports"),
        (difference.num_switches, "switches differ in many cables"),
        (difference.num_renamed, "devices have another name, kind or system image"),
    ]
    shown = ", ".join(f"{num} {words}" for num, words in rows if num)
    return f"the sweeps of subnet {subnet} by {first} and {second} disagree: {shown}"


def build_disagreement_finding(
    nodes: tuple[str, str], subnet: str, difference: SweepDifference, *, silent: str | None
) -> Finding:
    """Return the finding about two sweeps that differ; it names both nodes.

    Args:
        nodes: the node whose sweep is used, and the other one.
        subnet: the subnet that both nodes swept.
        difference: how they differ.
        silent: the node of the two that does not sweep any longer.
    """
    advice = (
        "After a change of cables this ends with their next sweeps. If it does not, run "
        "ibnetdiscover on both, and list only the nodes that you trust in spec.sweepers."
    )
    if silent is not None:
        advice = (
            f"{show(silent, 253)} does not sweep any longer, so this ends when a third node has "
            "swept and sees the same. If there is none, run ibnetdiscover on another node, and "
            "list only the nodes that you trust in spec.sweepers."
        )
    problem = describe_disagreement(nodes, subnet, difference)
    return finding_about(
        FindingKind.SWEEPS_DISAGREE,
        [show(node, 253) for node in sorted(nodes, key=natural_key)],
        severity=Severity.WARNING,
        message=(
            f"{problem[0].upper()}{problem[1:]}. Nothing is moved that follows from only one of "
            f"them. {advice}"
        ),
    )


def build_disagreement_doubt(
    nodes: tuple[str, str],
    subnet: str,
    difference: SweepDifference,
    *,
    hosts: frozenset[str],
    silent: str | None,
) -> SweepDoubt:
    """Return the doubt about a sweep from which another named node's sweep differs.

    Its arguments are those of the finding, and the nodes in question.
    """
    message = describe_disagreement(nodes, subnet, difference)
    if silent is not None:
        message += f"; {show(silent, 253)} does not sweep any longer, and no other node has swept"
    return SweepDoubt(DoubtKind.SWEEPS_DISAGREE, message, hosts)


def build_unconfirmed_doubt(node: str, subnet: str, predecessor: str | None) -> SweepDoubt:
    """Return the doubt about the first sweep of a new sweeper."""
    before = f"instead of {show(predecessor, 253)}" if predecessor else "for the first time"
    message = (
        f"node {show(node, 253)} sweeps subnet {subnet} {before}, and no other sweep confirms what "
        "it found"
    )
    return SweepDoubt(DoubtKind.SWEEP_UNCONFIRMED, message)


def build_lost_witness_doubt(node: str, subnet: str, witness: str) -> SweepDoubt:
    """Return the doubt about a sweep that was compared with another one, which is unusable now."""
    message = (
        f"the sweep of subnet {subnet} by {show(witness, 253)} is missing or unusable, and no "
        f"other sweep confirms what {show(node, 253)} found"
    )
    return SweepDoubt(DoubtKind.SWEEP_UNCONFIRMED, message)


def describe_reach(reach: SweepReach) -> str:
    """Return why a sweep that shows only a part of its own node does not count."""
    return (
        f"the sweep of {reach.subnet} from {show(reach.node)} contains {len(reach.seen)} of the "
        f"{reach.num_ports} ports that the node has there, and no other host: it does not count, "
        "and another port is elected"
    )


_FILE_SUFFIX: Final = re.compile(r"\.(?:ya?ml|json)(?:\.gz)?\Z")
_MAX_SUBNETS_SHOWN: Final = 3


def derive_refused_sweep_findings(
    refused: Mapping[tuple[str, str], ReportError], counted: Container[tuple[str, str]]
) -> list[Finding]:
    """Return a finding per node with sweeps that cannot be used.

    Args:
        refused: by node and subnet, why its first unusable sweep cannot be used.
        counted: node and subnet of each sweep that counts. A node whose last sweep counts may be
            writing the parts of the next one.
    """
    by_node: dict[str, dict[str, str]] = {}
    for key, error in refused.items():
        if not (isinstance(error, IncompleteSweep) and key in counted):
            node, subnet = key
            by_node.setdefault(node, {})[subnet] = str(error)
    return [_build_finding(node, _explain(node, by_node[node])) for node in sorted(by_node)]


def derive_refused_report_findings(refused: Mapping[str, ParseError]) -> list[Finding]:
    """Return a finding per node with objects that cannot be used.

    Args:
        refused: errors by the name of the object or its file, which is the node's name.
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
        excesses: by name of a report, words for what it has too much of.
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
