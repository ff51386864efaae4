"""A cabling plan against the fabric as observed: what differs, and the shortest way to mend it.

Only what the plan speaks of can be wrong: other cables are listed beside it. What nobody reports
about is unknown, never missing. Which names of the plan mean what is decided in `intent_names`,
which plug goes where in `rewiring`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from topology.cabling.plan_names import PlanPorts, UnknownReason
from topology.cabling.repair import AddStep, Pair, MoveStep, Repair, Step, RemoveStep, plan_repairs
from topology.model.cabling_plan import (
    CablingPlan,
    PlannedCable,
    cable_error,
    show_cable,
    show_end,
)
from topology.model.errors import ParseError
from topology.model.fabric import Fabric, Link
from topology.model.facts import PortName

_MAX_NAMES_SHOWN: Final = 4
"""Cables listed in one message."""


class DifferenceKind(StrEnum):
    """How a fabric can differ from its plan."""

    SWAPPED = "swapped"
    """Cables whose plugs sit in each other's ports."""
    WRONG_PORT = "wrong-port"
    """A cable with one plug in a port where it does not belong."""
    MISSING = "missing"
    """A planned cable that nobody sees, although one of its ends would."""
    EXTRA = "extra"
    """A cable in a planned port that is none of the plan's."""
    UNKNOWN_DEVICE = "unknown-device"
    """Nobody reports about an end of the cable, so nothing can be said."""


class MoveKind(StrEnum):
    """What a person does with one cable."""

    MOVE = "move"
    """Pull one plug and put it into another port."""
    ADD = "add"
    REMOVE = "remove"


class UnplannedReason(StrEnum):
    """Why an observed cable is not compared."""

    DEVICE = "a device is not in the plan"
    PORT = "its ports are not in the plan"
    CONTESTED = "one of its ports reports another cable too"


class ObservedCable(NamedTuple):
    """One cable as the fabric shows it."""

    a: PortName
    b: PortName


class Difference(NamedTuple):
    """One way in which the fabric is not as planned."""

    kind: DifferenceKind
    planned: tuple[PlannedCable, ...]
    """Of a swap all cables of its ring; none of an extra cable."""
    observed: tuple[ObservedCable, ...]
    """What was seen in their ports, in the same order where both are known."""
    message: str
    """What was seen and what a person should do."""
    group: int | None
    """Number of the moves that mend it, None where no move can."""

    @property
    def ends(self) -> tuple[PortName, ...]:
        """All ports that it is about, as the plan spells them and as observed."""
        planned = [end for cable in self.planned for end in cable.ends]
        return (*planned, *(end for cable in self.observed for end in cable))


class Move(NamedTuple):
    """One thing to do in the fabric."""

    kind: MoveKind
    cable: ObservedCable
    """Of a move as observed, the plug that stays first; of a cable to add as planned."""
    target: PortName | None
    """The port that the plug goes to; it comes from `cable.b`."""
    is_target_full: bool
    """Another plug has to be pulled from the target first; a later move of the group takes it."""
    group: int
    """Of the differences that it mends; the moves of a group stand together and in order."""


class UnplannedCable(NamedTuple):
    """An observed cable that the plan does not speak of."""

    cable: ObservedCable
    reason: UnplannedReason


@dataclass(frozen=True, slots=True)
class CablingDiff:
    """How a fabric differs from its plan."""

    fetch_rows: tuple[Difference, ...] = ()
    """In order of the plan, extra cables last."""
    moves: tuple[Move, ...] = ()
    """The shortest list; every target is free by then, or said to be full."""
    unplanned: tuple[UnplannedCable, ...] = ()
    """Sorted by ports."""
    num_as_planned: int = 0
    """Cables that are where they should be."""
    errors: tuple[ParseError, ...] = ()
    """Cables of the plan that contradict others once their names are understood."""


def compare_cabling(plan: CablingPlan, fabric: Fabric) -> CablingDiff:
    """Return how a fabric differs from a plan.

    Deterministic in the plan and the fabric. Cost: O(n log n) in cables.
    """
    ports = PlanPorts(fabric, plan.cables)
    intent = _resolve_plan(plan, ports)
    observed = _select_observed(fabric.links, set(intent.cables))
    _mark_unobservable(intent, observed, fabric=fabric, ports=ports)
    want = _index_both_ends(intent.cables)
    rewirings = plan_repairs(want, observed.peer_by_port, device=ports.devices)
    shown = _DiffBuilder(ports, intent.cables, observed.peer_by_port)
    rows = [
        *(row for group, found in enumerate(rewirings) for row in shown.build_rows(found, group)),
        *(shown.unknown_row(cable, why) for cable, why in intent.unknown),
    ]
    return CablingDiff(
        fetch_rows=tuple(sorted(rows, key=_row_order)),
        moves=tuple(
            shown.build_move(step, group)
            for group, found in enumerate(rewirings)
            for step in found.steps
        ),
        unplanned=tuple(_find_unplanned(observed, intent, ports)),
        num_as_planned=sum(observed.peer_by_port.get(a) == b for a, b in intent.cables),
        errors=tuple(intent.errors),
    )


@dataclass(slots=True)
class _ResolvedPlan:
    """The plan in numbers of ports."""

    cables: dict[Pair, PlannedCable] = field(default_factory=dict)
    """By its ports, the lower first."""
    cable_by_port: dict[int, PlannedCable] = field(default_factory=dict)
    """By each port that a plan names on a device that is known."""
    unknown: list[tuple[PlannedCable, str]] = field(default_factory=list)
    errors: list[ParseError] = field(default_factory=list)


def _resolve_plan(plan: CablingPlan, ports: PlanPorts) -> _ResolvedPlan:
    intent = _ResolvedPlan()
    for cable in plan.cables:
        devices = [ports.find_device(end.device) for end in cable.ends]
        known = [
            ports.find_port(device, end.port)
            for device, end in zip(devices, cable.ends, strict=True)
            if not isinstance(device, UnknownReason)
        ]
        if len(set(known)) < len(known) or any(port in intent.cable_by_port for port in known):
            others = (intent.cable_by_port.get(port, cable) for port in known)
            named = next((one for one in others if one is not cable), cable)
            problem = f"a port of it has another spelling in {show_cable(*named.ends)}"
            intent.errors.append(cable_error(cable, problem, form=plan.form, source=plan.source))
            continue
        intent.cable_by_port.update(dict.fromkeys(known, cable))
        if len(known) < len(devices):
            intent.unknown.append((cable, _explain_unknown(cable, devices)))
        else:
            intent.cables[min(known), max(known)] = cable
    return intent


def _explain_unknown(cable: PlannedCable, devices: Sequence[int | UnknownReason]) -> str:
    return "; ".join(
        f"{show_end(end)}: {found.value}"
        for end, found in zip(cable.ends, devices, strict=True)
        if isinstance(found, UnknownReason)
    )


@dataclass(slots=True)
class _ObservedCables:
    """The cables of the fabric, at most one a port."""

    peer_by_port: dict[int, int] = field(default_factory=dict)
    """Port to port, both ways."""
    contested: list[Pair] = field(default_factory=list)
    """Cables that lost a port to one with better evidence."""


def _select_observed(links: Iterable[Link], planned: set[Pair]) -> _ObservedCables:
    """Give each port one cable: confirmed ones first, then those that the plan expects."""

    def order(link: Link) -> tuple[object, ...]:
        ends = (link.a, link.b)
        return link.is_disputed, link.is_one_sided, ends not in planned, ends

    found = _ObservedCables()
    for link in sorted(links, key=order):
        if link.a in found.peer_by_port or link.b in found.peer_by_port:
            found.contested.append((link.a, link.b))
        else:
            found.peer_by_port.update({link.a: link.b, link.b: link.a})
    return found


def _mark_unobservable(
    intent: _ResolvedPlan, observed: _ObservedCables, *, fabric: Fabric, ports: PlanPorts
) -> None:
    """Make unknown what no end would report, and what nothing else in its ports contradicts."""
    for pair, cable in list(intent.cables.items()):
        is_silent = not any(fabric.devices[ports.devices[port]].is_reporting for port in pair)
        if is_silent and not any(port in observed.peer_by_port for port in pair):
            del intent.cables[pair]
            why = f"neither {show_end(cable.ends[0])} nor the other end reports its cables"
            intent.unknown.append((cable, why))


def _index_both_ends(pairs: Iterable[Pair]) -> dict[int, int]:
    return {one: other for a, b in pairs for one, other in ((a, b), (b, a))}


class _DiffBuilder:
    """Turns numbers of ports into rows and moves that people can read."""

    def __init__(
        self, ports: PlanPorts, cables: Mapping[Pair, PlannedCable], have: Mapping[int, int]
    ) -> None:
        self._ports = ports
        self._cables = cables
        self._peer_by_port = have

    def _observed_cable(self, pair: Pair) -> ObservedCable:
        return ObservedCable(self._ports.names[pair[0]], self._ports.names[pair[1]])

    def _planned_cables(self, pair: Pair) -> PlannedCable:
        return self._cables[min(pair), max(pair)]

    def build_move(self, step: Step, group: int) -> Move:
        """Return a step by names."""
        match step:
            case MoveStep():
                target = self._ports.names[step.target]
                cable = self._observed_cable(step.cable)
                return Move(MoveKind.MOVE, cable, target, step.is_target_full, group)
            case AddStep():
                cable = self._observed_cable(step.goal)
                return Move(MoveKind.ADD, cable, None, is_target_full=False, group=group)
            case RemoveStep():
                cable = self._observed_cable(step.cable)
                return Move(MoveKind.REMOVE, cable, None, is_target_full=False, group=group)

    def build_rows(self, found: Repair, group: int) -> Iterator[Difference]:
        """Yield the rows that one path or ring makes: a ring is one swap."""
        if found.is_ring:
            yield self._swap_row(found, group)
        else:
            yield from (self._step_row(step, group) for step in found.steps)

    def _swap_row(self, found: Repair, group: int) -> Difference:
        moved = [step for step in found.steps if isinstance(step, MoveStep)]
        planned = tuple(self._planned_cables(step.goal) for step in moved)
        observed = tuple(self._observed_cable(step.cable) for step in moved)
        seen = "; ".join(show_cable(*cable) for cable in observed[:_MAX_NAMES_SHOWN])
        more = (
            f"; and {len(observed) - _MAX_NAMES_SHOWN} more"
            if len(observed) > _MAX_NAMES_SHOWN
            else ""
        )
        message = (
            f"{len(observed)} cables are in each other's ports: seen are {seen}{more}. "
            f"Change {len(moved)} plugs as the moves say."
        )
        return Difference(DifferenceKind.SWAPPED, planned, observed, message, group)

    def _step_row(self, step: Step, group: int) -> Difference:
        match step:
            case MoveStep():
                planned, cable = self._planned_cables(step.goal), self._observed_cable(step.cable)
                message = (
                    f"The cable of {show_end(cable.a)} should end at "
                    f"{show_end(self._ports.names[step.target])} and ends at {show_end(cable.b)}. "
                    "Move that plug."
                )
                kind = DifferenceKind.WRONG_PORT
                return Difference(kind, (planned,), (cable,), message, group)
            case AddStep():
                planned, message = self._planned_cables(step.goal), self._missing_message(step.goal)
                return Difference(DifferenceKind.MISSING, (planned,), (), message, group)
            case RemoveStep():
                cable = self._observed_cable(step.cable)
                message = (
                    f"The cable between {show_cable(*cable)} is not planned and is in a planned "
                    "port. Take it out, or put it into the plan."
                )
                return Difference(DifferenceKind.EXTRA, (), (cable,), message, group)

    def _missing_message(self, pair: Pair) -> str:
        ends = [self._ports.names[port] for port in pair]
        unseen = [
            show_end(self._ports.names[port]) for port in pair if not self._ports.is_seen(port)
        ]
        hint = f" Nobody sees {' or '.join(unseen)}: check the name too." if unseen else ""
        return (
            f"No cable is seen between {show_cable(*ends)}. Plug it in, or check that both ports "
            f"are up.{hint}"
        )

    def unknown_row(self, cable: PlannedCable, why: str) -> Difference:
        """Return the row of a cable that cannot be judged, with what is seen in its ports."""
        pairs = [
            (port, self._peer_by_port[port])
            for device, end in ((self._ports.find_device(end.device), end) for end in cable.ends)
            if not isinstance(device, UnknownReason)
            and (port := self._ports.find_port(device, end.port)) in self._peer_by_port
        ]
        observed = tuple(self._observed_cable(pair) for pair in pairs)
        seen = f" Seen instead: {'; '.join(show_cable(*one) for one in observed)}."
        message = (
            f"The cable between {show_cable(*cable.ends)} cannot be judged: {why}."
            f"{seen if observed else ''} Collect from that device, or mend the plan."
        )
        return Difference(DifferenceKind.UNKNOWN_DEVICE, (cable,), observed, message, None)


def _row_order(row: Difference) -> tuple[object, ...]:
    lines = [cable.line for cable in row.planned]
    return (not lines, min(lines, default=0), row.kind, row.observed)


def _find_unplanned(
    observed: _ObservedCables, intent: _ResolvedPlan, ports: PlanPorts
) -> Iterator[UnplannedCable]:
    """Yield observed cables that no row of the plan speaks of, sorted by ports."""
    in_plan = {ports.devices[port] for port in intent.cable_by_port}
    reasons = {(a, b): UnplannedReason.PORT for a, b in observed.peer_by_port.items() if a < b}
    reasons |= dict.fromkeys(observed.contested, UnplannedReason.CONTESTED)
    for pair, reason in sorted(reasons.items()):
        if reason is UnplannedReason.PORT and any(port in intent.cable_by_port for port in pair):
            continue
        is_outside = any(ports.devices[port] not in in_plan for port in pair)
        cable = ObservedCable(ports.names[pair[0]], ports.names[pair[1]])
        yield UnplannedCable(cable, UnplannedReason.DEVICE if is_outside else reason)
