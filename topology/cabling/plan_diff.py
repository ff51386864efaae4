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

from topology.cabling.plan_names import PlanPorts, Unknown
from topology.cabling.repair import Lay, Pair, Replug, Rewiring, Step, Unplug, plan_rewiring
from topology.model.cabling_plan import (
    CablingPlan,
    PlannedCable,
    refuse_cable,
    show_cable,
    show_end,
)
from topology.model.errors import ParseError
from topology.model.fabric import Fabric, Link
from topology.model.facts import PortName

_SHOWN: Final = 4
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


class Outside(StrEnum):
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


class Unplanned(NamedTuple):
    """An observed cable that the plan does not speak of."""

    cable: ObservedCable
    reason: Outside


@dataclass(frozen=True, slots=True)
class CablingDiff:
    """How a fabric differs from its plan."""

    rows: tuple[Difference, ...] = ()
    """In order of the plan, extra cables last."""
    moves: tuple[Move, ...] = ()
    """The shortest list; every target is free by then, or said to be full."""
    unplanned: tuple[Unplanned, ...] = ()
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
    intent = _resolve(plan, ports)
    observed = _observe(fabric.links, set(intent.cables))
    _set_aside_unseen(intent, observed, fabric=fabric, ports=ports)
    want = _both_ways(intent.cables)
    rewirings = plan_rewiring(want, observed.have, device=ports.devices)
    shown = _Shown(ports, intent.cables, observed.have)
    rows = [
        *(row for group, found in enumerate(rewirings) for row in shown.rows(found, group)),
        *(shown.unknown(cable, why) for cable, why in intent.unknown),
    ]
    return CablingDiff(
        rows=tuple(sorted(rows, key=_row_order)),
        moves=tuple(
            shown.move(step, group) for group, found in enumerate(rewirings) for step in found.steps
        ),
        unplanned=tuple(_unplanned(observed, intent, ports)),
        num_as_planned=sum(observed.have.get(a) == b for a, b in intent.cables),
        errors=tuple(intent.errors),
    )


@dataclass(slots=True)
class _Intent:
    """The plan in numbers of ports."""

    cables: dict[Pair, PlannedCable] = field(default_factory=dict)
    """By its ports, the lower first."""
    taken: dict[int, PlannedCable] = field(default_factory=dict)
    """By each port that a plan names on a device that is known."""
    unknown: list[tuple[PlannedCable, str]] = field(default_factory=list)
    errors: list[ParseError] = field(default_factory=list)


def _resolve(plan: CablingPlan, ports: PlanPorts) -> _Intent:
    intent = _Intent()
    for cable in plan.cables:
        devices = [ports.find_device(end.device) for end in cable.ends]
        known = [
            ports.find_port(device, end.port)
            for device, end in zip(devices, cable.ends, strict=True)
            if not isinstance(device, Unknown)
        ]
        if len(set(known)) < len(known) or any(port in intent.taken for port in known):
            others = (intent.taken.get(port, cable) for port in known)
            named = next((one for one in others if one is not cable), cable)
            problem = f"a port of it has another spelling in {show_cable(*named.ends)}"
            intent.errors.append(refuse_cable(cable, problem, form=plan.form, source=plan.source))
            continue
        intent.taken.update(dict.fromkeys(known, cable))
        if len(known) < len(devices):
            intent.unknown.append((cable, _why_unknown(cable, devices)))
        else:
            intent.cables[min(known), max(known)] = cable
    return intent


def _why_unknown(cable: PlannedCable, devices: Sequence[int | Unknown]) -> str:
    return "; ".join(
        f"{show_end(end)}: {found.value}"
        for end, found in zip(cable.ends, devices, strict=True)
        if isinstance(found, Unknown)
    )


@dataclass(slots=True)
class _Observed:
    """The cables of the fabric, at most one a port."""

    have: dict[int, int] = field(default_factory=dict)
    """Port to port, both ways."""
    contested: list[Pair] = field(default_factory=list)
    """Cables that lost a port to one with better evidence."""


def _observe(links: Iterable[Link], planned: set[Pair]) -> _Observed:
    """Give each port one cable: confirmed ones first, then those that the plan expects."""

    def order(link: Link) -> tuple[object, ...]:
        ends = (link.a, link.b)
        return link.is_disputed, link.is_one_sided, ends not in planned, ends

    found = _Observed()
    for link in sorted(links, key=order):
        if link.a in found.have or link.b in found.have:
            found.contested.append((link.a, link.b))
        else:
            found.have.update({link.a: link.b, link.b: link.a})
    return found


def _set_aside_unseen(
    intent: _Intent, observed: _Observed, *, fabric: Fabric, ports: PlanPorts
) -> None:
    """Make unknown what no end would report, and what nothing else in its ports contradicts."""
    for pair, cable in list(intent.cables.items()):
        is_silent = not any(fabric.devices[ports.devices[port]].is_reporting for port in pair)
        if is_silent and not any(port in observed.have for port in pair):
            del intent.cables[pair]
            why = f"neither {show_end(cable.ends[0])} nor the other end reports its cables"
            intent.unknown.append((cable, why))


def _both_ways(pairs: Iterable[Pair]) -> dict[int, int]:
    return {one: other for a, b in pairs for one, other in ((a, b), (b, a))}


class _Shown:
    """Turns numbers of ports into rows and moves that people can read."""

    def __init__(
        self, ports: PlanPorts, cables: Mapping[Pair, PlannedCable], have: Mapping[int, int]
    ) -> None:
        self._ports = ports
        self._cables = cables
        self._have = have

    def _observed(self, pair: Pair) -> ObservedCable:
        return ObservedCable(self._ports.names[pair[0]], self._ports.names[pair[1]])

    def _planned(self, pair: Pair) -> PlannedCable:
        return self._cables[min(pair), max(pair)]

    def move(self, step: Step, group: int) -> Move:
        """Return a step by names."""
        match step:
            case Replug():
                target = self._ports.names[step.target]
                cable = self._observed(step.cable)
                return Move(MoveKind.MOVE, cable, target, step.is_target_full, group)
            case Lay():
                cable = self._observed(step.goal)
                return Move(MoveKind.ADD, cable, None, is_target_full=False, group=group)
            case Unplug():
                cable = self._observed(step.cable)
                return Move(MoveKind.REMOVE, cable, None, is_target_full=False, group=group)

    def rows(self, found: Rewiring, group: int) -> Iterator[Difference]:
        """Yield the rows that one path or ring makes: a ring is one swap."""
        if found.is_ring:
            yield self._swap(found, group)
        else:
            yield from (self._row(step, group) for step in found.steps)

    def _swap(self, found: Rewiring, group: int) -> Difference:
        moved = [step for step in found.steps if isinstance(step, Replug)]
        planned = tuple(self._planned(step.goal) for step in moved)
        observed = tuple(self._observed(step.cable) for step in moved)
        seen = "; ".join(show_cable(*cable) for cable in observed[:_SHOWN])
        more = f"; and {len(observed) - _SHOWN} more" if len(observed) > _SHOWN else ""
        message = (
            f"{len(observed)} cables are in each other's ports: seen are {seen}{more}. "
            f"Change {len(moved)} plugs as the moves say."
        )
        return Difference(DifferenceKind.SWAPPED, planned, observed, message, group)

    def _row(self, step: Step, group: int) -> Difference:
        match step:
            case Replug():
                planned, cable = self._planned(step.goal), self._observed(step.cable)
                message = (
                    f"The cable of {show_end(cable.a)} should end at "
                    f"{show_end(self._ports.names[step.target])} and ends at {show_end(cable.b)}. "
                    "Move that plug."
                )
                kind = DifferenceKind.WRONG_PORT
                return Difference(kind, (planned,), (cable,), message, group)
            case Lay():
                planned, message = self._planned(step.goal), self._missing(step.goal)
                return Difference(DifferenceKind.MISSING, (planned,), (), message, group)
            case Unplug():
                cable = self._observed(step.cable)
                message = (
                    f"The cable between {show_cable(*cable)} is not planned and is in a planned "
                    "port. Take it out, or put it into the plan."
                )
                return Difference(DifferenceKind.EXTRA, (), (cable,), message, group)

    def _missing(self, pair: Pair) -> str:
        ends = [self._ports.names[port] for port in pair]
        unseen = [
            show_end(self._ports.names[port]) for port in pair if not self._ports.is_seen(port)
        ]
        hint = f" Nobody sees {' or '.join(unseen)}: check the name too." if unseen else ""
        return (
            f"No cable is seen between {show_cable(*ends)}. Plug it in, or check that both ports "
            f"are up.{hint}"
        )

    def unknown(self, cable: PlannedCable, why: str) -> Difference:
        """Return the row of a cable that cannot be judged, with what is seen in its ports."""
        pairs = [
            (port, self._have[port])
            for device, end in ((self._ports.find_device(end.device), end) for end in cable.ends)
            if not isinstance(device, Unknown)
            and (port := self._ports.find_port(device, end.port)) in self._have
        ]
        observed = tuple(self._observed(pair) for pair in pairs)
        seen = f" Seen instead: {'; '.join(show_cable(*one) for one in observed)}."
        message = (
            f"The cable between {show_cable(*cable.ends)} cannot be judged: {why}."
            f"{seen if observed else ''} Collect from that device, or mend the plan."
        )
        return Difference(DifferenceKind.UNKNOWN_DEVICE, (cable,), observed, message, None)


def _row_order(row: Difference) -> tuple[object, ...]:
    lines = [cable.line for cable in row.planned]
    return (not lines, min(lines, default=0), row.kind, row.observed)


def _unplanned(observed: _Observed, intent: _Intent, ports: PlanPorts) -> Iterator[Unplanned]:
    """Yield observed cables that no row of the plan speaks of, sorted by ports."""
    in_plan = {ports.devices[port] for port in intent.taken}
    reasons = {(a, b): Outside.PORT for a, b in observed.have.items() if a < b}
    reasons |= dict.fromkeys(observed.contested, Outside.CONTESTED)
    for pair, reason in sorted(reasons.items()):
        if reason is Outside.PORT and any(port in intent.taken for port in pair):
            continue
        is_outside = any(ports.devices[port] not in in_plan for port in pair)
        cable = ObservedCable(ports.names[pair[0]], ports.names[pair[1]])
        yield Unplanned(cable, Outside.DEVICE if is_outside else reason)
