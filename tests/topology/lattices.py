"""Switch topologies that are not trees, built by their rule, with hosts on each switch."""

from collections.abc import Iterable, Sequence
from itertools import combinations, product

from tests.topology.cables import End, star

Pair = tuple[str, str]
HOSTS_EACH = 4


def torus(*sizes: int) -> list[Pair]:
    """Return the cables of a torus; a direction of size 2 has one cable per pair, not two."""
    pairs = set()
    for spot in product(*map(range, sizes)):
        for axis, size in enumerate(sizes):
            near = (*spot[:axis], (spot[axis] + 1) % size, *spot[axis + 1 :])
            pairs.add((min(spot, near), max(spot, near)))
    return sorted((_switch(*one), _switch(*other_spot)) for one, other_spot in pairs)


def ring(size: int) -> list[Pair]:
    return torus(size)


def hypercube(dimensions: int) -> list[Pair]:
    return torus(*[2] * dimensions)


def dragonfly(routers: int, globals_each: int) -> list[Pair]:
    """Return the cables of meshed router groups, with one cable between any two groups."""
    groups = range(routers * globals_each + 1)
    local = [
        (_switch(g, a), _switch(g, b)) for g in groups for a, b in combinations(range(routers), 2)
    ]
    far = [
        (
            _switch(group, (other_group - 1) // globals_each),
            _switch(other_group, group // globals_each),
        )
        for group, other_group in combinations(groups, 2)
    ]
    return local + far


def mesh_of_all(size: int) -> list[Pair]:
    return list(combinations([_switch(number) for number in range(size)], 2))


def _switch(*spot: int) -> str:
    return "sw" + "-".join(f"{coordinate:02}" for coordinate in spot)


def cabled(pairs: Iterable[Pair]) -> list[tuple[End, End]]:
    """Return one cable per pair of switches."""
    return [
        ((switch, f"to-{other_switch}"), (other_switch, f"to-{switch}"))
        for switch, other_switch in pairs
    ]


def populated(pairs: Sequence[Pair], *, every: int = 1) -> list[tuple[End, End]]:
    """Return the cables of the switches, and of hosts on every `every`-th switch."""
    cables = cabled(pairs)
    switches = sorted({switch for pair in pairs for switch in pair})
    for index, switch in enumerate(switches[::every]):
        cables += star(
            switch, [f"h{HOSTS_EACH * index + number:04}" for number in range(HOSTS_EACH)]
        )
    return cables
