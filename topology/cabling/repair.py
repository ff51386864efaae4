"""The shortest list of steps from the observed cables to the planned ones.

Ports are numbers here, and a port holds at most one plug. Planned and observed cables together
form paths and rings of ports in which the two kinds alternate. A ring of n cables takes n moves. A
path takes as many steps as its larger kind has cables. No list is shorter: every wrong cable has to
be touched once, and one touch repairs a cable only if one of its plugs is already right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from topology.model.plug_moves import rank_moves

Pair = tuple[int, int]
"""A cable, as its two port numbers."""


class MoveStep(NamedTuple):
    """Pull one plug and put it into another port."""

    goal: Pair
    """The planned cable that the step completes."""
    cable: Pair
    """The observed cable: the port of the plug that stays, then the port of the plug that moves."""
    target: int
    """The port that the plug goes to."""
    is_target_full: bool = False
    """The plug in the target has to be pulled first; the last step of the ring places it."""


class AddStep(NamedTuple):
    """Add a planned cable that is missing."""

    goal: Pair


class RemoveStep(NamedTuple):
    """Remove a cable that is in a planned port."""

    cable: Pair


Step = MoveStep | AddStep | RemoveStep


class Repair(NamedTuple):
    """The steps that repair one path or ring, ordered so that every target is free in time."""

    is_ring: bool
    steps: tuple[Step, ...]


def plan_repairs(
    want: Mapping[int, int],
    have: Mapping[int, int],
    *,
    device: Mapping[int, int],
    find_height: Callable[[int], int] = lambda _: 0,
) -> list[Repair]:
    """Return the repairs that complete every planned cable, ordered by their lowest port.

    Where either end of a cable could move, `rank_moves` decides. Cables between two unplanned
    ports stay. Cost: O(n log n) in planned cables.

    Args:
        want: planned cables, port to port in both directions.
        have: observed cables in the same form, right and wrong ones.
        device: the device of each port.
        find_height: returns how many cables are between a device and the nearest host.
    """
    wrong = {a: b for a, b in have.items() if want.get(a) != b}
    unmet = {a: b for a, b in want.items() if have.get(a) != b}
    visited: set[int] = set()
    repairs = []
    for start in sorted(unmet):
        if start in visited:
            continue
        ports, is_ring = _trace_line(start, unmet, wrong)
        visited.update(ports)
        orders = _ring_orders(ports) if is_ring else _path_orders(ports, unmet)
        plans = [list(_plan_steps(order, is_ring=is_ring, unmet=unmet)) for order in orders]
        best = max(plans, key=lambda steps: rank_moves(_list_moves(steps, device), find_height))
        repairs.append(Repair(is_ring, tuple(best)))
    return repairs


def _trace_line(
    start: int, unmet: Mapping[int, int], wrong: Mapping[int, int]
) -> tuple[list[int], bool]:
    """Return (ports in order, whether they form a ring); a ring starts with a wrong cable."""
    ports_to_the_left, is_ring = _walk_cables(start, (wrong, unmet))
    if is_ring:
        return ports_to_the_left, True
    ports_to_the_right, _ = _walk_cables(start, (unmet, wrong))
    return [*reversed(ports_to_the_left), *ports_to_the_right[1:]], False


def _walk_cables(
    start: int, cables: tuple[Mapping[int, int], Mapping[int, int]]
) -> tuple[list[int], bool]:
    ports = [start]
    while True:
        next_port = cables[(len(ports) - 1) % 2].get(ports[-1])
        if next_port is None or next_port == start:
            return ports, next_port == start
        ports.append(next_port)


def _ring_orders(ports: Sequence[int]) -> Iterable[Sequence[int]]:
    """Return both directions, each with a wrong cable between the first two ports."""
    return ports, [ports[1], ports[0], *reversed(ports[2:])]


def _path_orders(ports: Sequence[int], unmet: Mapping[int, int]) -> Iterable[Sequence[int]]:
    """Return the directions of a path; a path with one free end starts there."""
    starts_free = unmet.get(ports[0]) == ports[1]
    ends_free = unmet.get(ports[-1]) == ports[-2]
    if starts_free and not ends_free:
        return [ports]
    if ends_free and not starts_free:
        return [ports[::-1]]
    return (ports, ports[::-1]) if ports[0] < ports[-1] else (ports[::-1], ports)


def _plan_steps(ports: Sequence[int], *, is_ring: bool, unmet: Mapping[int, int]) -> Iterator[Step]:
    """Yield steps along a line of ports: each step frees the port that the next one fills."""
    fixed_pair = (ports[0], ports[1]) if is_ring else None
    remaining_ports = ports
    if is_ring:
        remaining_ports = ports[1:]
    elif unmet.get(ports[0]) != ports[1]:
        yield RemoveStep((ports[0], ports[1]))
        remaining_ports = ports[1:]
    for position in range(0, len(remaining_ports) - 1, 2):
        goal = (remaining_ports[position], remaining_ports[position + 1])
        if position + 2 < len(remaining_ports):
            is_full = is_ring and position == 0
            yield MoveStep(
                goal,
                (remaining_ports[position + 1], remaining_ports[position + 2]),
                remaining_ports[position],
                is_full,
            )
        else:
            yield AddStep(goal)
    if fixed_pair:
        yield MoveStep((fixed_pair[0], remaining_ports[-1]), fixed_pair, remaining_ports[-1])


def _list_moves(steps: Iterable[Step], device: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the device of each plug that moves, and the device that it goes to."""
    for step in steps:
        if isinstance(step, MoveStep):
            yield device[step.cable[1]], device[step.target]
