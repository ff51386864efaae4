"""The work order of the moves that repair the differences between a fabric and its plan. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import attrgetter

from topology.cabling.plan_diff import Difference, Move, MoveKind
from topology.findings.work_order import (
    AGAIN,
    Place,
    Step,
    WorkOrder,
    describe_exchange,
    describe_recovery,
    locate_port,
    sort_steps,
)
from topology.model.cabling_plan import show_end
from topology.model.ids import full_name, short_name


def build_plan_order(
    differences: Iterable[Difference], moves: Iterable[Move], places: Mapping[str, Place]
) -> WorkOrder:
    """Return a step for each move, by rack and unit; the moves of a group stay in their order.

    A device that is gone is a step too, before all others.

    Carried out one after the other, no step needs a port that is still in use.

    Args:
        differences: what differs from the plan.
        moves: the moves that repair these differences, those of a group together.
        places: the places of the devices, as far as they are known.
    """
    differences = list(differences)
    lost = [row for row in differences if row.lost]
    kinds = {row.group: row.kind.value for row in differences}
    groups = [
        [_build_step(move, kinds[move.group], places) for move in group]
        for _, group in groupby(moves, key=attrgetter("group"))
    ]
    groups += [[_build_lost(row, places)] for row in lost]
    others = tuple(row.kind.value for row in differences if row.group is None and not row.lost)
    return WorkOrder(sort_steps(groups, {}), others, len(differences) - len(others))


def _build_lost(row: Difference, places: Mapping[str, Place]) -> Step:
    name = short_name(full_name(row.lost))
    ends = [end for end in row.ends if short_name(full_name(end.device)) != name]
    texts = describe_recovery("this device", ends)
    place = places.get(row.lost, Place())
    return Step(place, row.lost, "", *texts, row.kind.value, "", is_first=True)


def _build_step(move: Move, kind: str, places: Mapping[str, Place]) -> Step:
    fixed, moved = move.cable
    shown, end = locate_port(fixed, places), moved
    match move.kind:
        case MoveKind.EXCHANGE if move.target:
            owners = fixed, move.other.a if move.other else None
            unplug, plug, shows = describe_exchange((moved, move.target), owners, places)
        case MoveKind.MOVE if move.target:
            unplug, plug = f"the cable from {shown}", locate_port(move.target, places)
            shows = f"{show_end(fixed)} <> {show_end(move.target)}"
        case MoveKind.UNPLUG:
            unplug, plug = f"the cable from {shown}", "nothing yet: keep the plug aside"
            shows = f"no cable between {show_end(fixed)} and {show_end(moved)}"
        case MoveKind.PLUG if move.target:
            end, unplug = move.target, "nothing: this port is free by now"
            plug = f"this port: the plug kept aside, of the cable from {shown}"
            shows = f"{show_end(fixed)} <> {show_end(move.target)}"
        case MoveKind.ADD:
            unplug = f"the cable to {shown}, if there is one"
            plug = AGAIN.format(show_end(fixed))
            shows = f"{show_end(fixed)} <> {show_end(moved)}"
        case _:
            unplug, plug = f"the cable to {shown}, at both ends", "nothing"
            shows = f"no cable between {show_end(fixed)} and {show_end(moved)}"
    return Step(places.get(end.device, Place()), *end, unplug, plug, shows, kind, "")
