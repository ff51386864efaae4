"""Why nothing may be planned from an observation, and the finding about each reason. Pure.

The reasons are: an input whose end is missing; a setting of the tree that is wrong, without a known
good value; an entry of the inventory that names no node; and a domain that no API server can store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from generator.objects.inventory import Inventory, ListedNode
from generator.objects.tree_spec import FABRIC_SOURCE, UnknownSetting, show_field
from topology.model.errors import CutInput, list_some, show
from topology.model.facts import Finding, FindingKind, Severity, finding_about
from topology.model.tree import TopologyTree

MAX_MEMBER_BYTES: Final = 1_400_000
"""etcd refuses requests above 1.5 MiB (`--max-request-bytes`); the rest of the object is small."""
_BYTES_PER_MEMBER: Final = len('{"type":"Node","selector":{"exactMatch":{"name":""}}},') + 6
_MAX_SHOWN: Final = 3
_MAX_NODES: Final = 1000
"""Nodes with a finding of their own; the number of the others is in one."""
_SUBJECT: Final = "inventory"
_NEEDS_WHOLE_INPUT: Final = frozenset(
    {
        FindingKind.ONE_SIDED_LINK,
        FindingKind.SWAPPED_CABLE,
        FindingKind.WRONG_RAIL,
        FindingKind.LOST_SWITCH,
        FindingKind.MISSING_LINK,
        FindingKind.SLOW_LINK,
        FindingKind.DOWN_PORT,
        FindingKind.HOST_ON_SPINE,
        FindingKind.AUX_SWITCH,
        FindingKind.UNRESOLVED_HOST,
        FindingKind.UNDECIDABLE,
        FindingKind.NEAR_TIE,
        FindingKind.ISLAND,
        FindingKind.NOT_A_TREE,
        FindingKind.TIER_MISMATCH,
        FindingKind.GUESSED_KIND,
    }
)
"""Kinds that compare peers or need both ends of a cable, so that a cut shows cables to be at fault
that are merely absent from the input."""


class LargeDomain(NamedTuple):
    """A domain that no API server can store as a HyperNode, because that lists every member."""

    name: str
    problem: str
    """Why, and what a person should do; one line."""


def find_large_domains(tree: TopologyTree) -> Iterator[LargeDomain]:
    """Yield each domain whose HyperNode cannot be written. Cost: O(nodes + domains)."""
    for domain in tree.domains:
        names = domain.nodes or tuple(tree.domains[child].name for child in domain.children)
        num_bytes = sum(map(len, names)) + _BYTES_PER_MEMBER * len(names)
        if num_bytes > MAX_MEMBER_BYTES:
            problem = (
                f"domain {show(domain.name)} has {len(names)} members: its HyperNode would take "
                f"{num_bytes} bytes, and an API server stores at most 1.5 MiB. Check its cables, "
                "and which plane they are in"
            )
            yield LargeDomain(domain.name, problem)


def derive_size_findings(domains: Iterable[LargeDomain]) -> Iterator[Finding]:
    """Yield a finding per domain, about the domain by its name."""
    for domain in domains:
        yield finding_about(
            FindingKind.DOMAIN_TOO_LARGE,
            [show(domain.name)],
            severity=Severity.ERROR,
            message=f"{domain.problem}. Nothing is planned until it is smaller.",
        )


def withhold_findings(findings: Iterable[Finding], cuts: Sequence[CutInput]) -> Iterator[Finding]:
    """Yield a finding per cut input, then the findings that do not need a whole input."""
    yield from (finding for finding in findings if finding.kind not in _NEEDS_WHOLE_INPUT)
    for cut in cuts:
        yield Finding(
            kind=FindingKind.CUT_INPUT,
            device=show(cut.source.rpartition("/")[2], 253) or "input",
            port=None,
            severity=Severity.ERROR,
            message=(
                f"The end of this input is missing: {cut.problem}. Nothing is planned from it, and "
                "findings about cables are withheld. Give the whole input."
            ),
        )


def describe_cuts(cuts: Sequence[CutInput]) -> Iterator[str]:
    """Yield why nothing may be planned from each cut input."""
    return (f"{show(cut.source, 253)}: {cut.problem}" for cut in cuts)


def derive_setting_findings(settings: Iterable[UnknownSetting]) -> Iterator[Finding]:
    """Yield a finding per setting."""
    for setting in settings:
        yield Finding(
            kind=FindingKind.UNUSABLE_FIELD,
            device=FABRIC_SOURCE,
            port=None,
            severity=Severity.ERROR,
            message=f"{_describe_setting(setting)}. The tree here follows from the default. "
            "Correct the field: until then, nothing is planned.",
        )


def describe_settings(settings: Iterable[UnknownSetting]) -> Iterator[str]:
    """Yield why nothing may be planned while a setting is unknown."""
    return map(_describe_setting, settings)


def _describe_setting(setting: UnknownSetting) -> str:
    return (
        f"{show_field(setting.field)} of {FABRIC_SOURCE} is wrong, and no earlier good value is "
        f"known: {show(setting.problem, 400)}"
    )


def derive_inventory_findings(inventory: Inventory | None) -> Iterator[Finding]:
    """Yield a finding per node with unusable fields, and one for all entries that name no node.

    A list of a million wrong entries gives a thousand findings and their total.
    """
    if inventory is None:
        return
    faulty = [node for node in inventory.nodes if node.problems]
    for node in faulty[:_MAX_NODES]:
        yield _build_finding(
            node.name,
            Severity.WARNING,
            f"The entry of node {node.name} in the list of nodes{_show_place(inventory, node)} "
            f"has faults: {list_some(node.problems, _MAX_SHOWN)}. The node stays listed. "
            "Correct the entry.",
        )
    more = len(faulty) - _MAX_NODES
    if more > 0:
        yield _build_finding(
            _SUBJECT,
            Severity.WARNING,
            f"The entries of {more} more nodes in the list of nodes have faults. The nodes stay "
            "listed. Correct the entries.",
        )
    if inventory.lost:
        shown = list_some((show(problem, 200) for problem in inventory.lost), _MAX_SHOWN)
        yield _build_finding(
            _SUBJECT,
            Severity.ERROR,
            f"The list of nodes has entries that name no node, or lacks its end: {shown}. Correct "
            "the list: until then, no node of a HyperNode is taken for removed.",
        )


def _show_place(inventory: Inventory, node: ListedNode) -> str:
    place = inventory.places.get(node.name)
    return f" ({show(place, 1024)})" if place else ""


def describe_lost_entries(inventory: Inventory | None, previous: TopologyTree | None) -> str:
    """Return why no node may leave its domain: an entry without a name may be of that node.

    Empty if every entry names its node, or if every placed node is listed anyway.

    Args:
        inventory: the listed nodes.
        previous: the tree of the last generation.
    """
    if inventory is None or not inventory.lost or previous is None:
        return ""
    listed = {node.name for node in inventory.nodes}
    missing = [node for node in previous.nodes if node not in listed]
    if not missing:
        return ""
    return (
        f"the list of nodes has entries that name no node or lacks its end, and lacks "
        f"{list_some(map(show, missing), _MAX_SHOWN)}"
    )


def _build_finding(device: str, severity: Severity, message: str) -> Finding:
    return Finding(
        kind=FindingKind.UNUSABLE_FIELD,
        device=device,
        port=None,
        severity=severity,
        message=message,
    )
