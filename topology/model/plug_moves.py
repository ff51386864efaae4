"""Which plugs to move where either end of the cables could move.

Findings and the comparison with a plan choose alike, so both name the same exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple


class MoveRank(NamedTuple):
    """How good moves are; of two choices the greater one is taken."""

    num_inside: int
    """Moves inside one device: nobody walks, and no cable is too short."""
    height: int
    """How far above the hosts the plugs are: switches are in fewer racks than hosts."""


def rank_moves(moves: Iterable[tuple[int, int]], find_height: Callable[[int], int]) -> MoveRank:
    """Return the rank of moves.

    Args:
        moves: for each plug the device where it is, and the device that it goes to.
        find_height: returns how many cables are between a device and the nearest host.
    """
    num_inside = height = 0
    for start, end in moves:
        num_inside += start == end
        height += find_height(end)
    return MoveRank(num_inside, height)
