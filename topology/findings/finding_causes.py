"""Findings grouped by cause: all faults of one host are one cause, with their consequences.

A list of findings has each observation. A person mends causes: one host with three dead ports is
one thing to look at, and so are a hundred hosts whose agent is silent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

from topology.model.cabling_plan import show_end
from topology.model.errors import list_some, show
from topology.model.facts import (
    SEVERITY_RANK,
    Finding,
    FindingKind,
    Impact,
    PortName,
    describe_impact,
    rank_by_cost,
    sort_findings,
)
from topology.model.ids import natural_key

_MAX_EVIDENCE: Final = 4
_MIN_ALIKE: Final = 3
"""Findings that say the same of fewer devices are causes of their own."""
_OF_SEVERAL_DEVICES: Final = frozenset(
    {FindingKind.LOST_SWITCH, FindingKind.SWAPPED_CABLE, FindingKind.WRONG_RAIL}
)
"""Each of them is a cause of its own, whatever device is its subject."""
_UNHEARD: Final = frozenset(
    {FindingKind.SILENT_NODE, FindingKind.STALE_REPORT, FindingKind.UNUSABLE_REPORT}
)
"""Why a host does not confirm its cables."""
_CAUSES_FIRST: Final = {
    kind: rank
    for rank, kind in enumerate(
        (
            FindingKind.LOST_SWITCH,
            *(FindingKind.UNUSABLE_REPORT, FindingKind.SILENT_NODE),  # all else is what others saw
            *(FindingKind.DOWN_PORT, FindingKind.FLAPPING_LINK, FindingKind.SLOW_LINK),
            *(FindingKind.DUPLICATE_NAME, FindingKind.DUPLICATE_ID, FindingKind.UNRESOLVED_HOST),
            *(FindingKind.HOST_ON_SPINE, FindingKind.NO_LLDP, FindingKind.MISSING_LINK),
            *(FindingKind.ONE_SIDED_LINK, FindingKind.STALE_REPORT),  # never a reason for others
        )
    )
}
"""Of the findings about one host, the first one is the cause; the others are its evidence. Kinds
that are not listed come between the last two rows: a report that is old never hides a fault."""
_LAST: Final = _CAUSES_FIRST[FindingKind.ONE_SIDED_LINK] - 0.5


_NO_ENDS: Final[Mapping[PortName, PortName]] = MappingProxyType({})


class Cable(NamedTuple):
    """A cable of a finding; an empty port or a far end that is None is unknown."""

    near: PortName
    far: PortName | None


class Cause(NamedTuple):
    """One thing to mend: a finding, and what else is known because of it."""

    finding: Finding
    others: tuple[Finding, ...] = ()
    """The other findings about the same host."""
    consequences: tuple[Finding, ...] = ()
    """The findings that follow from the cause, such as the missing link of a port that is down."""
    alike: tuple[Cause, ...] = ()
    """The same cause at other devices."""
    far_ends: Mapping[PortName, PortName] = _NO_ENDS
    """The expected far end of each port without a cable, as far as any finding shows it."""

    @property
    def members(self) -> tuple[Cause, ...]:
        """The cause at each of its devices."""
        return (self._replace(alike=()), *self.alike)

    @property
    def findings(self) -> Iterator[Finding]:
        """All findings that mending the cause ends."""
        for row in self.members:
            yield from (row.finding, *row.others, *row.consequences)

    @property
    def impact(self) -> Impact:
        """What the cause costs at all of its devices."""
        return _add_impacts([row.finding.impact for row in self.members])

    @property
    def cables(self) -> list[Cable]:
        """The cables of the finding: present cables as they are, absent cables as they should be.

        The far end of a port may come from another finding.
        """
        if self.finding.kind is FindingKind.LOST_SWITCH:
            return []
        return [
            cable if cable.far else Cable(cable.near, self.far_ends.get(cable.near))
            for cable in _pair_ends(self.finding.ports)
            if cable.far or cable.near.port
        ]

    def describe_others(self) -> str:
        """Return the end of a message that names the other findings of the cause; or nothing."""
        if not self.others:
            return ""
        shown = [
            f"{row.kind.value}{_show_place(row, self.finding)}{self._show_far_end(row)}"
            for row in self.others
        ]
        return f" Also: {list_some(dict.fromkeys(shown), _MAX_EVIDENCE)}."

    def describe(self) -> str:
        """Return the message of the cause, with the number of findings that say the same."""
        alike = f"{len(self.members)} findings like this: " if self.alike else ""
        return f"{alike}{self.finding.message}{self.describe_others()}{self.advise_switch()}"

    def advise_switch(self) -> str:
        """Return advice about the switch that several dead ports share; or nothing.

        A switch that fails takes down the ports of several hosts, or several ports of one host.
        """
        down = [
            PortName(row.device, row.port or "")
            for member in self.members
            for row in (member.finding, *member.others)
            if row.kind is FindingKind.DOWN_PORT
        ]
        known = Counter(self.far_ends[end].device for end in down if end in self.far_ends)
        switch, num = next(iter(known.most_common(1)), ("", 0))
        if num > 1 and 2 * num > len(down):
            which = "All" if num == len(down) else f"{num} of {len(down)}"
            return f" {which} of these cables lead to {show(switch)}: check that switch first."
        if self.alike and known.total() < len(down):
            return " If these hosts share a switch, check the switch first."
        return ""

    def _show_far_end(self, finding: Finding) -> str:
        far = self.far_ends.get(PortName(finding.device, finding.port or ""))
        return f" <> {show_end(far)}" if far else ""


def _pair_ends(ports: Iterable[PortName]) -> list[Cable]:
    """Return the cables of ports: the two ends of a cable follow one another.

    If the next port is of the same device, the far end is unknown.
    """
    cables: list[Cable] = []
    near: PortName | None = None
    for end in ports:
        if near is None or near.device == end.device:
            cables += [] if near is None else [Cable(near, None)]
            near = end
        else:
            cables.append(Cable(near, end))
            near = None
    return cables if near is None else [*cables, Cable(near, None)]


def list_causes(findings: Iterable[Finding], hosts: Collection[str]) -> list[Cause]:
    """Return the findings by cause, the costliest first.

    Args:
        findings: the findings, in any order.
        hosts: all findings about one of these devices have one cause.
    """
    ordered = sort_findings(findings)
    explained = find_explanations(ordered)
    consequences: dict[int, list[Finding]] = {}
    for number, cause in explained.items():
        consequences.setdefault(id(ordered[cause]), []).append(ordered[number])
    kept = [row for number, row in enumerate(ordered) if number not in explained]
    far_ends = {
        cable.near: cable.far
        for row in ordered
        if row.kind is FindingKind.MISSING_LINK
        for cable in _pair_ends(row.ports)
        if cable.far and cable.near.port
    }
    causes = _join_alike(
        Cause(
            group[0],
            group[1:],
            tuple(chain.from_iterable(consequences.get(id(row), ()) for row in group)),
            far_ends=far_ends,
        )
        for group in _group_by_host(kept, hosts)
    )
    if any(cause.alike for cause in causes):
        causes.sort(key=lambda cause: rank_by_cost(cause.finding, cause.impact))
    return causes


def _join_alike(causes: Iterable[Cause]) -> list[Cause]:
    """Return causes that say the same of several devices as one, at the place of the first.

    Findings about ports are one cause if the ports have the same name and their cables lead to one
    switch, which takes them down if it fails. If all of its ports are down, none shows where they
    lead: then the far ends of all of them are unknown.
    """
    groups: dict[tuple[object, ...], list[Cause]] = {}
    for cause in causes:
        key = tuple(_build_alike(row, cause.far_ends) for row in (cause.finding, *cause.others))
        groups.setdefault(key, []).append(cause)
    joined: list[Cause] = []
    for first, *alike in groups.values():
        is_many = len(alike) + 1 >= _MIN_ALIKE
        joined += [first._replace(alike=tuple(alike))] if is_many else [first, *alike]
    return joined


def _build_alike(finding: Finding, far_ends: Mapping[PortName, PortName]) -> tuple[object, ...]:
    """Return what findings about several devices have in common if they are one cause."""
    name, port = finding.device, finding.port
    message = finding.message.replace(name, "\0") if name else finding.message
    far = far_ends.get(PortName(name, port)) if port else None
    switch = far and far.device
    return finding.severity, finding.kind, message, port, switch, describe_impact(finding.impact)


def _add_impacts(impacts: Sequence[Impact]) -> Impact:
    """Return what findings that say the same cost together; places that they share count once."""
    first = impacts[0]
    by_places = {row.places: row for row in impacts}
    nodes = sum(row.num_nodes for row in by_places.values())
    lost = sum((row.share or 0.0) * row.num_nodes for row in impacts)
    share = first.share if first.share is None or not nodes else min(lost / nodes, 1.0)
    gone = None if first.gone_share is None else max(row.gone_share or 0.0 for row in impacts)
    gangs = frozenset[str]().union(*(row.gangs or () for row in impacts))
    return first._replace(
        cables=None if first.cables is None else sum(row.cables or 0.0 for row in impacts),
        share=share,
        gone_share=gone if gone is None or share is None else max(gone, share),
        places=tuple(dict.fromkeys(chain.from_iterable(by_places))),
        num_nodes=nodes,
        num_gpus=None
        if first.num_gpus is None
        else sum(row.num_gpus or 0 for row in by_places.values()),
        gangs=None if first.gangs is None else tuple(sorted(gangs, key=natural_key)),
    )


def list_absent_cables(
    findings: Iterable[Finding],
    hosts: Collection[str],
    linked: Collection[PortName] = frozenset(),
) -> Iterator[tuple[Finding, Cable]]:
    """Yield each cable that findings name and that does not exist; a far end may be unknown.

    The cables of a lost switch are those for which its neighbors wait.

    Args:
        findings: as for `list_causes`, whose order the cables have.
        hosts: as for `list_causes`.
        linked: the ports that have a cable, a set.
    """
    used = set(linked)
    for cause in list_causes(findings, hosts):
        own = [row for member in cause.members for row in (member.finding, *member.others)]
        for finding in own:
            known = Cause(finding, far_ends=cause.far_ends).cables if finding.impact.cables else ()
            for cable in known or _list_waiting(finding):
                ends = {end for end in cable if end and end.port}
                if not ends & used:
                    used |= ends
                    yield finding, cable


def _list_waiting(finding: Finding) -> Iterator[Cable]:
    """Yield a cable for each port that waits for a lost switch, of which no port is known."""
    name = name_lost_switch(finding)
    for end in finding.ports if finding.kind is FindingKind.LOST_SWITCH else ():
        if end.port:
            yield Cable(end, PortName(name, "") if name else None)


def name_lost_switch(finding: Finding) -> str:
    """Return the name of a lost switch: of the past, or by those of its peers; else nothing."""
    is_known = finding.kind is FindingKind.LOST_SWITCH and finding.port is None
    return finding.device if is_known else finding.lost_name


def _group_by_host(
    findings: Sequence[Finding], hosts: Collection[str]
) -> list[tuple[Finding, ...]]:
    """Return the findings of each cause, the cause first; groups are in the order given."""
    unheard = {row.device for row in findings if row.kind in _UNHEARD}
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        host = _find_host(finding, hosts, unheard)
        groups.setdefault(number if host is None else host, []).append(finding)
    return [tuple(sorted(group, key=_rank)) for group in groups.values()]


def drop_consequences(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings without those that `find_explanations` explains."""
    findings = list(findings)
    explained = find_explanations(findings)
    return [row for number, row in enumerate(findings) if number not in explained]


def find_explanations(findings: Sequence[Finding]) -> dict[int, int]:
    """Return each finding that follows from another finding, with that finding; both by index.

    A lost switch explains the down ports and the missing links at its neighbors. It also explains a
    neighbor that lacks links at unknown ports. A port that is down explains its missing link.
    """
    lost: dict[PortName, int] = {}
    neighbors: dict[str, int] = {}
    down: dict[PortName, int] = {}
    for number, row in enumerate(findings):
        if row.kind is FindingKind.LOST_SWITCH:
            lost.update(dict.fromkeys(row.ports, number))
            neighbors.update((end.device, number) for end in row.ports)
        elif row.kind is FindingKind.DOWN_PORT:
            down[PortName(row.device, row.port or "")] = number
    explained: dict[int, int] = {}
    for number, row in enumerate(findings):
        if row.kind is FindingKind.MISSING_LINK:
            cause = _find_cause(row, lost)
            cause = _find_cause(row, down) if cause is None else cause
            if cause is None and row.ports == (PortName(row.device, ""),):
                cause = neighbors.get(row.device)
        elif row.kind is FindingKind.DOWN_PORT:
            cause = lost.get(PortName(row.device, row.port or ""))
        else:
            continue
        if cause is not None:
            explained[number] = explained.get(cause, cause)
    return explained


def _find_cause(finding: Finding, causes: Mapping[PortName, int]) -> int | None:
    """Return the cause of missing links, which explains all ports of the device.

    If a single cable is missing, the cause may also be known from the port at its far end.
    """
    own = [end for end in finding.ports if end.device == finding.device]
    is_single = len(own) == 1
    ends = finding.ports if is_single else own
    known = [causes[end] for end in ends if end in causes]
    explains_all = is_single or len(known) == len(ends)
    return known[0] if known and explains_all else None


def _find_host(finding: Finding, hosts: Collection[str], unheard: Collection[str]) -> str | None:
    """Return the host whose fault a finding shows; None if the finding is its own cause."""
    if finding.kind in _OF_SEVERAL_DEVICES:
        return None
    if finding.device in hosts:
        return finding.device
    if finding.kind is FindingKind.ONE_SIDED_LINK:
        silent = (end.device for end in finding.ends if end.device in unheard)
        return next((device for device in silent if device in hosts), None)
    return None


def _rank(finding: Finding) -> tuple[int, float]:
    return SEVERITY_RANK[finding.severity], _CAUSES_FIRST.get(finding.kind, _LAST)


def _show_place(finding: Finding, cause: Finding) -> str:
    """Return the port of a finding, and its device unless that is the device of the cause."""
    device = "" if finding.device == cause.device else f" {show(finding.device)}"
    port = f" port {show(finding.port)}" if finding.port else ""
    return f"{device}{port}"
