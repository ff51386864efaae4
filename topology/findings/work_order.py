"""A work order: what a technician unplugs and plugs, in the order of a walk past the racks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from topology.findings.finding_causes import Cable, Cause, name_lost_switch
from topology.model.cabling_plan import show_end
from topology.model.errors import list_some, show
from topology.model.facts import Finding, FindingKind, PortName, Severity, describe_impact
from topology.model.ids import natural_key
from topology.model.name_ranges import fold_texts
from topology.model.tree import TopologyTree

_MAX_CABLES: Final = 2
"""Cables that a cause shows with both ends."""
_MAX_RANGES: Final = 8
"""Ranges of ports that wait for the cables of one switch."""
_HERE: Final = "the plug in this port"
AGAIN: Final = (
    "the same ports again, here and at {}; "
    "if that does not help, a new cable, then new transceivers"
)
_EXPECTED: Final = " (expected from its peers)"
"""The end of a cable that nobody reports."""
_RESEATED: Final = frozenset(
    {
        *(FindingKind.MISSING_LINK, FindingKind.DOWN_PORT, FindingKind.FLAPPING_LINK),
        *(FindingKind.SLOW_LINK, FindingKind.ONE_SIDED_LINK),
    }
)
"""Their cables belong where they are."""
_OF_ONE_HOST: Final = _RESEATED - {FindingKind.ONE_SIDED_LINK}
"""Several of them about one host are one cause, and a plug each. Cables that only one end reports
follow from a host that is silent."""
_CONFUSED: Final = frozenset(
    {FindingKind.DUPLICATE_NAME, FindingKind.DUPLICATE_ID, FindingKind.NO_LLDP}
)
"""A host that they are about may have the cables that seem to be absent."""
_MOVED: Final = frozenset({FindingKind.SWAPPED_CABLE, FindingKind.WRONG_RAIL})
_BY_HAND: Final = frozenset({FindingKind.HOST_ON_SPINE})
"""They need somebody at the device, and no rule knows which plug."""
_SHOWS: Final = {
    FindingKind.SLOW_LINK: ", at the rate of its peers",
    FindingKind.FLAPPING_LINK: ", without a flap for an hour",
    FindingKind.ONE_SIDED_LINK: ", seen from both ends",
}


class Place(NamedTuple):
    """Where a device is. An empty field is unknown."""

    rack: str = ""
    unit: str = ""


class Step(NamedTuple):
    """One plug to handle."""

    place: Place
    device: str
    port: str
    """Empty if it is unknown."""
    unplug: str
    """The cable or plug to take out, or what to look at."""
    plug: str
    """The port for the plug; empty if the port is unknown, or if nothing is unplugged."""
    shows: str
    """What Toponaut shows when the step is done."""
    kind: str
    """The kind of finding, or of difference from a plan."""
    costs: str
    is_error: bool = False
    is_first: bool = False
    """It comes before all others, wherever it is."""


class WorkOrder(NamedTuple):
    """The steps in their order, and what needs nobody at a rack."""

    steps: tuple[Step, ...]
    others: tuple[str, ...]
    """The kind of each cause or difference without a step."""
    num_mended: int
    """How many causes or differences the steps mend."""


def build_work_order(
    causes: Iterable[Cause], tree: TopologyTree, places: Mapping[str, Place]
) -> WorkOrder:
    """Return the steps by rack and unit, then in the order of the tree; lost switches are first.

    Those without a rack or a unit come last. The exchanges of one finding follow one another.

    Args:
        causes: the causes as `list_causes` returns them.
        tree: the tree of the same observation.
        places: the places of the devices, as far as they are known.
    """
    walk = {node: (number, 0) for number, node in enumerate(tree.nodes)}
    for domain in tree.domains:
        walk |= dict.fromkeys(domain.switches, (domain.start, domain.tier))
    others: list[str] = []
    groups: list[list[Step]] = []
    causes = list(causes)
    for cause in causes:
        parts = chain.from_iterable(map(_list_parts, cause.members))
        steps = [step for row in parts for step in _list_steps(row, places)]
        groups += [steps] if cause.finding.swap else [[step] for step in steps]
        others += [] if steps else [cause.finding.kind.value]
    return WorkOrder(sort_steps(groups, walk), tuple(others), len(causes) - len(others))


def sort_steps(
    groups: Iterable[Sequence[Step]], walk: Mapping[str, tuple[int, int]]
) -> tuple[Step, ...]:
    """Return the steps by rack and unit, then in the order of a walk; those of a group together.

    The groups whose first step comes before all others are sorted likewise.

    Args:
        groups: the steps that follow one another, at the place of the first.
        walk: where each device stands in the walk; all others come last.
    """
    last = max(walk.values(), default=(0, 0))[0] + 1, 0

    def order(group: Sequence[Step]) -> tuple[object, ...]:
        place, device, port = group[0][:3]
        rack = not place.rack, natural_key(place.rack), not place.unit, natural_key(place.unit)
        return (
            not group[0].is_first,
            *rack,
            *walk.get(device, last),
            natural_key(device),
            natural_key(port),
        )

    ordered: list[Sequence[Step]] = sorted(groups, key=order)
    return tuple(chain.from_iterable(ordered))


def _list_parts(cause: Cause) -> Iterator[Cause]:
    """Yield each finding of a cause that needs somebody at a rack, the first one in any case."""
    yield cause
    ports = {cable.near for cable in cause.cables}
    for row in () if cause.finding.kind in _CONFUSED else cause.others:
        part = Cause(row, far_ends=cause.far_ends)
        if row.kind in _OF_ONE_HOST and not ports.intersection(cable.near for cable in part.cables):
            ports.update(cable.near for cable in part.cables)
            yield part


def _list_steps(cause: Cause, places: Mapping[str, Place]) -> Iterator[Step]:
    """Yield the steps of a cause; none if nobody has to go to a rack for it."""
    finding = cause.finding
    kind, costs = finding.kind.value, describe_impact(finding.impact)
    is_error, is_first = finding.severity is Severity.ERROR, finding.kind is FindingKind.LOST_SWITCH
    for move in _list_moves(cause, places):
        place = places.get(move.end.device, Place())
        shows = move.shows or f"no {kind} of {show_subject(cause, {})}"
        texts = move.unplug, move.plug, shows, kind, costs
        yield Step(place, *move.end, *texts, is_error, is_first)


class _Move(NamedTuple):
    """What to do with the plug in a port."""

    end: PortName
    unplug: str
    plug: str = ""
    shows: str = ""
    """Empty: that the finding is gone."""


def _list_moves(cause: Cause, places: Mapping[str, Place]) -> Iterator[_Move]:
    finding, cables = cause.finding, cause.cables
    if finding.swap:
        owners = {
            one: other for near, far in cables if far for one, other in ((near, far), (far, near))
        }
        for ports in finding.swap:
            plugs = describe_exchange(ports, (owners.get(ports[0]), owners.get(ports[1])), places)
            yield _Move(ports[0], *plugs)
    elif finding.kind in _RESEATED and any(map(_has_port, cables)):
        yield from (_reseat(finding, cable, places) for cable in cables)
    elif len(cables) == 1 and finding.kind in _MOVED and cables[0].far:
        cable = f"the cable from {locate_port(cables[0].near, places)}"
        yield _Move(cables[0].far, cable, "the port where its peers are")
    elif finding.kind is FindingKind.LOST_SWITCH:
        yield _bring_back(finding)
    elif finding.kind in _RESEATED | _MOVED | _BY_HAND or _is_off(finding):
        yield _Move(PortName(finding.device, finding.port or ""), finding.message)


def _is_off(finding: Finding) -> bool:
    """Return whether a silent node has no link either; others have an agent that does not run."""
    return finding.kind is FindingKind.SILENT_NODE and bool(finding.ports)


def _has_port(cable: Cable) -> bool:
    return bool(cable.near.port or (cable.far and cable.far.port))


def _reseat(finding: Finding, cable: Cable, places: Mapping[str, Place]) -> _Move:
    """Return the move of a cable that belongs where it is, at an end whose port is known."""
    near, far = cable
    if far is None:
        return _Move(near, _HERE, AGAIN.format("the other end"), f"{show_end(near)} is up")
    if not near.port:
        near, far = far, near
    shows = f"{show_end(near)} <> {show_end(far)}{_SHOWS.get(finding.kind, '')}"
    if not far.port and finding.kind is FindingKind.MISSING_LINK:
        return _Move(near, finding.message, shows=shows)  # it names the ports that fit
    is_absent = finding.kind is FindingKind.MISSING_LINK or far not in finding.ports
    unplug = f"the cable to {locate_port(far, places)}{_EXPECTED if is_absent else ''}"
    return _Move(near, unplug, AGAIN.format(show_end(far)), shows)


def _bring_back(finding: Finding) -> _Move:
    """Return the move of a lost switch: what to look at, and which ports wait for its cables.

    Its name is known from the past, or from the names of its peers; else it is at the far end of a
    port of the first neighbor.
    """
    name = name_lost_switch(finding)
    end = PortName(name, "") if name else PortName(finding.device, finding.port or "")
    who = "this switch" if name else "the switch at the other end of this port"
    is_guessed = bool(name) and name == finding.lost_name
    source = "; its name follows from those of its peers" if is_guessed else ""
    unplug, plug, shows = describe_recovery(f"{who}{source}", finding.ports)
    return _Move(end, unplug, plug, shows or f"{show_end(end)} in the tree")


def describe_recovery(who: str, ends: Iterable[PortName]) -> tuple[str, str, str]:
    """Return what to look at, to plug, and what is shown then, for a device that is gone.

    Args:
        who: the device.
        ends: the other ends of its cables; without a port, nothing is known to show.
    """
    ends = list(ends)
    num = sum(bool(end.port) for end in ends)
    waiting = "each of its cables into the port that waits for it"
    return (
        f"nothing: check the power of {who}",
        f"power; then, if links stay down, {waiting}: {_fold_ends(ends)}",
        f"a link at each of these {num} ports" if num else "",
    )


def _fold_ends(ends: Iterable[PortName]) -> str:
    """Return ports as ranges of devices that have the same ports: `port 3 of leaf-[1-8]`."""
    ports: dict[str, list[str]] = defaultdict(list)
    for device, port in ends:
        ports[device].append(port)
    devices: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for device, own in ports.items():
        devices[tuple(filter(None, own))].append(device)
    shown = [
        f"{'ports' if len(own) > 1 else 'port'} {fold_texts(own)} of {fold_texts(names)}"
        if own
        else fold_texts(names)
        for own, names in devices.items()
    ]
    return list_some(shown, _MAX_RANGES)


def describe_exchange(
    ports: tuple[PortName, PortName],
    owners: tuple[PortName | None, PortName | None],
    places: Mapping[str, Place],
) -> tuple[str, str, str]:
    """Return what to unplug, where to plug it and what is shown then, for two plugs to exchange.

    Args:
        ports: the two ports.
        owners: the other end of the cable in each port; None: unknown.
        places: the places of the devices.
    """
    here, there = (locate_port(port, places) for port in ports)
    moves = [
        (owner, f"the {'cable from ' + locate_port(owner, places) if owner else 'plug'}", target)
        for owner, target in zip(owners, ports[::-1], strict=True)
    ]
    plug = ", ".join(f"{cable} into {show_end(target)}" for _, cable, target in moves)
    shows = " and ".join(
        f"{show_end(owner)} <> {show_end(port)}" for owner, _, port in moves if owner
    )
    return f"the plugs in {here} and {there}", f"exchanged: {plug}", shows


def show_subject(cause: Cause, places: Mapping[str, Place]) -> str:
    """Return what a cause is about: the ends of few cables, else a device and its port."""
    finding, cables = cause.finding, cause.cables
    if cables and len(cables) <= _MAX_CABLES and all(cable.far for cable in cables):
        return " and ".join(
            f"{locate_port(cable.near, places)} <> {locate_port(cable.far, places)}"
            for cable in cables
            if cable.far
        )
    return locate_port(PortName(finding.device, finding.port or ""), places)


def locate_port(end: PortName, places: Mapping[str, Place]) -> str:
    """Return a port, with the rack and the unit of its device if they are known."""
    place = places.get(end.device, Place())
    unit = f", unit {show(place.unit)}" if place.unit else ""
    return f"{show_end(end)} (rack {show(place.rack)}{unit})" if place.rack else show_end(end)
