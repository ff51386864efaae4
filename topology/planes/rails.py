"""The rails of a plane: the ports that most hosts have under the same names."""

from __future__ import annotations

from typing import Final

import numpy as np

from topology.model.fabric import Fabric, Flags
from topology.model.ids import natural_key

_MIN_RAILS: Final = 2


def number_rails(fabric: Fabric, is_in_plane: Flags) -> dict[int, int]:
    """Return the rail of each port of a plane: the number of its name among those of most hosts.

    A fabric whose hosts have one port each, or share no names of ports, has no rails.

    Args:
        fabric: the ports.
        is_in_plane: one flag per port: whether a host has it in the plane.
    """
    ports = np.flatnonzero(is_in_plane)
    codes, texts = fabric.columns.port_names.code(ports)
    num_hosts = len(np.unique(fabric.columns.port_devices[ports]))
    counts = np.bincount(codes, minlength=len(texts)).tolist()
    usual = [text for text, count in zip(texts, counts, strict=True) if 2 * count >= num_hosts]
    if len(usual) < _MIN_RAILS:
        return {}
    rail_of = {text: number for number, text in enumerate(sorted(usual, key=natural_key), 1)}
    named = zip(ports.tolist(), codes.tolist(), strict=True)
    return {port: rail_of[texts[code]] for port, code in named if texts[code] in rail_of}
