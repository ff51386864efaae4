"""Findings and doubts about sweeps: ignored, contradicted by hosts, in disagreement. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from generator.ingest.host_evidence import HostCheck, SweepReach
from generator.ingest.inputs import DoubtKind, SweepDoubt
from generator.ingest.sweep_views import SweepDifference
from topology.model.errors import list_some, show
from topology.model.facts import Finding, FindingKind, Severity, finding_about
from topology.model.ids import natural_key

_MAX_SHOWN: Final = 5


class IgnoreReason(StrEnum):
    """Why a sweep does not count."""

    UNNAMED = "unnamed"
    """The Fabric object does not name its node."""
    LONE = "lone"
    """No other host reports a port in its subnet."""
    AHEAD = "ahead"
    """It is dated ahead of our clock."""


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


def describe_difference(difference: SweepDifference) -> str:
    """Return how two sweeps differ, as a part of a sentence."""
    rows = [
        (difference.num_cables, "cables are in only one of them"),
        (difference.num_moved, "ports of hosts are cabled to different ports"),
        (difference.num_switches, "switches differ in many cables"),
        (difference.num_renamed, "devices have another name, kind or system image"),
    ]
    return ", ".join(f"{num} {words}" for num, words in rows if num)


def build_disagreement_finding(
    nodes: tuple[str, str], subnet: str, difference: SweepDifference, *, silent: str | None
) -> Finding:
    """Return the finding about two sweeps that differ; it names both nodes.

    Args:
        nodes: the node whose sweep is used, and the other one.
        subnet: that both swept.
        difference: how they differ.
        silent: the node of the two that does not sweep any longer.
    """
    first, second = (show(node, 253) for node in sorted(nodes, key=natural_key))
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
    return finding_about(
        FindingKind.SWEEPS_DISAGREE,
        [first, second],
        severity=Severity.WARNING,
        message=(
            f"The sweeps of subnet {subnet} by {first} and {second} disagree: "
            f"{describe_difference(difference)}. Nothing is moved that follows from only one of "
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

    Args:
        nodes: the node whose sweep is used, and the other one.
        subnet: that both swept.
        difference: how they differ.
        hosts: the nodes in question.
        silent: the node of the two that does not sweep any longer.
    """
    first, second = (show(node, 253) for node in sorted(nodes, key=natural_key))
    message = (
        f"the sweeps of subnet {subnet} by {first} and {second} disagree: "
        f"{describe_difference(difference)}"
    )
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
    """Return why a sweep does not count that shows only a part of its own node."""
    return (
        f"the sweep of {reach.subnet} from {show(reach.node)} contains {len(reach.seen)} of the "
        f"{reach.num_ports} ports that the node has there, and no other host: it does not count, "
        "and another port is elected"
    )
