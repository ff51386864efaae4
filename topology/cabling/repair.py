"""The shortest list of steps from cables as they are to cables as they should be.

Ports are numbers here, and a port holds at most one plug. Planned and observed cables together
make paths and rings of ports in which the two kinds alternate. A ring of n cables takes n moves,
a path as many steps as its larger kind has cables: every wrong cable has to be touched once, and
one touch mends a cable only if one of its plugs is right already. So no list is shorter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

Pair = tuple[int, int]


class MoveStep(NamedTuple):
    """Pull one plug and put it into another port."""

    goal: Pair
    """The planned cable that it makes."""
    cable: Pair
    """The cable as observed: the port that stays, then the one whose plug moves."""
    target: int
    """The port that the plug goes to."""
    is_target_full: bool = False
    """The plug in the target has to be pulled first; the last step of the ring moves it."""


class AddStep(NamedTuple):
    """Put in a cable that is planned and not there."""

    goal: Pair


class RemoveStep(NamedTuple):
    """Take out a cable that is there and in a planned port."""

    cable: Pair


Step = MoveStep | AddStep | RemoveStep


class Repair(NamedTuple):
    """What mends one path or ring; steps are in an order in which every target is free by then."""

    is_ring: bool
    steps: tuple[Step, ...]


def plan_repairs(
    want: Mapping[int, int], have: Mapping[int, int], *, device: Mapping[int, int]
) -> list[Repair]:
    """Return what makes every wanted cable, in order of the lowest port that each mends.

    Where either end of a cable could move, plugs stay on their device as far as possible. Cables
    between ports of which none is wanted stay. Cost: O(n log n) in wanted cables.

    Args:
        want: port to port, both ways, of planned cables.
        have: the same of observed ones, right and wrong.
        device: of each port.
    """
    wrong = {a: b for a, b in have.items() if want.get(a) != b}
    unmet = {a: b for a, b in want.items() if have.get(a) != b}
    seen: set[int] = set()
    found = []
    for start in sorted(unmet):
        if start in seen:
            continue
        ports, is_ring = _trace_line(start, unmet, wrong)
        seen.update(ports)
        orders = _ring_orders(ports) if is_ring else _path_orders(ports, unmet)
        plans = [list(_plan_steps(order, is_ring=is_ring, unmet=unmet)) for order in orders]
        best = max(plans, key=lambda steps: _count_local_moves(steps, device))
        found.append(Repair(is_ring, tuple(best)))
    return found


def _trace_line(
    start: int, unmet: Mapping[int, int], wrong: Mapping[int, int]
) -> tuple[list[int], bool]:
    """Return (ports in line, whether they close to a ring); a ring starts with a wrong cable."""
    left, is_ring = _walk_cables(start, (wrong, unmet))
    if is_ring:
        return left, True
    right, _ = _walk_cables(start, (unmet, wrong))
    return [*reversed(left), *right[1:]], False


def _walk_cables(
    start: int, cables: tuple[Mapping[int, int], Mapping[int, int]]
) -> tuple[list[int], bool]:
    ports = [start]
    while True:
        following = cables[(len(ports) - 1) % 2].get(ports[-1])
        if following is None or following == start:
            return ports, following == start
        ports.append(following)


def _ring_orders(ports: Sequence[int]) -> Iterable[Sequence[int]]:
    """Return both ways round, either with a wrong cable between the first two ports."""
    return ports, [ports[1], ports[0], *reversed(ports[2:])]


def _path_orders(ports: Sequence[int], unmet: Mapping[int, int]) -> Iterable[Sequence[int]]:
    """Return the ways to walk a path; one that has a free port at one end starts there."""
    starts_free = unmet.get(ports[0]) == ports[1]
    ends_free = unmet.get(ports[-1]) == ports[-2]
    if starts_free and not ends_free:
        return [ports]
    if ends_free and not starts_free:
        return [ports[::-1]]
    return (ports, ports[::-1]) if ports[0] < ports[-1] else (ports[::-1], ports)


def _plan_steps(ports: Sequence[int], *, is_ring: bool, unmet: Mapping[int, int]) -> Iterator[Step]:
    """Yield steps along a line of ports: each frees the port that the next one fills."""
    held = (ports[0], ports[1]) if is_ring else None
    rest = ports
    if is_ring:
        rest = ports[1:]
    elif unmet.get(ports[0]) != ports[1]:
        yield RemoveStep((ports[0], ports[1]))
        rest = ports[1:]
    for at in range(0, len(rest) - 1, 2):
        goal = (rest[at], rest[at + 1])
        if at + 2 < len(rest):
            is_full = is_ring and at == 0
            yield MoveStep(goal, (rest[at + 1], rest[at + 2]), rest[at], is_full)
        else:
            yield AddStep(goal)
    if held:
        yield MoveStep((held[0], rest[-1]), held, rest[-1])


def _count_local_moves(steps: Iterable[Step], device: Mapping[int, int]) -> int:
    """Count moves that stay on one device: those need no longer cable."""
    return sum(
        device.get(step.target) == device.get(step.cable[1])
        for step in steps
        if isinstance(step, MoveStep)
    )
