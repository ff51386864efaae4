"""Differences between a cabling plan and the observed fabric, with the shortest list of moves.

Only planned ports can be wrong; other cables are listed separately. A cable that no device would
report is unknown, not missing. `plan_names` decides which device and port a name means, `repair`
decides which plug goes where.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from topology.cabling.lost_devices import LostDevice, LostDeviceSearch
from topology.cabling.other_names import find_other_names
from topology.cabling.plan_names import PlanPorts, UnknownReason
from topology.cabling.repair import AddStep, MoveStep, Pair, RemoveStep, Repair, Step, plan_repairs
from topology.model.cabling_plan import (
    CablingPlan,
    PlannedCable,
    cable_error,
    show_cable,
    show_end,
)
from topology.model.errors import ParseError, show
from topology.model.fabric import KIND_CODES, Fabric, Link
from topology.model.facts import DeviceKind, PortName
from topology.model.port_names import Words

_MAX_NAMES_SHOWN: Final = 4
"""Cables listed in one message."""
_EXCHANGED: Final = 2
"""Plugs in each other's ports; in longer rings each plug is in the port of the next."""


class DifferenceKind(StrEnum):
    """The ways a fabric can differ from its plan."""

    SWAPPED = "swapped"
    """Cables whose plugs sit in each other's ports."""
    WRONG_PORT = "wrong-port"
    """A cable with one plug in a port where it does not belong."""
    MISSING = "missing"
    """A planned cable that no device reports, although one of its ends has a report."""
    EXTRA = "extra"
    """A cable in a planned port that is not in the plan."""
    UNKNOWN_DEVICE = "unknown-device"
    """No report covers an end of the cable, so nothing is known about it."""
    UNKNOWN_PORT = "unknown-port"
    """A cable is in a port that may be the planned one under another name."""
    OTHER_NAME = "other-name"
    """A device has its planned cables, and another name than in the plan."""
    LOST_DEVICE = "lost-device"
    """No report shows a device, and the other ends of its cables have no link."""


class MoveKind(StrEnum):
    """The ways to move one cable."""

    MOVE = "move"
    """Pull one plug and put it into another port, which is free."""
    EXCHANGE = "exchange"
    """Put each of two plugs into the port of the other."""
    UNPLUG = "unplug"
    """Pull one plug and keep it aside."""
    PLUG = "plug"
    """Put the plug that was kept aside into a port."""
    ADD = "add"
    REMOVE = "remove"


class UnplannedReason(StrEnum):
    """Why an observed cable is not compared."""

    DEVICE = "a device is not in the plan"
    PORT = "its ports are not in the plan"
    CONTESTED = "one of its ports reports another cable too"


class ObservedCable(NamedTuple):
    """One cable as the fabric reports it."""

    a: PortName
    b: PortName


class Difference(NamedTuple):
    """One difference between the fabric and the plan."""

    kind: DifferenceKind
    planned: tuple[PlannedCable, ...]
    """All cables of the ring for a swap; none for an extra cable."""
    observed: tuple[ObservedCable, ...]
    """The cables observed in these ports, in the same order if both are known."""
    message: str
    """What was observed, and what a person should do."""
    group: int | None
    """Number of the group of moves that repairs it; None if no move can."""
    names: tuple[str, str] | None = None
    """The name of the device in the plan, and in the fabric, if only the names differ."""
    lost: str = ""
    """The name of the device that is gone; empty if none is."""

    @property
    def ends(self) -> tuple[PortName, ...]:
        """All ports of the difference, as the plan spells them and as observed."""
        planned = [end for cable in self.planned for end in cable.ends]
        devices = (PortName(name, "") for name in self.names or ())
        return (*planned, *(end for cable in self.observed for end in cable), *devices)


class Move(NamedTuple):
    """One move of a cable, or of two in each other's ports."""

    kind: MoveKind
    cable: ObservedCable
    """The observed cable, the plug that stays first; for `add` the planned cable."""
    target: PortName | None
    """The port that the plug of `cable.b` goes to; None if it goes to none."""
    group: int
    """Group of the repaired differences; the moves of a group are adjacent and in order."""
    other: ObservedCable | None = None
    """The cable whose plug comes from the target; None unless the kind is `exchange`."""


class UnplannedCable(NamedTuple):
    """An observed cable that no row of the plan covers."""

    cable: ObservedCable
    reason: UnplannedReason


@dataclass(frozen=True, slots=True)
class CablingDiff:
    """All differences between a fabric and its plan."""

    differences: tuple[Difference, ...] = ()
    """Differences in order of the plan, extra cables last."""
    moves: tuple[Move, ...] = ()
    """The shortest list; carried out in this order, no port ever has two plugs."""
    unplanned: tuple[UnplannedCable, ...] = ()
    """Sorted by ports."""
    num_as_planned: int = 0
    """Cables that are as planned."""
    errors: tuple[ParseError, ...] = ()
    """Cables of the plan that contradict others once their names are resolved."""


def compare_cabling(plan: CablingPlan, fabric: Fabric) -> CablingDiff:
    """Return the differences between a fabric and a cabling plan.

    Deterministic in the plan and the fabric. Cost: O(n log n) in cables.
    """
    ports = PlanPorts(fabric, plan.cables)
    other_names = _use_other_names(plan, fabric, ports)
    resolved = _resolve_plan(plan, ports)
    observed = _select_observed(fabric.links, set(resolved.cables))
    _mark_unobservable(resolved, observed, fabric=fabric, ports=ports)
    lost = _find_lost(resolved, observed, fabric=fabric, ports=ports)
    planned_peer_by_port = _index_both_ends(resolved.cables)
    heights = _Heights(fabric)
    repairs = plan_repairs(
        planned_peer_by_port,
        observed.peer_by_port,
        device=ports.devices,
        find_height=lambda device: heights.by_device[device],
    )
    builder = _DiffBuilder(ports, resolved.cables, observed.peer_by_port)
    rows = [
        *(row for group, repair in enumerate(repairs) for row in builder.build_rows(repair, group)),
        *builder.build_unknown_rows(resolved.unknown),
        *other_names,
        *map(_lost_row, lost),
    ]
    return CablingDiff(
        differences=tuple(sorted(rows, key=_row_order)),
        moves=tuple(
            move
            for group, repair in enumerate(repairs)
            for move in builder.build_moves(repair, group)
        ),
        unplanned=tuple(_find_unplanned(observed, resolved, ports)),
        num_as_planned=sum(observed.peer_by_port.get(a) == b for a, b in resolved.cables),
        errors=tuple(resolved.errors),
    )


class _Heights:
    """How far each device is above the hosts, counted once a plug could move at either end."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric

    @cached_property
    def by_device(self) -> Sequence[int]:
        """How many cables are between a device and the nearest host; 0 also without a way.

        Cost: O(links x tiers).
        """
        columns = self._fabric.columns
        a, b = columns.port_devices[columns.links.a], columns.port_devices[columns.links.b]
        near, far = np.concatenate([a, b]), np.concatenate([b, a])
        is_reached = columns.kinds == KIND_CODES[DeviceKind.HOST]
        heights, height = np.zeros(len(is_reached), np.intp), 0
        while True:
            reached = np.unique(far[is_reached[near] & ~is_reached[far]])
            if not len(reached):
                return heights.tolist()
            height += 1
            heights[reached] = height
            is_reached[reached] = True


def _use_other_names(plan: CablingPlan, fabric: Fabric, ports: PlanPorts) -> list[Difference]:
    """Let planned names mean the devices with their cables; return a difference for each."""
    observed = _select_observed(fabric.links, set())
    found, doubted = find_other_names(plan.cables, ports, observed.peer_by_port)
    taken = {name.device for name in found}
    for cable in plan.cables:
        for end in cable.ends:
            if ports.find_device(end.device) in taken:
                ports.use_name(end.device, UnknownReason.TAKEN)
    for doubted_name in doubted:
        ports.use_name(doubted_name, UnknownReason.DOUBTED)
    rows = []
    for name in found:
        ports.use_name(name.planned, name.device)
        seen = fabric.devices[name.device].name
        message = (
            f"The device that the plan names {show(name.planned)} is known as {show(seen)}: it has "
            "the planned cables. Correct the name in the plan, or on the device."
        )
        row = Difference(DifferenceKind.OTHER_NAME, (), (), message, None, (name.planned, seen))
        rows.append(row)
    return rows


class _UnknownCable(NamedTuple):
    """A planned cable that cannot be compared."""

    kind: DifferenceKind
    cable: PlannedCable
    reason: str


@dataclass(slots=True)
class _ResolvedPlan:
    """A cabling plan in port numbers of `PlanPorts`, and the cables that cannot be compared."""

    cables: dict[Pair, PlannedCable] = field(default_factory=dict)
    """By port numbers, the lower one first."""
    cable_by_port: dict[int, PlannedCable] = field(default_factory=dict)
    """By each port that the plan names on a known device."""
    unknown: list[_UnknownCable] = field(default_factory=list)
    """Cables that cannot be compared."""
    errors: list[ParseError] = field(default_factory=list)


def _resolve_plan(plan: CablingPlan, ports: PlanPorts) -> _ResolvedPlan:
    resolved = _ResolvedPlan()
    for cable in plan.cables:
        devices = [ports.find_device(end.device) for end in cable.ends]
        ports_of_cable = [
            ports.find_port(device, end)
            for device, end in zip(devices, cable.ends, strict=True)
            if not isinstance(device, UnknownReason)
        ]
        if len(set(ports_of_cable)) < len(ports_of_cable) or any(
            port in resolved.cable_by_port for port in ports_of_cable
        ):
            rivals = (resolved.cable_by_port.get(port, cable) for port in ports_of_cable)
            rival = next((rival_cable for rival_cable in rivals if rival_cable is not cable), cable)
            problem = f"one of its ports has another spelling in {show_cable(*rival.ends)}"
            resolved.errors.append(cable_error(cable, problem, form=plan.form, source=plan.source))
            continue
        resolved.cable_by_port.update(dict.fromkeys(ports_of_cable, cable))
        if len(ports_of_cable) < len(devices):
            reason = _explain_unknown(cable, devices)
            unknown = _UnknownCable(DifferenceKind.UNKNOWN_DEVICE, cable, reason)
            resolved.unknown.append(unknown)
        else:
            resolved.cables[min(ports_of_cable), max(ports_of_cable)] = cable
    return resolved


def _explain_unknown(cable: PlannedCable, devices: Sequence[int | UnknownReason]) -> str:
    return "; ".join(
        f"{show_end(end)}: {reason.value}"
        for end, reason in zip(cable.ends, devices, strict=True)
        if isinstance(reason, UnknownReason)
    )


@dataclass(slots=True)
class _ObservedCables:
    """The cables of the fabric, at most one per port."""

    peer_by_port: dict[int, int] = field(default_factory=dict)
    """Port to port, in both directions."""
    contested: list[Pair] = field(default_factory=list)
    """Cables that share a port with a cable of better evidence."""


def list_cables(fabric: Fabric) -> list[PlannedCable]:
    """Return the cables of a fabric as a plan from which it does not differ.

    A port has one cable, as in `compare_cabling`. A cable with a port of unknown name is left out.
    A host is the first end. Sorted by the first ends, hosts first, in natural order.
    """

    def order(port: int) -> tuple[bool, int]:
        return fabric.devices[fabric.ports[port].device].kind is DeviceKind.SWITCH, port

    peers = _select_observed(fabric.links, set()).peer_by_port
    pairs = sorted(
        (sorted(pair, key=order) for pair in peers.items() if pair[0] < pair[1]),
        key=lambda pair: order(pair[0]),
    )
    ends = [(fabric.port_name(near), fabric.port_name(far)) for near, far in pairs]
    named = [(near, far) for near, far in ends if near.port and far.port]
    return [PlannedCable(*near, *far, line) for line, (near, far) in enumerate(named, 2)]


def _select_observed(links: Iterable[Link], planned: set[Pair]) -> _ObservedCables:
    """Choose one cable per port: confirmed cables first, then planned ones."""

    def order(link: Link) -> tuple[object, ...]:
        ends = (link.a, link.b)
        return link.is_disputed, link.is_one_sided, ends not in planned, ends

    observed = _ObservedCables()
    for link in sorted(links, key=order):
        if link.a in observed.peer_by_port or link.b in observed.peer_by_port:
            observed.contested.append((link.a, link.b))
        else:
            observed.peer_by_port.update({link.a: link.b, link.b: link.a})
    return observed


def _mark_unobservable(
    resolved: _ResolvedPlan, observed: _ObservedCables, *, fabric: Fabric, ports: PlanPorts
) -> None:
    """Mark the planned cables that cannot be compared as unknown.

    This applies to a cable if neither of its ends reports, and neither of its ports holds another
    cable. It also applies if the fabric may have a planned port under another name, with a cable
    that is not planned.
    """
    others = [pair for pair in resolved.cables if observed.peer_by_port.get(pair[0]) != pair[1]]
    kinds = ports.find_kinds(resolved.cable_by_port) if others else {}
    for pair in others:
        cable = resolved.cables[pair]
        renamed = [
            found
            for port, peer in (pair, pair[::-1])
            for found in _find_renamed(port, observed.peer_by_port.get(peer), ports, kinds=kinds)
            if found in observed.peer_by_port and found not in resolved.cable_by_port
        ]
        is_silent = not any(fabric.devices[ports.devices[port]].is_reporting for port in pair)
        if is_silent and not any(port in observed.peer_by_port for port in pair):
            kind = DifferenceKind.UNKNOWN_DEVICE
            reason = f"neither {show_end(cable.ends[0])} nor the other end reports its cables"
        elif renamed:
            kind = DifferenceKind.UNKNOWN_PORT
            shown = " and ".join(show_end(ports.names[port]) for port in sorted(set(renamed)))
            reason = f"{shown} may be a planned port under another name"
        else:
            continue
        del resolved.cables[pair]
        resolved.unknown.append(_UnknownCable(kind, cable, reason))


def _find_lost(
    resolved: _ResolvedPlan, observed: _ObservedCables, *, fabric: Fabric, ports: PlanPorts
) -> list[LostDevice]:
    """Take the cables of devices that are gone out of the unknown ones; return the devices."""
    search = LostDeviceSearch(fabric, ports, observed.peer_by_port, resolved.cable_by_port)
    lost = search.find(
        row.cable for row in resolved.unknown if row.kind is DifferenceKind.UNKNOWN_DEVICE
    )
    taken = {cable for device in lost for cable in device.cables}
    resolved.unknown = [row for row in resolved.unknown if row.cable not in taken]
    return lost


def _lost_row(lost: LostDevice) -> Difference:
    name, num, num_dark = show(lost.name), len(lost.cables), lost.num_dark
    others = "the" if num == num_dark else str(num_dark)
    message = (
        f"None of the {num} planned cables of {name} is seen, and {others} other ends have no "
        f"link. Check the power of {name}. If it was removed, correct the plan."
    )
    return Difference(DifferenceKind.LOST_DEVICE, lost.cables, (), message, None, lost=lost.name)


def _find_renamed(
    port: int, far_port: int | None, ports: PlanPorts, *, kinds: Mapping[int, set[Words]]
) -> Iterator[int]:
    """Yield the ports of the fabric that may be a planned port under another name.

    Args:
        port: the planned port.
        far_port: the observed port at the far end of the cable in the planned peer; None if the
            peer has no cable.
        ports: numbers the ports.
        kinds: per device, the letter parts of its port names in the plan.
    """
    if not ports.is_seen(port):
        yield from ports.find_ports_of_same_number(port)
    if far_port is not None and ports.may_be_renamed(far_port, port, kinds):
        yield far_port


def _index_both_ends(pairs: Iterable[Pair]) -> dict[int, int]:
    return {port: peer for a, b in pairs for port, peer in ((a, b), (b, a))}


class _DiffBuilder:
    """Turns port numbers into differences and moves with names."""

    def __init__(
        self, ports: PlanPorts, cables: Mapping[Pair, PlannedCable], peer_by_port: Mapping[int, int]
    ) -> None:
        self._ports = ports
        self._cables = cables
        self._peer_by_port = peer_by_port

    def _observed_cable(self, pair: Pair) -> ObservedCable:
        return ObservedCable(self._ports.names[pair[0]], self._ports.names[pair[1]])

    def _planned_cables(self, pair: Pair) -> PlannedCable:
        return self._cables[min(pair), max(pair)]

    def build_moves(self, repair: Repair, group: int) -> Iterator[Move]:
        """Yield the moves of a repair with names.

        In a ring no port is free. A ring of two is one exchange; in a longer one, the plug that
        moves last leaves its port first.
        """
        moves = [self._build_move(step, group) for step in repair.steps]
        if not repair.is_ring:
            yield from moves
            return
        *_, last = moves
        if len(moves) == _EXCHANGED:
            yield moves[0]._replace(kind=MoveKind.EXCHANGE, other=last.cable)
        else:
            yield last._replace(kind=MoveKind.UNPLUG, target=None)
            yield from moves[:-1]
            yield last._replace(kind=MoveKind.PLUG)

    def _build_move(self, step: Step, group: int) -> Move:
        match step:
            case MoveStep():
                target = self._ports.names[step.target]
                return Move(MoveKind.MOVE, self._observed_cable(step.cable), target, group)
            case AddStep():
                return Move(MoveKind.ADD, self._observed_cable(step.goal), None, group)
            case RemoveStep():
                return Move(MoveKind.REMOVE, self._observed_cable(step.cable), None, group)

    def build_rows(self, repair: Repair, group: int) -> Iterator[Difference]:
        """Yield the differences that one repair covers: a ring is one swap, else one per step."""
        if repair.is_ring:
            yield self._swap_row(repair, group)
        else:
            yield from (self._step_row(step, group) for step in repair.steps)

    def _swap_row(self, repair: Repair, group: int) -> Difference:
        moved = [step for step in repair.steps if isinstance(step, MoveStep)]
        planned = tuple(self._planned_cables(step.goal) for step in moved)
        observed = tuple(self._observed_cable(step.cable) for step in moved)
        seen_text = "; ".join(show_cable(*cable) for cable in observed[:_MAX_NAMES_SHOWN])
        num_more = len(observed) - _MAX_NAMES_SHOWN
        more = f"; and {num_more} more" if num_more > 0 else ""
        advice = f"Move {len(moved)} plugs as listed in the moves."
        if len(observed) == _EXCHANGED:
            advice = f"Exchange the plugs in {' and '.join(show_end(end) for _, end in observed)}."
        message = f"{len(observed)} cables are in each other's ports: {seen_text}{more}. {advice}"
        return Difference(DifferenceKind.SWAPPED, planned, observed, message, group)

    def _step_row(self, step: Step, group: int) -> Difference:
        match step:
            case MoveStep():
                planned, cable = self._planned_cables(step.goal), self._observed_cable(step.cable)
                message = (
                    f"The cable from {show_end(cable.a)} ends at {show_end(cable.b)}, but should "
                    f"end at {show_end(self._ports.names[step.target])}. Move that plug."
                )
                kind = DifferenceKind.WRONG_PORT
                return Difference(kind, (planned,), (cable,), message, group)
            case AddStep():
                planned, message = self._planned_cables(step.goal), self._missing_message(step.goal)
                return Difference(DifferenceKind.MISSING, (planned,), (), message, group)
            case RemoveStep():
                cable = self._observed_cable(step.cable)
                message = (
                    f"The cable between {show_cable(*cable)} is not in the plan, but uses a "
                    "planned port. Remove it, or add it to the plan."
                )
                return Difference(DifferenceKind.EXTRA, (), (cable,), message, group)

    def _missing_message(self, pair: Pair) -> str:
        ends = [self._ports.names[port] for port in pair]
        unseen = [
            show_end(self._ports.names[port]) for port in pair if not self._ports.is_seen(port)
        ]
        hint = f" No report shows {' or '.join(unseen)}: check the name too." if unseen else ""
        return (
            f"No report shows a cable between {show_cable(*ends)}. Plug it in, or check that both "
            f"ports are up.{hint}"
        )

    def build_unknown_rows(self, unknown: list[_UnknownCable]) -> Iterator[Difference]:
        """Yield the differences of unknown cables; empty the list, so no text is stored twice."""
        while unknown:
            yield self._unknown_row(unknown.pop())

    def _unknown_row(self, unknown: _UnknownCable) -> Difference:
        """Return the difference of an unknown cable, with the observed cables in its ports."""
        cable = unknown.cable
        pairs = []
        for end in cable.ends:
            device = self._ports.find_device(end.device)
            if not isinstance(device, UnknownReason):
                port = self._ports.find_port(device, end)
                if port in self._peer_by_port:
                    pairs.append((port, self._peer_by_port[port]))
        observed = tuple(self._observed_cable(pair) for pair in pairs)
        shown = "; ".join(show_cable(*ends) for ends in observed)
        message = (
            f"The cable between {show_cable(*cable.ends)} cannot be compared: {unknown.reason}."
            f"{f' Observed instead: {shown}.' if observed else ''} Collect from that device, or "
            "correct the plan."
        )
        return Difference(unknown.kind, (cable,), observed, message, None)


def _row_order(row: Difference) -> tuple[object, ...]:
    lines = [cable.line for cable in row.planned]
    return (not lines, min(lines, default=0), row.kind, row.observed, row.names or ())


def _find_unplanned(
    observed: _ObservedCables, resolved: _ResolvedPlan, ports: PlanPorts
) -> Iterator[UnplannedCable]:
    """Yield observed cables that no row of the plan covers, sorted by ports."""
    in_plan = {ports.devices[port] for port in resolved.cable_by_port}
    reasons = {(a, b): UnplannedReason.PORT for a, b in observed.peer_by_port.items() if a < b}
    reasons |= dict.fromkeys(observed.contested, UnplannedReason.CONTESTED)
    for pair, reason in sorted(reasons.items()):
        if reason is UnplannedReason.PORT and any(port in resolved.cable_by_port for port in pair):
            continue
        is_outside = any(ports.devices[port] not in in_plan for port in pair)
        cable = ObservedCable(ports.names[pair[0]], ports.names[pair[1]])
        yield UnplannedCable(cable, UnplannedReason.DEVICE if is_outside else reason)
