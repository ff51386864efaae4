"""The names of sizes, losses and mixes of sources of `toponaut verify`.

Loads nothing else: the options of the command list the names.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

SIZES: Final = (512, 8192, 65536)
"""Approximate numbers of HCAs: hosts with three rails have slightly fewer."""


class GridSize(StrEnum):
    """Sizes of the grid."""

    QUICK = "quick"
    FULL = "full"
    ODD = "odd"
    """Fabrics that are not a regular Clos, at the two smaller sizes."""


class LossTarget(StrEnum):
    """Devices that are lost one after the other, one in each run."""

    SWITCH = "switch"
    HOST = "host"


class SourceMix(StrEnum):
    """Sources that are read together."""

    SWEEP = "sweep"
    """The sweeps of all subnets."""
    LISTED_SWEEP = "sweep+nodes"
    """The sweeps of all subnets and the node list."""
    LISTED_REPORTS = "reports+nodes"
    """The reports of hosts and Ethernet switches, and the node list."""
    ALL = "all"
    """The sweeps of all subnets, the reports and the node list."""
